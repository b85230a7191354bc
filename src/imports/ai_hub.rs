//! Results of a profile job on Qualcomm AI Hub, as its client downloads them. Times are in microseconds,
//! memory in bytes.

use super::Import;
use super::draft::Draft;
use super::error::Problem;
use super::json::{document, positive};
use super::sample::Sample;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{OpUnit, Phase, Stage};
use serde::Deserialize;
use serde_json::Value;

pub struct AiHub;

#[derive(Debug, Deserialize)]
struct Profile {
    execution_summary: serde_json::Map<String, Value>,
    #[serde(default)]
    execution_detail: Vec<Layer>,
}

#[derive(Debug, Deserialize)]
struct Layer {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    compute_unit: String,
    #[serde(default)]
    execution_time: Option<u64>,
    #[serde(default)]
    execution_cycles: Option<u64>,
}

impl Import for AiHub {
    fn kind(&self) -> &'static str {
        "ai-hub"
    }

    fn label(&self) -> &'static str {
        "AI Hub profile"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        sample.has_keys(&["execution_summary"])
            || (sample.has_keys(&["execution_detail"]) && sample.text().contains("\"compute_unit\""))
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let profile: Profile = document(sample)?;
        let summary = |key: &str| positive(profile.execution_summary.get(key));
        let times = |key: &str| -> Vec<f64> {
            let list = profile.execution_summary.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(|time| positive(Some(time))).collect()
        };
        let layers = &profile.execution_detail;
        let run = draft.run()?;
        run.clean_level = ProfilingLevel::Off;
        run.backend = backend(layers);
        // 0 in the load, memory and compile fields means that the service did not measure it.
        if let Some(us) = summary("first_load_time") {
            run.stage(0, Stage::ContextCreate, us);
        }
        for (key, stage, unit) in [
            ("first_load_time", Stage::ContextCreate, "us"),
            ("warm_load_time", Stage::ContextCreate, "us"),
            ("compile_time", Stage::Finalize, "us"),
        ] {
            if let Some(value) = summary(key) {
                run.part(run.now_us(), stage, key, value, unit);
            }
        }
        run.graph("", layers.iter().map(|layer| (layer.name.clone(), layer.kind.clone(), layer.compute_unit.clone())));
        let estimate = summary("estimated_inference_time");
        let inferences = times("all_inference_times");
        match inferences.split_first() {
            Some((first, rest)) if !rest.is_empty() => {
                run.inference(Phase::First, None, *first);
                for us in rest {
                    run.inference(Phase::Clean, None, *us);
                }
            }
            _ => {
                if let Some(us) = estimate.or(inferences.first().copied()) {
                    run.is_summary = true;
                    run.inference(Phase::Clean, None, us);
                }
            }
        }
        if let Some(us) = estimate {
            run.figure("estimated_inference_time", "us", us);
        }
        for key in [
            "estimated_inference_peak_memory",
            "first_load_peak_memory",
            "warm_load_peak_memory",
            "compile_peak_memory",
        ] {
            if let Some(bytes) = summary(key) {
                run.figure(key, "bytes", bytes);
            }
        }
        if let Some(bytes) = summary("estimated_inference_peak_memory") {
            run.peak_memory(bytes);
        }
        let us: Vec<(u32, &Layer, u64)> =
            (0..).zip(layers).filter_map(|(at, layer)| Some((at, layer, layer.execution_time?))).collect();
        let cycles: Vec<(u32, &Layer, u64)> =
            (0..).zip(layers).filter_map(|(at, layer)| Some((at, layer, layer.execution_cycles?))).collect();
        let (rows, unit) = if us.is_empty() { (cycles, OpUnit::Cycles) } else { (us, OpUnit::Us) };
        if !rows.is_empty() {
            run.rows(rows.iter().map(|(at, layer, _)| (layer.name.clone(), Some(*at))), unit);
            run.op_values(Phase::Clean, rows.iter().map(|row| row.2).collect());
        }
        let is_summary = run.is_summary;
        if is_summary {
            draft.note(
                "the profile has one figure for all inferences (estimated_inference_time), not their single times",
            );
        }
        draft.note("an AI Hub profile names neither model, device nor runtime; the job's page does");
        Ok(())
    }
}

/// Where most of the layers run.
fn backend(layers: &[Layer]) -> Backend {
    let count = |unit: &str| layers.iter().filter(|layer| layer.compute_unit == unit).count();
    let units = [(Backend::Htp, count("NPU")), (Backend::Gpu, count("GPU")), (Backend::Cpu, count("CPU"))];
    // On a tie, the faster kind of unit: HTP before GPU before CPU.
    let most = units.iter().rev().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0);
    most.map_or(Backend::Unknown, |(backend, _)| *backend)
}
