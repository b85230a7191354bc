//! A device's counters over a session: discovered once, sampled during runs, also after a lost link.

use super::counter::Counter;
use super::custom::{CustomError, default_path, load};
use super::discovery::{Discovery, discover};
use super::sampler::{Options, Rate, Sampler};
use crate::devices::{Device, DeviceError, Root};
use crate::event::{CounterInfo, CounterSet, Event, LogLevel, LogLine, LogSource};
use crate::session::Source;
use std::path::Path;

/// The user's choice.
#[derive(Debug, Clone, Default)]
pub struct CounterOptions {
    /// How often to read the fast ones; `None`: no sampling.
    pub rate: Option<Rate>,
    /// Ids, groups or globs; empty: what the catalogue chooses.
    pub patterns: Vec<String>,
    /// Counters of the user's own.
    pub custom: Vec<Counter>,
}

impl CounterOptions {
    /// The options with the user's own counters from `file`, or from the config folder if there is such a file.
    pub fn new(rate_hz: f64, patterns: Vec<String>, file: Option<&Path>) -> Result<Self, CustomError> {
        let custom = match (file, default_path().filter(|path| path.exists())) {
            (Some(file), _) => load(file)?,
            (None, Some(file)) => load(&file)?,
            (None, None) => Vec::new(),
        };
        let rate = (rate_hz > 0.0).then_some(Rate::Hertz(rate_hz));
        Ok(Self { rate, patterns, custom })
    }

    /// The requested counters of a device, and the patterns without a match.
    pub fn choose(&self, found: &Discovery) -> (Vec<Counter>, Vec<String>) {
        if self.patterns.is_empty() {
            return (found.chosen(), Vec::new());
        }
        found.select(&self.patterns)
    }
}

/// Number of the set for unreadable counters; declared but never sampled.
const UNREADABLE_SET: u32 = u32::MAX;

/// Samples a device until dropped.
#[derive(Debug)]
pub struct DeviceProbe {
    device: Device,
    root: Root,
    counters: Vec<Counter>,
    options: Options,
    source: Source,
    sampler: Sampler,
}

impl DeviceProbe {
    /// Discovers a device's counters and samples the requested ones. `None` if none is requested or readable;
    /// unreadable ones are declared with their reason.
    pub async fn start(
        device: &Device,
        root: Root,
        wanted: &CounterOptions,
        source: &Source,
    ) -> Result<Option<Self>, DeviceError> {
        let Some(rate) = wanted.rate else { return Ok(None) };
        let found = discover(device, root, &wanted.custom).await?;
        let (counters, unknown) = wanted.choose(&found);
        for pattern in unknown {
            let text = format!("{} has no counter named {pattern}", device.id());
            source.send(None, Event::Log(LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &text))).await;
        }
        if wanted.patterns.is_empty() {
            let counters: Vec<CounterInfo> = found.unreadable.iter().map(|counter| counter.info.clone()).collect();
            let set = CounterSet { set: UNREADABLE_SET, device: device.id().to_owned(), period_us: 0, counters };
            source.send(None, Event::CounterSetDeclared(set)).await;
        }
        if counters.is_empty() {
            return Ok(None);
        }
        let options = Options { rate, pid: None, suspended_us: found.suspended_us, persists: true };
        let sampler = Sampler::start(device, root, counters.clone(), options, source.clone());
        Ok(Some(Self { device: device.clone(), root, counters, options, source: source.clone(), sampler }))
    }

    /// Sets the process whose memory and CPU time to read.
    pub fn watch(&self, pid: Option<u32>) {
        self.sampler.watch(pid);
    }

    /// The device is back, or a run begins: resumes sampling if interrupted or ended.
    pub fn revive(&mut self) {
        self.sampler.retry();
        if self.sampler.is_ended() {
            self.sampler =
                Sampler::start(&self.device, self.root, self.counters.clone(), self.options, self.source.clone());
        }
    }

    /// Ends sampling, and the loop on the device with it.
    pub async fn stop(self) {
        self.sampler.stop().await;
    }
}
