//! Waits until a device is as cool as before the first run.

use crate::analysis::is_heat;
use crate::event::{CoolDown, CoolDownEnd, Cooling, CounterInfo, Event, RunId, now_us};
use crate::probes::hottest_celsius;
use crate::session::{Observer, Source};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Interval at which the readings are checked.
const LOOK: Duration = Duration::from_millis(250);
/// Interval at which progress is reported on the stream, microseconds.
const TELL_US: u64 = 1_000_000;
/// A temperature this close to its initial value has recovered, °C: sensors fluctuate by as much on an idle device.
const MARGIN_C: f64 = 2.0;
/// A clock limit within this share of its initial value has recovered.
const LIMIT_SHARE: f64 = 0.98;
/// How long to wait for a new reading of slow counters, microseconds; those not read by then are ignored.
const FRESH_US: u64 = 5_000_000;
/// Length of the pause if no temperature is readable, microseconds.
const FIXED_US: u64 = 30_000_000;
/// Name of this machine's own sensor.
const HOST_SENSOR: &str = "host.temp.max";

/// How a counter recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A temperature: falls to its initial value.
    Heat,
    /// A clock limit: rises to its initial value.
    Limit,
    /// Android's thermal status: falls to its initial value.
    Status,
}

impl Kind {
    fn of(id: &str) -> Option<Self> {
        let under = |name: &str| id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        match id {
            _ if is_heat(id) => Some(Self::Heat),
            _ if under("cpu.limit") || under("gpu.freq.limit") => Some(Self::Limit),
            "service.thermal.status" => Some(Self::Status),
            _ => None,
        }
    }

    /// The value to return to.
    fn target(self, first: f64) -> f64 {
        match self {
            Self::Heat => first + MARGIN_C,
            Self::Limit => first * LIMIT_SHARE,
            Self::Status => first,
        }
    }

    fn is_back(self, value: f64, first: f64) -> bool {
        let target = self.target(first);
        if self == Self::Limit { value >= target } else { value <= target }
    }
}

/// A counter at the start of the session and now.
#[derive(Debug, Clone)]
struct Reading {
    kind: Kind,
    unit: String,
    first: f64,
    now: f64,
    /// Time of the latest value, host monotonic microseconds.
    at_us: u64,
}

#[derive(Debug, Default)]
struct Seen {
    /// Device and counters of each set.
    sets: BTreeMap<u32, (String, Vec<CounterInfo>)>,
    /// By device and id.
    readings: BTreeMap<(String, String), Reading>,
}

/// Watches device counters on their way to the hub: their first values, from before the first run, and their
/// latest.
#[derive(Debug, Default)]
pub struct HeatWatch(Mutex<Seen>);

impl Observer for HeatWatch {
    fn see(&self, event: &Event) {
        match event {
            Event::CounterSetDeclared(set) => {
                self.seen().sets.insert(set.set, (set.device.clone(), set.counters.clone()));
            }
            Event::Counters(sample) if sample.set != 0 => {
                let mut seen = self.seen();
                let Seen { sets, readings } = &mut *seen;
                let Some((device, counters)) = sets.get(&sample.set) else { return };
                for (info, value) in counters.iter().zip(&sample.values) {
                    let (Some(kind), Some(value)) = (Kind::of(&info.id), value) else { continue };
                    readings
                        .entry((device.clone(), info.id.clone()))
                        .and_modify(|reading| (reading.now, reading.at_us) = (*value, sample.t_us))
                        .or_insert_with(|| Reading {
                            kind,
                            unit: info.unit.clone(),
                            first: *value,
                            now: *value,
                            at_us: sample.t_us,
                        });
                }
            }
            _ => {}
        }
    }
}

impl HeatWatch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readings(&self, device: &str) -> BTreeMap<String, Reading> {
        let seen = self.seen();
        let of_device = seen.readings.iter().filter(|((of, _), _)| of == device);
        of_device.map(|((_, id), reading)| (id.clone(), reading.clone())).collect()
    }
}

/// A pause before a run.
pub struct Pause<'a> {
    /// Where events go.
    pub source: &'a Source,
    /// The run that is waiting.
    pub run: RunId,
    /// Its device.
    pub device: &'a str,
    /// Maximum time to wait.
    pub limit: Duration,
    /// Counters of devices.
    pub watch: &'a HeatWatch,
    /// This machine's hottest sensor before the first run, °C, if the run is here.
    pub host_celsius: Option<f64>,
}

impl Pause<'_> {
    /// Waits, reporting on the stream. Returns false if the user ended the pause, and with it the run.
    pub async fn wait(&self, stop: &mut watch::Receiver<bool>) -> bool {
        let begun_us = now_us();
        let limit_us = u64::try_from(self.limit.as_micros()).unwrap_or(u64::MAX);
        let mut told_us = 0;
        loop {
            let mut readings = self.readings();
            let waited_us = now_us() - begun_us;
            // Readings from before the pause show how warm the device was, not how warm it is now.
            let fresh = readings.values().all(|reading| reading.at_us >= begun_us);
            if waited_us >= FRESH_US {
                readings.retain(|_, reading| reading.at_us >= begun_us);
            }
            let heat = readings.values().any(|reading| reading.kind == Kind::Heat);
            let mut state = CoolDown {
                device: self.device.to_owned(),
                waited_us,
                limit_us: if heat { limit_us } else { limit_us.min(FIXED_US) },
                watched: readings.len() as u64,
                waiting_for: waiting_for(&readings),
                end: None,
            };
            state.end = match () {
                () if *stop.borrow() => Some(CoolDownEnd::Stopped),
                () if heat && state.waiting_for.is_empty() && (fresh || waited_us >= FRESH_US) => {
                    Some(CoolDownEnd::Back)
                }
                () if waited_us >= state.limit_us => Some(if heat { CoolDownEnd::Limit } else { CoolDownEnd::Fixed }),
                () => None,
            };
            if state.end.is_some() || told_us == 0 || now_us() - told_us >= TELL_US {
                told_us = now_us();
                let end = state.end;
                self.source.send(Some(self.run), Event::CoolingDown(state)).await;
                if let Some(end) = end {
                    return end != CoolDownEnd::Stopped;
                }
            }
            // A dropped sender will never stop anything.
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                changed = stop.changed() => if changed.is_err() { tokio::time::sleep(LOOK).await; },
            }
        }
    }

    /// The device's counters; without any, this machine's own sensor.
    fn readings(&self) -> BTreeMap<String, Reading> {
        let mut readings = self.watch.readings(self.device);
        if !readings.values().any(|reading| reading.kind == Kind::Heat)
            && let Some((first, now)) = self.host_celsius.zip(hottest_celsius())
        {
            let unit = "°C".to_owned();
            readings.insert(HOST_SENSOR.to_owned(), Reading { kind: Kind::Heat, unit, first, now, at_us: now_us() });
        }
        readings
    }
}

/// Readings that have not recovered, furthest off first.
fn waiting_for(readings: &BTreeMap<String, Reading>) -> Vec<Cooling> {
    let off = readings.iter().filter(|(_, reading)| !reading.kind.is_back(reading.now, reading.first));
    let mut off: Vec<Cooling> = off
        .map(|(id, reading)| Cooling {
            id: id.clone(),
            unit: reading.unit.clone(),
            value: reading.now,
            target: reading.kind.target(reading.first),
        })
        .collect();
    let share = |cooling: &Cooling| (cooling.value - cooling.target).abs() / cooling.target.abs().max(1.0);
    off.sort_by(|a, b| share(b).total_cmp(&share(a)));
    off
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CounterSample, CounterSet};
    use crate::session::Hub;

    fn watch_of(ids: &[&str]) -> HeatWatch {
        let watch = HeatWatch::default();
        let counters = ids.iter().map(|id| CounterInfo {
            id: (*id).to_owned(),
            label: String::new(),
            unit: "u".to_owned(),
            maximum: None,
            unavailable: None,
        });
        let set = CounterSet { set: 3, device: "d".to_owned(), period_us: 0, counters: counters.collect() };
        watch.see(&Event::CounterSetDeclared(set));
        watch
    }

    fn tick(watch: &HeatWatch, values: &[f64]) {
        let values = values.iter().map(|value| Some(*value)).collect();
        // Readings in tests are always fresh, unless meant to be old.
        watch.see(&Event::Counters(CounterSample { set: 3, t_us: u64::MAX, values }));
    }

    #[test]
    fn what_is_hot_or_held_back_is_waited_for() {
        let watch = watch_of(&["thermal.npu.a", "cpu.limit.policy0", "service.thermal.status", "thermal.battery", "x"]);
        tick(&watch, &[40.0, 2000.0, 0.0, 30.0, 1.0]);
        let off = |values: &[f64]| {
            tick(&watch, values);
            waiting_for(&watch.readings("d")).into_iter().map(|cooling| cooling.id).collect::<Vec<_>>()
        };
        assert!(off(&[41.9, 1990.0, 0.0, 50.0, 9.0]).is_empty());
        assert_eq!(off(&[60.0, 1990.0, 0.0, 50.0, 9.0]), ["thermal.npu.a"]);
        assert_eq!(off(&[39.0, 1500.0, 2.0, 50.0, 9.0]), ["service.thermal.status", "cpu.limit.policy0"]);
        assert!(watch.readings("another").is_empty());
    }

    /// The pause's events.
    async fn pause(watch: &HeatWatch, limit: Duration, stop_now: bool) -> (bool, Vec<CoolDown>) {
        let (mut hub, source) = Hub::new(None);
        let (stop, mut stopped) = watch::channel(false);
        if stop_now {
            stop.send(true).unwrap();
        }
        let pause = Pause { source: &source, run: RunId(1), device: "d", limit, watch, host_celsius: None };
        let goes_on = pause.wait(&mut stopped).await;
        drop(source);
        let mut told = Vec::new();
        while let Some(record) = hub.next().await {
            let Event::CoolingDown(state) = record.event else { panic!("{record:?}") };
            told.push(state);
        }
        (goes_on, told)
    }

    #[tokio::test]
    async fn every_end_is_told() {
        let watch = watch_of(&["thermal.cpu.a"]);
        tick(&watch, &[40.0]);
        let (goes_on, told) = pause(&watch, Duration::from_secs(9), false).await;
        assert_eq!((goes_on, told.len(), told[0].end), (true, 1, Some(CoolDownEnd::Back)));
        tick(&watch, &[70.0]);
        let (goes_on, told) = pause(&watch, Duration::from_millis(300), false).await;
        let end = told.last().unwrap();
        assert_eq!((goes_on, end.end, end.waiting_for.len()), (true, Some(CoolDownEnd::Limit), 1));
        assert_eq!((told[0].end, told[0].waiting_for[0].target), (None, 42.0));
        let (goes_on, told) = pause(&watch, Duration::from_secs(9), true).await;
        assert_eq!((goes_on, told[0].end), (false, Some(CoolDownEnd::Stopped)));
        let old = watch_of(&["thermal.cpu.a"]);
        old.see(&Event::Counters(CounterSample { set: 3, t_us: 0, values: vec![Some(40.0)] }));
        let (_, told) = pause(&old, Duration::from_millis(300), false).await;
        assert_eq!(told.last().unwrap().end, Some(CoolDownEnd::Limit), "a reading from before says nothing of now");
        let (goes_on, told) = pause(&HeatWatch::default(), Duration::from_millis(300), false).await;
        assert_eq!((goes_on, told.last().unwrap().end), (true, Some(CoolDownEnd::Fixed)));
    }
}
