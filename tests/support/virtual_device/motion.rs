//! Readings that change over time: clocks, temperatures and busy shares swing, the counters of `/proc/stat`
//! grow.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// Period of most swinging readings, seconds.
const PERIOD_S: f64 = 4.0;
/// How far temperatures swing in each direction, m°C.
const SWING_MC: f64 = 1500.0;
/// Ticks of `/proc/stat` per second of one CPU.
const TICKS_PER_S: f64 = 100.0;

/// Files with a clock, each with the file beside it that lists the available clocks.
const CLOCKS: [(&str, &str); 4] = [
    ("/scaling_cur_freq", "/scaling_available_frequencies"),
    ("/gpuclk", "/gpu_available_frequencies"),
    ("/cur_freq", "/available_frequencies"),
    ("/gpu_clock", "/gpu_freq_table"),
];

/// The contents of the files `elapsed_s` seconds after the readings began to move. `base` has every file of
/// the device by path; files that do not move are left out.
pub fn readings(base: &BTreeMap<String, String>, elapsed_s: f64) -> BTreeMap<String, String> {
    let mut moved = BTreeMap::new();
    for (path, text) in base {
        let share = wave(path, elapsed_s);
        if let Some((folder, table)) = CLOCKS.iter().find_map(|(name, table)| Some((path.strip_suffix(name)?, table))) {
            let steps = base.get(&format!("{folder}{table}")).map(String::as_str).unwrap_or_default();
            let steps: Vec<&str> = steps.split_whitespace().collect();
            // Without a table, or with one that nobody may read, there is nothing to choose from.
            let Some(step) = steps.get(index(share, steps.len())) else { continue };
            moved.insert(path.clone(), format!("{step}\n"));
            for cpu in cpus_of(base, folder) {
                moved.insert(cpu, format!("{step}\n"));
            }
        } else if path.ends_with("/temp") && path.contains("/thermal_zone") {
            if let Some(base_mc) = text.trim().parse::<f64>().ok().filter(|value| (15_000.0..150_000.0).contains(value))
            {
                let reading = base_mc + (2.0 * share - 1.0) * SWING_MC;
                moved.insert(path.clone(), format!("{:.0}\n", (reading / 100.0).round() * 100.0));
            }
        } else if path.ends_with("/gpubusy") {
            moved.insert(path.clone(), format!("{:7.0} {:7}\n", share * 1e6, 1_000_000));
        } else if path.ends_with("/gpu_busy_percentage") || path.ends_with("/gpu_busy") {
            moved.insert(path.clone(), format!("{:.0} %\n", share * 100.0));
        } else if path == "/proc/stat" {
            moved.insert(path.clone(), grown(text, elapsed_s));
        }
    }
    moved
}

/// The files of single CPUs in which a policy's clock also appears.
fn cpus_of(base: &BTreeMap<String, String>, policy: &str) -> Vec<String> {
    let cpus = base.get(&format!("{policy}/related_cpus")).map(String::as_str).unwrap_or_default();
    cpus.split_whitespace()
        .map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))
        .filter(|path| base.contains_key(path))
        .collect()
}

/// A number from 0 to 1 that swings; each path has its own phase.
fn wave(path: &str, elapsed_s: f64) -> f64 {
    let phase = path.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 1000;
    ((elapsed_s / PERIOD_S + f64::from(phase) / 1000.0) * TAU).sin() / 2.0 + 0.5
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small count")]
fn index(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).min(count.saturating_sub(1))
}

/// `/proc/stat` after each CPU has spent this time: half in user mode, a fifth in the kernel, the rest idle.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole ticks")]
fn grown(text: &str, elapsed_s: f64) -> String {
    let cpus = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.lines() {
        let mut fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
        if line.starts_with("cpu") {
            // "cpu  " has an empty field between its two blanks.
            let first = if line.starts_with("cpu ") { 2 } else { 1 };
            let ticks = TICKS_PER_S * elapsed_s * if first == 2 { cpus as f64 } else { 1.0 };
            for (field, share) in [(first, 0.5), (first + 2, 0.2), (first + 3, 0.3)] {
                if let Some(value) = fields.get(field).and_then(|value| value.parse::<u64>().ok()) {
                    fields[field] = (value + (ticks * share) as u64).to_string();
                }
            }
        }
        out += &fields.join(" ");
        out.push('\n');
    }
    out
}
