//! The parts of a tapped program's document, `qnnscope.tap/1`, that a comparison needs: its graphs as runs,
//! and their surroundings.

use crate::analysis::compare::Around;
use crate::event::clean_text;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The parts needed from a tapped program, whose graphs are runs.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
pub struct Program<R> {
    pub processes: Vec<Process<R>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
pub struct Process<R> {
    graphs: Vec<Graph<R>>,
    #[serde(default)]
    time_share: Option<Share>,
    #[serde(default)]
    inferences: u64,
    #[serde(default)]
    graphs_per_inference: Option<f64>,
    #[serde(default)]
    qnn_us: f64,
    #[serde(default)]
    vote_count: u64,
    #[serde(default)]
    last_votes: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Share {
    qnn: f64,
    between_graphs: f64,
    program: f64,
}

/// The surroundings of a graph's executions, named as in the document.
#[derive(Debug, Default, Deserialize)]
struct GraphAround {
    #[serde(default)]
    executions: u64,
    #[serde(default)]
    made: u64,
    #[serde(default)]
    between_us: Between,
    #[serde(default)]
    copied_executions: u64,
    #[serde(default)]
    copied_input_bytes: u64,
    #[serde(default)]
    overlapped: u64,
    #[serde(default)]
    overlapped_mean_us: Option<f64>,
    #[serde(default)]
    alone_mean_us: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct Between {
    #[serde(default)]
    mean: Option<f64>,
}

/// A graph is a run with additional fields.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Graph<R> {
    #[serde(flatten)]
    run: R,
    #[serde(flatten)]
    around: GraphAround,
}

impl<R> Process<R> {
    /// Its graphs with their surroundings.
    pub fn graphs(mut self) -> Vec<(R, Around)> {
        let graphs = std::mem::take(&mut self.graphs);
        graphs.into_iter().map(|graph| (graph.run, self.around(&graph.around))).collect()
    }

    fn around(&self, graph: &GraphAround) -> Around {
        let share = self.time_share.map(|share| [share.qnn, share.between_graphs, share.program]);
        let share = share.filter(|parts| parts.iter().all(|part| (0.0..=1.0).contains(part)));
        let span_us = share.and_then(|[qnn, ..]| (qnn > 0.0).then(|| self.qnn_us / qnn));
        let text = |value: &Value| clean_text(&value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned));
        Around {
            inferences: self.inferences,
            inference_us: span_us.filter(|_| self.inferences > 0).map(|us| us / self.inferences as f64),
            time_share: share,
            graphs_per_inference: self.graphs_per_inference,
            between_us: graph.between_us.mean,
            copied_executions: graph.copied_executions,
            copied_bytes: graph.copied_input_bytes,
            executions: graph.executions,
            overlapped: graph.overlapped,
            overlapped_us: graph.overlapped_mean_us,
            alone_us: graph.alone_mean_us,
            made: graph.made,
            vote_count: self.vote_count,
            votes: self.last_votes.iter().map(|(name, value)| (clean_text(name), text(value))).collect(),
        }
    }
}
