//! Processes a runner leaves behind: model code can fork and move the child into its own session, out of reach of
//! killing the group, and have it ignore signals.

use std::path::Path;

/// Rounds of searching, since processes may fork during the search.
const ROUNDS: usize = 10;

/// Kills every process whose initial environment has this value of a variable: a runner's descendants inherit
/// the variable with the runner's own folder, whatever their group, session or parent is by now.
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
            // Other users' processes and ended ones cannot be read.
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

/// On other systems, killing the runner's group has to suffice.
#[cfg(not(target_os = "linux"))]
pub fn end(_variable: &str, _value: &Path) {}
