//! `perf.yaml` from the public model zoo: published figures, one run per device and runtime. Reads both
//! layouts that have been used.

use super::Import;
use super::draft::{Draft, RunDraft};
use super::error::Problem;
use super::json::positive;
use super::sample::Sample;
use crate::backends::Backend;
use crate::event::{LogLevel, Phase};
use serde_json::{Map, Value};

pub struct PerfYaml;

/// Largest file that is read, in bytes; the largest real one is a few hundred kilobytes.
const MAX_BYTES: usize = 8 << 20;

impl Import for PerfYaml {
    fn kind(&self) -> &'static str {
        "perf-yaml"
    }

    fn label(&self) -> &'static str {
        "perf.yaml of the model zoo"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        let text = sample.text();
        let at_top = |key: &str| text.lines().any(|line| line.strip_prefix(key) == Some(":"));
        (at_top("models") || at_top("precisions"))
            && (at_top("aggregated") || at_top("supported_devices") || text.contains("performance_metrics:"))
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        if bytes.len() > MAX_BYTES {
            return Err(Problem::content(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let document: Value = serde_saphyr::from_slice(&bytes)
            .map_err(|error| Problem::content(format!("its YAML is damaged: {}", first_line(&error.to_string()))))?;
        by_model(&document, draft)?;
        by_precision(&document, draft)?;
        draft.note("published figures: one latency per device and runtime, without samples");
        Ok(())
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key)?.as_str().filter(|text| !text.is_empty() && *text != "null")
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Map<String, Value>> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn map(value: Option<&Value>) -> impl Iterator<Item = (&String, &Map<String, Value>)> {
    value.and_then(Value::as_object).into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_object()?)))
}

/// `models: - name, performance_metrics: - RUNTIME: {..}, reference_device_info: {..}`; in microseconds and
/// bytes.
fn by_model(document: &Value, draft: &mut Draft) -> Result<(), Problem> {
    for model in list(document.get("models")) {
        let name = text(model, "name").unwrap_or("unnamed");
        for device in list(model.get("performance_metrics")) {
            let info = device.get("reference_device_info").and_then(Value::as_object);
            let device_name = info.map(|info| {
                let name = text(info, "name").unwrap_or("unknown");
                text(info, "chipset").map_or_else(|| name.to_owned(), |chipset| format!("{name}, {chipset}"))
            });
            for (runtime, figures) in map(Some(&Value::Object(device.clone()))) {
                let Some(us) = positive(figures.get("inference_time")) else { continue };
                let peak = figures.get("estimated_peak_memory_range").and_then(|range| positive(range.get("max")));
                let precision = text(figures, "precision");
                let run = draft.run()?;
                fill(run, name, precision, runtime, device_name.as_deref(), figures);
                measured(run, us, peak);
            }
        }
    }
    Ok(())
}

/// `precisions: PRECISION: components: NAME: performance_metrics: DEVICE: RUNTIME: {..}`; in milliseconds and
/// MiB.
fn by_precision(document: &Value, draft: &mut Draft) -> Result<(), Problem> {
    for (precision, details) in map(document.get("precisions")) {
        for (component, details) in map(details.get("components")) {
            for (device, runtimes) in map(details.get("performance_metrics")) {
                for (runtime, figures) in map(Some(&Value::Object(runtimes.clone()))) {
                    let latency_us = positive(figures.get("inference_time_milliseconds")).map(|ms| ms * 1000.0);
                    let rate = positive(figures.get("tokens_per_second"));
                    if latency_us.is_none() && rate.is_none() {
                        continue;
                    }
                    let range = figures.get("estimated_peak_memory_range_mb");
                    let peak = range.and_then(|range| positive(range.get("max"))).map(|mib| mib * 1_048_576.0);
                    let run = draft.run()?;
                    fill(run, component, Some(precision), runtime, Some(device), figures);
                    if let Some(us) = latency_us {
                        measured(run, us, peak);
                    }
                    if let Some(rate) = rate {
                        run.figure("tokens_per_second", "tokens/s", rate);
                    }
                    let first = figures.get("time_to_first_token_range_milliseconds");
                    for bound in ["min", "max"] {
                        if let Some(ms) = first.and_then(|range| positive(range.get(bound))) {
                            run.figure(&format!("time to first token ({bound})"), "us", ms * 1000.0);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn fill(
    run: &mut RunDraft,
    model: &str,
    precision: Option<&str>,
    runtime: &str,
    device: Option<&str>,
    figures: &Map<String, Value>,
) {
    let precision = precision.map_or_else(String::new, |precision| format!(", {precision}"));
    run.model = format!("{model} ({runtime}{precision})");
    if let Some(device) = device {
        device.clone_into(&mut run.device);
    }
    run.is_summary = true;
    run.backend = match text(figures, "primary_compute_unit") {
        Some("NPU") => Backend::Htp,
        Some("GPU") => Backend::Gpu,
        Some("CPU") => Backend::Cpu,
        _ => Backend::Unknown,
    };
    if let Some(job) = text(figures, "job_id") {
        run.say(LogLevel::Info, &format!("AI Hub job {job}"));
    }
    let layers = figures.get("layer_info").or_else(|| figures.get("layer_counts"));
    if let Some(layers) = layers.and_then(Value::as_object) {
        for (unit, count) in layers.iter().filter_map(|(unit, count)| Some((unit, count.as_f64()?))) {
            run.figure(&format!("layers: {}", unit.trim_start_matches("layers_on_")), "count", count);
        }
    }
}

fn measured(run: &mut RunDraft, us: f64, peak_bytes: Option<f64>) {
    run.inference(Phase::Clean, None, us);
    if let Some(bytes) = peak_bytes {
        run.peak_memory(bytes);
    }
}
