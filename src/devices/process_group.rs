//! Ends a process with all its descendants.

/// The process group of a child: its descendants end with it, also when this is dropped.
pub struct Group(pub Option<u32>);

impl Group {
    /// Ends every process of the group.
    #[cfg(unix)]
    pub fn kill(&self) {
        let pid = self.0.and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // Fails if the group is already empty, as it should be.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }

    /// There are no groups here; the child's own handle ends it.
    #[cfg(not(unix))]
    pub fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
