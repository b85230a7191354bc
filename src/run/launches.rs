//! The launches of a run: each one's share of the task, its outcome, and whether another is needed.

use super::identity::Identity;
use crate::analysis::launches::{MOST_LAUNCHES, needs_more};
use crate::backends::ProfilingLevel;
use crate::backends::qnn::runner::{RunTask, SlowLoad};
use crate::event::{Budget, Driver, Event, Launches, LogSource, Phase, RunPlan, RunStatus};
use crate::session::Gate;
use crate::store::LatencyStats;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A model that takes longer than this to load, seconds, is only loaded once unless the user asks for a
/// number of launches: three loads would take most of the time allowed for launches.
const SLOW_LOAD_S: f64 = 10.0;

/// A run in the middle of its launches.
#[derive(Debug)]
pub(super) struct Course {
    plan: Launches,
    driver: Driver,
    /// Launches begun.
    made: u32,
    /// Launches planned so far.
    planned: u32,
    medians_us: Vec<f64>,
    spent: Duration,
    /// Why the next launch is made, if it was not planned initially.
    reason: Option<String>,
}

impl Course {
    pub(super) fn new(plan: &RunPlan) -> Self {
        let launches = plan.mode.launches;
        let planned = launches.planned.max(1);
        Self {
            plan: Launches { planned, ..launches },
            driver: plan.driver,
            made: 0,
            planned,
            medians_us: Vec::new(),
            spent: Duration::ZERO,
            reason: None,
        }
    }

    /// True if a launch has been made or is in progress.
    pub(super) fn is_begun(&self) -> bool {
        self.made > 0
    }

    /// Begins the next launch: returns its announcement and its share of the whole task.
    pub(super) fn begin(&mut self, whole: &RunTask) -> (Event, RunTask) {
        let index = self.made;
        self.made += 1;
        let event = Event::LaunchStarted { index, of: self.planned, reason: self.reason.take() };
        let mut task = whole.clone();
        if index > 0 {
            // One launch writes the files; the others would only write the same again.
            (task.save_outputs, task.save_context, task.profile_log) = (None, None, None);
        }
        if self.plan.limit > 1 || self.plan.planned > 1 {
            self.share(whole, index, &mut task);
        }
        (event, task)
    }

    fn share(&self, whole: &RunTask, index: u32, task: &mut RunTask) {
        task.budget = share(whole.budget, index, self.plan.planned);
        // qnn-net-run starts a separate process for layer times: once is enough.
        let apart = self.driver.traits().layers_apart;
        task.profiling_budget = match (apart, index) {
            (false, _) => share(whole.profiling_budget, index, self.plan.planned),
            (true, 0) => whole.profiling_budget,
            (true, _) => Budget::Iterations(0),
        };
        if self.plan.is_automatic() && index as usize >= MOST_LAUNCHES {
            // What such a run needs is launches: half the inferences, and the layers of the first launches,
            // suffice.
            task.budget = share(task.budget, 0, 2);
            task.profiling_budget = Budget::Iterations(0);
        }
        if task.profiling == ProfilingLevel::Detailed && task.profiling_budget == Budget::Iterations(0) {
            task.profiling = ProfilingLevel::Off;
        }
        if index == 0 && self.plan.is_automatic() {
            let (budget, profiling_budget) = (whole.budget, whole.profiling_budget);
            task.slow_load = Some(SlowLoad { seconds: SLOW_LOAD_S, budget, profiling_budget });
        }
    }

    /// Records a launch's outcome and duration; returns what comes next.
    pub(super) fn after(&mut self, launch: &Launched, took: Duration) -> Next {
        self.spent += took;
        self.medians_us.extend(launch.clean.percentile_us(50.0));
        if launch.status != RunStatus::Ok || launch.made_all {
            return Next::Over;
        }
        if self.made < self.planned {
            return Next::Launch;
        }
        // Unless each has a median, there is no agreement to judge.
        let has_medians = self.medians_us.len() == self.made as usize;
        if !self.plan.is_automatic() || self.made >= self.plan.limit || !has_medians {
            return Next::Over;
        }
        self.reason = needs_more(&self.medians_us, self.spent).map(|why| why.to_string());
        if self.reason.is_none() {
            return Next::Enough;
        }
        self.planned += 1;
        Next::Launch
    }

    /// Plans another launch although this run has enough, to keep pace with a run it is compared with.
    pub(super) fn keep_pace(&mut self) {
        self.planned += 1;
        self.reason = Some("the run that takes turns with this one makes another".to_owned());
    }
}

/// What follows a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another launch.
    Launch,
    /// Nothing, unless another run that alternates with this one continues.
    Enough,
    /// The end of the run.
    Over,
}

/// Randomises the order of runs in each round.
#[derive(Debug)]
pub(super) struct Turns(ChaCha8Rng);

impl Turns {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Shuffles the runs of a round; every order is equally likely.
    pub(super) fn shuffle<T>(&mut self, runs: &mut [T]) {
        for last in (1..runs.len()).rev() {
            // The upper half of the 64-bit product is below the bound; for so few runs, the bias is far too
            // small to notice.
            let at = (u64::from(self.0.next_u32()) * (last as u64 + 1)) >> 32;
            runs.swap(last, usize::try_from(at).unwrap_or(last));
        }
    }
}

/// The share of a budget for launch `index` out of `of`; an additional launch gets as much as a planned one.
fn share(budget: Budget, index: u32, of: u32) -> Budget {
    let (index, parts) = (u64::from(index), u64::from(of.max(1)));
    let count = |all: u64| all / parts + u64::from(index < all % parts);
    match budget {
        Budget::Iterations(all) => Budget::Iterations(count(all)),
        Budget::Seconds(seconds) => Budget::Seconds(seconds / parts as f64),
        Budget::AtLeast { iterations, seconds } => {
            Budget::AtLeast { iterations: count(iterations), seconds: seconds / parts as f64 }
        }
    }
}

/// Outcome of a launch.
#[derive(Debug, Clone)]
pub(super) struct Launched {
    /// How it ended.
    pub status: RunStatus,
    /// Its clean phase.
    pub clean: LatencyStats,
    /// True if it made all of the run's inferences.
    pub made_all: bool,
    /// Its output files.
    pub saved: Vec<String>,
    /// How it differs from what the first launch measured, if so; nothing of it counts then.
    pub other: Option<String>,
}

/// Keeps the end of a launch from ending its run, records its outcome, and holds back whatever an earlier
/// launch has already sent.
#[derive(Debug, Default)]
pub(super) struct LaunchGate {
    state: Mutex<State>,
    /// Notified when a launch turns out to measure something else.
    is_other: Notify,
}

#[derive(Debug, Default)]
struct State {
    later: bool,
    whole: Option<Budget>,
    status: Option<RunStatus>,
    clean: LatencyStats,
    made_all: bool,
    saved: Vec<String>,
    /// The outputs are removed after judging, so nobody needs their paths.
    temporary: bool,
    said: Vec<Event>,
    identity: Identity,
    other: Option<String>,
}

impl LaunchGate {
    /// A gate for all launches of a run.
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A launch with this task begins; its outputs are `temporary` or kept.
    pub(super) fn begin(&self, task: &RunTask, later: bool, temporary: bool) {
        let mut state = self.state();
        (state.later, state.temporary) = (later, temporary);
        state.whole = task.slow_load.map(|slow| slow.budget).filter(|whole| *whole != task.budget);
        (state.status, state.made_all) = (None, false);
        state.clean = LatencyStats::default();
    }

    /// The outcome of the launch; one that did not report its end has failed.
    pub(super) fn end(&self) -> Launched {
        let mut state = self.state();
        Launched {
            status: state.status.unwrap_or(RunStatus::Failed),
            clean: std::mem::take(&mut state.clean),
            made_all: state.made_all,
            saved: std::mem::take(&mut state.saved),
            other: state.other.take(),
        }
    }

    /// Waits until the current launch turns out to measure something other than the first one.
    pub(super) async fn other(&self) {
        self.is_other.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics midway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate for LaunchGate {
    fn lets_pass(&self, event: &Event) -> bool {
        let mut state = self.state();
        if let Some(other) = state.identity.take(event) {
            state.other.get_or_insert(other);
            self.is_other.notify_one();
        }
        match event {
            Event::RunFinished { status } => {
                state.status = Some(*status);
                return false;
            }
            // Figures of two different things must not be combined.
            _ if state.other.is_some() => return false,
            // Repeating the same graphs would only make the session longer.
            Event::GraphComposed(_) | Event::GraphChosen { .. } => return !state.later,
            Event::PhaseStarted { phase: Phase::Clean, budget } => state.made_all = state.whole == Some(*budget),
            Event::Inferences(batch) if batch.phase == Phase::Clean => {
                for (&start_us, &latency_ns) in batch.start_us.iter().zip(&batch.latency_ns) {
                    state.clean.push(start_us, latency_ns);
                }
            }
            Event::OutputsSaved { files } => {
                state.saved.extend_from_slice(files);
                return !state.temporary;
            }
            Event::SettingApplied(_) => return state.is_new(event),
            Event::Log(line) if matches!(line.source, LogSource::Qnnscope | LogSource::Runner) => {
                return state.is_new(event);
            }
            _ => {}
        }
        true
    }
}

impl State {
    /// True unless an earlier launch reported the same.
    fn is_new(&mut self, event: &Event) -> bool {
        if self.later {
            return !self.said.contains(event);
        }
        self.said.push(event.clone());
        true
    }
}

#[cfg(test)]
mod tests;
