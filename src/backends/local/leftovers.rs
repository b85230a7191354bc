//! Processes that a runner leaves behind: code of a model can fork, take its child into its own session, where the end of the
//! group does not reach it, and have it ignore signals.

use std::path::Path;

/// Rounds in which what forks while it is looked for is looked for again.
const ROUNDS: usize = 10;

/// Ends every process that has this value of a variable in the environment that it was given: what descends from a runner has that
/// of the runner's own folder, whatever group, session or parent it has by now.
#[cfg(target_os = "linux")]
pub fn end(variable: &str, value: &Path) {
    use rustix::process::{Pid, Signal, kill_process};
    use std::os::unix::ffi::OsStrExt;
    let mut wanted = variable.as_bytes().to_vec();
    wanted.push(b'=');
    wanted.extend(value.as_os_str().as_bytes());
    for _ in 0..ROUNDS {
        let mut found = false;
        for pid in std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| pid_of(&entry)) {
            let Some(pid) = Pid::from_raw(pid) else { continue };
            // Of other users' processes, and of those that have ended, there is nothing to read.
            let given = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
            if given.split(|byte| *byte == 0).any(|entry| entry == wanted) {
                found |= kill_process(pid, Signal::KILL).is_ok();
            }
        }
        if !found {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
fn pid_of(entry: &std::fs::DirEntry) -> Option<i32> {
    entry.file_name().to_str()?.parse().ok()
}

/// Elsewhere the end of the runner's group has to do.
#[cfg(not(target_os = "linux"))]
pub fn end(_variable: &str, _value: &Path) {}
