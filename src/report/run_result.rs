//! A run in the result document.

use super::launches::{self, BetweenLaunches, LaunchResult};
use super::mode_result::{self, PaceResult};
use super::nodes::{self, NodeResult, PartitionResult};
use super::op_result::{self, OpResult};
use super::verdicts::{BoundsResult, OutliersResult, TrustResult};
use crate::analysis::compare::{GraphFacts, Series, SideCounter, counters};
use crate::analysis::{Finding, LikeReport, Sustained, energy, findings, like, summary, sustained, verdicts};
use crate::diagnosis::{CauseRow, Fault, diagnose_run};
use crate::event::{
    Confound, Constraints, CoolDown, DeviceInfo, Driver, Mode, OutputsJudged, RunStatus, RuntimeInfo, Sandbox, Setting,
    SettingOutcome, Stage, SubStage, TensorData,
};
use crate::store::{PERCENTILES, Run, RunState, Store};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize)]
struct EnergyResult {
    scope: &'static str,
    average_power_w: Option<f64>,
    per_inference_mj: Option<f64>,
    readings: usize,
    unavailable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    device: Option<DeviceInfo>,
    backend: &'static str,
    simulated: bool,
    driver: Driver,
    status: &'static str,
    stopped_early: bool,
    runtime: Option<RuntimeInfo>,
    changed_files: Vec<String>,
    sandbox: Option<Sandbox>,
    error: Option<ErrorResult>,
    confounds: Vec<Confound>,
    settings: Vec<SettingResult>,
    inputs: Vec<TensorData>,
    stages_us: BTreeMap<&'static str, f64>,
    stage_rss_delta_bytes: BTreeMap<&'static str, i64>,
    sub_stages: Vec<SubStage>,
    first_inference_us: Option<f64>,
    latency_us: Option<Latency>,
    throughput_ips: Option<f64>,
    memory_bytes: Memory,
    energy: EnergyResult,
    cpu_utilization_percent: Option<f64>,
    profiling: Profiling,
    ops: Vec<OpResult>,
    backend_metrics: Vec<MetricResult>,
    outputs: Vec<String>,
    judged: Option<OutputsJudged>,
    placement: Option<Vec<NodeResult>>,
    partitions: Option<Vec<PartitionResult>>,
    graph_facts: Option<GraphFacts>,
    mode: Mode,
    pace: Option<PaceResult>,
    sustained: Option<Sustained>,
    like: Option<LikeReport>,
    cool_down: Option<CoolDown>,
    constraints: Constraints,
    counters: Vec<SideCounter>,
    trust: Option<TrustResult>,
    bounds: BoundsResult,
    outliers: Option<OutliersResult>,
    findings: Vec<Finding>,
    diagnosis: Option<DiagnosisResult>,
    summary: Option<String>,
}

/// Why a run failed: causes as in `qnnscope.diagnosis/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct DiagnosisResult {
    causes: Vec<CauseRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ErrorResult {
    stage: Stage,
    launch: usize,
    call: String,
    code: Option<u64>,
    symbol: Option<String>,
    message: String,
    hint: Option<String>,
    op: Option<Fault>,
    log_tail: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct SettingResult {
    key: String,
    value: String,
    outcome: &'static str,
    reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Latency {
    iterations: u64,
    warmup: u64,
    mean: Option<f64>,
    stddev: Option<f64>,
    min: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
    samples: u64,
    ci95: BTreeMap<&'static str, [Option<f64>; 2]>,
    warmup_mean: Option<f64>,
    series: Series,
    launches: Vec<LaunchResult>,
    between_launches: BetweenLaunches,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Memory {
    rss_before: Option<u64>,
    rss_loaded: Option<u64>,
    rss_peak: Option<u64>,
    rss_delta: Option<i64>,
    pss_loaded: Option<u64>,
    growth_per_inference: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Profiling {
    level: &'static str,
    clean_level: &'static str,
    iterations: u64,
    overhead_factor: Option<f64>,
    mismatched_iterations: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct MetricResult {
    name: String,
    unit: String,
    mean: f64,
    min: f64,
    max: f64,
    samples: u64,
}

fn energy_result(store: &Store, run: &Run) -> EnergyResult {
    let energy = energy(store, run);
    EnergyResult {
        scope: "system",
        average_power_w: energy.as_ref().ok().map(|energy| energy.average_power_w),
        per_inference_mj: energy.as_ref().ok().map(|energy| energy.per_inference_mj),
        readings: energy.as_ref().map_or(0, |energy| energy.readings),
        unavailable: energy.err().map(|reason| reason.to_string()),
    }
}

/// The result of a run.
pub fn run_result(store: &Store, run: &Run) -> RunResult {
    let verdicts = verdicts(store, run);
    let findings = findings(store, run);
    let reported = || run.stages.iter().filter(|time| time.stage.is_reported());
    RunResult {
        device: store.device(&run.plan.device).cloned(),
        backend: run.plan.backend.name(),
        simulated: run.plan.simulated,
        driver: run.plan.driver,
        status: match run.status() {
            Some(RunStatus::Ok | RunStatus::Stopped) => "ok",
            Some(RunStatus::Failed) | None => "failed",
        },
        stopped_early: run.status() == Some(RunStatus::Stopped),
        runtime: run.runtime.clone(),
        changed_files: run.changed_files.clone(),
        sandbox: run.sandbox.clone(),
        error: error(run),
        confounds: run.confounds.clone(),
        settings: run.settings.iter().map(setting).collect(),
        inputs: run.inputs.clone(),
        stages_us: reported().map(|time| (time.stage.name(), time.duration_us)).collect(),
        stage_rss_delta_bytes: reported().filter_map(|time| Some((time.stage.name(), time.rss_delta?))).collect(),
        sub_stages: run.sub_stages.clone(),
        first_inference_us: run.first_us(),
        latency_us: (!run.clean.is_empty()).then(|| latency(run)),
        throughput_ips: run.throughput_ips(),
        memory_bytes: Memory {
            rss_before: run.memory.rss_before,
            rss_loaded: run.memory.rss_loaded,
            rss_peak: run.memory.rss_peak,
            rss_delta: run.memory.rss_delta(),
            pss_loaded: run.memory.pss_loaded,
            growth_per_inference: run.memory.growth_per_inference(),
        },
        energy: energy_result(store, run),
        cpu_utilization_percent: run.cpu_utilization_percent(),
        profiling: Profiling {
            level: run.plan.profiling.name(),
            clean_level: run.plan.clean_profiling().name(),
            iterations: run.detailed.count(),
            overhead_factor: run.overhead_factor(),
            mismatched_iterations: run.ops.mismatched(),
        },
        ops: op_result::ops(run, &verdicts),
        backend_metrics: run
            .metrics
            .iter()
            .map(|metric| MetricResult {
                name: metric.name.clone(),
                unit: metric.unit.clone(),
                mean: metric.mean(),
                min: metric.min,
                max: metric.max,
                samples: metric.count,
            })
            .collect(),
        outputs: run.outputs.clone(),
        judged: run.judged.clone(),
        placement: nodes::nodes(run),
        partitions: nodes::partitions(run),
        graph_facts: GraphFacts::of_run(run),
        mode: run.plan.mode.clone(),
        pace: mode_result::pace(run),
        sustained: sustained(store, run),
        like: like(store, run),
        cool_down: run.cool_down.clone(),
        constraints: run.plan.constraints.clone(),
        counters: counters(store, run),
        trust: verdicts.trust.as_ref().map(TrustResult::new),
        bounds: BoundsResult::new(&verdicts),
        outliers: verdicts.outliers.as_ref().map(OutliersResult::new),
        summary: summary(run, &verdicts, &findings),
        findings: op_result::placed(run, findings),
        diagnosis: diagnose_run(store, run)
            .map(|diagnosis| DiagnosisResult { causes: diagnosis.causes.iter().map(CauseRow::new).collect() }),
    }
}

/// The failure; a run without an end (because the session was cut off) failed too.
fn error(run: &Run) -> Option<ErrorResult> {
    if let Some(failure) = &run.failure {
        return Some(ErrorResult {
            stage: failure.stage,
            launch: run.launches.len() - 1,
            call: failure.call.clone(),
            code: failure.code,
            symbol: failure.symbol.clone(),
            message: failure.message.clone(),
            hint: failure.hint.clone(),
            op: Fault::of(failure),
            log_tail: failure.log_tail.clone(),
        });
    }
    (!run.is_ended()).then(|| ErrorResult {
        stage: match run.state {
            RunState::In(stage) => stage,
            _ => run.last_stage(),
        },
        launch: run.launches.len() - 1,
        call: "session".to_owned(),
        code: None,
        symbol: None,
        message: "the session ended before the run did".to_owned(),
        hint: None,
        op: None,
        log_tail: Vec::new(),
    })
}

fn setting(setting: &Setting) -> SettingResult {
    let (outcome, reason) = match &setting.outcome {
        SettingOutcome::Applied => ("applied", None),
        SettingOutcome::NoEffect(reason) => ("no_effect", Some(reason.clone())),
        SettingOutcome::Refused(reason) => ("refused", Some(reason.clone())),
    };
    SettingResult { key: setting.key.clone(), value: setting.value.clone(), outcome, reason }
}

fn latency(run: &Run) -> Latency {
    const NAMES: [&str; 5] = ["p50", "p90", "p95", "p99", "p999"];
    let (clean, warmup) = (&run.clean, &run.warmup);
    let percentiles = PERCENTILES.map(|percent| clean.percentile(percent));
    Latency {
        iterations: clean.count(),
        warmup: warmup.count(),
        mean: clean.mean_us(),
        stddev: clean.stddev_us(),
        min: clean.min_us(),
        p50: percentiles[0].value_us,
        p90: percentiles[1].value_us,
        p95: percentiles[2].value_us,
        p99: percentiles[3].value_us,
        p999: percentiles[4].value_us,
        max: clean.max_us(),
        samples: clean.count(),
        ci95: NAMES.into_iter().zip(launches::intervals(run)).map(|(name, (low, high))| (name, [low, high])).collect(),
        warmup_mean: warmup.mean_us(),
        series: Series::of(clean),
        launches: launches::launches(run),
        between_launches: launches::between(run),
    }
}
