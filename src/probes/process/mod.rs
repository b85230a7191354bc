//! Memory of one process.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod platform;

pub use platform::{memory, proportional_bytes};

/// Memory of a process, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident set.
    pub rss: u64,
    /// Highest resident set of its life.
    pub rss_peak: Option<u64>,
}

impl ProcessMemory {
    /// From the text of `/proc/PID/status`, of this machine or another.
    pub fn parse(status: &str) -> Option<Self> {
        Some(Self {
            rss: field_kib(status, "VmRSS:")? * 1024,
            rss_peak: field_kib(status, "VmHWM:").map(|kib| kib.saturating_mul(1024)),
        })
    }
}

fn field_kib(text: &str, field: &str) -> Option<u64> {
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()?;
    (kib <= u64::MAX / 1024).then_some(kib)
}
