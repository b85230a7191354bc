//! What sets two runs apart beside what is compared.

use super::Side;
use crate::backends::settings::setting_name;
use serde::Serialize;
use std::collections::BTreeMap;

/// A difference in how two runs were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Stable id: `simulated`, `driver`, `profiling`, `sdk_build`, `model`, `inputs`, or `setting.` and its name.
    pub id: String,
    /// The column, from 0; the other one is the baseline.
    pub column: usize,
    /// One sentence.
    pub text: String,
}

/// Differences of every column from the baseline. Columns are numbered from 1 for people.
pub fn mismatches(sides: &[Side], baseline: usize) -> Vec<Mismatch> {
    let Some(base) = sides.get(baseline) else { return Vec::new() };
    let mut found = Vec::new();
    for (column, side) in sides.iter().enumerate().filter(|(column, _)| *column != baseline) {
        let (one, two) = (baseline + 1, column + 1);
        let mut add = |id: &str, text: String| found.push(Mismatch { id: id.to_owned(), column, text });
        if side.simulated != base.simulated {
            let (simulated, real) = if side.simulated { (two, one) } else { (one, two) };
            add("simulated", format!("{simulated} is simulated and {real} is not: their times cannot be compared"));
        }
        if side.model_sha256 != base.model_sha256 && side.model_sha256.is_some() && base.model_sha256.is_some() {
            add("model", format!("{two} ran another model file than {one}"));
        }
        if side.driver != base.driver {
            add(
                "driver",
                format!("{two} was made by the {}, {one} by the {}", side.driver.label(), base.driver.label()),
            );
        }
        if side.clean_level != base.clean_level {
            add(
                "profiling",
                format!(
                    "latencies of {two} were taken with profiling {}, those of {one} with {}",
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
    found
}

/// Settings are held against each other on one backend only: elsewhere they are not there.
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
        if own != other {
            let word = |value: Option<&String>| value.map_or("not set", String::as_str).to_owned();
            add(&format!("setting.{name}"), format!("{name} is {} in {two}, {} in {one}", word(own), word(other)));
        }
    }
}
