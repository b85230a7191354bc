//! Process memory from /proc.

use super::{ProcessMemory, field_kib};

/// Memory of a process (`None` is this one), if it is alive and readable.
pub fn memory(pid: Option<u32>) -> Option<ProcessMemory> {
    ProcessMemory::parse(&std::fs::read_to_string(file(pid, "status")).ok()?)
}

/// Proportional set of a process, bytes. Walks all its mappings, so it takes milliseconds for large processes.
pub fn proportional_bytes(pid: Option<u32>) -> Option<u64> {
    let rollup = std::fs::read_to_string(file(pid, "smaps_rollup")).ok()?;
    field_kib(&rollup, "Pss:").map(|kib| kib * 1024)
}

fn file(pid: Option<u32>, name: &str) -> String {
    pid.map_or_else(|| format!("/proc/self/{name}"), |pid| format!("/proc/{pid}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_plausible() {
        let memory = memory(None).unwrap();
        assert!(memory.rss > 100_000 && memory.rss_peak.unwrap() >= memory.rss / 2);
        assert!(proportional_bytes(None).unwrap() > 0);
    }

    #[test]
    fn a_missing_process_has_no_memory() {
        assert_eq!(super::memory(Some(u32::MAX)), None);
    }
}
