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
