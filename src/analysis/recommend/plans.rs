//! What there is to choose from: rounds of one plan are one candidate, and of a sweep over rates one rate counts.

use crate::analysis::compare::{Side, SideLatency, same_settings};
use crate::event::Member;

/// One candidate.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its runs, as columns from 0, the first one first.
    pub columns: Vec<usize>,
    /// Its figures.
    pub side: Side,
    /// How the runs became one, where that has to be said.
    pub note: Option<String>,
}

/// The plans behind some runs, in their order.
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
                let rate = side.mode.rate_hz.map_or_else(|| "the tight loop".to_owned(), |hz| format!("{hz}/s"));
                plans.push(alone(Some(format!("of its {} rates {rate} counts", family.len()))));
            }
        } else {
            plans.push(alone(None));
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

/// Runs of one file that belong together, by what `member` says of each; an index that does not go up begins a family anew.
fn families(sides: &[Side], member: impl Fn(&Side) -> Option<Member>) -> Vec<Vec<usize>> {
    let mut open: Vec<(Member, Vec<usize>)> = Vec::new();
    for (at, side) in sides.iter().enumerate() {
        let Some(place) = member(side) else { continue };
        let same = |(last, runs): &&mut (Member, Vec<usize>)| {
            let first = &sides[runs[0]];
            (last.group, last.of) == (place.group, place.of)
                && last.index < place.index
                && (first.file(), &first.device, &first.model, first.backend)
                    == (side.file(), &side.device, &side.model, side.backend)
        };
        match open.iter_mut().rev().find(same) {
            Some((last, runs)) => {
                *last = place;
                runs.push(at);
            }
            None => open.push((place, vec![at])),
        }
    }
    open.into_iter().map(|(_, runs)| runs).collect()
}

/// Rounds as one run. Those that failed count for nothing, unless all did. `None` where latencies were not kept.
fn pooled(sides: &[Side], family: &[usize]) -> Option<Plan> {
    let done: Vec<usize> =
        family.iter().copied().filter(|at| sides[*at].failure.is_none() && sides[*at].is_measured()).collect();
    let Some(first) = done.first() else {
        return Some(Plan { columns: family.to_vec(), side: sides[family[0]].clone(), note: None });
    };
    let runs: Vec<&Side> = done.iter().map(|at| &sides[*at]).collect();
    let latencies = |of: fn(&Side) -> Option<&SideLatency>| -> Option<SideLatency> {
        let parts: Vec<&SideLatency> = runs.iter().map(|run| of(run)).collect::<Option<_>>()?;
        SideLatency::pooled(&parts)
    };
    let latency = latencies(|side| side.latency.as_ref())?;
    let count = |side: &Side| side.latency.as_ref().map_or(0.0, |latency| latency.count as f64);
    let all: f64 = runs.iter().map(|run| count(run)).sum();
    let mean = |figure: fn(&Side) -> Option<f64>| {
        runs.iter().map(|run| Some(figure(run)? * count(run))).sum::<Option<f64>>().map(|sum| sum / all.max(1.0))
    };
    let most = |figure: fn(&Side) -> Option<f64>| runs.iter().filter_map(|run| figure(run)).reduce(f64::max);
    let side = Side {
        latency: Some(latency),
        service: latencies(|side| side.service.as_ref()),
        memory_peak: most(|side| side.memory_peak),
        energy_mj: mean(|side| side.energy_mj),
        power_w: mean(|side| side.power_w),
        ..sides[*first].clone()
    };
    let note = format!("{} rounds together", runs.len());
    Some(Plan { columns: family.to_vec(), side, note: Some(note) })
}

/// The run of a sweep that counts: the tight loop if there is one, else the highest rate that every backend keeps up with, so
/// that each is judged at the same rate; the lowest where none is.
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

/// True unless its inferences take longer than a period; a run without figures says nothing against a rate.
fn keeps_up(side: &Side) -> bool {
    let Some(rate_hz) = side.mode.rate_hz else { return true };
    side.service.as_ref().and_then(|service| service.mean).is_none_or(|mean_us| mean_us <= 1e6 / rate_hz)
}
