//! Memory of one process.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
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
