//! The profile that Genie writes (`genie-t2t-run --profile`): one run per component, one inference per query.

use super::Import;
use super::draft::{Draft, metric};
use super::error::Problem;
use super::json::document;
use super::sample::Sample;
use crate::event::{Phase, Stage};
use serde::Deserialize;
use serde_json::{Map, Value};

pub struct Genie;

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    components: Vec<Component>,
}

#[derive(Debug, Deserialize)]
struct Component {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    events: Vec<Map<String, Value>>,
}

impl Import for Genie {
    fn kind(&self) -> &'static str {
        "genie"
    }

    fn label(&self) -> &'static str {
        "Genie profile"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        sample.has_keys(&["components"]) && sample.text().contains("\"Genie")
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let document: Document = document(sample)?;
        for component in &document.components {
            let run = draft.run()?;
            run.model = format!("{} ({})", component.name, component.kind);
            run.has_moments = component.events.iter().all(|event| time(event, "start").is_some());
            for event in &component.events {
                let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
                let start_us = time(event, "start");
                let at_us = start_us.unwrap_or_else(|| run.now_us());
                let Some(duration_us) = duration(event) else { continue };
                if kind.ends_with("_create") {
                    run.stage(at_us, Stage::ContextCreate, duration_us);
                    for figure in figures(event) {
                        run.part(at_us, Stage::ContextCreate, &figure.0, figure.2, figure.1);
                    }
                } else if kind.ends_with("_free") {
                    run.stage(at_us, Stage::Teardown, duration_us);
                } else if kind.ends_with("_query") || kind.ends_with("_generate") || kind.ends_with("_execute") {
                    // Queries differ in length, so the first one is as representative as the others.
                    run.inference(Phase::Clean, start_us, duration_us);
                    let told = figures(event).map(|(name, unit, value)| metric(&name, unit, value)).collect();
                    run.metrics(Phase::Clean, told);
                }
            }
        }
        draft.note(
            "an inference here is a whole query: its time depends on the number of tokens (see the backend's figures)",
        );
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for less")]
fn time(event: &Map<String, Value>, key: &str) -> Option<u64> {
    event.get(key)?.as_f64().filter(|us| us.is_finite() && *us > 0.0).map(|us| us as u64)
}

/// Duration, in microseconds.
fn duration(event: &Map<String, Value>) -> Option<f64> {
    match event.get("duration")? {
        Value::Object(figure) => figure_of(figure).map(|(_, value)| value),
        value => value.as_f64(),
    }
    .filter(|us| us.is_finite() && *us >= 0.0)
}

/// All values with a unit in an event: name, unit, value.
fn figures(event: &Map<String, Value>) -> impl Iterator<Item = (String, &'static str, f64)> + '_ {
    event.iter().filter(|(key, _)| *key != "duration").filter_map(|(key, value)| {
        let (unit, value) = figure_of(value.as_object()?)?;
        Some((key.clone(), unit, value))
    })
}

/// A value and its unit, which has several spellings.
fn figure_of(figure: &Map<String, Value>) -> Option<(&'static str, f64)> {
    let value = figure.get("value")?.as_f64().filter(|value| value.is_finite())?;
    let unit = figure.get("unit").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    Some(match unit.as_str() {
        "us" | "microsec" | "microseconds" => ("us", value),
        "ms" | "millisec" | "milliseconds" => ("us", value * 1000.0),
        "s" | "sec" | "seconds" => ("us", value * 1e6),
        "tps" | "toks/sec" | "tokens/s" | "tokens/sec" => ("tokens/s", value),
        "bytes" => ("bytes", value),
        _ => ("count", value),
    })
}
