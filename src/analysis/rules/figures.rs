//! Computes the figures of a run.

use super::super::window::is_in;
use super::facts::Facts;
use super::figure::{ALL, Figure};
use crate::backends::Backend;
use crate::event::Stage;
use crate::models::{Tensor, TensorKind};
use std::collections::{BTreeMap, HashMap};

/// VTCM of a graph that requests none, MiB: the default of HTP's compiler, as recorded in the binaries it
/// produces.
const DEFAULT_VTCM_MB: f64 = 4.0;
/// Minimum number of inferences in a part of a run for its median to mean anything.
const MIN_PART: usize = 10;

/// All figures that are known.
pub fn all(facts: &Facts<'_>) -> BTreeMap<Figure, f64> {
    ALL.into_iter()
        .filter_map(|figure| Some((figure, figure.of(facts)?)))
        .filter(|(_, value)| value.is_finite())
        .collect()
}

impl Figure {
    fn of(self, facts: &Facts<'_>) -> Option<f64> {
        let run = facts.run;
        let metric = |name: &str| Some(run.metric(name)?.mean());
        let accelerator = || metric("Accelerator (execute) time").filter(|us| *us > 0.0);
        let rpc = || metric("RPC (execute) time").filter(|us| *us > 0.0);
        let on_htp = run.plan.backend == Backend::Htp;
        match self {
            Self::LatencyUs => facts.latency_us(),
            Self::Inferences => Some(run.clean.count() as f64).filter(|count| *count > 0.0),
            Self::SpanS => Some(run.clean.span_us() / 1e6).filter(|seconds| *seconds > 0.0),
            Self::FirstOverMedian => Some(run.first_us()? / facts.latency_us()?),
            Self::Drift => drift(run.clean.samples_us()),
            Self::P95OverMedian => Some(run.clean.percentile_us(95.0)? / facts.latency_us()?),
            Self::TransportShare => Some((1.0 - accelerator()? / rpc()?).max(0.0)),
            Self::TransportUs => Some((rpc()? - accelerator()?).max(0.0)),
            Self::HostShare => {
                // The driver's own copies happen outside the backend's call but count in the latency it
                // reports.
                let call = metric("QNN (execute) time").filter(|_| !run.plan.driver.traits().latency_has_copies);
                Some((1.0 - rpc()? / call.or(run.clean.mean_us())?).max(0.0))
            }
            Self::EffectiveMhz => {
                Some(metric("Accelerator (execute) time (cycles)").filter(|c| *c > 0.0)? / accelerator()?)
            }
            Self::VtcmWaitShare => Some(metric("Time for initial VTCM acquire")? / accelerator()?),
            Self::PowerUpShare => Some(metric("Time for HVX + HMX power on and acquire")? / accelerator()?),
            Self::Yields => metric("Num times yield occured").or_else(|| metric("Num times yield occurred")),
            Self::SpillBytes => Some(metric("DDR spill")? + metric("DDR fill")?),
            Self::SpillShare => {
                let moved = metric("DDR read total")? + metric("DDR write total")?;
                Some((metric("DDR spill")? + metric("DDR fill")?) / Some(moved).filter(|bytes| *bytes > 0.0)?)
            }
            Self::VtcmMb => vtcm_mb(facts).filter(|_| on_htp),
            Self::VtcmUnusedMb => Some(f64::from(facts.soc?.vtcm_mb?) - vtcm_mb(facts)?).filter(|_| on_htp),
            Self::HvxUnused => {
                let asked = facts.setting("hvx_threads").and_then(|text| text.parse::<f64>().ok());
                let stored = facts.binary_graph().and_then(|graph| Some(graph.hvx_threads? as f64));
                Some(f64::from(facts.soc?.hvx_threads?) - asked.or(stored)?).filter(|_| on_htp)
            }
            Self::OptimizationLevel => {
                let asked = facts.setting("optimization_level").and_then(|text| text.parse::<f64>().ok());
                asked.or_else(|| Some(f64::from(facts.binary_graph()?.optimization_level?)))
            }
            Self::PrepareS => {
                let stages = [Stage::Compose, Stage::Finalize].map(|stage| run.stage_us(stage));
                Some((stages[0].unwrap_or(0.0) + stages[1]?) / 1e6)
            }
            Self::IoBytes => {
                let graph = run.graph()?;
                let mut edges = graph.inputs.iter().chain(&graph.outputs);
                edges
                    .try_fold(0.0, |sum, tensor| Some(sum + Tensor::bytes(tensor)? as f64))
                    .filter(|bytes| *bytes > 0.0)
            }
            Self::ModelBytes => Some(run.model.as_ref()?.bytes as f64),
            Self::SharedConstantBytes => shared_constant_bytes(facts),
            Self::HexagonArch => Some(f64::from(facts.soc?.arch?)),
            Self::Batch => Some(f64::from(*run.graph()?.inputs.first().filter(|t| t.shape.len() > 1)?.shape.first()?)),
            Self::GpuClockShare => gpu_clock_share(facts),
        }
    }
}

fn vtcm_mb(facts: &Facts<'_>) -> Option<f64> {
    let whole = || facts.soc.and_then(|soc| soc.vtcm_mb).map(f64::from);
    match facts.setting("vtcm_mb").and_then(|text| text.parse::<f64>().ok()) {
        Some(0.0) => return whole(),
        Some(asked) => return Some(asked),
        None => {}
    }
    if facts.binary().is_some() {
        return facts.binary_graph()?.vtcm_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    }
    facts.is_compiled_online().then_some(DEFAULT_VTCM_MB)
}

/// Median of the last fifth over that of the first, less 1.
fn drift(samples: &[f32]) -> Option<f64> {
    let part = samples.len() / 5;
    if part < MIN_PART {
        return None;
    }
    let median = |samples: &[f32]| {
        let mut values = samples.to_vec();
        let (_, middle, _) = values.select_nth_unstable_by(part / 2, f32::total_cmp);
        f64::from(*middle)
    };
    let first = median(samples.get(..part)?);
    (first > 0.0).then(|| median(&samples[samples.len() - part..]) / first - 1.0)
}

fn shared_constant_bytes(facts: &Facts<'_>) -> Option<f64> {
    let graphs = &facts.run.graphs;
    if graphs.len() < 2 {
        return None;
    }
    let mut seen: HashMap<(&str, &[u32]), usize> = HashMap::new();
    let mut shared = 0u64;
    for (number, graph) in graphs.iter().enumerate() {
        let constants = graph.ops.iter().flat_map(|op| &op.inputs).filter(|tensor| tensor.kind == TensorKind::Static);
        for tensor in constants {
            let first = *seen.entry((&tensor.name, &tensor.shape)).or_insert(number);
            if first != number {
                shared = shared.saturating_add(tensor.bytes().unwrap_or(0));
                seen.insert((&tensor.name, &tensor.shape), number);
            }
        }
    }
    (shared > 0).then_some(shared as f64)
}

fn gpu_clock_share(facts: &Facts<'_>) -> Option<f64> {
    let windows_us = facts.run.clean.windows_us();
    let counters = facts.store.device_counters().series();
    let of = |id: &str| {
        let own =
            |known: &&crate::store::DeviceSeries| known.device == facts.run.plan.device && known.series.info.id == id;
        counters.iter().find(own).map(|known| &known.series)
    };
    let clock = of("gpu.freq")?;
    let inside = clock.points().iter().filter(|(t_us, _)| is_in(windows_us, *t_us));
    let values: Vec<f64> = inside.filter_map(|(_, mhz)| *mhz).collect();
    let fastest = clock.summary().map(|(_, _, max)| max)?;
    (values.len() >= MIN_PART && fastest > 0.0).then(|| values.iter().sum::<f64>() / values.len() as f64 / fastest)
}
