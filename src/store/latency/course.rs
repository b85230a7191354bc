//! The latencies in order with their start times, in bounded memory.

use crate::store::bounds::MOST;
use serde::{Deserialize, Serialize};

/// Most single latencies kept; at this number every other one is dropped, repeatedly.
pub const EXACT_LIMIT: usize = 1 << 20;
/// Number of slowest inferences, which are kept however many there are.
pub const SLOWEST_KEPT: usize = 256;

/// Latencies in order. All of them up to [`EXACT_LIMIT`]; then one from each group of `stride`, chosen at
/// random, so that the course stays evenly covered and nothing periodic is always or never kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Course {
    samples_us: Vec<f32>,
    /// Time from the previous start to this one, in microseconds: takes half the memory of the starts
    /// themselves.
    steps_us: Vec<u32>,
    began_us: u64,
    last_start_us: u64,
    stride: u64,
    /// Inferences in the group so far; the next field is the one to keep.
    in_group: u64,
    chosen: u64,
    random: u64,
    seen: u64,
    slowest: Vec<Slow>,
}

/// One of the slowest inferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// Index of the inference, from 0.
    pub index: u64,
    /// Start, in host monotonic microseconds.
    pub start_us: u64,
    /// Latency, in nanoseconds.
    pub latency_ns: u64,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            samples_us: Vec::new(),
            steps_us: Vec::new(),
            began_us: 0,
            last_start_us: 0,
            stride: 1,
            in_group: 0,
            chosen: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            seen: 0,
            slowest: Vec::new(),
        }
    }
}

impl Course {
    /// Adds one inference. True if [`Course::halve`] is now due.
    pub fn push(&mut self, start_us: u64, latency_ns: u64) -> bool {
        if self.seen == 0 {
            self.began_us = start_us;
            self.last_start_us = start_us;
        }
        self.note_slow(Slow { index: self.seen, start_us, latency_ns });
        self.seen += 1;
        if self.in_group == 0 && self.stride > 1 {
            self.chosen = self.draw() % self.stride;
        }
        let keep = self.in_group == self.chosen;
        self.in_group = (self.in_group + 1) % self.stride;
        if !keep {
            return false;
        }
        // A pause beyond 71 minutes would be clipped; no run has one.
        self.steps_us.push(u32::try_from(start_us.saturating_sub(self.last_start_us)).unwrap_or(u32::MAX));
        self.last_start_us = self.last_start_us.max(start_us);
        #[expect(clippy::cast_possible_truncation, reason = "a chart point; exact figures come from the sums")]
        self.samples_us.push((latency_ns as f64 / 1000.0) as f32);
        self.samples_us.len() >= EXACT_LIMIT
    }

    /// Starts a new group with the next inference: groups do not extend across launches.
    pub fn break_group(&mut self) {
        (self.in_group, self.chosen) = (0, 0);
    }

    /// Keeps one of every two latencies within each of the sections that end at `ends`, and updates those.
    pub fn halve<'a>(&mut self, ends: impl IntoIterator<Item = &'a mut usize>) {
        let (mut from, mut kept, mut step_us) = (0, 0, 0u64);
        for end in ends {
            while from < *end {
                let pair = (*end - from).min(2);
                let pick = if pair == 2 { usize::from(self.draw() & 1 == 1) } else { 0 };
                for at in 0..pair {
                    step_us += u64::from(self.steps_us[from + at]);
                    if at == pick {
                        self.samples_us[kept] = self.samples_us[from + at];
                        self.steps_us[kept] = u32::try_from(step_us).unwrap_or(u32::MAX);
                        step_us = 0;
                        kept += 1;
                    }
                }
                from += pair;
            }
            *end = kept;
        }
        self.samples_us.truncate(kept);
        self.steps_us.truncate(kept);
        self.last_start_us = self.timed(0..kept).last().map_or(self.began_us, |(start_us, _)| start_us);
        self.stride *= 2;
        self.break_group();
    }

    pub fn samples_us(&self) -> &[f32] {
        &self.samples_us
    }

    pub fn len(&self) -> usize {
        self.samples_us.len()
    }

    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// False for an impossible course, from a file that someone else wrote.
    pub fn is_sound(&self) -> bool {
        self.samples_us.len() == self.steps_us.len()
            && self.samples_us.len() < EXACT_LIMIT
            && self.slowest.len() <= SLOWEST_KEPT
            && self.stride.is_power_of_two()
            && [self.stride, self.seen, self.began_us, self.last_start_us].iter().all(|number| *number < MOST)
            && self.slowest.iter().all(|slow| slow.start_us < MOST && slow.latency_ns < MOST)
            && self.in_group < self.stride
    }

    /// Capacity for latencies and for steps, in entries.
    #[cfg(test)]
    pub fn capacity(&self) -> (usize, usize) {
        (self.samples_us.capacity(), self.steps_us.capacity())
    }

    /// The slowest of all, slowest first.
    pub fn slowest(&self) -> &[Slow] {
        &self.slowest
    }

    /// Start and latency of the kept ones in a range, in microseconds.
    pub fn timed(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (u64, f32)> + '_ {
        let mut start_us = self.began_us;
        let all = self.steps_us.iter().zip(&self.samples_us).map(move |(&step_us, &latency_us)| {
            start_us += u64::from(step_us);
            (start_us, latency_us)
        });
        all.take(range.end).skip(range.start)
    }

    fn note_slow(&mut self, slow: Slow) {
        if self.slowest.len() == SLOWEST_KEPT
            && self.slowest.last().is_some_and(|last| last.latency_ns >= slow.latency_ns)
        {
            return;
        }
        let at = self.slowest.partition_point(|slower| slower.latency_ns >= slow.latency_ns);
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST_KEPT);
    }

    /// The next splitmix64 number: the same input always gives the same course.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
