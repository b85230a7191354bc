//! Schedules the reading: every file once, however many counters need it, and slow files separately.

use crate::probes::catalogue::Cadence;
use crate::probes::counter::{Counter, FileRead, How};
use std::collections::{BTreeMap, BTreeSet};

/// Files that take longer than this may be moved to their own stream, microseconds.
const SLOW_FROM_US: u64 = 2_000;
/// Maximum share of the period that a tick's files may take, per cent.
const SHARE: u64 = 50;
/// Minimum time between rounds of the slow stream, microseconds.
const SLOW_PERIOD_US: u64 = 2_000_000;
/// Minimum time between queries of services, microseconds: each starts a process, and the values change slowly.
const SERVICE_PERIOD_US: u64 = 5_000_000;

/// The files that the counters need.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<FileRead>,
    cadences: Vec<Cadence>,
    /// Each counter's files, as indices.
    of_counter: Vec<Vec<usize>>,
}

impl Sources {
    /// The files of `counters`; counters of the same file share it.
    pub fn new(counters: &[Counter]) -> Self {
        let mut sources = Self::default();
        let mut known: BTreeMap<(String, u8), usize> = BTreeMap::new();
        for counter in counters {
            let mut indices = Vec::with_capacity(counter.files.len());
            for file in &counter.files {
                let kind = match file.how {
                    How::Line => 0,
                    How::Keys(_) => 1,
                    How::Prefix(_) => 2,
                    How::Table => 3,
                    How::Glob => 4,
                    How::Service => 5,
                };
                let index = *known.entry((file.path.clone(), kind)).or_insert(sources.files.len());
                if index == sources.files.len() {
                    sources.files.push(file.clone());
                    sources.cadences.push(counter.cadence);
                }
                sources.cadences[index] = sources.cadences[index].min(counter.cadence);
                if let (How::Keys(keys), How::Keys(more)) = (&mut sources.files[index].how, &file.how) {
                    let new: Vec<String> = more.iter().filter(|key| !keys.contains(key)).cloned().collect();
                    keys.extend(new);
                }
                indices.push(index);
            }
            sources.of_counter.push(indices);
        }
        sources
    }

    /// The files; their indices go over the wire.
    pub fn files(&self) -> &[FileRead] {
        &self.files
    }

    /// The files of a counter.
    pub fn of_counter(&self, counter: usize) -> &[usize] {
        self.of_counter.get(counter).map_or(&[], Vec::as_slice)
    }

    /// The files to time. Services are slow anyway.
    pub fn timed(&self) -> impl Iterator<Item = (usize, &FileRead)> {
        self.files.iter().enumerate().filter(|(_, file)| file.how != How::Service)
    }

    /// True for a file, false for a service.
    fn is_file(&self, index: usize) -> bool {
        self.files.get(index).is_some_and(|file| file.how != How::Service)
    }
}

/// Which sources are read in which group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Fast, tenth, second: on the main stream.
    pub groups: [Vec<usize>; 3],
    /// On the second stream, one after another.
    pub slow: Vec<usize>,
    /// Those moved to `slow` because of their time.
    pub moved: Vec<usize>,
    /// Time between two rounds of the second stream, microseconds.
    pub slow_period_us: u64,
    /// Services are queried every N-th round.
    pub service_rounds: u64,
}

impl Split {
    /// Splits by cadence and cost (microseconds per source, if known). Hanging sources are in no group. With
    /// `period_us` 0 the loop runs as fast as possible, so every slow file delays it.
    pub fn new(sources: &Sources, costs_us: &BTreeMap<usize, u64>, hanging: &BTreeSet<usize>, period_us: u64) -> Self {
        let mut split = Self::default();
        let cost = |index: usize| costs_us.get(&index).copied().unwrap_or(0);
        let mut of_main: Vec<usize> = Vec::new();
        for (index, cadence) in sources.cadences.iter().enumerate().filter(|(index, _)| !hanging.contains(index)) {
            if *cadence == Cadence::Slow { split.slow.push(index) } else { of_main.push(index) }
        }
        let mut total: u64 = of_main.iter().map(|index| cost(*index)).sum();
        let allowed = period_us * SHARE / 100;
        let mut by_cost = of_main.clone();
        by_cost.sort_by_key(|index| std::cmp::Reverse(cost(*index)));
        for index in by_cost {
            let us = cost(index);
            if us < SLOW_FROM_US || period_us > 0 && total <= allowed {
                break;
            }
            total -= us;
            split.moved.push(index);
        }
        split.moved.sort_unstable();
        of_main.retain(|index| !split.moved.contains(index));
        for index in of_main {
            match sources.cadences[index] {
                Cadence::Fast => split.groups[0].push(index),
                Cadence::Tenth => split.groups[1].push(index),
                Cadence::Second | Cadence::Slow => split.groups[2].push(index),
            }
        }
        split.slow.extend(&split.moved);
        // At most half of the time goes to slow files.
        let round: u64 = split.slow.iter().map(|index| cost(*index)).sum();
        let has_files = split.slow.iter().any(|index| sources.is_file(*index));
        let period = if has_files { SLOW_PERIOD_US } else { SERVICE_PERIOD_US };
        split.slow_period_us = period.max(round * 2).min(10_000_000);
        split.service_rounds = SERVICE_PERIOD_US.div_ceil(split.slow_period_us);
        split
    }

    /// Time between two readings of a source of the second stream, microseconds.
    pub fn slow_period_of(&self, sources: &Sources, index: usize) -> u64 {
        if sources.is_file(index) { self.slow_period_us } else { self.slow_period_us * self.service_rounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::catalogue::{Group, Parse};
    use crate::probes::value::Parser;

    fn counter(path: &str, cadence: Cadence, how: How) -> Counter {
        Counter {
            id: path.to_owned(),
            label: String::new(),
            group: Group::Other,
            unit: String::new(),
            maximum: None,
            about: String::new(),
            cadence,
            needs_root: false,
            chosen: true,
            files: vec![FileRead { path: path.to_owned(), how }],
            parser: Parser::new(Parse::Number),
        }
    }

    #[test]
    fn a_file_is_read_once_for_all_its_counters() {
        let keys = |key: &str| How::Keys(vec![key.to_owned()]);
        let counters = [
            counter("/proc/meminfo", Cadence::Second, keys("MemFree")),
            counter("/proc/meminfo", Cadence::Tenth, keys("SwapFree")),
            counter("/a", Cadence::Fast, How::Line),
        ];
        let sources = Sources::new(&counters);
        assert_eq!(sources.files().len(), 2);
        assert_eq!(sources.files()[0].how, How::Keys(vec!["MemFree".to_owned(), "SwapFree".to_owned()]));
        assert_eq!((sources.of_counter(1), sources.of_counter(2)), (&[0][..], &[1][..]));
        let split = Split::new(&sources, &BTreeMap::new(), &BTreeSet::new(), 50_000);
        assert_eq!(split.groups, [vec![1], vec![0], vec![]], "the faster cadence wins");
    }

    #[test]
    fn slow_files_leave_when_they_hold_up_the_ticks() {
        let counters: Vec<Counter> =
            (0..4).map(|index| counter(&format!("/{index}"), Cadence::Second, How::Line)).collect();
        let sources = Sources::new(&counters);
        let costs = BTreeMap::from([(0, 100), (1, 40_000), (2, 3_000), (3, 1_900)]);
        let at = |period_us| Split::new(&sources, &costs, &BTreeSet::new(), period_us);
        assert_eq!(at(50_000).moved, [1], "the others fit into half of 50 ms");
        assert_eq!(at(1_000_000).moved, Vec::<usize>::new());
        assert_eq!(at(5_000).moved, [1, 2], "moving small ones does not help");
        assert_eq!(at(0).moved, [1, 2]);
        assert_eq!((at(50_000).slow_period_us, at(50_000).service_rounds), (2_000_000, 3));
        let hanging = BTreeSet::from([1]);
        let without = Split::new(&sources, &costs, &hanging, 50_000);
        assert!(without.moved.is_empty() && !without.groups[2].contains(&1));
    }

    #[test]
    fn services_are_asked_less_often_than_slow_files_are_read() {
        let services = [counter("battery", Cadence::Slow, How::Service), counter("/0", Cadence::Fast, How::Line)];
        let sources = Sources::new(&services);
        let at = |cost_us| Split::new(&sources, &BTreeMap::from([(1, cost_us)]), &BTreeSet::new(), 50_000);
        let (alone, beside) = (at(100), at(40_000));
        assert_eq!((alone.slow_period_us, alone.service_rounds), (5_000_000, 1));
        assert_eq!((alone.slow_period_of(&sources, 0), alone.groups[0].len()), (5_000_000, 1));
        assert_eq!((beside.slow_period_of(&sources, 0), beside.slow_period_of(&sources, 1)), (6_000_000, 2_000_000));
        // If a round takes longer, wait for it.
        let long = at(4_000_000);
        assert_eq!((long.slow_period_us, long.service_rounds), (8_000_000, 1));
    }
}
