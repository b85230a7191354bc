//! The detailed phase, and the figures a backend reports per inference.

use super::emit::Emitter;
use super::events;
use super::measure::{Inference, Loop};
use super::run_log::RunLog;
use crate::backends::qnn::api::{Profile, ProfileEvent, QnnError};
use crate::event::{Budget, Event, MetricSample, OpSample, Phase};
use crate::models::Graph;
use std::sync::atomic::Ordering;

/// Sends the figures of one inference.
pub fn send_metrics(emitter: &Emitter, phase: Phase, inference: u64, events: &[ProfileEvent]) {
    let metrics = events::metrics(events);
    if !metrics.is_empty() {
        emitter.event(Event::Metrics(MetricSample { phase, inference, metrics }));
    }
}

/// Detailed inferences before the clean phase, so that a viewer sees the layers at once.
const LEAD: u64 = 5;

/// The detailed phase in two parts: a few inferences before the clean phase, the rest after it.
pub fn split(budget: Budget) -> (Budget, Budget) {
    match budget {
        Budget::Iterations(all) => (Budget::Iterations(all.min(LEAD)), Budget::Iterations(all.saturating_sub(LEAD))),
        open @ (Budget::Seconds(_) | Budget::AtLeast { .. }) => (Budget::Iterations(LEAD), open),
    }
}

/// The detailed phase: op times of each inference.
pub struct Layers<'a> {
    emitter: &'a Emitter,
    graph: &'a Graph,
    profile: Option<Profile>,
    declared: bool,
    done: u64,
}

impl<'a> Layers<'a> {
    /// A phase without any measurements yet.
    pub fn new(emitter: &'a Emitter, graph: &'a Graph, profile: Option<Profile>) -> Self {
        Self { emitter, graph, profile, declared: false, done: 0 }
    }

    /// Inferences so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Measures a part of the phase.
    pub fn measure(&mut self, budget: Budget, measuring: &mut Loop<'_>, log: &RunLog) -> Result<(), QnnError> {
        if measuring.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let profile = self.profile.take();
        let result = measuring.run(Phase::Detailed, self.done, budget, profile.as_ref(), |_, inference| {
            log.inference(&inference);
            self.take(&inference);
        });
        self.profile = profile;
        self.done += result?;
        Ok(())
    }

    /// Sends the op times and figures of one inference.
    pub fn take(&mut self, inference: &Inference) {
        let nodes = events::nodes(&inference.events);
        if !nodes.is_empty() {
            if !std::mem::replace(&mut self.declared, true) {
                self.emitter.event(Event::OpsDeclared(events::rows(&nodes, self.graph)));
            }
            // The store counts an inference whose ops differ from the first one's as not matching.
            let values = nodes.iter().map(|node| node.value).collect();
            self.emitter.event(Event::OpTimes(OpSample { inference: inference.index, values }));
        }
        send_metrics(self.emitter, Phase::Detailed, inference.index, &inference.events);
    }
}
