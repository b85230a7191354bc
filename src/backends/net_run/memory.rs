//! The memory of the tool's process on the device.

use crate::devices::{Device, ShellStream};

/// One memory reading of a process, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLook {
    /// Resident set.
    pub rss: u64,
    /// Highest resident set so far.
    pub peak: Option<u64>,
    /// Proportional set, if read this time.
    pub pss: Option<u64>,
}

/// Watches a process until it is gone: its resident set five times a second, its proportional set, which costs the
/// kernel more, once a second. The shell itself reads the files; the only process started per reading is `sleep`.
pub fn watch_memory(device: &Device, pid: u32) -> ShellStream {
    let script = format!(
        "n=0; while [ -d /proc/{pid} ]; do r=; h=; s=; while read -r k v _; do case $k in VmRSS:) r=$v;; VmHWM:) h=$v;; \
         esac; done 2>/dev/null </proc/{pid}/status; if [ $n -eq 0 ]; then while read -r k v _; do case $k in Pss:) s=$v; \
         break;; esac; done 2>/dev/null </proc/{pid}/smaps_rollup; fi; n=$(((n + 1) % 5)); echo \"m ${{r:--}} ${{h:--}} \
         ${{s:--}}\"; sleep 0.2; done"
    );
    device.stream(&script)
}

/// A line of [`watch_memory`].
pub fn memory_look(line: &[u8]) -> Option<MemoryLook> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.strip_prefix("m ")?.split(' ');
    let mut number = || words.next().and_then(|word| word.trim().parse::<u64>().ok()?.checked_mul(1024));
    Some(MemoryLook { rss: number()?, peak: number(), pss: number() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_read_and_gaps_stay_gaps() {
        let look = memory_look(b"m 5120 6000 4100").unwrap();
        assert_eq!((look.rss, look.peak, look.pss), (5120 << 10, Some(6000 << 10), Some(4100 << 10)));
        assert_eq!(memory_look(b"m 5120 - -").unwrap().peak, None);
        assert_eq!(memory_look(b"m - - -"), None);
        assert_eq!(memory_look(b"sh: something"), None);
    }
}
