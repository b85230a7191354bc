//! Conditions that a run meets or not, as rules name them.

use super::super::window::is_in;
use super::facts::Facts;
use crate::backends::ProfilingLevel;
use crate::event::{RunStatus, Stage};
use crate::models::DataType;
use serde::Deserialize;

/// Performance profiles that ask for the fastest clocks.
const FAST: [&str; 3] = ["burst", "sustained_high_performance", "high_performance"];

/// A condition of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// It succeeded, or is still running.
    Successful,
    /// It failed while the graph was composed or finalized.
    RefusedByTheBackend,
    /// The latencies were measured with profiling on.
    ProfiledWhileMeasured,
    /// It ran on a phone or board.
    OnADevice,
    /// This machine's CPU is x86.
    OnX86,
    /// Performance profile `burst`.
    AtBurst,
    /// No performance profile that asks for the fastest clocks was applied.
    NotAtFastClocks,
    /// The system reported throttling.
    Throttled,
    /// Most ops output floats.
    FloatGraph,
    /// Most ops output 16-bit fixed point.
    SixteenBitGraph,
    /// Most ops output fixed point.
    QuantizedGraph,
    /// An input or output is float although the graph is quantised.
    FloatEdges,
    /// The SoC's HTP has no fp16.
    SocWithoutFp16,
    /// The graph is compiled when it is loaded.
    CompiledWhenLoaded,
    /// A precision below the model's own was requested.
    AtReducedPrecision,
    /// DLBC was requested.
    WithDlbc,
    /// All of the VTCM was requested.
    WithAllVtcm,
    /// The device has cores of different speeds.
    MixedCores,
}

impl Condition {
    /// What was observed if the condition holds; empty if the observation is not worth reporting.
    pub fn seen(self, facts: &Facts<'_>) -> Option<String> {
        let run = facts.run;
        let is = |holds: bool, text: &str| holds.then(|| text.to_owned());
        let main = |test: &dyn Fn(DataType) -> bool| facts.main_type.filter(|dtype| test(*dtype));
        match self {
            Self::Successful => is(run.status() != Some(RunStatus::Failed), ""),
            Self::RefusedByTheBackend => {
                let failure = run.failure.as_ref()?;
                let refused = matches!(failure.stage, Stage::Compose | Stage::Finalize);
                refused.then(|| format!("{} failed: {}", failure.call, failure.message))
            }
            Self::ProfiledWhileMeasured => {
                let level = run.plan.clean_profiling();
                is(
                    level != ProfilingLevel::Off,
                    &format!("the latencies were measured at profiling level {}", level.name()),
                )
            }
            Self::OnADevice => is(facts.is_on_a_device(), ""),
            Self::OnX86 => {
                let abi = &facts.store.device(&run.plan.device)?.abi;
                is(abi.starts_with("x86") || abi.starts_with("i686"), &format!("the CPU is an {abi}"))
            }
            Self::AtBurst => is(facts.setting("perf_profile") == Some("burst"), "the performance profile was burst"),
            Self::NotAtFastClocks => match facts.setting("perf_profile") {
                None => Some("no performance profile was applied, so the HTP ran at its default votes".to_owned()),
                Some(profile) if FAST.contains(&profile) => None,
                Some(profile) => Some(format!("the performance profile was {profile}")),
            },
            Self::Throttled => throttled(facts),
            Self::FloatGraph => {
                main(&DataType::is_float).map(|dtype| format!("most of the graph's tensors are {dtype}"))
            }
            Self::SixteenBitGraph => main(&|dtype| dtype.is_fixed_point() && dtype.bits() == Some(16))
                .map(|dtype| format!("most of the graph's tensors are {dtype}")),
            Self::QuantizedGraph => {
                main(&DataType::is_fixed_point).map(|dtype| format!("most of the graph's tensors are {dtype}"))
            }
            Self::FloatEdges => float_edges(facts),
            Self::SocWithoutFp16 => {
                let soc = facts.soc.filter(|soc| soc.fp16 == Some(false))?;
                Some(format!("the HTP of {} does not compute in float16", soc.part))
            }
            Self::CompiledWhenLoaded => is(facts.is_compiled_online(), ""),
            Self::AtReducedPrecision => {
                let asked = facts.setting("precision").filter(|precision| *precision != "float32")?;
                Some(format!("the requested precision was {asked}"))
            }
            Self::WithDlbc => is(matches!(facts.setting("dlbc"), Some("true" | "1")), ""),
            Self::WithAllVtcm => is(facts.setting("vtcm_mb") == Some("0"), ""),
            Self::MixedCores => {
                let clusters = &facts.device()?.clusters;
                let mut clocks: Vec<u64> = clusters.iter().filter_map(|cluster| cluster.max_freq_hz).collect();
                clocks.dedup();
                let list: Vec<String> = clusters
                    .iter()
                    .filter_map(|cluster| {
                        Some(format!("{} up to {:.1} GHz", cluster.cpus.len(), cluster.max_freq_hz? as f64 / 1e9))
                    })
                    .collect();
                (clocks.len() > 1).then(|| format!("the cores differ: {}", list.join(", ")))
            }
        }
    }
}

fn float_edges(facts: &Facts<'_>) -> Option<String> {
    facts.main_type.filter(|dtype| dtype.is_fixed_point())?;
    let graph = facts.run.graph()?;
    let edges = graph.inputs.iter().map(|tensor| ("input", tensor)).chain(graph.outputs.iter().map(|t| ("output", t)));
    let (side, tensor) = edges.into_iter().find(|(_, tensor)| tensor.dtype.is_float())?;
    Some(format!("{side} `{}` is {}, the graph inside is quantised", tensor.name, tensor.dtype))
}

/// Android reports `moderate` as 2. The confound was seen before the run, the counter during it.
fn throttled(facts: &Facts<'_>) -> Option<String> {
    const MODERATE: f64 = 2.0;
    let windows_us = facts.run.clean.windows_us();
    if windows_us.is_empty() {
        return None;
    }
    let series = facts.store.device_counters().series().iter();
    let status = series
        .filter(|known| known.device == facts.run.plan.device && known.series.info.id == "service.thermal.status")
        .flat_map(|known| known.series.points())
        .filter(|(t_us, _)| is_in(windows_us, *t_us))
        .filter_map(|(_, status)| *status)
        .reduce(f64::max);
    if let Some(status) = status.filter(|status| *status >= MODERATE) {
        return Some(format!("Android's thermal status rose to {status:.0} during the run"));
    }
    let before = facts.run.confounds.iter().find(|confound| confound.id == "thermal_status")?;
    Some(before.observation.clone())
}
