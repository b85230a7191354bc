//! Hosts without /proc: nothing is known, and nothing is claimed.

use super::ProcessMemory;

/// Not available here.
pub fn memory(_pid: Option<u32>) -> Option<ProcessMemory> {
    None
}

/// Not available here.
pub fn proportional_bytes(_pid: Option<u32>) -> Option<u64> {
    None
}
