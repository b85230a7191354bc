//! Which processor cores the runner's threads use.

use crate::backends::qnn::runner::run_task::Pin;
use crate::event::{Setting, SettingOutcome};

/// The placement of the runner's threads.
#[derive(Debug)]
pub struct Pinning {
    pin: Pin,
    /// Threads that do not compute: the runner's, except the measuring one.
    own: Vec<i32>,
    /// The system has already refused the cores.
    refused: bool,
}

impl Pinning {
    /// Called before vendor code is loaded, whose threads inherit the cores; returns the outcome, if already
    /// known.
    pub fn begin(pin: &Pin) -> (Self, Option<Setting>) {
        let mut pinning = Self { pin: pin.clone(), own: threads(), refused: false };
        let outcome = match pin {
            Pin::Unset | Pin::Auto => None,
            Pin::Free => Some(SettingOutcome::Applied),
            Pin::Cores(cores) => Some(confine(cores)),
            Pin::Spread(cores) if cores.is_empty() => None,
            // The outcome is reported once the threads to spread exist.
            Pin::Spread(cores) => Some(confine(cores)).filter(|outcome| *outcome != SettingOutcome::Applied),
        };
        pinning.refused = outcome.as_ref().is_some_and(|outcome| *outcome != SettingOutcome::Applied);
        let setting = outcome.map(|outcome| pinning.setting(outcome));
        (pinning, setting)
    }

    /// Called once the backend's threads have started: QNN's CPU backend pins each of its threads to a core
    /// itself.
    pub fn settle(&self) -> Option<Setting> {
        match &self.pin {
            _ if self.refused => None,
            Pin::Unset | Pin::Free => None,
            // The outcome was reported before.
            Pin::Cores(cores) => {
                confine(cores);
                None
            }
            Pin::Spread(cores) => Some(self.setting(self.spread(cores))),
            // Not requested, so it is reported only if it was done.
            Pin::Auto => Some(self.spread(&[]))
                .filter(|outcome| *outcome == SettingOutcome::Applied)
                .map(|done| self.setting(done)),
        }
    }

    fn setting(&self, outcome: SettingOutcome) -> Setting {
        Setting { key: "--pin".to_owned(), value: self.pin.to_string(), outcome }
    }
}

/// Cores in assignment order: one of each physical core first, fast before slow; then siblings, which share a core's
/// units. `of` returns siblings and capacity of a core.
fn apart(mut cores: Vec<usize>, of: impl Fn(usize) -> (Vec<usize>, u32)) -> Vec<usize> {
    let known = cores.clone();
    cores.sort_by_cached_key(|core| {
        let (siblings, capacity) = of(*core);
        let before = siblings.iter().filter(|other| **other < *core && known.contains(other)).count();
        (before, std::cmp::Reverse(capacity), *core)
    });
    cores
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::{Pinning, apart};
    use crate::event::SettingOutcome;
    use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

    /// Ids of this process's threads, except the first one's.
    pub fn threads() -> Vec<i32> {
        let first = rustix::process::getpid().as_raw_nonzero().get();
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let mut ids: Vec<i32> = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
        ids.retain(|id| *id != first);
        ids.sort_unstable();
        ids
    }

    fn set(cores: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
        set
    }

    fn refused(error: rustix::io::Errno) -> SettingOutcome {
        SettingOutcome::Refused(format!("the system does not allow these cores: {error}"))
    }

    /// Restricts every thread of this process, and those they start, to `cores`.
    pub fn confine(cores: &[usize]) -> SettingOutcome {
        let set = set(cores);
        for thread in threads().into_iter().filter_map(Pid::from_raw) {
            // A thread that ended meanwhile does not matter.
            let _ = sched_setaffinity(Some(thread), &set);
        }
        sched_setaffinity(None, &set).map_or_else(refused, |()| SettingOutcome::Applied)
    }

    impl Pinning {
        /// Gives each of the backend's computing threads its own core, round-robin if there are more threads
        /// than cores; the calling thread shares the first one's.
        pub(super) fn spread(&self, cores: &[usize]) -> SettingOutcome {
            let allowed = match sched_getaffinity(None) {
                Ok(set) => members(&set),
                Err(_) if !cores.is_empty() => cores.to_vec(),
                Err(error) => return refused(error),
            };
            let cores = apart(allowed, topology);
            // Computing threads are those the backend pins to one core each; the others wait for other kinds
            // of work.
            let placed = |thread: &Pid| sched_getaffinity(Some(*thread)).is_ok_and(|set| set.count() == 1);
            let others = threads().into_iter().filter(|id| !self.own.contains(id)).filter_map(Pid::from_raw);
            let computing: Vec<Pid> = others.filter(placed).collect();
            let (Some(first), false) = (cores.first(), computing.is_empty()) else {
                return SettingOutcome::NoEffect(
                    "the backend keeps no threads of its own on cores in the runner".to_owned(),
                );
            };
            for (thread, core) in computing.into_iter().zip(cores.iter().cycle()) {
                // A thread that has ended meanwhile needs no core.
                let _ = sched_setaffinity(Some(thread), &set(&[*core]));
            }
            sched_setaffinity(None, &set(&[*first])).map_or_else(refused, |()| SettingOutcome::Applied)
        }
    }

    fn members(set: &CpuSet) -> Vec<usize> {
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    /// Siblings and capacity of a core; none, and equal for all, if the system does not report them.
    fn topology(core: usize) -> (Vec<usize>, u32) {
        let read = |file: &str| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/{file}"));
        let siblings = read("topology/thread_siblings_list").unwrap_or_default();
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
        };
        let siblings = siblings.split(',').filter_map(range).flatten().take(64).collect();
        (siblings, read("cpu_capacity").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use crate::event::SettingOutcome;

    pub fn threads() -> Vec<i32> {
        Vec::new()
    }

    pub fn confine(_cores: &[usize]) -> SettingOutcome {
        SettingOutcome::NoEffect("this system does not support it".to_owned())
    }

    impl super::Pinning {
        pub(super) fn spread(&self, cores: &[usize]) -> SettingOutcome {
            confine(cores)
        }
    }
}

use system::{confine, threads};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_physical_cores_before_siblings_and_fast_ones_before_slow_ones() {
        // Two cores with two threads each, numbered as on most machines.
        let pairs = |core: usize| (vec![core % 2, core % 2 + 2], 0);
        assert_eq!(apart(vec![0, 1, 2, 3], pairs), [0, 1, 2, 3]);
        assert_eq!(apart(vec![0, 2, 3], pairs), [0, 3, 2]);
        // As numbered on others.
        let neighbours = |core: usize| (vec![core / 2 * 2, core / 2 * 2 + 1], 0);
        assert_eq!(apart(vec![0, 1, 2, 3], neighbours), [0, 2, 1, 3]);
        // Four small cores, three large ones, one larger still: a phone.
        let phone = |core: usize| (vec![core], [300, 300, 300, 300, 800, 800, 800, 1024][core]);
        assert_eq!(apart((0..8).collect(), phone), [7, 4, 5, 6, 0, 1, 2, 3]);
        assert_eq!(apart(vec![5], |_| (Vec::new(), 0)), [5]);
    }
}
