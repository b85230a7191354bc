//! The start of a run: what was known about its graph before its first execution.

use super::Out;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{
    Budget, Constraints, Driver, Event, GraphOrigin, MemoryMark, MemorySample, Mode, RunId, RunPlan, RuntimeInfo,
    Setting, SettingOutcome, Stage,
};
use qnnscope_core::tap::{Call, Provider};
use serde_json::Value;

/// A stage as the program went through it.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageTime {
    pub stage: Stage,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub rss_before: Option<u64>,
    pub rss_after: Option<u64>,
}

impl StageTime {
    pub fn of(stage: Stage, call: &Call) -> Self {
        Self {
            stage,
            start_ns: call.start_ns,
            duration_ns: call.duration_ns,
            rss_before: call.rss_before,
            rss_after: call.rss_after,
        }
    }

    fn end_us(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns) / 1000
    }
}

/// How a run starts.
#[derive(Debug)]
pub(super) struct Start {
    pub name: String,
    pub provider: u32,
    pub origin: GraphOrigin,
    pub context: Option<u32>,
    pub began_ns: u64,
    pub plan: RunPlan,
    pub runtime: RuntimeInfo,
    pub settings: Vec<Setting>,
    pub stages: Vec<StageTime>,
}

impl Start {
    /// There is no requested number of inferences: the program decides. If it profiles every execution itself, its
    /// clean latencies are measured under that profiling.
    pub fn plan(device: &str, backend: Backend, name: &str, simulated: bool, profiled: bool) -> RunPlan {
        RunPlan {
            device: device.to_owned(),
            backend,
            model: name.to_owned(),
            warmup: 0,
            budget: Budget::Iterations(0),
            profiling: if profiled { ProfilingLevel::Basic } else { ProfilingLevel::Detailed },
            profiling_budget: None,
            simulated,
            driver: Driver::Tap,
            energy_while_charging: false,
            mode: Mode::default(),
            constraints: Constraints::default(),
        }
    }

    pub fn runtime(library: &Provider) -> RuntimeInfo {
        RuntimeInfo {
            path: library.library.clone(),
            build_id: library.build_id.clone(),
            core_api: library.core_api.clone(),
            backend_api: library.backend_api.clone(),
            provider: library.name.clone(),
        }
    }

    /// The options that the program passed to a call, as settings.
    pub fn settings(call: &Call) -> Vec<Setting> {
        let of = match call.call.as_str() {
            "backendCreate" => "backend",
            "deviceCreate" => "device",
            "graphCreate" | "graphRetrieve" | "graphFinalize" => "graph",
            _ => "context",
        };
        let outcome = if call.code == 0 {
            SettingOutcome::Applied
        } else {
            SettingOutcome::Refused(format!("{} failed with {}", call.call, call.code & 0xffff))
        };
        let one = |(key, value): (&String, &Value)| Setting {
            key: format!("{of}.{key}"),
            value: value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned),
            outcome: outcome.clone(),
        };
        call.options.iter().map(one).collect()
    }
}

/// Sends the plan and the runtime.
pub(super) fn send(id: RunId, start: &Start, out: &mut Vec<Out>) {
    let t_us = start.began_ns / 1000;
    let run = Some(id);
    out.push(Out { t_us, run, event: Event::RunStarted(Box::new(start.plan.clone())) });
    out.push(Out { t_us, run, event: Event::RuntimeLoaded(start.runtime.clone()) });
    for setting in &start.settings {
        out.push(Out { t_us, run, event: Event::SettingApplied(setting.clone()) });
    }
}

/// Sends the stages up to the first execution, with their memory.
pub(super) fn send_stages(id: RunId, start: &Start, out: &mut Vec<Out>) {
    let run = Some(id);
    let memory = |mark, rss| Event::Memory(MemorySample { mark, rss, rss_peak: None, pss: None, inferences: 0 });
    if let Some((t_ns, rss)) = start.stages.iter().find_map(|time| Some((time.start_ns, time.rss_before?))) {
        out.push(Out { t_us: t_ns / 1000, run, event: memory(MemoryMark::BeforeLoad, rss) });
    }
    let mut loaded = None;
    for time in &start.stages {
        let t_us = time.end_us();
        let stage = time.stage;
        out.push(Out { t_us: time.start_ns / 1000, run, event: Event::StageStarted { stage } });
        let duration_us = time.duration_ns as f64 / 1000.0;
        out.push(Out { t_us, run, event: Event::StageFinished { stage, duration_us } });
        if let Some(rss) = time.rss_after {
            out.push(Out { t_us, run, event: memory(MemoryMark::After(stage), rss) });
            loaded = Some((t_us, rss));
        }
    }
    if let Some((t_us, rss)) = loaded {
        out.push(Out { t_us, run, event: memory(MemoryMark::Loaded, rss) });
    }
}
