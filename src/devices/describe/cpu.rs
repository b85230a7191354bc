//! Clusters of the CPU, and the processes that use it.

use crate::event::{BusyProcess, Cluster, clean_text};
use std::collections::BTreeMap;

/// Processes below this share of one core do not noticeably disturb a run.
const BUSY_PERCENT: f64 = 25.0;

/// Clusters from lines `…/policyN/FILE=VALUE`.
pub fn clusters(text: &str) -> Vec<Cluster> {
    let mut policies: BTreeMap<u32, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in text.lines() {
        let Some((path, value)) = line.split_once('=') else { continue };
        let Some((folder, file)) = path.rsplit_once('/') else { continue };
        let Some(number) = folder.rsplit_once("policy").and_then(|(_, number)| number.parse().ok()) else { continue };
        policies.entry(number).or_default().insert(file, value.trim());
    }
    let cluster = |files: &BTreeMap<&str, &str>| {
        let khz = |file: &str| files.get(file).and_then(|value| value.parse::<u64>().ok()).map(|khz| khz * 1000);
        let cpus: Vec<u32> = files.get("related_cpus")?.split([' ', ',']).flat_map(range).collect();
        (!cpus.is_empty()).then(|| Cluster {
            cpus,
            min_freq_hz: khz("cpuinfo_min_freq"),
            max_freq_hz: khz("cpuinfo_max_freq"),
            governor: files.get("scaling_governor").filter(|name| !name.is_empty()).map(|name| clean_text(name)),
        })
    };
    policies.values().filter_map(cluster).collect()
}

/// `3` or `3-6`.
fn range(text: &str) -> Vec<u32> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse::<u32>()) {
        (Ok(first), Ok(last)) if last < 1024 => (first..=last).collect(),
        _ => Vec::new(),
    }
}

/// Processes that use a lot of CPU, from `top -b -n 1 -o %CPU,ARGS` (toybox) or `ps -eo pcpu,args`.
pub fn busy(text: &str) -> Vec<BusyProcess> {
    let process = |line: &str| {
        let (share, name) = line.trim().split_once(char::is_whitespace)?;
        let cpu_percent: f64 = share.parse().ok()?;
        let program = name.split_whitespace().next()?;
        let name = program.rsplit('/').next().unwrap_or(program);
        // Our own: the listing tool, the shell it runs in, and adbd.
        let own = matches!(name, "top" | "ps" | "sh" | "adbd");
        (cpu_percent >= BUSY_PERCENT && !own).then(|| BusyProcess { name: clean_text(name), cpu_percent })
    };
    text.lines().filter_map(process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_read_in_order() {
        let text = "/sys/devices/system/cpu/cpufreq/policy7/related_cpus=7\n\
                    /sys/devices/system/cpu/cpufreq/policy7/cpuinfo_max_freq=3187200\n\
                    /sys/devices/system/cpu/cpufreq/policy0/related_cpus=0 1 2\n\
                    /sys/devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq=307200\n\
                    /sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq=<unknown>\n\
                    /sys/devices/system/cpu/cpufreq/policy0/scaling_governor=walt\n\
                    /sys/devices/system/cpu/cpufreq/policy*/related_cpus=\n";
        let clusters = clusters(text);
        assert_eq!(clusters.len(), 2);
        assert_eq!(clusters[0].cpus, [0, 1, 2]);
        assert_eq!((clusters[0].min_freq_hz, clusters[0].max_freq_hz), (Some(307_200_000), None));
        assert_eq!(clusters[0].governor.as_deref(), Some("walt"));
        assert_eq!(clusters[1].max_freq_hz, Some(3_187_200_000));
    }

    #[test]
    fn busy_processes_are_told_from_idle_ones() {
        let text =
            "Tasks: 700 total\n%CPU ARGS\n 93.3 com.game.example --fast\n 12.0 surfaceflinger\n 40.0 top -b -n 1\n";
        let busy = busy(text);
        assert_eq!(busy.len(), 1);
        assert_eq!((busy[0].name.as_str(), busy[0].cpu_percent), ("com.game.example", 93.3));
    }
}
