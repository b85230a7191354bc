//! Counters of this machine, through sysinfo.

use crate::event::{CounterInfo, CounterSample, Event, now_us};
use crate::session::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sysinfo::{Components, CpuRefreshKind, MINIMUM_CPU_UPDATE_INTERVAL, MemoryRefreshKind, RefreshKind, System};

/// Default period. sysinfo cannot measure CPU use over less than 200 ms.
const PERIOD: Duration = Duration::from_millis(250);

/// This machine's hottest sensor now, °C; `None` if none is readable.
pub fn hottest_celsius() -> Option<f64> {
    hottest(&Components::new_with_refreshed_list().ok()?)
}

fn hottest(components: &Components) -> Option<f64> {
    components.iter().filter_map(sysinfo::Component::temperature).reduce(f32::max).map(f64::from)
}

/// Samples this machine's counters on its own thread until dropped.
#[derive(Debug)]
pub struct HostProbe {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl HostProbe {
    /// Starts sampling into `source`. The first event declares the counters.
    pub fn start(source: Source) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("host-probe".to_owned())
            .spawn(move || sample_until(&stopped, &source))
            .ok();
        Self { stop, thread }
    }
}

impl Drop for HostProbe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn sample_until(stop: &AtomicBool, source: &Source) {
    let mut host = Host::new();
    if !source.offer(None, Event::CountersDeclared(host.declare())) {
        return;
    }
    let period = PERIOD.max(MINIMUM_CPU_UPDATE_INTERVAL);
    let mut next = Instant::now() + period;
    loop {
        while Instant::now() < next {
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
        // A late tick is not made up for: two in a row would show the same.
        next = (next + period).max(Instant::now());
        let sample = CounterSample { set: 0, t_us: now_us(), values: host.sample() };
        if !source.offer(None, Event::Counters(sample)) {
            return;
        }
    }
}

struct Host {
    /// `None` if sysinfo does not support this system; every counter then says so.
    system: Option<System>,
    components: Option<Components>,
}

impl Host {
    fn new() -> Self {
        let what =
            RefreshKind::nothing().with_cpu(CpuRefreshKind::everything()).with_memory(MemoryRefreshKind::everything());
        Self { system: System::new_with_specifics(what).ok(), components: Components::new_with_refreshed_list().ok() }
    }

    fn declare(&mut self) -> Vec<CounterInfo> {
        let unknown = self.system.is_none().then_some("this system does not report it");
        let counter = |id: &str, label: &str, unit: &str, maximum, unavailable: Option<&str>| CounterInfo {
            id: id.to_owned(),
            label: label.to_owned(),
            unit: unit.to_owned(),
            maximum,
            unavailable: unavailable.map(ToOwned::to_owned),
        };
        let cores = self.system.as_ref().map(|system| system.cpus().len().max(1) as f64);
        let memory = self.system.as_ref().map(|system| system.total_memory() as f64);
        let no_load = System::load_average().is_err().then_some("this system has no load average");
        let no_clock = self.frequency_mhz().is_none().then_some("this system does not report processor clocks");
        let no_sensor = self.hottest_celsius().is_none().then_some("this system has no readable temperature sensor");
        vec![
            counter("host.cpu.busy", "CPU busy", "%", Some(100.0), unknown),
            counter("host.cpu.busiest", "busiest core", "%", Some(100.0), unknown),
            counter("host.cpu.freq", "CPU clock", "MHz", None, no_clock),
            counter("host.load.1m", "load, 1 min", "", cores, no_load),
            counter("host.memory.used", "memory used", "bytes", memory, unknown),
            counter("host.temp.max", "hottest sensor", "°C", None, no_sensor),
        ]
    }

    fn sample(&mut self) -> Vec<Option<f64>> {
        if let Some(system) = &mut self.system {
            system.refresh_cpu_all();
            system.refresh_memory();
        }
        if let Some(components) = &mut self.components {
            components.refresh(false);
        }
        let system = self.system.as_ref();
        let busiest = system.and_then(|system| system.cpus().iter().map(sysinfo::Cpu::usage).reduce(f32::max));
        vec![
            system.map(|system| f64::from(system.global_cpu_usage())),
            busiest.map(f64::from),
            self.frequency_mhz(),
            System::load_average().ok().map(|load| load.one),
            system.map(|system| system.used_memory() as f64),
            self.hottest_celsius(),
        ]
    }

    /// Mean clock of the cores; zero if the system does not report it.
    fn frequency_mhz(&self) -> Option<f64> {
        let cpus = self.system.as_ref()?.cpus();
        let clocks: Vec<f64> = cpus.iter().map(|cpu| cpu.frequency() as f64).filter(|mhz| *mhz > 0.0).collect();
        (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64)
    }

    fn hottest_celsius(&self) -> Option<f64> {
        hottest(self.components.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_match_the_declaration() {
        let mut host = Host::new();
        let declared = host.declare();
        let sample = host.sample();
        assert_eq!(declared.len(), sample.len());
        for (info, value) in declared.iter().zip(&sample) {
            assert!(info.unavailable.is_none() || value.is_none(), "{} is unavailable and has a value", info.id);
        }
        let memory = declared.iter().position(|c| c.id == "host.memory.used").unwrap();
        assert!(sample[memory].unwrap() > 0.0);
    }
}
