//! The device's counters shown beside a log that is being watched.

use super::CliError;
use crate::devices::Device;
use crate::event::{CounterInfo, Event, clean_text};
use crate::probes::{CounterOptions, Options, Rate, Sampler, discover};
use crate::report::comparison::value_text;
use crate::session::Hub;
use crate::text::titled;
use serde::Serialize;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// Readings per second: people read them beside a diagnosis.
const RATE_HZ: f64 = 2.0;
/// Maximum number of counters shown; the document has the rest.
const SHOWN: usize = 16;

/// The latest value of a counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    id: String,
    #[serde(skip)]
    label: String,
    unit: String,
    value: f64,
}

/// Reads the counters of a device until dropped.
pub struct Beside {
    device: String,
    latest: watch::Receiver<Vec<Reading>>,
    _sampler: Sampler,
}

impl Beside {
    /// Starts reading what the catalogue chooses for this device; `None` if it has nothing to read.
    pub async fn start(device: &Device) -> Result<Option<Self>, CliError> {
        let options = CounterOptions::new(RATE_HZ, Vec::new(), None)?;
        let root = device.describe().await?.root;
        let found = discover(device, root, &options.custom).await?;
        let (counters, _) = options.choose(&found);
        if counters.is_empty() {
            return Ok(None);
        }
        let (mut hub, source) = Hub::new(None);
        let sampler_options =
            Options { rate: Rate::Hertz(RATE_HZ), pid: None, suspended_us: found.suspended_us, persists: true };
        let sampler = Sampler::start(device, root, counters, sampler_options, source);
        let (newest, latest) = watch::channel(Vec::new());
        tokio::spawn(async move {
            let mut readings = Readings::default();
            while let Some(record) = hub.next().await {
                if readings.take(record.event) && newest.send(readings.list()).is_err() {
                    return;
                }
            }
        });
        Ok(Some(Self { device: device.id().to_owned(), latest, _sampler: sampler }))
    }

    /// The latest values of the counters.
    pub fn readings(&self) -> Vec<Reading> {
        self.latest.borrow().clone()
    }

    /// The same in lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        let readings = self.latest.borrow();
        let mut parts: Vec<String> = readings
            .iter()
            .take(SHOWN)
            .map(|reading| format!("{} {}", reading.label, value_text(reading.value, &reading.unit)))
            .collect();
        if readings.len() > SHOWN {
            parts.push(format!("and {} more", readings.len() - SHOWN));
        }
        if !parts.is_empty() {
            titled(&mut out, &format!("{} now: ", clean_text(&self.device)), &parts.join(", "), width);
        }
        out
    }
}

/// Counters with their latest values.
#[derive(Default)]
struct Readings {
    sets: BTreeMap<u32, Vec<CounterInfo>>,
    values: BTreeMap<String, Reading>,
}

impl Readings {
    /// Returns true if a value is new.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::CounterSetDeclared(set) => {
                self.sets.insert(set.set, set.counters);
                false
            }
            Event::Counters(sample) => {
                let Some(counters) = self.sets.get(&sample.set) else { return false };
                for (counter, value) in counters.iter().zip(&sample.values) {
                    let Some(value) = *value else {
                        // A counter without a current value must not show an old one.
                        self.values.remove(&counter.id);
                        continue;
                    };
                    let (id, label, unit) = (counter.id.clone(), counter.label.clone(), counter.unit.clone());
                    self.values.insert(counter.id.clone(), Reading { id, label, unit, value });
                }
                true
            }
            // An old value would pass for a new one.
            Event::SamplerEnded(_) => {
                self.values.clear();
                true
            }
            _ => false,
        }
    }

    fn list(&self) -> Vec<Reading> {
        self.values.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CounterSample, CounterSet, SamplerEnded};

    #[test]
    fn only_what_has_a_value_now_is_listed() {
        let counter = |id: &str| CounterInfo {
            id: id.to_owned(),
            label: id.to_owned(),
            unit: "%".to_owned(),
            maximum: None,
            unavailable: None,
        };
        let mut readings = Readings::default();
        let sample = |values| Event::Counters(CounterSample { set: 1, t_us: 0, values });
        assert!(!readings.take(sample(vec![Some(1.0)])), "nobody said which counters these are");
        let counters = vec![counter("a"), counter("b")];
        let set = CounterSet { set: 1, device: "d".to_owned(), period_us: 1, counters };
        assert!(!readings.take(Event::CounterSetDeclared(set)));
        assert!(readings.take(sample(vec![Some(1.0), Some(2.0)])));
        assert_eq!(readings.list().iter().map(|reading| reading.value).collect::<Vec<_>>(), [1.0, 2.0]);
        assert!(readings.take(sample(vec![None, Some(3.0)])));
        assert_eq!(readings.list().iter().map(|reading| reading.value).collect::<Vec<_>>(), [3.0]);
        let ended = SamplerEnded { device: "d".to_owned(), reason: None, resumes: false };
        assert!(readings.take(Event::SamplerEnded(ended)) && readings.list().is_empty());
    }
}
