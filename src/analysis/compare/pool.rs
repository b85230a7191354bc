//! Combines equal runs into one whose launches they become.

use super::{Side, SideLatency, mismatches};
use crate::event::Member;

/// Name for alternating runs.
const ROUNDS: &str = "rounds";

/// Why two runs are not equal; `Ok` if their launches can be combined.
///
/// # Errors
/// The first difference, as a continuation of "the runs differ:".
pub fn same_thing(base: &Side, side: &Side) -> Result<(), String> {
    let known = |reason: &str| Err(reason.to_owned());
    if base.failure.is_some() || side.failure.is_some() || !base.is_measured() || !side.is_measured() {
        return known("one of them has no figures");
    }
    if base.backend != side.backend {
        return known("they used different backends");
    }
    if (&base.device, &base.device_model) != (&side.device, &side.device_model) {
        return known("they ran on different devices");
    }
    if base.model_sha256.is_none() || base.model_sha256 != side.model_sha256 {
        return known("they ran different or unknown model files");
    }
    if base.build_id.is_none() || base.build_id != side.build_id {
        return known("they ran on different or unknown runtime builds");
    }
    match mismatches(&[base.clone(), side.clone()], 0).into_iter().next() {
        Some(mismatch) => Err(mismatch.text),
        None => Ok(()),
    }
}

/// Combines the rounds of each plan (`--interleave`) into launches of one side; other sides stay as they are.
/// Rounds that kept no latencies stay separate.
pub fn pool_rounds(sides: &[Side]) -> Vec<Side> {
    pool_rounds_of(sides).0
}

/// Likewise, with the indices of the sides that each result is made of.
pub fn pool_rounds_of(sides: &[Side]) -> (Vec<Side>, Vec<Vec<usize>>) {
    let rounds = families(sides, |side| side.mode.repeat);
    join(sides, &rounds, ROUNDS)
}

/// Combines runs of the same thing under the same conditions into launches of one side, in the order of each
/// group's first run.
pub fn pool_same(sides: &[Side]) -> Vec<Side> {
    let mut families: Vec<Vec<usize>> = Vec::new();
    for (at, side) in sides.iter().enumerate() {
        // Checked against all of them: a side that agrees with the first may still be the same run as the
        // second.
        let same = |family: &&mut Vec<usize>| family.iter().all(|known| same_thing(&sides[*known], side).is_ok());
        match families.iter_mut().find(same) {
            Some(family) => family.push(at),
            None => families.push(vec![at]),
        }
    }
    join(sides, &families, "runs").0
}

fn join(sides: &[Side], families: &[Vec<usize>], what: &str) -> (Vec<Side>, Vec<Vec<usize>>) {
    let (mut joined, mut members) = (Vec::new(), Vec::new());
    for (at, side) in sides.iter().enumerate() {
        let family = families.iter().find(|family| family.len() > 1 && family.contains(&at));
        match family.map(|family| (family, together(sides, family, what))) {
            Some((family, Some(mut side))) => {
                if family[0] == at {
                    let origins: Vec<&str> = family.iter().map(|run| sides[*run].origin.as_str()).collect();
                    side.notes.push(format!("{what} of {} together", origins.join(", ")));
                    side.mode.repeat = None;
                    joined.push(side);
                    members.push(family.clone());
                }
            }
            _ => {
                joined.push(side.clone());
                members.push(vec![at]);
            }
        }
    }
    (joined, members)
}

/// Groups of runs in one file, by what `member` returns for each; an index that does not increase starts a
/// new group.
pub fn families(sides: &[Side], member: impl Fn(&Side) -> Option<Member>) -> Vec<Vec<usize>> {
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

/// Combines some runs (called `what`) into one. Failed runs are ignored unless all failed, in which case the
/// first one is used. `None` if latencies were not kept.
pub fn together(sides: &[Side], family: &[usize], what: &str) -> Option<Side> {
    let done: Vec<usize> =
        family.iter().copied().filter(|at| sides[*at].failure.is_none() && sides[*at].is_measured()).collect();
    let Some(first) = done.first() else { return family.first().map(|at| sides[*at].clone()) };
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
    // Inferences divided by their total time, not a mean of rates.
    let seconds = |run: &&Side| Some(count(run) / run.throughput_ips.filter(|ips| *ips > 0.0)?);
    let throughput_ips = runs.iter().map(seconds).sum::<Option<f64>>().filter(|s| *s > 0.0).map(|s| all / s);
    let mut mode = sides[*first].mode.clone();
    if what != ROUNDS {
        // They include launches from other times, so they did not alternate.
        mode.launches.seed = 0;
    }
    Some(Side {
        mode,
        latency: Some(latency),
        service: latencies(|side| side.service.as_ref()),
        throughput_ips,
        memory_peak: most(|side| side.memory_peak),
        energy_mj: mean(|side| side.energy_mj),
        power_w: mean(|side| side.power_w),
        // Each run has its own surroundings.
        around: None,
        crowded: runs.iter().find_map(|run| run.crowded.clone()),
        together: Some(format!("{} {what} together", runs.len())),
        ..sides[*first].clone()
    })
}
