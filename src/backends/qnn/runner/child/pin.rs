//! Keeping the runner on some processor cores.

use crate::event::{Setting, SettingOutcome};

/// Lets every thread of this process, and those that they start, run on `cores` only; what became of it. To be called before
/// vendor code is loaded, whose threads inherit it, and again when those have come up: QNN's CPU backend gives each of its
/// threads a core of its own choice.
pub fn pin(cores: &[usize]) -> Setting {
    let value = cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Setting { key: "--pin".to_owned(), value, outcome: apply(cores) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn apply(cores: &[usize]) -> SettingOutcome {
    use rustix::thread::{CpuSet, Pid, sched_setaffinity};
    let mut set = CpuSet::new();
    cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let others = tasks.filter_map(|task| Pid::from_raw(task.file_name().to_str()?.parse().ok()?));
    for thread in others {
        // A thread that ended meanwhile is none that could be elsewhere.
        let _ = sched_setaffinity(Some(thread), &set);
    }
    match sched_setaffinity(None, &set) {
        Ok(()) => SettingOutcome::Applied,
        Err(error) => SettingOutcome::Refused(format!("the system does not let the runner use these cores: {error}")),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn apply(_cores: &[usize]) -> SettingOutcome {
    SettingOutcome::NoEffect("this system has no call for it".to_owned())
}
