//! Differences in short form.

use crate::analysis::compare::{Difference, DifferenceVerdict};

/// A difference for use in a table.
pub fn short(difference: Option<&Difference>) -> String {
    let Some(difference) = difference else { return String::new() };
    let Some(relative) = difference.shown() else { return String::new() };
    match difference.verdict {
        DifferenceVerdict::WithinNoise => "≈".to_owned(),
        DifferenceVerdict::Unknown if relative.abs() < 0.0005 => "=".to_owned(),
        DifferenceVerdict::Unknown => format!("{}?", percent(relative)),
        DifferenceVerdict::Better | DifferenceVerdict::Worse | DifferenceVerdict::NotComparable => percent(relative),
    }
}

/// A relative difference as text.
pub fn percent(part: f64) -> String {
    match (part * 100.0).abs() {
        size if size >= 999.5 => format!("x{}", significant(part + 1.0)),
        size if size >= 99.95 => format!("{:+.0}%", part * 100.0),
        _ => format!("{:+.1}%", part * 100.0),
    }
}

fn significant(value: f64) -> String {
    match value.abs() {
        size if size >= 99.5 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}
