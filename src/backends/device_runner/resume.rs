//! A run that outlives its runner: its progress, what is left after a lost link, and its events merged into one run.

use crate::backends::qnn::runner::RunTask;
use crate::event::{Budget, Event, MemoryMark, PaceReport, Phase, Stage};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of runners after the first: a link that breaks more often is no use for measuring.
pub const MOST_RESUMES: u64 = 20;

/// Inferences of a phase, and their time from the first start to the last end.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    /// All of them, and those of earlier runners.
    count: u64,
    before: u64,
    /// Time of earlier runners, microseconds.
    before_us: u64,
    /// Time of this runner, on its own clock, microseconds.
    span_us: Option<(u64, u64)>,
    /// Time of this runner's inferences themselves, microseconds.
    busy_us: f64,
}

impl Done {
    fn seconds(&self) -> f64 {
        (self.before_us + self.span_us.map_or(0, |(from, to)| to.saturating_sub(from))) as f64 / 1e6
    }
}

/// The run's progress. Clones share the same run.
#[derive(Debug, Clone, Default)]
pub struct Course(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Runners before this one.
    launch: u64,
    phases: BTreeMap<Phase, Done>,
    budgets: BTreeMap<Phase, Budget>,
    /// Finished stages.
    stages: BTreeSet<Stage>,
    /// Kinds of one-time events already sent.
    told: HashSet<Discriminant<Event>>,
    /// Those sent by earlier runners.
    told_before: HashSet<Discriminant<Event>>,
    /// This runner has reported how it kept its schedule.
    pace_told: bool,
    is_over: bool,
}

impl Course {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes an event of the runner, still with device timestamps. `None` for anything an earlier runner already
    /// sent.
    pub fn take(&self, event: Event) -> Option<Event> {
        self.state().take(event)
    }

    /// A new runner follows; its number, from 1.
    pub fn resume(&self) -> u64 {
        let mut state = self.state();
        for done in state.phases.values_mut() {
            (done.before, done.busy_us) = (done.count, 0.0);
            if let Some((from, to)) = done.span_us.take() {
                done.before_us += to.saturating_sub(from);
            }
        }
        let told = state.told.clone();
        state.told_before.extend(told);
        state.pace_told = false;
        state.launch += 1;
        state.launch
    }

    /// How a lost runner kept its schedule, judged by its inferences: those it ran were planned. `None` if it
    /// reported that itself, or if there is no schedule.
    pub fn cut_off(&self, task: &RunTask) -> Option<PaceReport> {
        let state = self.state();
        let done = state.phases.get(&Phase::Clean).filter(|_| !state.pace_told)?;
        let (from_us, to_us) = done.span_us?;
        let (count, wall_us) = (done.count - done.before, to_us.saturating_sub(from_us) as f64);
        Some(PaceReport {
            rate_hz: task.rate_hz?,
            planned: count,
            done: count,
            wall_us,
            waited_us: (wall_us - done.busy_us).max(0.0),
            // Known only to the lost runner.
            wait_cpu_us: 0.0,
            worst_start_us: 0.0,
        })
    }

    /// True if a new runner could measure the rest.
    pub fn can_resume(&self, task: &RunTask) -> bool {
        let state = self.state();
        task.straight.is_none() && !state.is_over && state.launch < MOST_RESUMES
    }

    /// The task of a runner that measures the rest.
    pub fn rest(&self, task: &RunTask) -> RunTask {
        let state = self.state();
        let left = |phase: Phase, budget: Budget| {
            let done = state.phases.get(&phase).copied().unwrap_or_default();
            let iterations = |all: u64| all.saturating_sub(done.count);
            let seconds = |all: f64| (all - done.seconds()).max(0.0);
            match budget {
                Budget::Iterations(all) => Budget::Iterations(iterations(all)),
                Budget::Seconds(all) if seconds(all) <= 0.0 => Budget::Iterations(0),
                Budget::Seconds(all) => Budget::Seconds(seconds(all)),
                Budget::AtLeast { iterations: all, seconds: time } => match seconds(time) {
                    time if time > 0.0 => Budget::AtLeast { iterations: iterations(all), seconds: time },
                    _ => Budget::Iterations(iterations(all)),
                },
            }
        };
        let mut rest = task.clone();
        rest.budget = left(Phase::Clean, task.budget);
        rest.profiling_budget = left(Phase::Detailed, task.profiling_budget);
        rest
    }
}

impl State {
    fn take(&mut self, mut event: Event) -> Option<Event> {
        let is_later = self.launch > 0;
        let kind = discriminant(&event);
        match &mut event {
            Event::Inferences(batch) => {
                let is_again =
                    batch.phase == Phase::First && self.phases.get(&Phase::First).is_some_and(|done| done.before > 0);
                if is_again {
                    // The first inference of a later process does not belong to the run; it is a warm-up.
                    batch.phase = Phase::Warmup;
                    batch.first_index = 0;
                }
                let done = self.phases.entry(batch.phase).or_default();
                let count = batch.latency_ns.len() as u64;
                // The replacement for the first one precedes the actual warm-up.
                let first_index =
                    if batch.phase == Phase::Warmup { done.count } else { done.before + batch.first_index };
                batch.first_index = first_index;
                done.count += count;
                done.busy_us += batch.latency_ns.iter().sum::<u64>() as f64 / 1e3;
                if let (Some(from), Some(last), Some(ns)) =
                    (batch.start_us.first(), batch.start_us.last(), batch.latency_ns.last())
                {
                    let from = done.span_us.map_or(*from, |(from, _)| from);
                    done.span_us = Some((from, last + ns / 1000));
                }
            }
            Event::OpTimes(sample) => sample.inference += self.before(Phase::Detailed),
            Event::Metrics(sample) => sample.inference += self.before(sample.phase),
            Event::Memory(sample) if is_later => {
                if !matches!(sample.mark, MemoryMark::Running | MemoryMark::End) {
                    return None;
                }
                sample.inferences += self.phases.values().map(|done| done.before).sum::<u64>();
            }
            Event::PhaseStarted { phase, budget } => match (self.budgets.get(phase), &budget) {
                // Its inferences continue from where they stopped.
                (Some(Budget::Iterations(all)), Budget::Iterations(_)) if is_later => {
                    *budget = Budget::Iterations(*all);
                }
                (Some(Budget::AtLeast { iterations, .. }), Budget::AtLeast { seconds, .. }) if is_later => {
                    *budget = Budget::AtLeast { iterations: *iterations, seconds: *seconds };
                }
                _ => {
                    self.budgets.insert(*phase, *budget);
                }
            },
            Event::StageStarted { stage } | Event::StageFinished { stage, .. }
                if is_later && self.stages.contains(stage) =>
            {
                return None;
            }
            Event::StageFinished { stage, .. } => {
                self.stages.insert(*stage);
            }
            Event::RunFinished { .. } => self.is_over = true,
            Event::PaceReported(_) => self.pace_told = true,
            Event::ModelIdentified(_)
            | Event::RuntimeLoaded(_)
            | Event::SettingApplied(_)
            | Event::SubStageFinished(_)
            | Event::GraphComposed(_)
            | Event::GraphChosen { .. }
            | Event::InputsPrepared { .. }
            | Event::OpsDeclared(_) => {
                if self.told_before.contains(&kind) {
                    return None;
                }
                self.told.insert(kind);
            }
            _ => {}
        }
        Some(event)
    }

    fn before(&self, phase: Phase) -> u64 {
        self.phases.get(&phase).map_or(0, |done| done.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{InferenceBatch, OpSample};

    fn batch(phase: Phase, first_index: u64, starts: std::ops::Range<u64>) -> Event {
        let start_us: Vec<u64> = starts.map(|ms| ms * 1000).collect();
        let latency_ns = vec![500_000; start_us.len()];
        Event::Inferences(InferenceBatch { phase, first_index, start_us, latency_ns, late_ns: Vec::new() })
    }

    fn indices(course: &Course, event: Event) -> (Phase, u64) {
        let Some(Event::Inferences(batch)) = course.take(event) else { panic!("it is told") };
        (batch.phase, batch.first_index)
    }

    #[test]
    fn inferences_of_two_runners_are_those_of_one_run() {
        let course = Course::default();
        let graph = || Event::GraphChosen { name: "g".to_owned() };
        assert!(course.take(graph()).is_some() && course.take(graph()).is_some());
        assert_eq!(indices(&course, batch(Phase::First, 0, 0..1)), (Phase::First, 0));
        assert_eq!(indices(&course, batch(Phase::Warmup, 0, 1..4)), (Phase::Warmup, 0));
        assert_eq!(indices(&course, batch(Phase::Detailed, 0, 4..6)), (Phase::Detailed, 0));
        assert_eq!(indices(&course, batch(Phase::Clean, 0, 10..20)), (Phase::Clean, 0));
        assert_eq!(indices(&course, batch(Phase::Clean, 10, 20..25)), (Phase::Clean, 10));
        assert_eq!(course.resume(), 1);
        assert!(course.take(graph()).is_none(), "it was told");
        assert!(course.take(Event::OpsDeclared(Vec::new())).is_some(), "it was not");
        assert_eq!(indices(&course, batch(Phase::First, 0, 0..1)), (Phase::Warmup, 3));
        assert_eq!(indices(&course, batch(Phase::Warmup, 0, 1..3)), (Phase::Warmup, 4));
        assert_eq!(indices(&course, batch(Phase::Clean, 0, 3..5)), (Phase::Clean, 15));
        let sample = OpSample { inference: 1, values: Vec::new() };
        let Some(Event::OpTimes(sample)) = course.take(Event::OpTimes(sample)) else { panic!("it is told") };
        assert_eq!(sample.inference, 3);
        let done = course.state().phases[&Phase::Clean];
        // 15 inferences in 14.5 ms, then 2 in 1.5 ms.
        assert_eq!(done.count, 17);
        assert!((done.seconds() - 0.016).abs() < 1e-9, "{}", done.seconds());
    }

    #[test]
    fn a_runner_that_never_came_to_its_first_inference_leaves_it_to_the_next() {
        let course = Course::default();
        course.take(Event::StageFinished { stage: Stage::Compose, duration_us: 1.0 });
        course.resume();
        assert!(course.take(Event::StageStarted { stage: Stage::Compose }).is_none());
        assert!(course.take(Event::StageStarted { stage: Stage::Finalize }).is_some());
        assert_eq!(indices(&course, batch(Phase::First, 0, 0..1)), (Phase::First, 0));
    }
    #[test]
    fn a_schedule_that_was_cut_off_counts_what_was_made_of_it() {
        let text = r#"{"runtime_dir":"/r","backend":"cpu","model":"/m","graph":null,"inputs":[],"input_list":null,
            "native_input":false,"seed":1,"save_outputs":null,"save_context":null,"profile_log":null,"straight":null,
            "warmup":1,"budget":{"iterations":100},"rate_hz":100.0,"profiling":"off","profiling_budget":{"iterations":1},
            "settings":[],"log_level":"warning","allow_unknown_runtime":false}"#;
        let task: RunTask = serde_json::from_str(text).unwrap();
        let course = Course::default();
        assert!(course.can_resume(&task));
        assert_eq!(course.cut_off(&task), None, "no inference was made");
        course.take(batch(Phase::Clean, 0, 0..10));
        let report = course.cut_off(&task).unwrap();
        // 10 inferences of 0.5 ms, one per millisecond.
        assert_eq!((report.planned, report.done, report.wall_us, report.waited_us), (10, 10, 9500.0, 4500.0));
        course.resume();
        assert_eq!(course.cut_off(&task), None, "it was told");
        assert_eq!(course.rest(&task).budget, Budget::Iterations(90));
        course.take(batch(Phase::Clean, 0, 50..55));
        assert_eq!(course.cut_off(&task).unwrap().done, 5);
        course.take(Event::PaceReported(report));
        assert_eq!(course.cut_off(&task), None, "the runner told it");
        assert_eq!(course.cut_off(&RunTask { rate_hz: None, ..task }), None);
    }
}
