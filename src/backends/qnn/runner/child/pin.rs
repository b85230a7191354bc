//! Keeping the runner on some processor cores.

use crate::event::{Setting, SettingOutcome};

/// Lets this thread, and those that it starts, run on `cores` only; what became of it. To be called before vendor code is
/// loaded, whose threads inherit it.
pub fn pin(cores: &[usize]) -> Setting {
    let value = cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Setting { key: "--pin".to_owned(), value, outcome: apply(cores) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn apply(cores: &[usize]) -> SettingOutcome {
    let mut set = rustix::thread::CpuSet::new();
    cores.iter().filter(|core| **core < rustix::thread::CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    match rustix::thread::sched_setaffinity(None, &set) {
        Ok(()) => SettingOutcome::Applied,
        Err(error) => SettingOutcome::Refused(format!("the system does not let the runner use these cores: {error}")),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn apply(_cores: &[usize]) -> SettingOutcome {
    SettingOutcome::NoEffect("this system has no call for it".to_owned())
}
