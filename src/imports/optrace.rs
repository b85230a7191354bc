//! Output of the vendor's viewer for an optrace: a Chrome trace with an event per op (`chrometrace.json`),
//! and the analysis summary (QHAS). Only fields with a publicly documented meaning are read.

use super::Import;
use super::draft::Draft;
use super::error::Problem;
use super::json::{document, positive};
use super::sample::Sample;
use crate::backends::profile_log::op_identifier;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{OpUnit, Phase};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

pub struct Optrace;
pub struct Qhas;

/// Cycles of an op on the longest path, if the trace contains them; an op's duration adds up all threads.
const PATH_CYCLES: &str = "Dominant Path Cycles";
const CYCLES: &str = "Duration (cycles)";
/// The model's op that an event belongs to.
const OP_NAME: &str = "QNN Op Name";

/// Figures of the analysis summary, with their units.
const SUMMARY: [(&str, &str); 8] = [
    ("time_us", "us"),
    ("timeline_cycles", "cycles"),
    ("percent_utilization", "%"),
    ("peak_vtcm_alloc", "bytes"),
    ("total_dram_read", "bytes"),
    ("total_dram_write", "bytes"),
    ("qnn_nodes", "count"),
    ("htp_nodes", "count"),
];

#[derive(Debug, Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<TraceEvent>,
}

#[derive(Debug, Deserialize)]
struct TraceEvent {
    #[serde(default)]
    ph: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: Value,
    #[serde(default)]
    args: Map<String, Value>,
}

impl Import for Optrace {
    fn kind(&self) -> &'static str {
        "qnn-optrace"
    }

    fn label(&self) -> &'static str {
        "optrace of qnn-profile-viewer"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        let text = sample.text();
        sample.has_keys(&["traceEvents"]) && (text.contains(PATH_CYCLES) || text.contains(CYCLES))
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let trace: Trace = document(sample)?;
        let on_path = trace.events.iter().any(|event| event.args.contains_key(PATH_CYCLES));
        let key = if on_path { PATH_CYCLES } else { CYCLES };
        // The overview is process 0; the others show the same events per node.
        let overview = trace.events.iter().filter(|event| event.ph == "X" && event.pid.as_u64().unwrap_or(0) == 0);
        let ops = overview.filter_map(|event| {
            let name = event.args.get(OP_NAME).and_then(Value::as_str).unwrap_or(&event.name);
            Some((name.to_owned(), String::new(), figure(event.args.get(key)?)?))
        });
        of_ops(ops, draft)?;
        let what = if on_path { "on the dominant path" } else { "summed over all threads" };
        draft.note(format!("an optrace holds one inference, in cycles; op cycles are {what}"));
        Ok(())
    }
}

/// A number, which the viewer sometimes writes as text.
fn figure(value: &Value) -> Option<f64> {
    positive(Some(value)).or_else(|| value.as_str()?.replace(',', "").parse().ok())
}

impl Import for Qhas {
    fn kind(&self) -> &'static str {
        "qhas"
    }

    fn label(&self) -> &'static str {
        "HTP analysis summary (QHAS)"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        sample.has_keys(&["data"]) && sample.text().contains("\"htp_overall_summary\"")
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let document: Value = document(sample)?;
        let table = |name: &str| {
            let rows = document.get("data").and_then(|data| data.get(name)?.get("data")?.as_array());
            rows.into_iter().flatten().filter_map(Value::as_object)
        };
        let ops = table("qnn_op_instances_nodes").filter_map(|row| {
            let name = row.get("qnn_op")?.as_str()?.to_owned();
            let kind = row.get("qnn_op_type").and_then(Value::as_str).unwrap_or_default().to_owned();
            Some((name, kind, figure(row.get("cycles")?)?))
        });
        of_ops(ops, draft)?;
        let run = draft.at(0)?;
        if let Some(name) = document.get("model_id").and_then(Value::as_str) {
            name.clone_into(&mut run.model);
        }
        if let Some(summary) = table("htp_overall_summary").next() {
            if let Some(us) = positive(summary.get("graph_execute_us")) {
                run.is_summary = true;
                run.inference(Phase::Clean, None, us);
            }
            for (key, unit) in SUMMARY {
                if let Some(value) = positive(summary.get(key)) {
                    run.figure(key, unit, value);
                }
            }
        }
        draft.note("an analysis summary covers one traced inference; op cycles add up all threads");
        Ok(())
    }
}

/// Several events may belong to one op; their cycles add up.
fn of_ops(ops: impl Iterator<Item = (String, String, f64)>, draft: &mut Draft) -> Result<(), Problem> {
    let mut rows: Vec<(String, String, f64)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for (name, kind, cycles) in ops {
        let name = op_identifier(&name, false).name.to_owned();
        match index.get(&name) {
            Some(at) => rows[*at].2 += cycles,
            None => {
                index.insert(name.clone(), rows.len());
                rows.push((name, kind, cycles));
            }
        }
    }
    if rows.is_empty() {
        return Err(Problem::content("it has no op with cycles"));
    }
    let run = draft.run()?;
    run.backend = Backend::Htp;
    run.clean_level = ProfilingLevel::Detailed;
    let is_typed = rows.iter().any(|row| !row.1.is_empty());
    if is_typed {
        run.graph("", rows.iter().map(|row| (row.0.clone(), row.1.clone(), String::new())));
    }
    run.rows((0..).zip(&rows).map(|(at, row)| (row.0.clone(), is_typed.then_some(at))), OpUnit::Cycles);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    run.op_values(Phase::Clean, rows.iter().map(|row| row.2.round() as u64).collect());
    Ok(())
}
