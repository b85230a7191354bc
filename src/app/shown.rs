//! The run's data for the panes, taken from the store before a frame. While the view is paused it is not updated, so
//! nothing on the screen moves, however far the run progresses.

use super::rows::{LayerRows, Sort};
use crate::event::{Budget, Phase, RunId, RunStatus, Stage, clean_text};
use crate::store::{LatencyStats, MemoryStats, PERCENTILES, Run, RunState, Store};
use crate::text::file_name;

/// Time span, microseconds, of the samples for the percentiles of "now", within the bounds below.
const NOW_US: f64 = 5_000_000.0;
const NOW_SAMPLES: (usize, usize) = (100, 1_000);
/// From this many samples on, one percentile is computed per frame, since each walks its whole distribution.
const MANY: u64 = 50_000;
/// Percentiles of many samples change slowly; updating them this often, microseconds, is enough.
const REFRESH_US: u64 = 250_000;

/// One entry of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTab {
    /// Which run.
    pub id: RunId,
    /// Its number as displayed.
    pub number: usize,
    /// Backend's name.
    pub backend: &'static str,
    /// Its model, if the session has several: nothing else would distinguish the runs.
    pub model: Option<String>,
    /// Its figures are simulated.
    pub simulated: bool,
    /// How it ended, if it has.
    pub status: Option<RunStatus>,
}

/// Progress of the shown run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// State.
    pub state: RunState,
    /// Phase with its budget and start.
    pub phase: Option<(Phase, Budget, u64)>,
    /// Inferences of that phase.
    pub done: u64,
    /// Finished stages.
    pub stages: usize,
    /// It failed and reported why.
    pub failed: bool,
    /// Its start.
    pub started_us: u64,
    /// Its end.
    pub ended_us: Option<u64>,
    /// Estimated microseconds for the budgets after this phase.
    pub later_us: Option<f64>,
    /// Mean time of the newest inferences.
    pub pace_us: Option<f64>,
    /// Inferences of all phases.
    pub inferences: u64,
    /// Planned starts per second, and the number of inferences that were not done by the next planned start.
    pub paced: Option<(f64, u64)>,
    /// The current launch, if there are several.
    pub launch: Option<LaunchStanding>,
}

/// A run's progress through its launches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaunchStanding {
    /// From 1.
    pub number: usize,
    /// Launches planned so far.
    pub of: usize,
    /// Its start.
    pub started_us: u64,
    /// It has ended, and the next one waits for other runs' launches.
    pub waits: bool,
    /// Largest launch median relative to the smallest so far, per cent.
    pub spread_percent: Option<f64>,
}

/// Progress of the phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// 0 to 1.
    pub fraction: f64,
    /// Time to the end of the run, microseconds; `None` if unknown.
    pub eta_us: Option<f64>,
}

impl Standing {
    fn of(run: &Run) -> Self {
        let phase = run.phase;
        let done = phase.map_or(0, |(phase, ..)| run.done_in_launch(phase));
        let pace_us = phase
            .and_then(|(phase, ..)| match &run.pace {
                // A paced inference takes its period, unless it takes longer.
                Some(pace) if phase == Phase::Clean => {
                    let service_us = recent_mean(pace.service.samples_us()).unwrap_or(0.0);
                    Some(service_us.max(pace.period_us()))
                }
                _ => recent_mean(run.latency(phase).samples_us()),
            })
            .or_else(|| [&run.warmup, &run.first].into_iter().find_map(LatencyStats::mean_us));
        Self {
            state: run.state,
            phase,
            done,
            stages: run.stages.len(),
            failed: run.failure.is_some(),
            started_us: run.started_us,
            ended_us: run.ended_us,
            later_us: phase.and_then(|(phase, ..)| later_us(run, phase, pace_us)),
            pace_us,
            inferences: run.inferences(),
            paced: run.pace.as_ref().map(|pace| (pace.rate_hz, pace.missed)),
            launch: launch_standing(run),
        }
    }

    /// Progress of the phase at a given time; `None` before the first phase and after the last.
    pub fn progress(&self, now_us: u64) -> Option<Progress> {
        self.phase?;
        let (fraction, left_us) = self.fraction(now_us);
        // Assumes that each further launch takes as long as this one.
        let eta_us = left_us.zip(self.later_us).map(|(left, later)| match &self.launch {
            None => left + later,
            Some(launch) => {
                let so_far = now_us.saturating_sub(launch.started_us) as f64;
                left + later + launch.of.saturating_sub(launch.number) as f64 * (so_far + left + later)
            }
        });
        Some(Progress { fraction: fraction.clamp(0.0, 1.0), eta_us })
    }

    /// Completed share of the phase, and its remaining time, microseconds.
    fn fraction(&self, now_us: u64) -> (f64, Option<f64>) {
        let Some((phase, budget, since_us)) = self.phase else { return (0.0, None) };
        let elapsed = now_us.saturating_sub(since_us) as f64;
        match budget {
            Budget::Iterations(0) => (1.0, Some(0.0)),
            Budget::Iterations(n) => {
                let left = n.saturating_sub(self.done) as f64;
                (self.done as f64 / n as f64, self.pace_us.map(|pace| pace * left))
            }
            Budget::Seconds(seconds) if seconds > 0.0 => {
                (elapsed / (seconds * 1e6), Some((seconds * 1e6 - elapsed).max(0.0)))
            }
            Budget::Seconds(_) => (1.0, Some(0.0)),
            // Whichever comes later decides.
            Budget::AtLeast { iterations, seconds } => {
                let of = |budget| Self { phase: Some((phase, budget, since_us)), ..*self }.fraction(now_us);
                let (a, b) = (of(Budget::Iterations(iterations)), of(Budget::Seconds(seconds)));
                (a.0.min(b.0), a.1.zip(b.1).map(|(a, b)| a.max(b)))
            }
        }
    }

    /// Time since the start, or the whole time of an ended run.
    pub fn elapsed_us(&self, now_us: u64) -> u64 {
        self.ended_us.unwrap_or(now_us).saturating_sub(self.started_us)
    }
}

fn launch_standing(run: &Run) -> Option<LaunchStanding> {
    if run.launches_planned < 2 {
        return None;
    }
    let last = run.launches.last()?;
    let torn = last.stages.last().is_some_and(|time| time.stage == Stage::Teardown);
    Some(LaunchStanding {
        number: run.launches.len(),
        of: run.launches_planned as usize,
        started_us: last.started_us,
        waits: torn && run.state == RunState::Between,
        spread_percent: crate::report::spread_percent(run),
    })
}

fn recent_mean(samples: &[f32]) -> Option<f64> {
    let recent = &samples[samples.len().saturating_sub(64)..];
    (!recent.is_empty()).then(|| recent.iter().map(|&v| f64::from(v)).sum::<f64>() / recent.len() as f64)
}

/// Time of the phases after `phase`.
fn later_us(run: &Run, phase: Phase, pace_us: Option<f64>) -> Option<f64> {
    let cost = |budget: Budget| match budget {
        Budget::Iterations(n) => pace_us.map(|pace| pace * n as f64),
        Budget::Seconds(seconds) => Some(seconds * 1e6),
        Budget::AtLeast { iterations, seconds } => pace_us.map(|pace| (pace * iterations as f64).max(seconds * 1e6)),
    };
    let parts = f64::from(run.plan.mode.launches.planned.max(1));
    let cost = |budget: Budget| cost(budget).map(|us| us / parts);
    let detailed = || run.plan.profiling_budget.map_or(Some(0.0), cost);
    match phase {
        Phase::First => Some(cost(Budget::Iterations(run.plan.warmup))? * parts + cost(run.plan.budget)? + detailed()?),
        Phase::Warmup => Some(cost(run.plan.budget)? + detailed()?),
        Phase::Clean => detailed(),
        // During the leading detailed inferences the clean phase is still to come.
        Phase::Detailed if run.done_in_launch(Phase::Clean) == 0 => Some(cost(run.plan.budget)? + detailed()?),
        Phase::Detailed => Some(0.0),
    }
}

/// Latency figures of the shown phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyFigures {
    /// The phase: clean if available, else any other.
    pub phase: Option<Phase>,
    /// Number of its samples.
    pub count: u64,
    /// Latencies of the chart: all, or those kept individually.
    pub charted: usize,
    /// Overall percentiles, by [`PERCENTILES`].
    pub all: [Option<f64>; 5],
    /// Percentiles of the newest samples.
    pub now: [Option<f64>; 5],
    /// Number of those.
    pub now_count: usize,
    /// Overall mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Mean, smallest and largest latency of the newest samples.
    pub now_range: Option<(f64, f64, f64)>,
    /// Inferences per second.
    pub throughput: Option<f64>,
    /// First inference.
    pub first: Option<f64>,
    /// Mean of the warm-up.
    pub warmup: Option<f64>,
    /// What profiling costs.
    pub overhead: Option<f64>,
    /// Histogram: lower edge in microseconds, samples.
    pub bins: Vec<(f64, u64)>,
    key: Option<(u32, Phase, usize)>,
    taken: Option<(u64, u64)>,
    next: usize,
    left: usize,
}

impl LatencyFigures {
    /// Updates the figures. Returns true if there is more to do at once.
    fn refresh(&mut self, run: &Run, bins: usize, now_us: u64) -> bool {
        let shown = [Phase::Clean, Phase::Detailed, Phase::Warmup, Phase::First];
        let Some(phase) = shown.into_iter().find(|phase| !run.latency(*phase).is_empty()) else {
            *self = Self::default();
            return false;
        };
        let stats = run.latency(phase);
        let key = Some((run.id.0, phase, bins));
        if self.key != key {
            *self = Self { key, phase: Some(phase), ..Self::default() };
        }
        self.first = run.first_us();
        self.warmup = run.warmup.mean_us();
        self.overhead = run.overhead_factor();
        let count = stats.count();
        let unchanged = self.taken.is_some_and(|(taken, _)| taken == count);
        if !unchanged {
            self.count = count;
            self.charted = stats.samples_us().len();
            (self.mean, self.min, self.max) = (stats.mean_us(), stats.min_us(), stats.max_us());
            self.stddev = stats.stddev_us();
            self.throughput = if phase == Phase::Clean { run.throughput_ips() } else { stats.throughput_ips() };
            self.take_now(stats.samples_us());
            let due = self.taken.is_none_or(|(_, at)| now_us.saturating_sub(at) >= REFRESH_US);
            if due || count < MANY || run.is_ended() {
                self.bins = stats.bins(bins);
                self.taken = Some((count, now_us));
                self.left = PERCENTILES.len();
            }
        }
        let slice = if count < MANY { PERCENTILES.len() } else { 1 };
        for _ in 0..slice.min(self.left) {
            self.all[self.next] = stats.percentile_us(PERCENTILES[self.next]);
            self.next = (self.next + 1) % PERCENTILES.len();
            self.left -= 1;
        }
        self.left > 0
    }

    fn take_now(&mut self, samples: &[f32]) {
        let pace = recent_mean(samples).unwrap_or(1.0).max(0.001);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let wanted = ((NOW_US / pace) as usize).clamp(NOW_SAMPLES.0, NOW_SAMPLES.1);
        let mut recent = samples[samples.len().saturating_sub(wanted)..].to_vec();
        recent.sort_unstable_by(f32::total_cmp);
        self.now_count = recent.len();
        let (Some(&low), Some(&high)) = (recent.first(), recent.last()) else { return };
        let mean = recent.iter().map(|&v| f64::from(v)).sum::<f64>() / recent.len() as f64;
        self.now_range = Some((mean, f64::from(low), f64::from(high)));
        for (slot, percent) in self.now.iter_mut().zip(PERCENTILES) {
            // The same rule as for the whole run: at least one sample is expected beyond the percentile.
            let beyond = recent.len() as f64 * (1.0 - percent / 100.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank in 1..=len")]
            let rank = ((recent.len() as f64 * percent / 100.0 - 1e-9).ceil() as usize).clamp(1, recent.len());
            *slot = (beyond >= 1.0 - 1e-9).then(|| f64::from(recent[rank - 1]));
        }
    }
}

/// Everything about the run that changes while it is active.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The shown time: later samples, log lines and counters are hidden.
    pub at_us: u64,
    /// Records of the session by that time.
    pub records: u64,
    /// The runs.
    pub runs: Vec<RunTab>,
    /// The run shown.
    pub run: Option<RunId>,
    /// Its progress.
    pub standing: Option<Standing>,
    /// Latency.
    pub latency: LatencyFigures,
    /// Layers.
    pub layers: LayerRows,
    /// Memory.
    pub memory: MemoryStats,
}

/// The view's state needed for a refresh.
#[derive(Debug, Clone, Copy)]
pub struct Wishes<'a> {
    /// The run to show.
    pub run: Option<RunId>,
    /// The view is frozen.
    pub frozen: bool,
    /// Order of the layers.
    pub sort: Sort,
    /// Filter of the layers.
    pub filter: &'a str,
    /// Columns of the histogram.
    pub bins: usize,
}

impl Shown {
    /// Updates everything from the store; when frozen, only what the user asked to see differently. Returns true if
    /// there is more to do at once.
    pub fn refresh(&mut self, store: &Store, wishes: Wishes<'_>, now_us: u64) -> bool {
        let run = wishes.run.and_then(|id| store.run(id));
        let other = self.run != run.map(|run| run.id);
        if !wishes.frozen {
            self.at_us = store.now_us();
            self.records = store.records();
            self.runs = tabs(store.runs());
        }
        self.run = run.map(|run| run.id);
        let Some(run) = run else {
            (self.standing, self.memory) = (None, MemoryStats::default());
            (self.latency, self.layers) = (LatencyFigures::default(), LayerRows::default());
            return false;
        };
        let mut more = false;
        if !wishes.frozen || other {
            self.standing = Some(Standing::of(run));
            self.memory = run.memory;
            more |= self.latency.refresh(run, wishes.bins, now_us);
        }
        more |= self.layers.refresh(run, wishes.sort, wishes.filter, now_us, wishes.frozen);
        more
    }
}

fn tabs(runs: &[Run]) -> Vec<RunTab> {
    let several = runs.windows(2).any(|pair| pair[0].plan.model != pair[1].plan.model);
    let tab = |(number, run): (usize, &Run)| RunTab {
        id: run.id,
        number,
        backend: run.plan.backend.name(),
        model: several.then(|| model_name(runs, run)),
        simulated: run.plan.simulated,
        status: run.status(),
    };
    (1..).zip(runs).map(tab).collect()
}

/// The file name of a model, with its folder if another model has the same name.
fn model_name(runs: &[Run], run: &Run) -> String {
    let path = run.plan.model.as_str();
    let name = file_name(path);
    let is_shared = runs.iter().any(|other| other.plan.model != path && file_name(&other.plan.model) == name);
    let folder = path.strip_suffix(name).map(file_name).filter(|folder| is_shared && !folder.is_empty());
    clean_text(&folder.map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}")))
}
