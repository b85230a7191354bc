//! Combines the rounds' data into one run: phases, indices, op rows, batches.

use super::messages::ToolMessage;
use crate::backends::qnn::api::ProfileEvent;
use crate::backends::qnn::runner::profile_events as events;
use crate::event::{Event, InferenceBatch, MetricSample, OpSample, Phase};
use crate::models::Graph;
use std::collections::BTreeMap;

/// Largest batch of inferences in one event.
const BATCH: usize = 4096;

/// Where an inference of a round belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundPlan {
    /// What the round is for.
    pub phase: Phase,
    /// Inferences at its start that are only warm-up.
    pub warmup: u64,
}

/// The run so far.
#[derive(Debug)]
pub struct RunFold {
    graph: Graph,
    first_seen: bool,
    rows_declared: bool,
    done: BTreeMap<Phase, u64>,
    in_round: u64,
    /// Start of the first and end of the last inference of the round, device's steady clock, microseconds.
    span_us: Option<(u64, u64)>,
    batch: Option<InferenceBatch>,
}

impl RunFold {
    /// A run of which nothing is known yet, except perhaps the graph.
    pub fn new(graph: Option<Graph>) -> Self {
        let empty =
            Graph { name: String::new(), inputs: Vec::new(), outputs: Vec::new(), ops: Vec::new(), parameter_bytes: 0 };
        Self {
            graph: graph.unwrap_or(empty),
            first_seen: false,
            rows_declared: false,
            done: BTreeMap::new(),
            in_round: 0,
            span_us: None,
            batch: None,
        }
    }

    /// Begins a round.
    pub fn begin_round(&mut self) {
        self.in_round = 0;
        self.span_us = None;
    }

    /// Inferences of the round so far.
    pub fn in_round(&self) -> u64 {
        self.in_round
    }

    /// Time from the start of the round's first inference to the end of its last, microseconds.
    pub fn round_span_us(&self) -> u64 {
        self.span_us.map_or(0, |(start, end)| end.saturating_sub(start))
    }

    /// Inferences of a phase so far.
    pub fn done(&self, phase: Phase) -> u64 {
        self.done.get(&phase).copied().unwrap_or(0)
    }

    /// All inferences so far.
    pub fn all(&self) -> u64 {
        self.done.values().sum()
    }

    /// Adds an inference: `host_us` is its start on the host's clock.
    pub fn inference(&mut self, plan: RoundPlan, told: &ToolMessage, host_us: u64, out: &mut Vec<Event>) {
        let ToolMessage::Inference { start_us, latency_us, events } = told else { return };
        let phase = if !std::mem::replace(&mut self.first_seen, true) {
            Phase::First
        } else if self.in_round < plan.warmup {
            Phase::Warmup
        } else {
            plan.phase
        };
        self.in_round += 1;
        let end = start_us + latency_us;
        self.span_us = Some(self.span_us.map_or((*start_us, end), |(start, _)| (start, end)));
        let index = self.done.entry(phase).or_insert(0);
        let inference = *index;
        *index += 1;
        self.push(phase, inference, host_us, latency_us * 1000, out);
        if phase == Phase::Detailed {
            self.op_times(inference, events, out);
        }
        let metrics = events::metrics(events);
        if !metrics.is_empty() && matches!(phase, Phase::Clean | Phase::Detailed) {
            out.push(Event::Metrics(MetricSample { phase, inference, metrics }));
        }
    }

    fn push(&mut self, phase: Phase, index: u64, start_us: u64, latency_ns: u64, out: &mut Vec<Event>) {
        let fits = self.batch.as_ref().is_some_and(|batch| batch.phase == phase && batch.latency_ns.len() < BATCH);
        if !fits {
            self.flush(out);
        }
        let batch = self.batch.get_or_insert_with(|| InferenceBatch {
            phase,
            first_index: index,
            start_us: Vec::new(),
            latency_ns: Vec::new(),
            late_ns: Vec::new(),
        });
        batch.start_us.push(start_us);
        batch.latency_ns.push(latency_ns);
    }

    fn op_times(&mut self, inference: u64, told: &[ProfileEvent], out: &mut Vec<Event>) {
        let nodes = events::nodes(told);
        if nodes.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.rows_declared, true) {
            out.push(Event::OpsDeclared(events::rows(&nodes, &self.graph)));
        }
        let values = nodes.iter().map(|node| node.value).collect();
        out.push(Event::OpTimes(OpSample { inference, values }));
    }

    /// Flushes the inferences waiting for their batch to fill.
    pub fn flush(&mut self, out: &mut Vec<Event>) {
        out.extend(self.batch.take().map(Event::Inferences));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inference(start_us: u64) -> ToolMessage {
        ToolMessage::Inference { start_us, latency_us: 10, events: Vec::new() }
    }

    #[test]
    fn the_first_of_all_and_the_first_of_a_round_are_no_clean_figures() {
        let mut fold = RunFold::new(None);
        let mut out = Vec::new();
        let plan = RoundPlan { phase: Phase::Clean, warmup: 2 };
        for round in 0..2 {
            fold.begin_round();
            for i in 0..5 {
                fold.inference(plan, &inference(round * 1000 + i * 20), 0, &mut out);
            }
            assert_eq!((fold.in_round(), fold.round_span_us()), (5, 90));
        }
        fold.flush(&mut out);
        assert_eq!((fold.done(Phase::First), fold.done(Phase::Warmup), fold.done(Phase::Clean)), (1, 3, 6));
        let batches: Vec<(Phase, u64, usize)> = out
            .iter()
            .map(|event| match event {
                Event::Inferences(batch) => (batch.phase, batch.first_index, batch.latency_ns.len()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            batches,
            [
                (Phase::First, 0, 1),
                (Phase::Warmup, 0, 1),
                (Phase::Clean, 0, 3),
                (Phase::Warmup, 1, 2),
                (Phase::Clean, 3, 3)
            ]
        );
    }
}
