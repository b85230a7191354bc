//! Counters of devices and of this machine.

use crate::report::layout::{list, shortened};
use crate::store::{CounterSeries, DeviceSeries, SamplerState, Store, by_importance};
use crate::text::{bytes_text, counted, duration_text};
use std::fmt::Write;

/// Maximum number of counters listed per device.
const TOP_COUNTERS: usize = 20;

/// Counters of the devices: those that moved, and the number of those that could not be read.
pub fn device_counters(out: &mut String, store: &Store) {
    let all = store.device_counters();
    let mut devices: Vec<&str> = all.series().iter().map(|series| series.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        let of_device = || all.series().iter().filter(|series| series.device == device);
        let _ = writeln!(out, "\ncounters of {device}");
        counter_table(out, &by_importance(of_device()));
        let refused = of_device().filter(|series| series.series.info.unavailable.is_some()).count();
        if refused > 0 {
            let _ = writeln!(out, "  {refused} others cannot be read; `qnnscope counters --device {device}` shows why");
        }
        if let Some(report) = all.sampler(device).and_then(|sampler| sampler.report.as_ref()) {
            let sampler = all.sampler(device);
            let cost = report.cpu_us_per_tick.map_or_else(|| "unknown".to_owned(), |us| format!("{us:.0} µs"));
            let _ = writeln!(
                out,
                "  sampler  {:.1} ticks/s of {}, {} late, {} missed, {cost} of the device's CPU per tick",
                sampler.and_then(SamplerState::mean_rate_hz).unwrap_or(report.rate_hz),
                planned(sampler.and_then(|sampler| sampler.period_us)),
                sampler.map_or(0, |sampler| sampler.late),
                sampler.map_or(0, |sampler| sampler.missed)
            );
        }
        for gap in all.sampler(device).map_or(&[][..], |sampler| &sampler.gaps) {
            let us = gap.to_us.unwrap_or(store.now_us()).saturating_sub(gap.from_us);
            let lasts = if gap.to_us.is_none() { " up to the end" } else { "" };
            let _ = writeln!(out, "  no readings for {}{lasts}: {}", duration_text(us as f64), gap.reason);
        }
    }
}

/// The counters that moved, most informative first, one per line. Constant counters are only counted, except
/// those whose constancy shows that nothing was throttled.
fn counter_table(out: &mut String, counters: &[&DeviceSeries]) {
    let (mut lines, mut still, mut more) = (0, 0, 0);
    for series in counters.iter().map(|counter| &counter.series) {
        let Some((mean, min, max)) = series.summary() else { continue };
        let says_by_standing_still = series.info.id == "service.thermal.status";
        if min >= max && !says_by_standing_still {
            still += 1;
        } else if lines == TOP_COUNTERS {
            more += 1;
        } else {
            lines += 1;
            let unit = &series.info.unit;
            let (mean, min, max) = (counter_value(mean, unit), counter_value(min, unit), counter_value(max, unit));
            let label = shortened(&series.info.label, 30);
            let _ = writeln!(out, "  {label:<30} mean {mean:>12}  {min} to {max}");
        }
    }
    let mut rest = Vec::new();
    if more > 0 {
        rest.push(format!("{more} more changed"));
    }
    if still > 0 {
        rest.push(format!("{still} did not change"));
    }
    if !rest.is_empty() {
        let _ = writeln!(out, "  {}; --json has them all", rest.join(", "));
    }
}

/// The rate requested.
fn planned(period_us: Option<u64>) -> String {
    match period_us {
        Some(0) => "as many as possible".to_owned(),
        Some(us) => format!("{:.0} planned", 1e6 / us as f64),
        None => "an unknown number planned".to_owned(),
    }
}

/// Counters of this machine, and what was lost.
pub fn counters(out: &mut String, store: &Store) {
    let rows: Vec<String> = store.counters().iter().filter_map(counter_summary).collect();
    if !rows.is_empty() {
        out.push('\n');
        list(out, "host", &rows);
    }
    if store.lost() > 0 {
        let _ = writeln!(out, "lost       {}, see the log", counted(store.lost(), "item"));
    }
}

fn counter_value(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => bytes_text(value),
        "" => format!("{value:.2}"),
        unit if value.abs() < 10.0 => format!("{value:.2} {unit}"),
        unit => format!("{value:.0} {unit}"),
    }
}

/// Mean and maximum of a counter.
fn counter_summary(series: &CounterSeries) -> Option<String> {
    let (mean, _, max) = series.summary()?;
    let show = |value: f64| counter_value(value, &series.info.unit);
    Some(format!("{} {} (max {})", series.info.label, show(mean), show(max)))
}
