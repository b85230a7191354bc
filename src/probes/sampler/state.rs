//! The state of every source and counter, and the samples made from it.

use super::line::Values;
use super::plan::{Sources, Split};
use crate::event::{CounterGap, CounterInfo, CounterSample, CounterSet, Gap};
use crate::probes::counter::{Counter, PID};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// Longest content kept; no counter's is longer.
const MAX_CONTENT_BYTES: usize = 1 << 20;

/// Numbers of sets; 0 is the host's own.
static NEXT_SET: AtomicU32 = AtomicU32::new(1);

/// Counters that are read together.
#[derive(Debug)]
struct Set {
    number: u32,
    period_us: u64,
    /// Indices of counters.
    counters: Vec<usize>,
    /// Time of the latest sample.
    last_t_us: u64,
}

/// Contents and counters.
#[derive(Debug)]
pub struct State {
    device: String,
    counters: Vec<Counter>,
    pub sources: Sources,
    contents: Vec<Result<Vec<u8>, Gap>>,
    /// Sources sent again since the counter last checked.
    changed: Vec<bool>,
    latest: Vec<Result<Option<f64>, Gap>>,
    told_gap: Vec<Option<Gap>>,
    /// Sets of the main stream: fast, tenth, second.
    main: [Option<Set>; 3],
    /// Sets of the slow stream, by source.
    slow: Vec<(usize, Set)>,
    /// Time of the latest sample of any set.
    last_t_us: u64,
}

/// A sample and the gaps starting or ending with it.
#[derive(Debug)]
pub struct Reading {
    pub gaps: Vec<CounterGap>,
    pub sample: CounterSample,
}

impl State {
    /// A state in which nothing has been read yet.
    pub fn new(device: &str, counters: Vec<Counter>) -> Self {
        let sources = Sources::new(&counters);
        let files = sources.files().len();
        Self {
            device: device.to_owned(),
            contents: vec![Err(Gap::Unreadable); files],
            changed: vec![false; files],
            latest: vec![Ok(None); counters.len()],
            told_gap: vec![None; counters.len()],
            sources,
            counters,
            main: [None, None, None],
            slow: Vec::new(),
            last_t_us: 0,
        }
    }

    /// Continues the time axis of the previous counters.
    pub fn follow(&mut self, before: &Self) {
        self.last_t_us = before.last_t_us;
    }

    /// The watched process changed: readings of the previous one are dropped.
    pub fn watch(&mut self, pid: Option<u32>) {
        for counter in self.counters.iter_mut().filter(|counter| counter.is_of_process()) {
            counter.parser.pid = pid;
            counter.parser.forget();
        }
    }

    /// Arranges the counters in sets; returns the declarations. Counters with a hanging file are declared unavailable.
    pub fn arrange(&mut self, split: &Split, hanging: &BTreeSet<usize>, period_us: u64) -> Vec<CounterSet> {
        self.main = [None, None, None];
        self.slow.clear();
        let last_t_us = self.last_t_us;
        let periods = [period_us, period_us.max(100_000), period_us.max(1_000_000)];
        for (index, counter) in self.counters.iter_mut().enumerate() {
            // The time between two readings may change, which would make a difference across the change
            // invalid.
            counter.parser.forget();
            let Some(first) = self.sources.of_counter(index).first().copied() else { continue };
            let new = |period_us| Set {
                number: NEXT_SET.fetch_add(1, Ordering::Relaxed),
                period_us,
                counters: Vec::new(),
                last_t_us,
            };
            let group = split.groups.iter().position(|group| group.contains(&first));
            let set = match group.or(hanging.contains(&first).then_some(2)) {
                Some(group) => self.main[group].get_or_insert_with(|| new(periods[group])),
                None => {
                    let at = match self.slow.iter().position(|(source, _)| *source == first) {
                        Some(at) => at,
                        None => {
                            self.slow.push((first, new(split.slow_period_of(&self.sources, first))));
                            self.slow.len() - 1
                        }
                    };
                    &mut self.slow[at].1
                }
            };
            set.counters.push(index);
        }
        for index in hanging {
            if let Some(content) = self.contents.get_mut(*index) {
                *content = Err(Gap::Hangs);
            }
        }
        for (counter, latest) in self.latest.iter_mut().enumerate() {
            if self.sources.of_counter(counter).iter().any(|source| hanging.contains(source)) {
                *latest = Err(Gap::Hangs);
            }
        }
        self.told_gap.fill(None);
        let sets = self.main.iter().flatten().chain(self.slow.iter().map(|(_, set)| set));
        sets.map(|set| self.declare(set, hanging)).collect()
    }

    fn declare(&self, set: &Set, hanging: &BTreeSet<usize>) -> CounterSet {
        let info = |index: &usize| {
            let hangs = self.sources.of_counter(*index).iter().any(|source| hanging.contains(source));
            let unavailable = hangs.then(|| Gap::Hangs.text().to_owned());
            Some(CounterInfo { unavailable, ..self.counters.get(*index)?.info() })
        };
        CounterSet {
            set: set.number,
            device: self.device.clone(),
            period_us: set.period_us,
            counters: set.counters.iter().filter_map(info).collect(),
        }
    }

    /// Stores the contents of a line.
    pub fn take(&mut self, values: Values<'_>) {
        for (source, content) in values {
            self.put(source, content);
        }
    }

    /// Stores the content of one source.
    pub fn put(&mut self, source: usize, content: Result<&[u8], Gap>) {
        let Some(kept) = self.contents.get_mut(source) else { return };
        match (content, &mut *kept) {
            (Ok(bytes), Ok(buffer)) => {
                buffer.clear();
                buffer.extend_from_slice(&bytes[..bytes.len().min(MAX_CONTENT_BYTES)]);
            }
            (Ok(bytes), Err(_)) => *kept = Ok(bytes[..bytes.len().min(MAX_CONTENT_BYTES)].to_vec()),
            (Err(gap), _) => {
                let of_process = self.sources.files().get(source).is_some_and(|file| file.path.contains(PID));
                *kept = Err(if of_process && gap == Gap::Absent { Gap::NoProcess } else { gap });
            }
        }
        if let Some(changed) = self.changed.get_mut(source) {
            *changed = true;
        }
    }

    /// The samples of a tick of the main stream that read `groups` (`f`, `t`, `s`). `device_us` is the device's time, for
    /// differences, `t_us` the host's.
    pub fn tick(&mut self, groups: &[u8], device_us: u64, t_us: u64) -> Vec<Reading> {
        let mut readings = Vec::with_capacity(groups.len());
        for letter in groups.iter().take(3) {
            let Some(group) = b"fts".iter().position(|other| other == letter) else { continue };
            if let Some(mut set) = self.main[group].take() {
                readings.push(self.read(&mut set, device_us, t_us));
                self.main[group] = Some(set);
            }
        }
        self.changed.fill(false);
        readings
    }

    /// The sample of a slow source.
    pub fn slow(&mut self, source: usize, device_us: u64, t_us: u64) -> Option<Reading> {
        let at = self.slow.iter().position(|(index, _)| *index == source)?;
        let (source, mut set) = self.slow.swap_remove(at);
        let reading = self.read(&mut set, device_us, t_us);
        self.slow.push((source, set));
        Some(reading)
    }

    /// The slow stream has ended: its counters no longer have values.
    pub fn lose_slow(&self) -> Vec<CounterGap> {
        let gap = |set: u32, place: usize| CounterGap {
            set,
            counter: u32::try_from(place).unwrap_or(u32::MAX),
            reason: Some(Gap::Unreadable),
        };
        let of_set =
            |(_, set): &(usize, Set)| (0..set.counters.len()).map(|place| gap(set.number, place)).collect::<Vec<_>>();
        self.slow.iter().flat_map(of_set).collect()
    }

    fn read(&mut self, set: &mut Set, device_us: u64, t_us: u64) -> Reading {
        // A better estimate of the clock may be slightly before the last one: time must not go backwards.
        let t_us = t_us.max(set.last_t_us);
        set.last_t_us = t_us;
        self.last_t_us = self.last_t_us.max(t_us);
        let mut gaps = Vec::new();
        let mut values = Vec::with_capacity(set.counters.len());
        for (place, index) in set.counters.iter().enumerate() {
            let latest = self.value(*index, device_us);
            let gap = latest.err();
            if let Some(told) = self.told_gap.get_mut(*index).filter(|told| **told != gap) {
                *told = gap;
                let counter = u32::try_from(place).unwrap_or(u32::MAX);
                gaps.push(CounterGap { set: set.number, counter, reason: gap });
            }
            values.push(latest.ok().flatten());
        }
        Reading { gaps, sample: CounterSample { set: set.number, t_us, values } }
    }

    fn value(&mut self, index: usize, device_us: u64) -> Result<Option<f64>, Gap> {
        let sources = self.sources.of_counter(index);
        let Some(counter) = self.counters.get_mut(index) else { return Err(Gap::Absent) };
        // Unchanged content need not be parsed again, except for rates, which continue.
        let is_new = sources.iter().any(|source| self.changed.get(*source).copied().unwrap_or(true));
        if !is_new && !counter.parser.parse.is_rate() {
            return self.latest[index];
        }
        let content = |source: &usize| match self.contents.get(*source) {
            Some(Ok(content)) => Ok(content.as_slice()),
            Some(Err(gap)) => Err(*gap),
            None => Err(Gap::Absent),
        };
        let contents: Vec<_> = sources.iter().map(content).collect();
        let value = counter.parser.value(device_us, &contents);
        self.latest[index] = value;
        value
    }
}
