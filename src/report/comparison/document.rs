//! The document `qnnscope.compare/1`. The schema file is `docs/compare.schema.json`.

use super::ComparisonReport;
use crate::analysis::compare::{
    Accuracy, Around, LayerRow, Mismatch, RESAMPLES, RefusedOp, Row, Side, SideFailure, TypeRow,
};
use crate::analysis::recommend::Recommendation;
use crate::backends::Backend;
use crate::event::Driver;
use serde::Serialize;

/// Schema of the document.
pub const COMPARE_SCHEMA: &str = "qnnscope.compare/1";

/// Runs side by side. Columns are numbered from 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareDocument {
    schema: &'static str,
    baseline: usize,
    reference: usize,
    method: Method,
    columns: Vec<Column>,
    mismatches: Vec<Mismatch>,
    rows: Vec<Row>,
    layer_count: usize,
    layers: Vec<LayerRow>,
    op_types: Vec<TypeRow>,
    refused_ops: Vec<RefusedOp>,
    recommendation: Option<Recommendation>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Method {
    intervals: &'static str,
    within_launches: &'static str,
    confidence: f64,
    resamples: usize,
    latencies: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Column {
    origin: String,
    backend: Backend,
    simulated: bool,
    device: String,
    device_model: Option<String>,
    driver: Driver,
    clean_level: &'static str,
    model: Option<String>,
    model_sha256: Option<String>,
    build_id: Option<String>,
    status: &'static str,
    failure: Option<SideFailure>,
    inferences: u64,
    launches: usize,
    rate_hz: Option<f64>,
    warmup: u64,
    latencies: Latencies,
    op_time_derived: bool,
    accuracy: Option<Accuracy>,
    no_accuracy: Option<String>,
    around: Option<Around>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Latencies {
    kept: usize,
    stride: Option<u64>,
    block: Option<usize>,
}

impl CompareDocument {
    /// The document of a report.
    pub fn new(report: &ComparisonReport) -> Self {
        let comparison = &report.comparison;
        let latencies = if comparison.alone { "inferences_alone" } else { "as_measured" };
        let columns = report.sides.iter().enumerate().map(|(at, side)| column(report, at, side)).collect();
        Self {
            schema: COMPARE_SCHEMA,
            baseline: comparison.baseline,
            reference: report.reference,
            method: Method {
                intervals: "welch and mann-whitney on launches",
                within_launches: "circular block bootstrap",
                confidence: 0.95,
                resamples: RESAMPLES,
                latencies,
            },
            columns,
            mismatches: comparison.mismatches.clone(),
            rows: comparison.rows.clone(),
            layer_count: comparison.layers.len(),
            layers: comparison.layers.iter().take(report.shown_layers).cloned().collect(),
            op_types: comparison.op_types.clone(),
            refused_ops: comparison.refused.clone(),
            recommendation: report.recommendation.clone(),
        }
    }
}

fn column(report: &ComparisonReport, at: usize, side: &Side) -> Column {
    let series = side.latency.as_ref().and_then(|latency| latency.series.as_ref());
    let accuracy = report.accuracy.get(at).and_then(Option::as_ref);
    Column {
        origin: side.origin.clone(),
        backend: side.backend,
        simulated: side.simulated,
        device: side.device.clone(),
        device_model: side.device_model.clone(),
        driver: side.driver,
        clean_level: side.clean_level.name(),
        model: side.model.clone(),
        model_sha256: side.model_sha256.clone(),
        build_id: side.build_id.clone(),
        status: if side.failure.is_some() { "failed" } else { "ok" },
        failure: side.failure.clone(),
        inferences: side.latency.as_ref().map_or(0, |latency| latency.count),
        launches: side.latency.as_ref().map_or(0, |latency| latency.launches().len()),
        rate_hz: side.mode.rate_hz,
        warmup: side.warmup,
        latencies: Latencies {
            kept: series.map_or(0, |series| series.values.len()),
            stride: series.map(|series| series.stride),
            block: report.comparison.blocks.get(at).copied().flatten(),
        },
        op_time_derived: side.op_time_derived,
        accuracy: accuracy.and_then(|known| known.as_ref().ok()).cloned(),
        no_accuracy: accuracy.and_then(|known| known.as_ref().err()).cloned(),
        around: side.around.clone(),
        notes: side.notes.clone(),
    }
}
