//! The backend that did best, of those that were measured on real hardware.

use super::{Basis, Candidate, ConstraintCheck, Constraints, Recommendation, Target, expected, rank};
use crate::analysis::compare::{Comparison, Side, SideLatency, Verdict};
use std::path::Path;

/// Cosine similarity below which outputs are not taken for the same.
const COSINE: f64 = 0.99;
const MB: f64 = 1_048_576.0;

/// A recommendation from runs; `None` below two runs, or where no run got anywhere and the graph is not known.
pub fn measured(
    sides: &[Side],
    comparison: &Comparison,
    target: Target<'_>,
    constraints: &Constraints,
) -> Option<Recommendation> {
    if sides.len() < 2 {
        return None;
    }
    // What a device would make of it is asked for the model that was simulated, if there is one.
    let simulated = sides.iter().filter(|side| side.simulated);
    let facts = simulated.chain(sides).find_map(|side| side.facts.as_ref());
    let outlook = facts.map(|facts| expected(facts, target, &[], constraints));
    let by_energy =
        constraints.power_critical && sides.iter().filter(|side| is_real(side)).all(|side| side.energy_mj.is_some());
    let goal = |side: &Side| if by_energy { side.energy_mj } else { latency(side, constraints).map(|(_, us)| us) };
    let best_goal = sides.iter().filter(|side| is_real(side)).filter_map(goal).reduce(f64::min);
    let mut candidates: Vec<Candidate> = sides
        .iter()
        .enumerate()
        .map(|(column, side)| candidate(column, side, comparison, constraints, goal(side).zip(best_goal), by_energy))
        .collect();
    rank(&mut candidates);
    let best = candidates.first().filter(|best| best.eligible && best.score.is_some()).cloned();
    let Some(best) = best else {
        return without_winner(sides, candidates, outlook);
    };
    let column = best.column?;
    let ties = ties(&candidates, comparison, column, by_energy);
    let many = candidates.iter().filter(|candidate| candidate.score.is_some()).count() > 1;
    let summary = summary(sides, &best, column, &ties, many, constraints, by_energy);
    let mut would_change = Vec::new();
    if !ties.is_empty() {
        would_change.push("more inferences: the difference to the next one is within the noise".to_owned());
    }
    if constraints.power_critical && !by_energy {
        would_change.push("energy, which was not measured for every run: the answer goes by time".to_owned());
    }
    if !constraints.power_critical && !constraints.latency_critical {
        would_change.push(
            "power before time (--power-critical), or the slowest inferences before the usual one (--latency-critical)"
                .to_owned(),
        );
    }
    if differing_models(sides) && !comparison.rows.iter().any(|row| row.id == "cosine") {
        would_change.push("accuracy: the models differ, and their outputs were not held against each other".to_owned());
    }
    let failed = sides.iter().filter(|side| side.failure.is_some() && !side.is_measured());
    would_change.extend(failed.map(|side| format!("making {} run: its run failed", side.name())));
    let mut to_measure = to_measure(sides, constraints, by_energy);
    if let Some(outlook) = outlook.filter(|_| sides.iter().any(|side| side.simulated)) {
        to_measure.extend(outlook.backend.map(|_| format!("on a device the graph lets expect {}", outlook.summary)));
    }
    Some(Recommendation {
        basis: Basis::Measured,
        backend: Some(best.backend),
        column: Some(column),
        summary,
        candidates,
        would_change,
        to_measure,
    })
}

fn differing_models(sides: &[Side]) -> bool {
    let mut models = sides.iter().filter_map(|side| side.model_sha256.as_deref());
    models.next().is_some_and(|first| models.any(|other| other != first))
}

fn is_real(side: &Side) -> bool {
    !side.simulated && side.failure.is_none() && side.is_measured()
}

/// Nothing real to go by: what the graph lets expect stands, with what the runs showed.
fn without_winner(sides: &[Side], runs: Vec<Candidate>, outlook: Option<Recommendation>) -> Option<Recommendation> {
    if runs.iter().any(|run| run.score.is_some()) {
        let missed = "no run that gave figures of real hardware meets the constraints".to_owned();
        return Some(Recommendation {
            basis: Basis::Measured,
            backend: None,
            column: None,
            summary: missed,
            candidates: runs,
            would_change: vec!["looser constraints, a smaller model, or a backend that was not run".to_owned()],
            to_measure: Vec::new(),
        });
    }
    let mut outlook = outlook?;
    for candidate in &mut outlook.candidates {
        let own = runs.iter().find(|run| run.backend == candidate.backend);
        if let Some(own) = own {
            candidate.column = own.column;
            candidate.simulated = own.simulated;
            candidate.reasons.extend(own.reasons.iter().cloned());
            // A run that failed counts, wherever it was made; what a simulator needs does not.
            candidate.eligible &=
                own.eligible || own.simulated && own.column.is_some_and(|at| sides[at].failure.is_none());
        }
    }
    rank(&mut outlook.candidates);
    let best = outlook.candidates.first().filter(|best| best.eligible);
    outlook.backend = best.map(|best| best.backend);
    outlook.column = best.and_then(|best| best.column);
    outlook.summary = match best {
        Some(best) => format!("{}: {} (no run gave figures of real hardware)", best.backend, best.reasons[0]),
        None => "no backend can be named: no run gave figures of real hardware".to_owned(),
    };
    Some(outlook)
}

/// The latency that counts, and its name.
fn latency(side: &Side, constraints: &Constraints) -> Option<(&'static str, f64)> {
    let latency = side.latency.as_ref()?;
    if constraints.latency_critical
        && let Some(us) = latency.p99
    {
        return Some(("p99", us));
    }
    tail(latency).filter(|_| constraints.latency_critical).or_else(|| latency.p50.map(|us| ("p50", us)))
}

fn tail(latency: &SideLatency) -> Option<(&'static str, f64)> {
    latency.p95.map(|us| ("p95", us)).or_else(|| latency.p50.map(|us| ("p50", us)))
}

fn candidate(
    column: usize,
    side: &Side,
    comparison: &Comparison,
    constraints: &Constraints,
    goal: Option<(f64, f64)>,
    by_energy: bool,
) -> Candidate {
    let mut reasons = Vec::new();
    let mut eligible = true;
    let checks = checks(side, constraints);
    if let Some(failure) = &side.failure {
        eligible = false;
        reasons.push(format!("its run failed in stage {}: {}", failure.stage, failure.message));
    }
    if side.simulated && side.failure.is_none() {
        reasons
            .push("it was simulated: the model compiles and runs, and its time says nothing about a device".to_owned());
    }
    for check in checks.iter().filter(|check| check.met == Some(false)) {
        eligible &= side.simulated;
        reasons.push(check.text.clone());
    }
    // The quotient of two equal figures may round to more than 1.
    let percent = |(own, best): (f64, f64)| (100.0 * (best / own.max(f64::MIN_POSITIVE))).min(100.0);
    let mut score = goal.filter(|_| is_real(side)).map(percent);
    if let (true, Some((_, us))) = (is_real(side) && !by_energy, latency(side, constraints)) {
        let name = latency(side, constraints).map_or("p50", |(name, _)| name);
        reasons.push(format!("{name} {:.3} ms", us / 1000.0));
    } else if let Some(energy) = side.energy_mj.filter(|_| is_real(side)) {
        reasons.push(format!("{energy:.3} mJ per inference"));
    }
    let cosine = comparison.rows.iter().find(|row| row.id == "cosine").and_then(|row| row.cells[column].value);
    if let Some(cosine) = cosine.filter(|cosine| *cosine < COSINE) {
        score = score.map(|score| score / 2.0);
        reasons.push(format!("its outputs differ from the reference's (cosine similarity {cosine:.4})"));
    }
    let met: Vec<String> =
        checks.iter().filter(|check| check.met == Some(true)).map(|check| check.text.clone()).collect();
    reasons.extend(met);
    if reasons.is_empty() {
        reasons.push("it has no figures".to_owned());
    }
    Candidate {
        backend: side.backend,
        column: Some(column),
        simulated: side.simulated,
        score,
        eligible,
        reasons,
        constraints: checks,
    }
}

/// Whether a run keeps within its limits. What a simulator takes says nothing about a device, so nothing is told of it.
pub fn checks(side: &Side, constraints: &Constraints) -> Vec<ConstraintCheck> {
    let mut checks = Vec::new();
    if let Some(limit) = constraints.latency_budget_ms {
        let value = side.latency.as_ref().and_then(tail).filter(|_| !side.simulated);
        checks.push(match value {
            Some((name, us)) => check("latency_budget_ms", limit, us / 1000.0, |value| {
                format!("{name} {value:.3} ms against a budget of {limit} ms")
            }),
            None => unknown("latency_budget_ms", limit, side),
        });
    }
    if let Some(limit) = constraints.max_memory_mb.map(|limit| limit as f64) {
        let value = side.memory_peak.filter(|_| !side.simulated);
        checks.push(match value {
            Some(bytes) => check("max_memory_mb", limit, bytes / MB, |value| {
                format!("memory peak {value:.1} MB against a limit of {limit} MB")
            }),
            None => unknown("max_memory_mb", limit, side),
        });
    }
    checks
}

fn check(constraint: &'static str, limit: f64, value: f64, text: impl Fn(f64) -> String) -> ConstraintCheck {
    ConstraintCheck { constraint, limit, value: Some(value), met: Some(value <= limit), text: text(value) }
}

fn unknown(constraint: &'static str, limit: f64, side: &Side) -> ConstraintCheck {
    let why = if side.simulated { "a simulated run does not tell it" } else { "it was not measured" };
    ConstraintCheck { constraint, limit, value: None, met: None, text: format!("{constraint}: {why}") }
}

/// Columns that can be used and that the noise does not set apart from the best.
fn ties(candidates: &[Candidate], comparison: &Comparison, best: usize, by_energy: bool) -> Vec<usize> {
    let Some(row) = comparison.rows.iter().find(|row| row.id == "p50_us").filter(|_| !by_energy) else {
        return Vec::new();
    };
    let within = |column: usize| {
        let cell = if column == comparison.baseline { &row.cells[best] } else { &row.cells[column] };
        let against_best = column == comparison.baseline || best == comparison.baseline;
        against_best && cell.difference.as_ref().is_some_and(|known| known.verdict == Verdict::WithinNoise)
    };
    let others = candidates.iter().filter(|candidate| candidate.eligible && candidate.score.is_some());
    others.filter_map(|candidate| candidate.column).filter(|column| *column != best && within(*column)).collect()
}

fn summary(
    sides: &[Side],
    best: &Candidate,
    column: usize,
    ties: &[usize],
    many: bool,
    constraints: &Constraints,
    by_energy: bool,
) -> String {
    let name = match sides[column].model.as_deref().map(Path::new).and_then(Path::file_name) {
        Some(model) if differing_models(sides) => {
            format!("{} with {} (column {})", best.backend, model.to_string_lossy(), column + 1)
        }
        _ => format!("{} (column {})", best.backend, column + 1),
    };
    if !many {
        let others = if sides.iter().any(|side| side.simulated) { "HTP was simulated" } else { "the others failed" };
        return format!("{name} on this evidence: the only run with figures of real hardware; {others}");
    }
    if !ties.is_empty() {
        let others: Vec<String> = ties.iter().map(|tie| (tie + 1).to_string()).collect();
        return format!("{name}, though not clearly: column {} is within the noise of it", others.join(" and "));
    }
    let by = match (by_energy, constraints.latency_critical) {
        (true, _) => "least energy per inference",
        (false, true) => "shortest tail latency",
        (false, false) => "shortest median latency",
    };
    let met = if constraints.latency_budget_ms.is_some() || constraints.max_memory_mb.is_some() {
        " of those that meet the constraints"
    } else {
        ""
    };
    format!("{name}: {by}{met}")
}

fn to_measure(sides: &[Side], constraints: &Constraints, by_energy: bool) -> Vec<String> {
    let mut wanted = Vec::new();
    if sides.iter().any(|side| side.simulated) {
        wanted.push(
            "HTP on a device: here it was simulated (qnnscope run MODEL -b htp,gpu,cpu --device SERIAL)".to_owned(),
        );
    }
    if constraints.power_critical && !by_energy {
        wanted.push("energy: a device on battery whose fuel gauge can be read".to_owned());
    }
    wanted
}
