//! Runs of a result document, `qnnscope.result/1`, as columns of a comparison.

use super::program::{Process, Program};
use crate::analysis::compare::{
    GraphFacts, Series, Side, SideCounter, SideFailure, SideLatency, SideLaunch, SideOp, SideSetting, refused_op,
};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{DeviceInfo, Driver, Mode, OutputsJudged, RuntimeInfo, Stage, TensorData, clean_text};
use crate::report::{RESULT_SCHEMA, TAP_SCHEMA};
use crate::text::clean_json;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The parts of a result document needed for a comparison. Fields that older versions did not write may be
/// missing.
#[derive(Debug, Deserialize)]
struct Document {
    schema: String,
    #[serde(default)]
    model: Option<Model>,
    #[serde(default)]
    seed: Option<u64>,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Model {
    path: String,
    sha256: String,
}

#[derive(Debug, Deserialize)]
struct Run {
    /// For a tapped program, the name of the graph.
    #[serde(default)]
    name: Option<String>,
    device: Option<DeviceInfo>,
    backend: Backend,
    simulated: bool,
    #[serde(default)]
    driver: Driver,
    #[serde(default)]
    runtime: Option<RuntimeInfo>,
    error: Option<Failure>,
    #[serde(default)]
    settings: Vec<Setting>,
    #[serde(default)]
    inputs: Vec<TensorData>,
    #[serde(default)]
    stages_us: BTreeMap<Stage, f64>,
    #[serde(default)]
    first_inference_us: Option<f64>,
    latency_us: Option<Latency>,
    #[serde(default)]
    throughput_ips: Option<f64>,
    #[serde(default)]
    memory_bytes: Memory,
    #[serde(default)]
    energy: Energy,
    #[serde(default)]
    cpu_utilization_percent: Option<f64>,
    #[serde(default)]
    profiling: Profiling,
    #[serde(default)]
    ops: Vec<Op>,
    #[serde(default)]
    outputs: Vec<String>,
    #[serde(default)]
    judged: Option<OutputsJudged>,
    #[serde(default)]
    counters: Option<Vec<SideCounter>>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    pace: Option<Pace>,
    #[serde(default)]
    graph_facts: Option<GraphFacts>,
    #[serde(default)]
    trust: Option<Trust>,
}

/// Whether its figures can be trusted.
#[derive(Debug, Deserialize)]
struct Trust {
    #[serde(default)]
    reasons: Vec<Reason>,
}

#[derive(Debug, Deserialize)]
struct Reason {
    id: String,
    #[serde(default)]
    weight: String,
    #[serde(default)]
    title: String,
}

/// Of a paced run, the execution time of the inferences alone.
#[derive(Debug, Deserialize)]
struct Pace {
    #[serde(rename = "service_us")]
    figures: Service,
    #[serde(default, rename = "service_stddev_us")]
    stddev_us: Option<f64>,
    #[serde(default, rename = "service_series")]
    series: Option<Series>,
    #[serde(default, rename = "service_launches")]
    launches: Vec<SideLaunch>,
}

#[derive(Debug, Deserialize)]
struct Service {
    samples: u64,
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    stage: Stage,
    call: String,
    #[serde(default)]
    code: Option<u64>,
    message: String,
}

#[derive(Debug, Deserialize)]
struct Setting {
    key: String,
    value: String,
    outcome: String,
}

#[derive(Debug, Deserialize)]
struct Latency {
    samples: u64,
    #[serde(default)]
    warmup: u64,
    mean: Option<f64>,
    stddev: Option<f64>,
    p50: Option<f64>,
    #[serde(default)]
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    series: Option<Series>,
    #[serde(default)]
    launches: Vec<SideLaunch>,
}

#[derive(Debug, Default, Deserialize)]
struct Memory {
    #[serde(default)]
    rss_peak: Option<u64>,
    #[serde(default)]
    rss_delta: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
struct Energy {
    #[serde(default)]
    average_power_w: Option<f64>,
    #[serde(default)]
    per_inference_mj: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct Profiling {
    #[serde(default)]
    level: Option<ProfilingLevel>,
    #[serde(default)]
    clean_level: Option<ProfilingLevel>,
}

#[derive(Debug, Deserialize)]
struct Op {
    name: String,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    macs: Option<u64>,
    #[serde(default)]
    scaled_us: Option<f64>,
    #[serde(default)]
    time_derived: bool,
    #[serde(default)]
    producer: Option<usize>,
}

/// Only the name of the format, which decides whether the rest can be read.
#[derive(Debug, Deserialize)]
struct Header {
    schema: Option<String>,
}

/// What to use instead of a file that is neither.
const GIVE: &str =
    "give the output of `qnnscope run MODEL --json > NAME.json` or a file written by `--record NAME.jsonl`";
/// Start of a ZIP archive, such as a DLC.
const ZIP: &[u8] = b"PK\x03\x04";

/// Why bytes are not a document at all. A parser's messages do not help users, so the usual cases have their
/// own texts.
fn no_document(bytes: &[u8], error: Option<&serde_json::Error>) -> String {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match (first, error) {
        (None, _) => format!("is empty; {GIVE}"),
        (Some(b'{'), Some(error)) if error.is_eof() => {
            format!("is truncated: it ends inside its JSON; create it again, or {GIVE}")
        }
        (Some(b'{'), Some(error)) => format!("is not a JSON document: {error}; {GIVE}"),
        _ if bytes.starts_with(ZIP) => {
            format!("is not a result document but an archive, such as a DLC: run the model first, and {GIVE}")
        }
        _ => format!("is neither a result document nor a session; {GIVE}"),
    }
}

/// The runs of a result document.
///
/// # Errors
/// What is wrong with it, worded to follow the file's name.
pub fn sides(bytes: &[u8]) -> Result<Vec<Side>, String> {
    // Structs can also be deserialised from arrays, but a document is an object.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(no_document(bytes, None));
    }
    let header: Header = serde_json::from_slice(bytes).map_err(|error| no_document(bytes, Some(&error)))?;
    match header.schema.as_deref() {
        Some(RESULT_SCHEMA) => {}
        Some(TAP_SCHEMA) => return tapped(bytes),
        Some(other) => {
            let other = clean_text(other);
            return Err(format!(
                "has the format `{other}`; this version compares `{RESULT_SCHEMA}`, `{TAP_SCHEMA}` and sessions"
            ));
        }
        None => return Err(format!("has no `schema`: it is neither a `{RESULT_SCHEMA}` document nor a session")),
    }
    let document: Document = serde_json::from_slice(&clean_json(bytes))
        .map_err(|error| format!("is not a complete `{RESULT_SCHEMA}` document: {error}"))?;
    debug_assert_eq!(document.schema, RESULT_SCHEMA);
    let model = document.model.as_ref();
    Ok(document.runs.into_iter().map(|run| side(run, model, document.seed)).collect())
}

/// The graphs of a tapped program, as runs.
fn tapped(bytes: &[u8]) -> Result<Vec<Side>, String> {
    let program: Program<Run> = serde_json::from_slice(&clean_json(bytes))
        .map_err(|error| format!("is not a complete `{TAP_SCHEMA}` document: {error}"))?;
    let graphs = program.processes.into_iter().flat_map(Process::graphs);
    Ok(graphs.map(|(run, around)| Side { around: Some(around), ..side(run, None, None) }).collect())
}

fn side(run: Run, model: Option<&Model>, seed: Option<u64>) -> Side {
    let mut notes = Vec::new();
    if run.latency_us.as_ref().is_some_and(|latency| latency.series.is_none()) {
        notes.push("its file keeps no single latencies, so their variation is unknown".to_owned());
    }
    // Without producers, an op is assumed to follow the one before it.
    let knows_producers = run.ops.iter().any(|op| op.producer.is_some());
    let ops: Vec<SideOp> = run
        .ops
        .iter()
        .enumerate()
        .map(|(index, op)| SideOp {
            name: clean_text(&op.name),
            op_type: op.kind.as_deref().map(clean_text),
            macs: op.macs,
            time_us: op.scaled_us.filter(|us| us.is_finite() && *us > 0.0),
            producer: if knows_producers { op.producer } else { index.checked_sub(1) },
        })
        .collect();
    if !knows_producers && ops.len() > 1 {
        notes.push(
            "its file does not record which op feeds which: fused ops are assumed to follow each other".to_owned(),
        );
    }
    let device = run.device.as_ref();
    let service = run.pace.filter(|pace| pace.figures.samples > 0).map(service);
    Side {
        origin: String::new(),
        backend: run.backend,
        device: device.map_or_else(|| "unknown".to_owned(), |device| clean_text(&device.id)),
        device_model: device.and_then(|device| device.soc.as_deref().or(device.model.as_deref())).map(clean_text),
        simulated: run.simulated,
        driver: run.driver,
        clean_level: run.profiling.clean_level.unwrap_or(match run.profiling.level {
            Some(ProfilingLevel::Basic) => ProfilingLevel::Basic,
            _ => ProfilingLevel::Off,
        }),
        model: model.map(|model| &model.path).or(run.name.as_ref()).map(|name| clean_text(name)),
        model_sha256: model.map(|model| model.sha256.clone()),
        build_id: run.runtime.and_then(|runtime| runtime.build_id).as_deref().map(clean_text),
        settings: run
            .settings
            .iter()
            .map(|setting| SideSetting {
                key: clean_text(&setting.key),
                value: clean_text(&setting.value),
                applied: setting.outcome == "applied",
            })
            .collect(),
        mode: run.mode,
        warmup: run.latency_us.as_ref().map_or(0, |latency| latency.warmup / latency.launches.len().max(1) as u64),
        seed,
        inputs: run.inputs,
        failure: run.error.map(|error| SideFailure {
            stage: error.stage,
            call: clean_text(&error.call),
            code: error.code,
            message: clean_text(&error.message),
            op: refused_op(&clean_text(&error.message)),
        }),
        stages_us: run.stages_us.into_iter().collect(),
        first_us: run.first_inference_us,
        latency: run.latency_us.map(|latency| SideLatency {
            count: latency.samples,
            support: latency.samples,
            mean: latency.mean,
            stddev: latency.stddev,
            p50: latency.p50,
            p90: latency.p90,
            p95: latency.p95,
            p99: latency.p99,
            max: latency.max,
            series: latency.series.map(Series::bounded),
            launches: latency.launches,
        }),
        service,
        throughput_ips: run.throughput_ips,
        memory_peak: run.memory_bytes.rss_peak.map(|bytes| bytes as f64),
        memory_delta: run.memory_bytes.rss_delta.map(|bytes| bytes as f64),
        cpu_percent: run.cpu_utilization_percent,
        energy_mj: run.energy.per_inference_mj,
        power_w: run.energy.average_power_w,
        counters: run
            .counters
            .unwrap_or_default()
            .into_iter()
            .map(|counter| SideCounter { id: clean_text(&counter.id), unit: clean_text(&counter.unit), ..counter })
            .collect(),
        op_time_derived: run.ops.iter().any(|op| op.time_derived),
        ops,
        outputs: run.outputs,
        judged: run.judged,
        facts: run.graph_facts,
        around: None,
        crowded: run
            .trust
            .into_iter()
            .flat_map(|trust| trust.reasons)
            .find(|reason| reason.id == "trust.background-load" && reason.weight == "not")
            .map(|reason| clean_text(&reason.title)),
        together: None,
        notes,
    }
}

fn service(pace: Pace) -> SideLatency {
    let Service { samples, mean, p50, p90, p95, p99, max } = pace.figures;
    let (stddev, series) = (pace.stddev_us, pace.series.map(Series::bounded));
    let launches = pace.launches;
    SideLatency { count: samples, support: samples, mean, stddev, p50, p90, p95, p99, max, series, launches }
}
