//! The candidates: rounds of one plan are one candidate, and one rate represents a rate sweep.

use crate::analysis::compare::{Side, families, same_settings, together};

/// One candidate.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its runs, as columns from 0, in order.
    pub columns: Vec<usize>,
    /// Its figures.
    pub side: Side,
    /// How the runs were combined, if worth reporting.
    pub note: Option<String>,
}

/// The plans behind some runs, in order.
pub fn plans(sides: &[Side]) -> Vec<Plan> {
    let rounds = families(sides, |side| side.mode.repeat);
    let sweeps = families(sides, |side| side.mode.sweep);
    let own = |families: &'_ [Vec<usize>], at: usize| -> Option<Vec<usize>> {
        families.iter().find(|family| family.len() > 1 && family.contains(&at)).cloned()
    };
    let mut plans = Vec::new();
    for (at, side) in sides.iter().enumerate() {
        let alone = |note: Option<String>| Plan { columns: vec![at], side: side.clone(), note };
        if let Some(family) = own(&rounds, at) {
            match pooled(sides, &family) {
                Some(together) if family[0] == at => plans.push(together),
                Some(_) => {}
                None => plans.push(alone(None)),
            }
        } else if let Some(family) = own(&sweeps, at) {
            if chosen(sides, &sweeps, &family) == Some(at) {
                let rate =
                    side.mode.rate_hz.map_or_else(|| "back-to-back inferences".to_owned(), |hz| format!("{hz}/s"));
                plans.push(alone(Some(format!("of its {} rates {rate} counts", family.len()))));
            }
        } else {
            plans.push(alone(side.together.clone()));
        }
    }
    plans
}

/// True if the plans differ in backend, device, model or settings, so that there is something to choose.
pub fn is_choice(plans: &[Plan]) -> bool {
    let differs = |a: &Side, b: &Side| {
        let same_model = match (&a.model_sha256, &b.model_sha256) {
            (Some(a), Some(b)) => a == b,
            _ => a.model == b.model,
        };
        a.backend != b.backend || a.device != b.device || !same_model || !same_settings(a, b)
    };
    plans.split_first().is_some_and(|(first, others)| others.iter().any(|other| differs(&first.side, &other.side)))
}

/// Combines rounds into one run.
fn pooled(sides: &[Side], family: &[usize]) -> Option<Plan> {
    let side = together(sides, family, "rounds")?;
    Some(Plan { columns: family.to_vec(), note: side.together.clone(), side })
}

/// The run that represents a sweep: the back-to-back one if present, else the highest rate that every backend
/// sustains, so that all are judged at the same rate; else the lowest.
fn chosen(sides: &[Side], sweeps: &[Vec<usize>], family: &[usize]) -> Option<usize> {
    let first = &sides[*family.first()?];
    let of = |side: &Side| side.mode.sweep.map(|place| place.of);
    let related: Vec<&Vec<usize>> = sweeps
        .iter()
        .filter(|other| {
            other.first().is_some_and(|at| sides[*at].file() == first.file() && of(&sides[*at]) == of(first))
        })
        .collect();
    let all_keep_up = |rate_hz: Option<f64>| {
        related.iter().all(|other| {
            let at_rate = other.iter().find(|at| sides[**at].mode.rate_hz == rate_hz);
            at_rate.is_some_and(|at| keeps_up(&sides[*at]))
        })
    };
    let mut by_rate = family.to_vec();
    let rate = |at: usize| sides[at].mode.rate_hz.unwrap_or(f64::INFINITY);
    by_rate.sort_by(|a, b| rate(*b).total_cmp(&rate(*a)));
    by_rate.iter().copied().find(|at| all_keep_up(sides[*at].mode.rate_hz)).or_else(|| by_rate.last().copied())
}

/// True unless its inferences take longer than a period; a run without figures does not rule out a rate.
fn keeps_up(side: &Side) -> bool {
    let Some(rate_hz) = side.mode.rate_hz else { return true };
    side.service.as_ref().and_then(|service| service.mean).is_none_or(|mean_us| mean_us <= 1e6 / rate_hz)
}
