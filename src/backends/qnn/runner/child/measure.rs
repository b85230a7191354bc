//! The measuring loop: two clock reads around graphExecute, and nothing else, per inference.

use super::clock::now_ns;
use super::emit::Emitter;
use super::inputs::InputSet;
use super::schedule::Schedule;
use crate::backends::qnn::api::{Execution, Profile, ProfileEvent, QnnError};
use crate::event::{Budget, Event, InferenceBatch, Phase};
use std::sync::atomic::{AtomicBool, Ordering};

/// Batches are sent this often, nanoseconds of measured time; the live view updates about 20 times a second.
const BATCH_NS: u64 = 50_000_000;
/// Largest batch: bounds the frame size for models of a few microseconds.
const BATCH_MAX: usize = 4096;

/// What runs inferences.
pub trait Executes {
    /// Why an inference failed.
    type Error;

    /// Runs one inference with the most recently set inputs.
    fn execute(&mut self, profile: Option<&Profile>) -> Result<(), Self::Error>;

    /// The backend's events of the last one.
    fn events(profile: &Profile) -> Result<Vec<ProfileEvent>, Self::Error>;

    /// Copies an input's data in; `false` if there is no such input or the size differs.
    fn set(&mut self, index: usize, data: &[u8]) -> bool;
}

impl Executes for Execution {
    type Error = QnnError;

    fn execute(&mut self, profile: Option<&Profile>) -> Result<(), QnnError> {
        self.run(profile)
    }

    fn events(profile: &Profile) -> Result<Vec<ProfileEvent>, QnnError> {
        profile.events()
    }

    fn set(&mut self, index: usize, data: &[u8]) -> bool {
        self.set_input(index, data)
    }
}

/// What a phase needs.
pub struct Loop<'a, X = Execution> {
    /// Where events go.
    pub emitter: &'a Emitter,
    /// The graph.
    pub execution: &'a mut X,
    /// Input sets, taken in turn.
    pub sets: &'a [InputSet],
    /// Set by the parent to end early.
    pub stop: &'a AtomicBool,
    /// Planned starts per second in the clean phase; `None`: back to back.
    pub rate_hz: Option<f64>,
}

/// One inference, as reported after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// Index within the phase.
    pub index: u64,
    /// Start on the monotonic clock, microseconds.
    pub start_us: u64,
    /// Stop on the monotonic clock, microseconds.
    pub stop_us: u64,
    /// The backend's events; none without a profile.
    pub events: Vec<ProfileEvent>,
}

impl<X: Executes> Loop<'_, X> {
    /// Runs one phase, or a part of it starting at inference `first_index`; returns the number of inferences. After
    /// each, outside the measured time, `on_each` is called, with the outputs still in place.
    pub fn run(
        &mut self,
        phase: Phase,
        first_index: u64,
        budget: Budget,
        profile: Option<&Profile>,
        mut on_each: impl FnMut(&X, Inference),
    ) -> Result<u64, X::Error> {
        if budget == Budget::Iterations(0) {
            return Ok(0);
        }
        // The announced count covers the whole phase so far, like the inferences' indices.
        let announced = match budget {
            Budget::Iterations(iterations) => Budget::Iterations(first_index + iterations),
            open @ (Budget::Seconds(_) | Budget::AtLeast { .. }) => open,
        };
        self.emitter.event(Event::PhaseStarted { phase, budget: announced });
        let mut batch = Batch::new(phase, first_index);
        let mut schedule = self.rate_hz.filter(|_| phase == Phase::Clean).map(Schedule::new);
        let begun = now_ns();
        let mut count = 0u64;
        loop {
            self.next_inputs(count);
            let planned = match &mut schedule {
                None => None,
                Some(schedule) => match schedule.wait(count, self.stop) {
                    planned @ Some(_) => planned,
                    None => return Ok(self.end(batch, Some(schedule), budget, count)),
                },
            };
            let start = now_ns();
            let result = self.execution.execute(profile);
            let end = now_ns();
            if let Err(error) = result {
                batch.send(self.emitter);
                return Err(error);
            }
            batch.push(start / 1000, end - start);
            batch.late_ns.extend(planned.map(|planned| start - planned));
            count += 1;
            let events = match profile {
                Some(profile) => X::events(profile)?,
                None => Vec::new(),
            };
            let index = first_index + count - 1;
            on_each(self.execution, Inference { index, start_us: start / 1000, stop_us: end / 1000, events });
            let elapsed = |seconds: f64| (end - begun) as f64 >= seconds * 1e9;
            let done = match (budget, &schedule) {
                (budget, Some(schedule)) => schedule.is_over(budget, count),
                (Budget::Iterations(iterations), None) => count >= iterations,
                (Budget::Seconds(seconds), None) => elapsed(seconds),
                (Budget::AtLeast { iterations, seconds }, None) => count >= iterations && elapsed(seconds),
            };
            if done || self.stop.load(Ordering::Relaxed) {
                return Ok(self.end(batch, schedule.as_ref(), budget, count));
            }
            if batch.is_due(end) {
                batch.send(self.emitter);
            }
        }
    }

    /// Sends what is left of a phase's data.
    fn end(&self, mut batch: Batch, schedule: Option<&Schedule>, budget: Budget, count: u64) -> u64 {
        batch.send(self.emitter);
        if let Some(schedule) = schedule {
            let stopped = self.stop.load(Ordering::Relaxed);
            self.emitter.event(Event::PaceReported(schedule.report(budget, count, stopped)));
        }
        count
    }

    /// Gives the graph the next input set; a single set is already in place.
    fn next_inputs(&mut self, count: u64) {
        if self.sets.len() > 1 {
            let index = usize::try_from(count % self.sets.len() as u64).unwrap_or(0);
            load(self.execution, &self.sets[index]);
        }
    }
}

/// Copies an input set into the graph's buffers. The sizes were checked when the set was made.
pub fn load(execution: &mut impl Executes, set: &InputSet) {
    for (index, data) in set.iter().enumerate() {
        let fits = execution.set(index, data);
        debug_assert!(fits, "input sets are checked against the tensors");
    }
}

struct Batch {
    phase: Phase,
    first_index: u64,
    since_ns: u64,
    start_us: Vec<u64>,
    latency_ns: Vec<u64>,
    late_ns: Vec<u64>,
}

impl Batch {
    fn new(phase: Phase, first_index: u64) -> Self {
        Self {
            phase,
            first_index,
            since_ns: now_ns(),
            start_us: Vec::with_capacity(BATCH_MAX),
            latency_ns: Vec::with_capacity(BATCH_MAX),
            late_ns: Vec::new(),
        }
    }

    fn push(&mut self, start_us: u64, latency_ns: u64) {
        self.start_us.push(start_us);
        self.latency_ns.push(latency_ns);
    }

    fn is_due(&self, now: u64) -> bool {
        self.latency_ns.len() >= BATCH_MAX || now - self.since_ns >= BATCH_NS
    }

    fn send(&mut self, emitter: &Emitter) {
        self.since_ns = now_ns();
        if self.latency_ns.is_empty() {
            return;
        }
        let count = self.latency_ns.len() as u64;
        emitter.event(Event::Inferences(InferenceBatch {
            phase: self.phase,
            first_index: self.first_index,
            start_us: std::mem::replace(&mut self.start_us, Vec::with_capacity(BATCH_MAX)),
            latency_ns: std::mem::replace(&mut self.latency_ns, Vec::with_capacity(BATCH_MAX)),
            late_ns: std::mem::take(&mut self.late_ns),
        }));
        self.first_index += count;
    }
}
