//! Process memory from /proc.

use super::ProcessMemory;

/// Memory of a process (`None` is this one), if it lives and may be read.
pub fn memory(pid: Option<u32>) -> Option<ProcessMemory> {
    let status = std::fs::read_to_string(file(pid, "status")).ok()?;
    Some(ProcessMemory {
        rss: field_kib(&status, "VmRSS:")? * 1024,
        rss_peak: field_kib(&status, "VmHWM:").map(|k| k * 1024),
    })
}

/// Proportional set of a process, bytes. Walks all its mappings, so it costs milliseconds on large processes.
pub fn proportional_bytes(pid: Option<u32>) -> Option<u64> {
    let rollup = std::fs::read_to_string(file(pid, "smaps_rollup")).ok()?;
    field_kib(&rollup, "Pss:").map(|kib| kib * 1024)
}

fn file(pid: Option<u32>, name: &str) -> String {
    pid.map_or_else(|| format!("/proc/self/{name}"), |pid| format!("/proc/{pid}/{name}"))
}

fn field_kib(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()
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
