//! The surroundings of a graph's executions in a user's program, which a benchmark lacks: the program's own
//! work, gaps, copies, power votes, other threads.

use crate::store::{Run, Store, TappedProcess};
use crate::text::{bytes_text, counted, duration_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The surroundings of one graph's executions in a tapped program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// Number of inferences of its process.
    pub inferences: u64,
    /// Mean time from the start of one inference to the next, surroundings included, microseconds.
    pub inference_us: Option<f64>,
    /// Shares of that time: in QNN, between graphs of an inference, in the program.
    pub time_share: Option<[f64; 3]>,
    /// Mean number of graphs per inference.
    pub graphs_per_inference: Option<f64>,
    /// Mean time since the previous execution on the same thread, microseconds.
    pub between_us: Option<f64>,
    /// Executions that copied at least one input.
    pub copied_executions: u64,
    /// Bytes of inputs copied per such execution, if known.
    pub copied_bytes: u64,
    /// Executions of the graph.
    pub executions: u64,
    /// Executions that overlapped with those of other threads.
    pub overlapped: u64,
    /// Mean time of overlapping executions, microseconds.
    pub overlapped_us: Option<f64>,
    /// Mean time of the others, microseconds.
    pub alone_us: Option<f64>,
    /// How often the graph was created.
    pub made: u64,
    /// Number of power votes.
    pub vote_count: u64,
    /// Values of the latest power votes.
    pub votes: BTreeMap<String, String>,
}

impl Around {
    /// From a run of a tapped program.
    pub fn of(store: &Store, run: &Run) -> Option<Self> {
        let (process, graph) = store.tapped()?.of_run(run.id)?;
        let timeline = &process.timeline;
        let at = process.graphs.iter().position(|known| known.run == run.id)?;
        let times = timeline.graph(at);
        let us = |ns: f64| ns / 1000.0;
        Some(Self {
            inferences: timeline.inferences,
            inference_us: (timeline.inferences > 0).then(|| us(timeline.span_ns() as f64) / timeline.inferences as f64),
            time_share: timeline.share().map(|share| [share.qnn, share.between_graphs, share.program]),
            graphs_per_inference: timeline.graphs_per_inference(),
            between_us: times.and_then(|times| times.between.mean()).map(us),
            copied_executions: graph.copied,
            copied_bytes: graph.copied_bytes(),
            executions: graph.executions,
            overlapped: times.map_or(0, |times| times.overlapped.count),
            overlapped_us: times.and_then(|times| times.overlapped.mean_us()),
            alone_us: times.and_then(|times| times.alone.mean_us()),
            made: graph.made,
            vote_count: process.vote_count,
            votes: votes(process),
        })
    }

    /// As sentences; `service_us` is the graph's own median time.
    pub fn lines(&self, service_us: Option<f64>) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some([qnn, between, program]), Some(inference_us)) = (self.time_share, self.inference_us) {
            let percent = |part: f64| format!("{:.1} %", 100.0 * part);
            let graph =
                service_us.map_or_else(String::new, |us| format!(", {} of it in this graph", duration_text(us)));
            lines.push(format!(
                "an inference takes {} overall{graph}: {} inside QNN, {} between graphs, {} in the program",
                duration_text(inference_us),
                percent(qnn),
                percent(between),
                percent(program)
            ));
        }
        if let Some(graphs) = self.graphs_per_inference.filter(|graphs| *graphs > 1.05) {
            lines.push(format!("it is one of {graphs:.1} graphs per inference"));
        }
        if let Some(between_us) = self.between_us {
            lines.push(format!("{} pass between executions on average", duration_text(between_us)));
        }
        if self.copied_executions > 0 {
            let bytes = if self.copied_bytes > 0 {
                format!("{} of inputs are", bytes_text(self.copied_bytes as f64))
            } else {
                "inputs are".to_owned()
            };
            let of = if self.copied_executions == self.executions {
                "each execution".to_owned()
            } else {
                format!("{} of {}", self.copied_executions, counted(self.executions, "execution"))
            };
            lines.push(format!("{bytes} copied at {of}"));
        }
        if let (1.., Some(beside)) = (self.overlapped, self.overlapped_us) {
            let alone = self.alone_us.map_or_else(|| "–".to_owned(), duration_text);
            let count = counted(self.overlapped, "execution");
            lines.push(format!("{count} beside those of other threads, mean {}; alone {alone}", duration_text(beside)));
        }
        if self.made > 1 {
            lines.push(format!("it was made {} times", self.made));
        }
        if self.vote_count > 0 {
            let values: Vec<String> = self.votes.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let last = if values.is_empty() { "none is left".to_owned() } else { values.join(", ") };
            lines.push(format!("power: {}; {last}", counted(self.vote_count, "vote")));
        }
        lines
    }
}

fn votes(process: &TappedProcess) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    process.voted.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}
