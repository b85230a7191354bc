//! ONNX Runtime's own profile: a Chrome trace with one event per node and per run.

use super::Import;
use super::draft::Draft;
use super::error::Problem;
use super::json::of_bytes;
use super::sample::Sample;
use crate::backends::ProfilingLevel;
use crate::event::{OpUnit, Phase, Stage};
use serde::Deserialize;
use std::collections::HashMap;

pub struct OrtProfile;

#[derive(Debug, Deserialize)]
struct Trace {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Debug, Default, Deserialize)]
struct Args {
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    op_name: Option<String>,
}

/// A node in one run.
struct Node {
    name: String,
    op_type: String,
    provider: String,
    us: f64,
}

impl Import for OrtProfile {
    fn kind(&self) -> &'static str {
        "ort-profile"
    }

    fn label(&self) -> &'static str {
        "ONNX Runtime profile"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        let text = sample.text();
        sample.is_json_array()
            && sample.has_keys(&["cat", "name", "ts"])
            && (text.contains("model_loading")
                || text.contains("session_initialization")
                || text.contains("_kernel_time"))
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        let events = match of_bytes::<Vec<Trace>>(&bytes) {
            Ok(events) => events,
            // A crashed program leaves the array open.
            Err(error) => {
                let cut = bytes.iter().rposition(|byte| *byte == b'}').map_or(0, |at| at + 1);
                let events = of_bytes::<Vec<Trace>>(&[&bytes[..cut], b"]"].concat()).map_err(|_| error)?;
                draft.note("the profile is truncated: the program ended before ONNX Runtime closed it");
                events
            }
        };
        let run = draft.run()?;
        run.has_moments = true;
        run.clean_level = ProfilingLevel::Detailed;
        let mut nodes: Vec<Node> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        let mut width = 0;
        for event in events {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for less")]
            let start_us = event.ts.max(0.0) as u64;
            match (event.cat.as_str(), event.name.as_str()) {
                ("Node", name) => {
                    let Some(name) = name.strip_suffix("_kernel_time") else { continue };
                    nodes.push(Node {
                        name: name.to_owned(),
                        op_type: event.args.op_name.unwrap_or_default(),
                        provider: event.args.provider.unwrap_or_default(),
                        us: event.dur,
                    });
                }
                // The event of a run comes after those of its nodes.
                ("Session", "model_run") => {
                    let phase = if run.done(Phase::First) == 0 { Phase::First } else { Phase::Clean };
                    run.inference(phase, Some(start_us), event.dur);
                    let told = std::mem::take(&mut nodes);
                    if width == 0 && !told.is_empty() {
                        for node in &told {
                            let next = index.len();
                            index.entry(node.name.clone()).or_insert(next);
                        }
                        width = index.len();
                        let mut first: Vec<&Node> = told.iter().collect();
                        let mut seen = std::collections::HashSet::new();
                        first.retain(|node| seen.insert(node.name.as_str()));
                        let op = |node: &&Node| (node.name.clone(), node.op_type.clone(), node.provider.clone());
                        run.graph("", first.iter().map(op));
                        run.rows((0..).zip(&first).map(|(at, node)| (node.name.clone(), Some(at))), OpUnit::Us);
                    }
                    let mut values = vec![0.0; width];
                    // A node in a loop occurs several times in one run.
                    let known = told.iter().all(|node| {
                        let at = index.get(&node.name);
                        at.is_some_and(|at| {
                            values[*at] += node.us;
                            true
                        })
                    });
                    let here: std::collections::HashSet<&str> = told.iter().map(|node| node.name.as_str()).collect();
                    if known && here.len() == width && width > 0 {
                        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
                        run.op_values(phase, values.iter().map(|us| us.round() as u64).collect());
                    } else if !told.is_empty() {
                        run.other_ops();
                    }
                }
                ("Session", name @ ("session_initialization" | "model_loading_uri" | "model_loading_array")) => {
                    let stage = if name == "session_initialization" { Stage::Finalize } else { Stage::Compose };
                    run.stage(start_us, stage, event.dur);
                    run.part(start_us, stage, name, event.dur, "us");
                }
                _ => {}
            }
        }
        Ok(())
    }
}
