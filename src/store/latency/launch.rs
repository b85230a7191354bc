//! The launches of a phase, each a fresh process with its own latencies.

use super::course::Course;
use super::moments::Moments;
use super::ranks::between_ranks;
use super::{LatencyStats, PERCENTILES, Percentile, new_histogram, percentile_of, value_at_rank};
use crate::store::bounds::MOST;
use crate::store::histogram;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Most launches with separate figures; later ones are merged into the last. A run has a handful.
pub const MAX_LAUNCHES: usize = 256;

/// The figures of one launch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LaunchFigures {
    /// Number of inferences.
    pub count: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Sample standard deviation, in microseconds; `None` below two inferences.
    pub stddev_us: Option<f64>,
    /// Minimum, in microseconds.
    pub min_us: f64,
    /// Maximum, in microseconds.
    pub max_us: f64,
    /// The percentiles in [`PERCENTILES`] with their intervals within this launch.
    pub percentiles: [Percentile; PERCENTILES.len()],
}

impl LaunchFigures {
    /// One of [`PERCENTILES`], in microseconds; `None` if there are too few inferences to support it.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        self.percentile(percent)?.value_us
    }

    /// One of [`PERCENTILES`] with its interval within the launch.
    pub fn percentile(&self, percent: f64) -> Option<&Percentile> {
        self.percentiles.iter().find(|known| known.percent.total_cmp(&percent).is_eq())
    }
}

/// One launch with its latencies.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// Index among the launches with inferences in this phase, from 0.
    pub index: usize,
    /// Its figures.
    pub figures: LaunchFigures,
    /// Its latencies in order, in microseconds; every [`LatencyStats::stride`]-th of them.
    pub samples_us: &'a [f32],
    from: usize,
    course: &'a Course,
}

impl Launch<'_> {
    /// Start (host monotonic microseconds) and latency (microseconds) of each kept latency.
    pub fn timed(&self) -> impl Iterator<Item = (u64, f32)> + '_ {
        self.course.timed(self.from..self.from + self.samples_us.len())
    }
}

/// A launch that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Past {
    figures: LaunchFigures,
    /// Index after its last kept latency.
    end: usize,
}

/// All launches of a phase.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Launches {
    past: Vec<Past>,
    /// The current launch; `None` while it is the only one, since the phase's figures are then its figures.
    now: Option<Current>,
}

/// The launch in progress.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Current {
    #[serde(with = "histogram::of_latencies")]
    histogram: Histogram<u32>,
    moments: Moments,
}

impl Launches {
    /// Ends the current launch, with `kept` latencies kept so far. `phase` contains the figures of the phase
    /// up to here.
    pub fn end(&mut self, phase: (&Histogram<u32>, &Moments), kept: usize) {
        if self.past.len() + 1 >= MAX_LAUNCHES {
            return;
        }
        let figures = match &self.now {
            Some(now) => figures(&now.histogram, &now.moments),
            None => figures(phase.0, phase.1),
        };
        self.past.push(Past { figures, end: kept });
        self.now = Some(Current { histogram: new_histogram(), moments: Moments::default() });
    }

    /// Adds an inference to the current launch.
    pub fn push(&mut self, latency_ns: u64) {
        if let Some(Current { histogram, moments }) = &mut self.now {
            // The histogram resizes itself; it can refuse only beyond 2^63, which the clock cannot reach.
            let _ = histogram.record(latency_ns.max(1));
            moments.push(latency_ns);
        }
    }

    /// Adds `times` equal ones.
    pub fn push_for(&mut self, times: u64, latency_ns: u64) {
        if let Some(Current { histogram, moments }) = &mut self.now {
            let _ = histogram.record_n(latency_ns.max(1), u32::try_from(times).unwrap_or(u32::MAX));
            moments.push_for(times, latency_ns);
        }
    }

    /// False if launches end before they start, or after the last of `kept` latencies.
    pub fn is_sound(&self, kept: usize) -> bool {
        self.past.len() < MAX_LAUNCHES
            && self.past.is_sorted_by_key(|past| past.end)
            && self.past.last().is_none_or(|last| last.end <= kept)
            && self.now.as_ref().is_none_or(|now| now.moments.is_sound(now.histogram.len()))
            && self.past.iter().all(|past| past.figures.count < MOST)
    }

    /// The end of each finished launch, as an index into the kept latencies.
    pub fn ends_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        self.past.iter_mut().map(|past| &mut past.end)
    }
}

fn figures(histogram: &Histogram<u32>, moments: &Moments) -> LaunchFigures {
    let mut figures = of_phase(histogram, moments);
    for percentile in &mut figures.percentiles {
        percentile.value_us = interpolated(histogram, moments, percentile);
    }
    figures
}

fn of_phase(histogram: &Histogram<u32>, moments: &Moments) -> LaunchFigures {
    let micro = |ns: u64| ns as f64 / 1000.0;
    LaunchFigures {
        count: moments.count,
        mean_us: moments.mean_ns / 1000.0,
        stddev_us: moments.stddev_us(),
        min_us: micro(moments.min_ns),
        max_us: micro(moments.max_ns),
        percentiles: PERCENTILES.map(|percent| percentile_of(histogram, moments, percent)),
    }
}

/// A percentile interpolated between neighbouring samples. The nearest ranks among 50 and among 100 samples
/// are at different positions of the same distribution, and launches of a run may differ in their counts.
fn interpolated(histogram: &Histogram<u32>, moments: &Moments, nearest: &Percentile) -> Option<f64> {
    nearest.value_us?;
    let (rank, part) = between_ranks(moments.count, nearest.percent / 100.0);
    let [low, high] = [rank, rank + 1].map(|rank| value_at_rank(histogram, moments, rank.min(moments.count)));
    Some(low + part * (high - low))
}

impl LatencyStats {
    /// Number of launches with inferences in this phase.
    pub fn launch_count(&self) -> usize {
        if self.is_empty() { 0 } else { self.launches.past.len() + 1 }
    }

    /// The launches in order; the last one may be unfinished. A phase without [`LatencyStats::interrupt`] is
    /// a single launch.
    pub fn launches(&self) -> Vec<Launch<'_>> {
        let mut from = 0;
        let last = || match &self.launches.now {
            Some(now) => figures(&now.histogram, &now.moments),
            // The only launch: its figures are exactly those of the phase.
            None => of_phase(&self.histogram, &self.moments),
        };
        let ended = self.launches.past.iter().map(|past| (past.figures, past.end));
        let all = ended.chain((!self.is_empty()).then(|| (last(), self.course.len())));
        all.enumerate()
            .map(|(index, (figures, end))| {
                let samples_us = &self.course.samples_us()[from..end];
                Launch { index, figures, samples_us, from: std::mem::replace(&mut from, end), course: &self.course }
            })
            .collect()
    }
}
