//! A stream that a test sends event by event.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive numbers of tests")]

use super::made::{PHONE, silent_phone};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{
    Budget, Constraints, CounterInfo, CounterSample, CounterSet, DeviceFacts, DeviceInfo, DeviceKind, Driver, Event,
    InferenceBatch, Mode, PaceReport, Phase, Record, RunId, RunPlan, RunStatus,
};
use crate::store::{Run, Store};

/// A plain run on the phone.
pub fn plan() -> RunPlan {
    RunPlan {
        device: PHONE.to_owned(),
        backend: Backend::Htp,
        model: "m.dlc".to_owned(),
        warmup: 0,
        budget: Budget::Iterations(100),
        profiling: ProfilingLevel::Off,
        profiling_budget: None,
        simulated: false,
        driver: Driver::DeviceRunner,
        energy_while_charging: false,
        mode: Mode::default(),
        constraints: Constraints::default(),
    }
}

/// A store with its stream.
pub struct Feed {
    /// The resulting store.
    pub store: Store,
    runs: u32,
    /// Time of the newest event, microseconds.
    pub now_us: u64,
}

impl Feed {
    /// A phone at this temperature, with a run that has started.
    pub fn on_phone(plan: RunPlan, celsius: Option<f64>) -> Self {
        let mut feed = Self { store: Store::new(), runs: 0, now_us: 1_000_000 };
        let device = DeviceInfo {
            id: PHONE.to_owned(),
            kind: DeviceKind::Adb,
            soc: Some("SM8650".to_owned()),
            ..crate::devices::local_device()
        };
        feed.send(None, Event::DeviceSeen(device));
        let facts = DeviceFacts { hottest_celsius: celsius, ..silent_phone() };
        feed.send(None, Event::DeviceDescribed(Box::new(facts)));
        feed.start(plan);
        feed
    }

    /// Starts the next run.
    pub fn start(&mut self, plan: RunPlan) {
        self.runs += 1;
        self.run(Event::RunStarted(Box::new(plan)));
    }

    /// Sends an event.
    pub fn send(&mut self, run: Option<RunId>, event: Event) {
        self.store.apply(&Record { seq: 0, t_us: self.now_us, run, event });
    }

    /// Sends an event of the newest run.
    pub fn run(&mut self, event: Event) {
        self.send(Some(RunId(self.runs - 1)), event);
    }

    /// Clean inferences, back to back, with these latencies in microseconds.
    pub fn clean(&mut self, first: u64, count: u64, latency: impl Fn(u64) -> f64) {
        for index in first..first + count {
            let us = latency(index);
            let (start_us, latency_ns) = (vec![self.now_us], vec![(us * 1000.0) as u64]);
            let late_ns = Vec::new();
            self.run(Event::Inferences(InferenceBatch {
                phase: Phase::Clean,
                first_index: index,
                start_us,
                latency_ns,
                late_ns,
            }));
            self.now_us += us as u64;
        }
    }

    /// Clean inferences on a schedule from now on, all taking the same time.
    pub fn paced(&mut self, rate_hz: f64, count: u64, service_us: u64) {
        let (begun, period) = (self.now_us, 1e6 / rate_hz);
        for index in 0..count {
            let planned = begun + (index as f64 * period) as u64;
            let start = planned.max(self.now_us);
            let (start_us, latency_ns, late_ns) =
                (vec![start], vec![service_us * 1000], vec![(start - planned) * 1000]);
            self.run(Event::Inferences(InferenceBatch {
                phase: Phase::Clean,
                first_index: index,
                start_us,
                latency_ns,
                late_ns,
            }));
            self.now_us = start + service_us;
        }
        let wall_us = (self.now_us - begun) as f64;
        let (planned, done) = (count, count);
        self.run(Event::PaceReported(PaceReport {
            rate_hz,
            planned,
            done,
            wall_us,
            waited_us: 0.0,
            wait_cpu_us: 0.0,
            worst_start_us: 0.0,
        }));
    }

    /// Declares counters of the phone.
    pub fn declare(&mut self, ids: &[(&str, &str)]) {
        let counters = ids.iter().map(|(id, unit)| CounterInfo {
            id: (*id).to_owned(),
            label: (*id).to_owned(),
            unit: (*unit).to_owned(),
            maximum: None,
            unavailable: None,
        });
        let set = CounterSet { set: 1, device: PHONE.to_owned(), period_us: 1, counters: counters.collect() };
        self.send(None, Event::CounterSetDeclared(set));
    }

    /// Sends a tick of these counters at the current time.
    pub fn tick(&mut self, values: &[f64]) {
        let values = values.iter().map(|value| Some(*value)).collect();
        self.send(None, Event::Counters(CounterSample { set: 1, t_us: self.now_us, values }));
    }

    /// Ends the newest run.
    pub fn end(&mut self) {
        self.run(Event::RunFinished { status: RunStatus::Ok });
    }

    /// The first run.
    pub fn only(&self) -> &Run {
        &self.store.runs()[0]
    }
}
