//! The best backend among those measured on real hardware.

use super::checks::{Quality, checks, is_of_outputs};
use super::plans::{Plan, is_choice, plans};
use super::{Basis, Candidate, Constraints, RecommendTarget, Recommendation, Support, expected, rank};
use crate::analysis::compare::{
    Accuracy, DifferenceVerdict, Side, Statistic, differences, figure, on_common_ground, schedules_differ,
};
use crate::backends::Backend;
use crate::event::TruthMetric;
use crate::text::duration_text;
use std::path::Path;

/// Cosine similarity below which outputs count as different.
const COSINE: f64 = 0.99;

/// A recommendation from runs, with the similarity of their outputs if known. `None` if there is nothing to
/// choose (rounds and rates of one backend are one candidate), or if no run succeeded and the graph is
/// unknown.
pub fn measured(
    sides: &[Side],
    accuracy: &[Option<Accuracy>],
    target: RecommendTarget<'_>,
    constraints: &Constraints,
) -> Option<Recommendation> {
    let plans = plans(sides);
    if !is_choice(&plans) {
        return None;
    }
    let sides: Vec<Side> = plans.iter().map(|plan| plan.side.clone()).collect();
    let goal = Goal::of(&sides, constraints);
    let runs = Runs { ground: &on_common_ground(&sides), sides: &sides, plans: &plans, accuracy, constraints, goal };
    let mut answer = runs.answer(target)?;
    // Internally, candidates are numbered by plan; externally, by the column of their first run.
    for at in answer.candidates.iter_mut().map(|candidate| &mut candidate.column).chain([&mut answer.column]) {
        *at = at.map(|plan| plans[plan].columns[0]);
    }
    Some(answer)
}

/// The figure by which candidates are ordered; the same for all.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Goal {
    /// Id of its row in a comparison.
    id: &'static str,
    label: &'static str,
    statistic: Option<Statistic>,
    /// Describes the run that is best by it.
    best: &'static str,
}

const ENERGY: Goal =
    Goal { id: "energy_mj", label: "energy per inference", statistic: None, best: "least energy per inference" };
const P50: Goal = Goal { id: "p50_us", label: "p50", statistic: Some(Statistic::P50), best: "shortest median latency" };
/// In order of preference: the first one that every run has is used.
const TAILS: [Goal; 2] = [
    Goal { id: "p99_us", label: "p99", statistic: Some(Statistic::P99), best: "shortest tail latency (p99)" },
    Goal { id: "p95_us", label: "p95", statistic: Some(Statistic::P95), best: "shortest tail latency (p95)" },
];

impl Goal {
    fn of(sides: &[Side], constraints: &Constraints) -> Self {
        let all_have = |goal: &Self| sides.iter().filter(|side| is_real(side)).all(|side| goal.value(side).is_some());
        match (constraints.power_critical, constraints.latency_critical) {
            (true, _) if all_have(&ENERGY) => ENERGY,
            (_, true) => TAILS.into_iter().find(all_have).unwrap_or(P50),
            _ => P50,
        }
    }

    fn value(self, side: &Side) -> Option<f64> {
        figure(self.id, side)
    }

    fn is_energy(self) -> bool {
        self.statistic.is_none()
    }
}

/// All inputs to an answer.
struct Runs<'a> {
    sides: &'a [Side],
    /// The same runs with comparable latencies.
    ground: &'a [Side],
    plans: &'a [Plan],
    accuracy: &'a [Option<Accuracy>],
    constraints: &'a Constraints,
    goal: Goal,
}

/// The other plans relative to the best one: those within the noise, and those not tested.
#[derive(Debug, Default)]
struct Others {
    ties: Vec<usize>,
    untested: Vec<usize>,
}

impl Runs<'_> {
    fn answer(&self, target: RecommendTarget<'_>) -> Option<Recommendation> {
        let sides = self.sides;
        // The device's expected behaviour is derived from the model that was simulated, if there is one.
        let simulated = sides.iter().filter(|side| side.simulated);
        let known = simulated.chain(sides).find_map(|side| Some((side, side.facts.as_ref()?)));
        let outlook = known.map(|(side, facts)| {
            let support = self.support(side, facts.ops);
            expected(facts, target, &support, self.constraints)
        });
        let best_goal = self.ground.iter().filter(|side| is_real(side)).filter_map(|side| self.goal.value(side));
        let best_goal = best_goal.reduce(f64::min);
        let mut candidates: Vec<Candidate> = (0..sides.len()).map(|plan| self.candidate(plan, best_goal)).collect();
        rank(&mut candidates);
        let Some(best) = candidates.first().filter(|best| best.eligible && best.score.is_some()).cloned() else {
            return self.without_winner(candidates, outlook);
        };
        let plan = best.column?;
        let others = self.others(&candidates, plan);
        let many = candidates.iter().filter(|candidate| candidate.score.is_some()).count() > 1;
        Some(Recommendation {
            basis: Basis::Measured,
            backend: Some(best.backend),
            column: Some(plan),
            summary: self.summary(&best, plan, &others, many),
            would_change: self.would_change(&others),
            to_measure: self.to_measure(outlook.as_ref()),
            candidates,
        })
    }

    /// A backend that ran inferences with a run's model accepted all of its ops.
    fn support(&self, of: &Side, ops: usize) -> Vec<Support> {
        let took = |backend: &Backend| {
            let same = |side: &&Side| side.backend == *backend && side.model_sha256 == of.model_sha256;
            self.sides.iter().filter(same).any(|side| side.failure.is_none() && side.is_measured())
        };
        let support = |backend| Support { backend, asked: ops, refused: Vec::new(), soc: None };
        Backend::ALL.into_iter().filter(took).map(support).collect()
    }

    /// What is needed to know whether launches vary as much as the candidates differ.
    fn to_test(&self) -> String {
        let Some(statistic) = self.goal.statistic else {
            return "energy is a mean of few readings and has no interval".to_owned();
        };
        let launches = |side: &Side| side.latency.as_ref().map_or(0, |latency| latency.launches().len());
        if self.ground.iter().filter(|side| is_real(side)).any(|side| launches(side) < 2) {
            return "one launch does not predict the next: measure each with --launches 3 or more".to_owned();
        }
        let needed = if statistic == Statistic::P99 { 100 } else { 20 };
        format!("an interval of {} needs {needed} latencies in each launch", self.goal.label)
    }

    fn would_change(&self, others: &Others) -> Vec<String> {
        let mut changes = Vec::new();
        if !others.ties.is_empty() {
            changes.push(
                "more launches: the difference to the next one is within the variation between launches".to_owned(),
            );
        }
        if !others.untested.is_empty() {
            changes.push(format!("a test of the difference: {}", self.to_test()));
        }
        if self.constraints.power_critical && !self.goal.is_energy() {
            changes.push("energy, which was not measured for every run: the answer is based on time".to_owned());
        }
        if !self.constraints.power_critical && !self.constraints.latency_critical {
            changes.push(
                "power before time (--power-critical), or the slowest inferences before the typical one (--latency-critical)"
                    .to_owned(),
            );
        }
        let compared = self.accuracy.iter().flatten().any(|accuracy| accuracy.cosine.is_some());
        if differing_models(self.sides) && !compared {
            changes.push("accuracy: the models differ, and their outputs were not compared".to_owned());
        }
        let failed = self.sides.iter().filter(|side| side.failure.is_some() && !side.is_measured());
        changes.extend(failed.map(|side| format!("getting {} to run: its run failed", side.name())));
        changes
    }

    fn to_measure(&self, outlook: Option<&Recommendation>) -> Vec<String> {
        let mut wanted = Vec::new();
        if self.sides.iter().any(|side| side.simulated) {
            wanted.push(
                "HTP on a device: it was simulated here (qnnscope run MODEL -b htp,gpu,cpu --device SERIAL)".to_owned(),
            );
        }
        if self.constraints.power_critical && !self.goal.is_energy() {
            wanted.push("energy: a device on battery whose fuel gauge can be read".to_owned());
        }
        if let Some(outlook) = outlook.filter(|_| self.sides.iter().any(|side| side.simulated)) {
            wanted.extend(outlook.backend.map(|_| format!("on a device, the graph suggests {}", outlook.summary)));
        }
        wanted
    }

    /// No real measurements: the expectation from the graph applies, together with what the runs showed.
    fn without_winner(&self, runs: Vec<Candidate>, outlook: Option<Recommendation>) -> Option<Recommendation> {
        if runs.iter().any(|run| run.score.is_some()) {
            return Some(Recommendation {
                basis: Basis::Measured,
                backend: None,
                column: None,
                summary: "no run with figures from real hardware meets the constraints".to_owned(),
                candidates: runs,
                would_change: vec!["looser constraints, a smaller model, or a backend that was not run".to_owned()],
                to_measure: self.to_measure(outlook.as_ref()),
            });
        }
        let mut outlook = outlook?;
        for candidate in &mut outlook.candidates {
            let own = runs.iter().find(|run| run.backend == candidate.backend);
            if let Some(own) = own {
                candidate.column = own.column;
                candidate.simulated = own.simulated;
                candidate.reasons.extend(own.reasons.iter().cloned());
                // A failed run counts wherever it ran; of a simulated run only the outputs count.
                let misses_outputs =
                    own.constraints.iter().any(|check| is_of_outputs(check) && check.met == Some(false));
                let runs = own.simulated && own.column.is_some_and(|at| self.sides[at].failure.is_none());
                candidate.eligible &= own.eligible || (runs && !misses_outputs);
            }
        }
        rank(&mut outlook.candidates);
        let best = outlook.candidates.first().filter(|best| best.eligible);
        outlook.backend = best.map(|best| best.backend);
        outlook.column = best.and_then(|best| best.column);
        outlook.summary = match best {
            Some(best) => format!("{}: {} (no run has figures from real hardware)", best.backend, best.reasons[0]),
            None => "no backend can be recommended: no run has figures from real hardware".to_owned(),
        };
        Some(outlook)
    }

    /// What is known about a plan's outputs: compared with known correct ones, or else with the reference
    /// run's.
    fn quality(&self, plan: usize) -> Quality {
        let judged = |plan: usize| self.sides[plan].judged.as_ref();
        let top1 = |plan: usize| judged(plan)?.worst(TruthMetric::Top1);
        let best = (0..self.sides.len()).filter_map(top1).reduce(f64::max);
        let like: Vec<&Accuracy> =
            self.plans[plan].columns.iter().filter_map(|column| self.accuracy.get(*column)?.as_ref()).collect();
        let likeness = || {
            let sqnr = |known: &&Accuracy| if known.identical { Some(f64::INFINITY) } else { known.sqnr_db };
            like.iter().filter_map(sqnr).reduce(f64::min)
        };
        let to_truth = judged(plan).and_then(|known| {
            if known.is_identical() { Some(f64::INFINITY) } else { known.worst(TruthMetric::SqnrDb) }
        });
        let agreement = || like.iter().filter_map(|known| known.top1).reduce(f64::min).map(|part| 1.0 - part);
        let loss = best.zip(top1(plan)).map(|(best, own)| best - own).or_else(agreement);
        Quality { sqnr_db: to_truth.or_else(likeness), top1_loss: loss.map(|part| 100.0 * part) }
    }

    fn candidate(&self, plan: usize, best_goal: Option<f64>) -> Candidate {
        let side = &self.sides[plan];
        let mut reasons = Vec::new();
        let mut eligible = true;
        let checks = checks(side, self.quality(plan), self.constraints);
        if let Some(failure) = &side.failure {
            eligible = false;
            reasons.push(format!("its run failed in stage {}: {}", failure.stage, failure.message));
        }
        if side.simulated && side.failure.is_none() {
            reasons.push("it was simulated: the model compiles and runs, but its time predicts no device".to_owned());
        }
        for check in checks.iter().filter(|check| check.met == Some(false)) {
            eligible &= side.simulated && !is_of_outputs(check);
            reasons.push(check.text.clone());
        }
        let goal = self.goal.value(&self.ground[plan]).filter(|_| is_real(side));
        // The quotient of two equal figures may round to more than 1.
        let percent = |(own, best): (f64, f64)| (100.0 * (best / own.max(f64::MIN_POSITIVE))).min(100.0);
        let mut score = goal.zip(best_goal).map(percent);
        reasons.extend(goal.map(|value| self.told(value)));
        reasons.extend(self.plans[plan].note.clone());
        let cosine = self.plans[plan].columns.iter().filter_map(|column| self.accuracy.get(*column)?.as_ref()?.cosine);
        if let Some(cosine) = cosine.reduce(f64::min).filter(|cosine| *cosine < COSINE) {
            score = score.map(|score| score / 2.0);
            reasons.push(format!("its outputs differ from the reference's (cosine similarity {cosine:.4})"));
        }
        reasons.extend(checks.iter().filter(|check| check.met == Some(true)).map(|check| check.text.clone()));
        if reasons.is_empty() {
            reasons.push("it has no figures".to_owned());
        }
        let (backend, simulated) = (side.backend, side.simulated);
        Candidate { backend, column: Some(plan), simulated, score, eligible, reasons, constraints: checks }
    }

    /// A figure of the goal as text.
    fn told(&self, value: f64) -> String {
        let label = self.goal.label;
        match self.goal.statistic {
            None => format!("{value:.3} mJ per inference"),
            Some(_) if schedules_differ(self.sides) => {
                format!("{label} {} of the inferences alone", duration_text(value))
            }
            Some(_) => format!("{label} {}", duration_text(value)),
        }
    }

    /// Compares the best plan with every other usable one by the deciding figure.
    fn others(&self, candidates: &[Candidate], best: usize) -> Others {
        let against = differences(self.goal.id, self.ground, best);
        let mut others = Others::default();
        let usable = candidates.iter().filter(|candidate| candidate.eligible && candidate.score.is_some());
        for plan in usable.filter_map(|candidate| candidate.column).filter(|plan| *plan != best) {
            match against[plan].as_ref().map(|known| known.verdict) {
                Some(DifferenceVerdict::WithinNoise) => others.ties.push(plan),
                Some(DifferenceVerdict::Better | DifferenceVerdict::Worse) => {}
                Some(DifferenceVerdict::Unknown | DifferenceVerdict::NotComparable) | None => {
                    others.untested.push(plan);
                }
            }
        }
        others.ties.sort_unstable();
        others.untested.sort_unstable();
        others
    }

    fn summary(&self, best: &Candidate, plan: usize, others: &Others, many: bool) -> String {
        let column = self.plans[plan].columns[0] + 1;
        let name = match self.sides[plan].model.as_deref().map(Path::new).and_then(Path::file_name) {
            Some(model) if differing_models(self.sides) => {
                format!("{} with {} (column {column})", best.backend, model.to_string_lossy())
            }
            _ => format!("{} (column {column})", best.backend),
        };
        if !many {
            let simulated = self.sides.iter().any(|side| side.simulated);
            let others = if simulated { "HTP was simulated" } else { "the others failed" };
            return format!("{name} on this evidence: the only run with figures from real hardware; {others}");
        }
        let untested = match others.untested.as_slice() {
            [] => String::new(),
            plans => format!("; not tested against {} ({})", self.columns(plans), self.to_test()),
        };
        if !others.ties.is_empty() {
            let verb = if others.ties.len() == 1 { "is" } else { "are" };
            let (tied, label) = (self.columns(&others.ties), self.goal.label);
            return format!("{name}, though not clearly: by {label} {tied} {verb} not told apart from it{untested}");
        }
        let met = if self.constraints.has_limits() { " of those that meet the constraints" } else { "" };
        format!("{name}: {}{met}{untested}", self.goal.best)
    }

    /// Columns as text: `column 2`, `columns 2 and 3`.
    fn columns(&self, plans: &[usize]) -> String {
        let numbers: Vec<String> = plans.iter().map(|plan| (self.plans[*plan].columns[0] + 1).to_string()).collect();
        format!("{} {}", if plans.len() == 1 { "column" } else { "columns" }, numbers.join(" and "))
    }
}

fn differing_models(sides: &[Side]) -> bool {
    let mut models = sides.iter().filter_map(|side| side.model_sha256.as_deref());
    models.next().is_some_and(|first| models.any(|other| other != first))
}

fn is_real(side: &Side) -> bool {
    !side.simulated && side.failure.is_none() && side.is_measured()
}
