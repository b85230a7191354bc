//! The layers of a run in the result document.

use crate::analysis::compare::producers;
use crate::analysis::{Bound, Evidence, EvidencePlace, Finding, Verdicts};
use crate::event::OpUnit;
use crate::models::{ModelFormat, Op};
use crate::store::{OpStats, Run};
use serde::Serialize;
use std::collections::BTreeMap;

/// A row of `ops`: the graph's ops in order, then the backend's rows without an op.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpResult {
    index: usize,
    name: String,
    #[serde(rename = "type")]
    op_type: Option<String>,
    source_node: Option<String>,
    htp_op: Option<u64>,
    macs: Option<u64>,
    bytes_moved: Option<u64>,
    time_us: Option<OpTime>,
    time_derived: bool,
    scaled_us: Option<f64>,
    cycles: Option<OpCycles>,
    share: Option<f64>,
    producer: Option<usize>,
    gmac_per_s: Option<f64>,
    gb_per_s: Option<f64>,
    of_best: Option<f64>,
    bound: Option<Bound>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpTime {
    mean: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpCycles {
    mean: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    max: Option<f64>,
}

/// The graph's ops in order, then the rows that the backend added itself (HTP's input and output).
pub fn ops(run: &Run, verdicts: &Verdicts) -> Vec<OpResult> {
    let factor = run.us_per_op_unit();
    let derived = run.op_time_is_derived();
    let measured = run.ops.inferences() > 0;
    let is_onnx = run.model.as_ref().is_some_and(|model| model.format == ModelFormat::Onnx);
    let producers = run.graph().map(producers).unwrap_or_default();
    let row = |index: usize, row: Option<usize>, name: &str, op: Option<&Op>| {
        let achieved = row.and_then(|row| verdicts.roofline.rows.get(row).copied().flatten());
        let stats = row.and_then(|row| run.ops.stats().get(row)).filter(|stats| stats.count() > 0);
        OpResult {
            index,
            name: name.to_owned(),
            op_type: op.map(|op| op.op_type.clone()),
            source_node: row
                .and_then(|row| run.source_of_row(row))
                .or_else(|| run.source_node(name))
                // The graph of an ONNX model consists of its nodes.
                .or_else(|| op.filter(|_| is_onnx).map(|op| op.name.as_str()))
                .map(ToOwned::to_owned),
            htp_op: row.and_then(|row| run.ops.rows()[row].htp_op),
            macs: op.and_then(|op| op.macs),
            bytes_moved: op.and_then(|op| op.bytes_moved),
            time_us: stats.zip(factor).map(|(stats, factor)| op_time(stats, factor)),
            time_derived: derived && stats.is_some(),
            scaled_us: row.filter(|_| stats.is_some()).and_then(|row| run.scaled_op_us(row)),
            cycles: stats.filter(|_| run.ops.unit() == Some(OpUnit::Cycles)).map(op_cycles),
            share: measured.then(|| row.map_or(0.0, |row| run.ops.share(row))),
            producer: producers.get(index).copied().flatten(),
            gmac_per_s: achieved.and_then(|achieved| achieved.gmac_per_s),
            gb_per_s: achieved.and_then(|achieved| achieved.gb_per_s),
            of_best: achieved.and_then(|achieved| achieved.of_best),
            bound: row.and_then(|row| verdicts.bounds.layers.get(row).copied().flatten()),
        }
    };
    let rows = run.ops.rows();
    let graph_ops = run.graph().map(|graph| graph.ops.as_slice()).unwrap_or_default();
    let of_row = |(index, at): (usize, Option<usize>)| match graph_ops.get(index) {
        Some(op) => row(index, at, &op.name, Some(op)),
        None => row(index, at, at.map_or("", |at| rows[at].name.as_str()), None),
    };
    order(run).into_iter().enumerate().map(of_row).collect()
}

/// For each row of the document, the row of the op table it comes from.
fn order(run: &Run) -> Vec<Option<usize>> {
    let rows = run.ops.rows();
    let graph_ops = run.graph().map(|graph| graph.ops.as_slice()).unwrap_or_default();
    let row_of_op: BTreeMap<u32, usize> = rows.iter().enumerate().filter_map(|(at, row)| Some((row.op?, at))).collect();
    let of_graph = graph_ops.iter().map(|op| row_of_op.get(&op.index).copied());
    let of_none = rows.iter().enumerate().filter(|(_, row)| row.op.is_none()).map(|(at, _)| Some(at));
    of_graph.chain(of_none).collect()
}

/// The findings, with places that refer to `ops` in the document.
pub fn placed(run: &Run, findings: Vec<Finding>) -> Vec<Finding> {
    let order = order(run);
    let place = |evidence: Evidence| match evidence.at {
        Some(EvidencePlace::Op(row)) => {
            let at = order.iter().position(|of| *of == Some(row)).map(EvidencePlace::Op);
            Evidence { at, ..evidence }
        }
        _ => evidence,
    };
    let one = |finding: Finding| Finding { evidence: finding.evidence.into_iter().map(place).collect(), ..finding };
    findings.into_iter().map(one).collect()
}

fn op_time(stats: &OpStats, factor: f64) -> OpTime {
    let scaled = |value: Option<f64>| value.map(|value| value * factor);
    OpTime {
        mean: scaled(stats.mean()),
        p50: scaled(stats.percentile(50.0)),
        p95: scaled(stats.percentile(95.0)),
        p99: scaled(stats.percentile(99.0)),
        max: scaled(stats.max()),
    }
}

fn op_cycles(stats: &OpStats) -> OpCycles {
    OpCycles { mean: stats.mean(), p50: stats.percentile(50.0), p95: stats.percentile(95.0), max: stats.max() }
}
