//! Executions of all threads of a process on a common time axis: where the time goes, and what overlaps.

use super::super::OpStats;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Most executions waiting to be sorted.
const MOST_WAITING: usize = 1 << 16;
/// An execution is reported when it ends, so one that started earlier may arrive later: by this
/// (nanoseconds), or ...
const LATE_NS: u64 = 1_000_000_000;
/// ... by this many times the longest execution, if that is more.
const LATE_TIMES: u64 = 2;
/// Most threads, and graphs per inference, that are remembered.
const MOST: usize = 4096;

/// An execution on the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timed {
    pub start_ns: u64,
    pub end_ns: u64,
    pub thread: u32,
    /// Index of its graph in the process's list.
    pub graph: Option<usize>,
}

/// Where a process spent its time, from its first execution to the end of its last; fractions of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeShare {
    /// At least one execution was running.
    pub qnn: f64,
    /// Nothing was running, and the next execution belonged to an inference in progress: between its graphs.
    pub between_graphs: f64,
    /// Nothing was running, and the next execution started an inference: the program's own work, or waiting.
    pub program: f64,
}

/// Executions grouped by whether another thread executed at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alone {
    /// Number of executions.
    pub count: u64,
    /// Their total duration, in nanoseconds.
    pub total_ns: u64,
}

impl Alone {
    /// Mean, in microseconds.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64 / 1000.0)
    }
}

/// Timing of one graph.
#[derive(Debug, Clone, Default)]
pub struct GraphTimes {
    /// Time from the end of the previous execution on the same thread, of any graph, to the start, in
    /// nanoseconds.
    pub between: OpStats,
    /// The same if the previous execution belonged to the same inference.
    pub within: OpStats,
    /// Executions without an overlap.
    pub alone: Alone,
    /// Executions during which another thread executed too.
    pub overlapped: Alone,
}

#[derive(Debug, Default)]
struct Thread {
    last_end_ns: Option<u64>,
    /// Graphs of the current inference.
    inference: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Active {
    timed: Timed,
    overlapped: bool,
}

/// The time axis of a process.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Executions so far.
    pub executions: u64,
    /// Inferences: series of executions on one thread in which no graph occurs twice.
    pub inferences: u64,
    waiting: BinaryHeap<Reverse<Timed>>,
    newest_ns: u64,
    longest_ns: u64,
    first_ns: Option<u64>,
    covered_ns: u64,
    qnn_ns: u64,
    between_ns: u64,
    program_ns: u64,
    threads: HashMap<u32, Thread>,
    graphs: HashMap<usize, GraphTimes>,
    active: Vec<Active>,
}

impl Timeline {
    /// Adds an execution.
    pub(super) fn push(&mut self, timed: Timed) {
        self.executions += 1;
        self.newest_ns = self.newest_ns.max(timed.end_ns);
        self.longest_ns = self.longest_ns.max(timed.end_ns.saturating_sub(timed.start_ns));
        self.waiting.push(Reverse(timed));
        if self.waiting.len() > MOST_WAITING {
            self.next();
        }
    }

    /// Processes the executions that nothing can precede any more.
    pub(super) fn settle(&mut self) {
        let late_ns = LATE_NS.max(self.longest_ns.saturating_mul(LATE_TIMES));
        let horizon_ns = self.newest_ns.saturating_sub(late_ns);
        while self.waiting.peek().is_some_and(|Reverse(timed)| timed.start_ns < horizon_ns) {
            self.next();
        }
    }

    /// Ends the timeline: nothing follows.
    pub(super) fn finish(&mut self) {
        while !self.waiting.is_empty() {
            self.next();
        }
        for active in std::mem::take(&mut self.active) {
            self.judge(active);
        }
    }

    fn next(&mut self) {
        let Some(Reverse(timed)) = self.waiting.pop() else { return };
        let begins = self.begins(timed);
        let first_ns = *self.first_ns.get_or_insert(timed.start_ns);
        self.covered_ns = self.covered_ns.max(first_ns);
        let gap_ns = timed.start_ns.saturating_sub(self.covered_ns);
        if begins {
            self.program_ns += gap_ns;
        } else {
            self.between_ns += gap_ns;
        }
        self.qnn_ns += timed.end_ns.saturating_sub(self.covered_ns.max(timed.start_ns));
        self.covered_ns = self.covered_ns.max(timed.end_ns);
        self.overlap(timed);
    }

    /// Whether the execution is the first of an inference; records the time since the previous one.
    fn begins(&mut self, timed: Timed) -> bool {
        if self.threads.len() >= MOST && !self.threads.contains_key(&timed.thread) {
            // The end of a thread is never reported, so all threads are dropped when there are too many.
            self.threads.clear();
        }
        let thread = self.threads.entry(timed.thread).or_default();
        let since_ns = thread.last_end_ns.replace(timed.end_ns).map(|last_ns| timed.start_ns.saturating_sub(last_ns));
        let begins = match timed.graph {
            Some(graph) if thread.inference.contains(&graph) || thread.inference.len() >= MOST => {
                thread.inference.clear();
                true
            }
            _ => thread.inference.is_empty(),
        };
        thread.inference.extend(timed.graph);
        self.inferences += u64::from(begins);
        if let (Some(graph), Some(since_ns)) = (timed.graph, since_ns) {
            let known = self.graphs.entry(graph).or_default();
            known.between.push(since_ns);
            if !begins {
                known.within.push(since_ns);
            }
        }
        begins
    }

    fn overlap(&mut self, timed: Timed) {
        let (over, mut going): (Vec<Active>, Vec<Active>) =
            std::mem::take(&mut self.active).into_iter().partition(|active| active.timed.end_ns <= timed.start_ns);
        for active in over {
            self.judge(active);
        }
        let mut overlapped = false;
        for active in going.iter_mut().filter(|active| active.timed.thread != timed.thread) {
            active.overlapped = true;
            overlapped = true;
        }
        going.push(Active { timed, overlapped });
        self.active = going;
    }

    fn judge(&mut self, active: Active) {
        let Some(graph) = active.timed.graph else { return };
        let times = self.graphs.entry(graph).or_default();
        let alone = if active.overlapped { &mut times.overlapped } else { &mut times.alone };
        alone.count += 1;
        alone.total_ns += active.timed.end_ns.saturating_sub(active.timed.start_ns);
    }

    /// Where the time went; `None` before any execution was processed.
    pub fn share(&self) -> Option<TimeShare> {
        let all = (self.qnn_ns + self.between_ns + self.program_ns) as f64;
        (all > 0.0).then(|| TimeShare {
            qnn: self.qnn_ns as f64 / all,
            between_graphs: self.between_ns as f64 / all,
            program: self.program_ns as f64 / all,
        })
    }

    /// Time from the first execution to the end of the last, in nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.qnn_ns + self.between_ns + self.program_ns
    }

    /// Time in which at least one execution was running, in nanoseconds.
    pub fn qnn_ns(&self) -> u64 {
        self.qnn_ns
    }

    /// Time between the graphs of an inference, in nanoseconds.
    pub fn between_ns(&self) -> u64 {
        self.between_ns
    }

    /// Timing of a graph, by its index in the process's list.
    pub fn graph(&self, at: usize) -> Option<&GraphTimes> {
        self.graphs.get(&at)
    }

    /// Mean number of executions per inference.
    pub fn graphs_per_inference(&self) -> Option<f64> {
        let sorted = self.executions - self.waiting.len() as u64;
        (self.inferences > 0).then(|| sorted as f64 / self.inferences as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(executions: &[(u64, u64, u32, usize)]) -> Timeline {
        let mut timeline = Timeline::default();
        for &(start, end, thread, graph) in executions {
            let timed = Timed { start_ns: start * 1000, end_ns: end * 1000, thread, graph: Some(graph) };
            timeline.push(timed);
            timeline.settle();
        }
        timeline.finish();
        timeline
    }

    #[test]
    fn gaps_within_an_inference_are_told_from_those_between_inferences() {
        // Two graphs per inference: 30 + 10 gap + 20, then 40 in the program; twice, and the last gap belongs
        // to nobody.
        let timeline = timeline(&[(0, 30, 1, 0), (40, 60, 1, 1), (100, 130, 1, 0), (140, 160, 1, 1)]);
        assert_eq!((timeline.executions, timeline.inferences), (4, 2));
        assert_eq!(timeline.graphs_per_inference(), Some(2.0));
        assert_eq!(timeline.span_ns(), 160_000);
        assert_eq!((timeline.qnn_ns(), timeline.between_ns()), (100_000, 20_000));
        let share = timeline.share().unwrap();
        assert!((share.program - 0.25).abs() < 1e-9 && (share.qnn - 0.625).abs() < 1e-9, "{share:?}");
        let second = timeline.graph(1).unwrap();
        assert_eq!((second.between.count(), second.within.count()), (2, 2));
        assert_eq!(timeline.graph(0).unwrap().within.count(), 0);
        assert_eq!(timeline.graph(0).unwrap().between.max(), Some(40_000.0));
    }

    #[test]
    fn threads_that_overlap_are_counted_once_in_the_time_and_told_apart() {
        // The long execution ends last, so it arrives last although it started first.
        let timeline = timeline(&[(10, 20, 2, 1), (30, 40, 2, 1), (0, 100, 1, 0), (200, 210, 2, 1)]);
        assert_eq!(timeline.qnn_ns(), 110_000);
        let (long, short) = (timeline.graph(0).unwrap(), timeline.graph(1).unwrap());
        assert_eq!((long.alone.count, long.overlapped.count), (0, 1));
        assert_eq!((short.alone.count, short.overlapped.count), (1, 2));
        assert_eq!(short.overlapped.mean_us(), Some(10.0));
    }

    #[test]
    fn what_waits_is_bounded_and_nothing_is_lost() {
        let mut timeline = Timeline::default();
        for at in 0..200_000_u64 {
            timeline.push(Timed { start_ns: at * 10, end_ns: at * 10 + 5, thread: 1, graph: Some(0) });
            assert!(timeline.waiting.len() <= MOST_WAITING);
        }
        timeline.finish();
        assert_eq!(timeline.qnn_ns(), 1_000_000);
        assert_eq!(timeline.inferences, 200_000);
    }
}
