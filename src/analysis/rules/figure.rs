//! Numbers of the run that rules set limits to.

use super::super::window::is_in;
use super::facts::Facts;
use crate::backends::Backend;
use crate::event::Stage;
use crate::models::{Tensor, TensorKind};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// VTCM of a graph that asks for none, MiB: the default of HTP's compiler, as it stands in the binaries it makes.
const DEFAULT_VTCM_MB: f64 = 4.0;
/// Inferences that a part of a run must hold before its median says something.
const MIN_PART: usize = 10;

/// A number of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Median latency, microseconds.
    LatencyUs,
    /// Inferences of the clean phase.
    Inferences,
    /// Length of the clean phase, seconds.
    SpanS,
    /// First inference over the median of the clean phase.
    FirstOverMedian,
    /// Median of the last fifth over that of the first fifth, less 1.
    Drift,
    /// 95th percentile over the median.
    P95OverMedian,
    /// Part of the RPC that is not the accelerator's, 0 to 1.
    TransportShare,
    /// The same, microseconds.
    TransportUs,
    /// Part of the call that is not RPC, 0 to 1.
    HostShare,
    /// Accelerator cycles over accelerator time, MHz.
    EffectiveMhz,
    /// Wait for the VTCM at the start of an inference over the accelerator's time, 0 to 1.
    VtcmWaitShare,
    /// Powering the accelerator up at the start of an inference over the accelerator's time, 0 to 1.
    PowerUpShare,
    /// Times an inference gave way to other work.
    Yields,
    /// Spilled and filled bytes over all bytes moved to and from DDR, 0 to 1.
    SpillShare,
    /// Spilled and filled bytes of an inference.
    SpillBytes,
    /// VTCM that the graph was compiled for, MiB.
    VtcmMb,
    /// VTCM of the SoC that the graph does not use, MiB.
    VtcmUnusedMb,
    /// HVX threads of the SoC that the graph was not compiled for.
    HvxUnused,
    /// Level of optimisation that the graph was compiled with.
    OptimizationLevel,
    /// Composing and finalizing the graph, seconds.
    PrepareS,
    /// Bytes of all inputs and outputs.
    IoBytes,
    /// Size of the model file, bytes.
    ModelBytes,
    /// Bytes of constants that another graph of the model holds as well.
    SharedConstantBytes,
    /// Hexagon architecture, such as 75.
    HexagonArch,
    /// First dimension of the first input.
    Batch,
    /// Mean GPU clock of the clean phase over the fastest one seen, 0 to 1.
    GpuClockShare,
}

const ALL: [Figure; 26] = [
    Figure::LatencyUs,
    Figure::Inferences,
    Figure::SpanS,
    Figure::FirstOverMedian,
    Figure::Drift,
    Figure::P95OverMedian,
    Figure::TransportShare,
    Figure::TransportUs,
    Figure::HostShare,
    Figure::EffectiveMhz,
    Figure::VtcmWaitShare,
    Figure::PowerUpShare,
    Figure::Yields,
    Figure::SpillShare,
    Figure::SpillBytes,
    Figure::VtcmMb,
    Figure::VtcmUnusedMb,
    Figure::HvxUnused,
    Figure::OptimizationLevel,
    Figure::PrepareS,
    Figure::IoBytes,
    Figure::ModelBytes,
    Figure::SharedConstantBytes,
    Figure::HexagonArch,
    Figure::Batch,
    Figure::GpuClockShare,
];

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
                // Copies of the driver's own are outside the backend's call, and part of the latency it reports.
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

    /// The figure in words.
    pub fn sentence(self, value: f64) -> String {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        match self {
            Self::LatencyUs => format!("the median latency is {}", time(value)),
            Self::Inferences => format!("{value:.0} inferences were measured"),
            Self::SpanS => format!("inferences ran for {value:.0} s"),
            Self::FirstOverMedian => format!("the first inference took {value:.1} times the median"),
            Self::Drift => {
                format!("the last fifth of the inferences takes {:+.0} % against the first fifth", value * 100.0)
            }
            Self::P95OverMedian => format!("the 95th percentile is {value:.1} times the median"),
            Self::TransportShare => format!("{} of the RPC time is outside the accelerator", percent(value)),
            Self::TransportUs => format!("{} of an RPC is outside the accelerator", time(value)),
            Self::HostShare => format!("{} of the call is spent on the CPU, outside the RPC", percent(value)),
            Self::EffectiveMhz => format!("the accelerator ran at an effective {value:.0} MHz"),
            Self::VtcmWaitShare => {
                format!("an inference waits for the VTCM for {} of the accelerator's time", percent(value))
            }
            Self::PowerUpShare => {
                format!("an inference waits {} of the accelerator's time for power-up", percent(value))
            }
            Self::Yields => format!("an inference yielded to other work {value:.1} times on average"),
            Self::SpillShare => format!("{} of the bytes moved to and from DDR are spills and fills", percent(value)),
            Self::SpillBytes => format!("{} are spilled and filled in an inference", bytes(value)),
            Self::VtcmMb => format!("the graph was compiled for {value:.0} MiB of VTCM"),
            Self::VtcmUnusedMb => format!("{value:.0} MiB of the SoC's VTCM are not used"),
            Self::HvxUnused => format!("{value:.0} of the SoC's HVX threads are not used"),
            Self::OptimizationLevel => format!("the graph was compiled with optimisation level {value:.0}"),
            Self::PrepareS => format!("composing and finalizing the graph took {value:.1} s"),
            Self::IoBytes => format!("inputs and outputs total {}", bytes(value)),
            Self::ModelBytes => format!("the model file has {}", bytes(value)),
            Self::SharedConstantBytes => {
                format!("{} of constants are in more than one graph of the model", bytes(value))
            }
            Self::HexagonArch => format!("the Hexagon is a v{value:.0}"),
            Self::Batch => format!("the graph takes {value:.0} input at a time"),
            Self::GpuClockShare => format!("the GPU ran at {} of its fastest observed clock", percent(value)),
        }
    }
}

/// Microseconds for people.
pub fn time(us: f64) -> String {
    if us >= 10_000.0 {
        format!("{:.1} ms", us / 1000.0)
    } else if us >= 1000.0 {
        format!("{:.2} ms", us / 1000.0)
    } else {
        format!("{us:.0} us")
    }
}

fn bytes(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.1} GB", v / 1e9),
        v if v >= 1e6 => format!("{:.1} MB", v / 1e6),
        v if v >= 1e3 => format!("{:.1} kB", v / 1e3),
        v => format!("{v:.0} bytes"),
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
