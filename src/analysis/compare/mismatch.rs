//! How two runs differ apart from what is compared.

use super::{Side, same_inputs};
use crate::backends::settings::setting_name;
use crate::event::Driver;
use serde::Serialize;
use std::collections::BTreeMap;

/// A difference in how two runs were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Stable id: `simulated`, `same_run`, `model`, `driver`, `profiling`, `rate`, `warmup`, `inputs`,
    /// `sdk_build`, or `setting.` and its name.
    pub id: String,
    /// The column, from 0; the other one is the baseline, except for `same_run`, whose text names the earlier
    /// column.
    pub column: usize,
    /// One sentence.
    pub text: String,
}

/// Differences of every column from the baseline. The text numbers columns from 1.
pub fn mismatches(sides: &[Side], baseline: usize) -> Vec<Mismatch> {
    let Some(base) = sides.get(baseline) else { return Vec::new() };
    let mut found = Vec::new();
    for (column, side) in sides.iter().enumerate().filter(|(column, _)| *column != baseline) {
        let (one, two) = (baseline + 1, column + 1);
        let mut add = |id: &str, text: String| found.push(Mismatch { id: id.to_owned(), column, text });
        how_measured(base, side, one, two, &mut add);
        if side.simulated != base.simulated {
            let (simulated, real) = if side.simulated { (two, one) } else { (one, two) };
            add("simulated", format!("{simulated} is simulated and {real} is not: their times cannot be compared"));
        }
        if side.model_sha256 != base.model_sha256 && side.model_sha256.is_some() && base.model_sha256.is_some() {
            add("model", format!("{two} ran a different model file from {one}"));
        }
        let taps = [base, side].map(|side| side.driver == Driver::Tap);
        let maker = |side: &Side| match &side.mode.origin {
            Some(origin) => format!("by another tool ({})", origin.label),
            None => format!("by the {}", side.driver.label()),
        };
        if taps[0] != taps[1] && side.mode.origin.is_none() && base.mode.origin.is_none() {
            let (program, bench) = if taps[1] { (two, one) } else { (one, two) };
            add(
                "driver",
                format!(
                    "{program} is your program and {bench} a benchmark of the same graph: the extra time of {program} is the program's own \
                     cost (votes, copies, threads, pauses)"
                ),
            );
        } else if side.driver != base.driver {
            add("driver", format!("{two} was made {}, {one} {}", maker(side), maker(base)));
        }
        if side.clean_level != base.clean_level {
            add(
                "profiling",
                format!(
                    "latencies of {two} were measured with profiling {}, those of {one} with {}",
                    side.clean_level.name(),
                    base.clean_level.name()
                ),
            );
        }
        if let (Some(own), Some(other)) = (&side.build_id, &base.build_id)
            && own != other
        {
            add("sdk_build", format!("{two} ran on build {own}, {one} on {other}"));
        }
        settings(base, side, one, two, &mut add);
    }
    found.extend(same_runs(sides));
    found
}

/// Schedule, warm-up and input data, if both have figures.
fn how_measured(base: &Side, side: &Side, one: usize, two: usize, add: &mut impl FnMut(&str, String)) {
    if !base.is_measured() || !side.is_measured() {
        return;
    }
    if side.mode.rate_hz != base.mode.rate_hz {
        let pace = |side: &Side| match side.mode.rate_hz {
            Some(hz) => format!("was paced at {hz}/s"),
            None => "ran back to back".to_owned(),
        };
        let text = format!(
            "{two} {}, {one} {}: latencies here cover the inferences alone, and throughputs cannot be compared",
            pace(side),
            pace(base)
        );
        add("rate", text);
    }
    // Other tools' files do not report their warm-up, and a user's program does its own.
    let is_known = |side: &Side| side.driver.traits().knows_warmup;
    if side.warmup != base.warmup && is_known(side) && is_known(base) {
        add(
            "warmup",
            format!("{two} warmed up with {}, {one} with {}", inferences(side.warmup), inferences(base.warmup)),
        );
    }
    // Random data of another model necessarily differs, and the other model is already reported.
    let random = |side: &Side| side.inputs.iter().all(|input| input.source == "random");
    let same_model = side.model_sha256 == base.model_sha256;
    if !side.inputs.is_empty()
        && !base.inputs.is_empty()
        && (same_model || !random(side) && !random(base))
        && let Err(reason) = same_inputs(base, side)
    {
        add("inputs", format!("{two} had different input data from {one}: {reason}"));
    }
}

fn inferences(count: u64) -> String {
    if count == 1 { "1 inference".to_owned() } else { format!("{count} inferences") }
}

/// Duplicate runs: latencies equal to the nanosecond are not a second measurement.
fn same_runs(sides: &[Side]) -> Vec<Mismatch> {
    let series = |column: usize| {
        let values = &sides[column].latency.as_ref()?.series.as_ref()?.values;
        (values.len() > 1).then_some((sides[column].backend, values))
    };
    let twice = |column: usize| {
        let own = series(column)?;
        let first = (0..column).find(|at| series(*at) == Some(own))?;
        let text = format!("{} is the same run as {}: it shows nothing about run-to-run noise", column + 1, first + 1);
        Some(Mismatch { id: "same_run".to_owned(), column, text })
    };
    (0..sides.len()).filter_map(twice).collect()
}

/// True if the same settings were applied, or the backends differ and have none in common.
pub fn same_settings(base: &Side, side: &Side) -> bool {
    let mut same = true;
    settings(base, side, 0, 0, &mut |_, _| same = false);
    same
}

/// Settings are only compared between runs of the same backend; other backends do not have them.
fn settings(base: &Side, side: &Side, one: usize, two: usize, add: &mut impl FnMut(&str, String)) {
    if base.backend != side.backend {
        return;
    }
    let applied = |side: &Side| -> BTreeMap<String, String> {
        let applied = side.settings.iter().filter(|setting| setting.applied);
        applied.map(|setting| (setting_name(&setting.key), setting.value.clone())).collect()
    };
    let (own, other) = (applied(side), applied(base));
    let names: std::collections::BTreeSet<&String> = own.keys().chain(other.keys()).collect();
    for name in names {
        let (own, other) = (own.get(name), other.get(name));
        // A run without it had no threads to spread; one whose placement is left to the system says so.
        let unspread = name == "pin" && [own, other].iter().all(|value| value.is_none_or(|value| value == "spread"));
        if own != other && !unspread {
            let word = |value: Option<&String>| value.map_or("not set", String::as_str).to_owned();
            add(&format!("setting.{name}"), format!("{name} is {} in {two}, {} in {one}", word(own), word(other)));
        }
    }
}
