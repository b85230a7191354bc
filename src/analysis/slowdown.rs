//! When a sustained run slowed down for good, and what coincided with it.

use super::figures::LatencyFigures;
use super::load::Load;
use super::{Evidence, EvidencePlace, Finding, FindingKind, Severity};
use crate::store::Run;
use serde::Serialize;
use std::collections::BTreeMap;

/// Ratio to the best window at the start above which a window is slower; medians of a steady state differ by
/// less.
pub(super) const SLOWER: f64 = 1.05;
/// A slowdown lasts this many windows, or until the end; a steady state has at least as many.
pub(super) const LASTING: usize = 3;
/// A clock below this fraction of its earlier value has dropped.
const FALLEN: f64 = 0.95;
/// Minimum significant temperature rise, °C.
const WARMER: f64 = 5.0;
/// Minimum significant rise in CPU use, percentage points of all cores.
const BUSIER: f64 = 10.0;
/// CPU use above which all cores are taken and more load no longer shows as a rise, per cent.
const FULL: f64 = 95.0;
/// Minimum significant share of the machine taken by other processes.
const OTHERS: f64 = 0.1;
/// Findings that describe the same thing: the slowdown is reported with the first one present.
const SAME: [&str; 4] = ["bound.thermal-throttling", "trust.throttled", "trust.drift", "trust.level-shift"];
/// Number of entries at the start of `SAME` that are about heat.
const HEAT: usize = 2;

/// A stretch of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Window {
    /// Start, in seconds from the first clean inference.
    pub from_s: f64,
    /// Latencies of the inferences scheduled to start in it, microseconds.
    pub latency_us: LatencyFigures,
    /// Hottest sensor, mean over the window, °C.
    pub temperature_c: Option<f64>,
    /// Mean clocks and clock limits by counter id, MHz.
    pub clocks_mhz: BTreeMap<String, f64>,
    /// CPU use of all cores by all processes, mean over the window, per cent.
    pub cpu_busy_percent: Option<f64>,
}

/// The point from which inferences take longer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slowdown {
    /// Start of the first slow window, in seconds from the first clean inference.
    pub after_s: f64,
    /// Increase of the median from there on over the best at the start, per cent.
    pub percent: f64,
    /// What coincided with it.
    pub cause: Cause,
    /// When the device began to throttle, in seconds from the first clean inference; 0 if it already was.
    /// Latency may follow later. Null if no counter shows it, or throttling is not the cause.
    pub throttled_from_s: Option<f64>,
    /// The observations, one sentence each.
    pub evidence: Vec<String>,
    /// What could not be read and may therefore be the hidden cause.
    pub not_read: Vec<&'static str>,
}

/// What coincided with a slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Clocks dropped while the device was warm or warming up: throttling.
    Throttling,
    /// Other processes took the CPU.
    Contention,
    /// Clocks dropped; no temperature explains it.
    Clocks,
    /// The device got warmer; no readable clock dropped.
    Warmth,
    /// Nothing readable coincided with it.
    Unknown,
}

impl Cause {
    /// Human-readable name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Throttling => "throttling",
            Self::Contention => "load from other processes",
            Self::Clocks => "slower clocks",
            Self::Warmth => "warmth",
            Self::Unknown => "cause unknown",
        }
    }
}

impl Slowdown {
    /// The slowdown in one sentence.
    pub fn text(&self) -> String {
        let (after, percent, cause) = (moment(self.after_s), self.percent, self.cause.text());
        let onset = match self.throttled_from_s {
            Some(0.0) => ", active from the start".to_owned(),
            Some(seconds) => format!(", which started at {}", moment(seconds)),
            None => String::new(),
        };
        format!("slower from {after} on, by {percent:.0} % in the median: {cause}{onset}")
    }
}

/// A point in a run: `12.5 s`, `3 min`.
pub fn moment(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.1} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// The slowdown, if there is one; `load` is only called in that case.
pub(super) fn slowdown<'a>(
    medians: &[Option<f64>],
    windows: &[Window],
    load: impl FnOnce() -> Option<Load<'a>>,
) -> Option<Slowdown> {
    let beginning = medians.len().div_ceil(4);
    let best = medians[..beginning].iter().flatten().copied().reduce(f64::min)?;
    let slow = |median: &Option<f64>| median.is_some_and(|median| median > best * SLOWER);
    let first = (0..medians.len()).find(|&index| {
        let stretch = &medians[index..(index + LASTING).min(medians.len())];
        stretch.len() > 1 && stretch.iter().all(slow)
    })?;
    let mut later: Vec<f64> = medians[first..].iter().flatten().copied().collect();
    later.sort_by(f64::total_cmp);
    let median = later[later.len() / 2];
    let fast = medians.iter().position(|median| *median == Some(best)).unwrap_or(0);
    let slow = &windows[first..(first + LASTING).min(windows.len())];
    let seen = Seen::between(&windows[fast], slow, load().as_ref());
    Some(Slowdown {
        after_s: windows[first].from_s,
        percent: 100.0 * (median / best - 1.0),
        cause: seen.cause(),
        throttled_from_s: None,
        evidence: seen.evidence,
        not_read: seen.not_read,
    })
}

/// What changed between the fast window and the slow ones.
#[derive(Default)]
struct Seen {
    clocks_fell: bool,
    warmer: bool,
    contended: bool,
    evidence: Vec<String>,
    not_read: Vec<&'static str>,
}

impl Seen {
    fn between(fast: &Window, slow: &[Window], load: Option<&Load<'_>>) -> Self {
        let mut seen = Self::default();
        // Readings that did not change; reported only if nothing else was found.
        let mut unchanged = Vec::new();
        if let Some(unchanged_clocks) = seen.clocks(fast, slow) {
            unchanged.push(unchanged_clocks);
        }
        let now = slow.iter().filter_map(|window| window.temperature_c).reduce(f64::max);
        match fast.temperature_c.zip(now) {
            Some((before, now)) if now - before >= WARMER => {
                seen.warmer = true;
                seen.evidence.push(format!("the hottest sensor went from {before:.1} to {now:.1} °C"));
            }
            Some((before, now)) => {
                unchanged.push(format!("the hottest sensor did not warm up: {before:.1} and {now:.1} °C"));
            }
            None => seen.not_read.push("temperatures"),
        }
        let now = mean(slow.iter().filter_map(|window| window.cpu_busy_percent));
        match fast.cpu_busy_percent.zip(now) {
            Some(busy) => unchanged.extend(seen.load(busy, load)),
            None => seen.not_read.push("CPU use"),
        }
        if seen.cause() == Cause::Unknown {
            seen.evidence.extend(unchanged);
        }
        seen
    }

    fn clocks(&mut self, fast: &Window, slow: &[Window]) -> Option<String> {
        let mut read = 0;
        for (id, before) in &fast.clocks_mhz {
            let Some(now) = mean(slow.iter().filter_map(|window| window.clocks_mhz.get(id).copied())) else { continue };
            read += 1;
            if now < before * FALLEN {
                self.clocks_fell = true;
                self.evidence.push(format!("{id} fell from {before:.0} to {now:.0} MHz"));
            }
        }
        if read == 0 {
            self.not_read.push("clocks");
        }
        (read > 0 && !self.clocks_fell).then(|| "no sampled clock fell by 5 %".to_owned())
    }

    /// Compares CPU use before and after; the run's own share of it is constant.
    fn load(&mut self, (before, now): (f64, f64), load: Option<&Load<'_>>) -> Option<String> {
        let others = load.filter(|load| load.share() >= OTHERS).map(|load| {
            format!("other processes kept {:.1} of {:.0} cores busy over the run", load.others(), load.cores)
        });
        let full = now >= FULL && others.is_some();
        // A rise known to be the run's own is not load from other processes.
        let rise = now - before >= BUSIER && (load.is_none() || others.is_some());
        if rise || full {
            self.contended = true;
            self.evidence.push(if rise {
                format!("use of all cores went from {before:.0} to {now:.0} %")
            } else {
                format!("all cores were busy when it was slow ({now:.0} %; {before:.0} % before)")
            });
            self.evidence.extend(others);
            return None;
        }
        Some(match others {
            Some(others) => format!("{others}, and no more when it was slow: {before:.0} and {now:.0} % in total"),
            None => format!("other processes kept the CPU no busier: {before:.0} and {now:.0} % in total"),
        })
    }

    fn cause(&self) -> Cause {
        match (self.clocks_fell, self.warmer) {
            (true, true) => Cause::Throttling,
            _ if self.contended => Cause::Contention,
            (true, false) => Cause::Clocks,
            (false, true) => Cause::Warmth,
            (false, false) => Cause::Unknown,
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Adds the slowdown of a sustained run to its findings: to the one that already describes it, or as a
/// finding of its own. How steadily an emulator runs says nothing.
pub(super) fn tell(run: &Run, slow: Option<&Slowdown>, findings: &mut Vec<Finding>) {
    let slow = slow.filter(|_| !run.plan.simulated);
    let Some((slow, (from_us, _))) = slow.zip(run.clean.window_us()) else { return };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
    let at = EvidencePlace::Moment(from_us + (slow.after_s * 1e6) as u64);
    let same = &SAME[if slow.cause == Cause::Contention { HEAT } else { 0 }..];
    let same = same.iter().find_map(|id| {
        // A drift towards faster inferences is a different matter.
        findings.iter().position(|finding| finding.id == *id && !finding.title.contains("faster"))
    });
    if let Some(same) = same {
        findings[same].evidence.insert(0, Evidence::at(format!("over time: {}", slow.text()), at));
        return;
    }
    let mut evidence: Vec<Evidence> = slow.evidence.iter().map(Evidence::new).collect();
    if !slow.not_read.is_empty() {
        evidence.push(Evidence::new(format!("not read: {}", slow.not_read.join(", "))));
    }
    // Every quantity was either read or not, so there is a first sentence.
    if let Some(first) = evidence.first_mut() {
        first.at = Some(at);
    }
    let title = format!("over time: {}", slow.text());
    findings.push(Finding::new("bound.slowdown", FindingKind::Bound, Severity::Warning, title, evidence));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Made, only, steady};
    use crate::analysis::{findings, sustained};
    use crate::backends::Backend;
    use crate::event::Budget;
    use crate::store::Store;

    /// 20 s of inferences, the last 10 s slower; `busy` is the use of two cores, half of one taken by the
    /// run.
    fn slower(by: f64, busy: impl Fn(f64) -> f64 + 'static) -> Made {
        let mut latencies = steady(10_000.0, 4.0, 2_000);
        latencies[1_000..].iter_mut().for_each(|us| *us *= by);
        let made = Made::local(Backend::Cpu).clean(latencies).runner_cores(1.0);
        made.plan(|plan| (plan.mode.sustained, plan.budget) = (true, Budget::Seconds(20.0)))
            .host_counter("host.cpu.busy", Some(100.0), busy)
            .host_counter("host.load.1m", Some(2.0), |_| 1.0)
    }

    fn told(store: &Store) -> Slowdown {
        sustained(store, only(store)).unwrap().slowdown.unwrap()
    }

    #[test]
    fn load_of_others_is_a_cause_and_sensors_that_are_not_there_are_none() {
        let store = slower(1.3, |t_s| if t_s < 10.0 { 52.0 } else { 97.0 }).store();
        let slow = told(&store);
        assert_eq!((slow.cause, slow.not_read.as_slice()), (Cause::Contention, &["clocks", "temperatures"][..]));
        assert!(slow.evidence[0].contains("from 52 to 97 %"), "{slow:?}");
        assert!(slow.evidence.iter().all(|text| !text.contains("sensor") && !text.contains("clock")), "{slow:?}");
        let alone = told(&slower(1.3, |_| 51.0).store());
        assert_eq!(alone.cause, Cause::Unknown);
        assert!(alone.evidence[0].contains("kept the CPU no busier"), "{alone:?}");
        let even = told(&slower(1.3, |_| 75.0).store());
        assert_eq!(even.cause, Cause::Unknown, "what was there all the time made nothing slower");
        assert!(even.evidence[0].contains("and no more when it was slow"), "{even:?}");
        let full = told(&slower(1.3, |_| 99.0).store());
        assert_eq!(full.cause, Cause::Contention, "no rise can be seen where all cores are taken");
    }

    #[test]
    fn a_device_begins_to_throttle_once_whatever_else_follows() {
        // One part is throttled at 4.5 s and another at 15 s; clocks drop, and inferences slow down, at 6 s.
        let made = |early: &'static str, late: &'static str| {
            let mut now_s = 0.0;
            let latencies: Vec<f64> = steady(10_000.0, 2.0, 1600)
                .into_iter()
                .map(|us| {
                    let us = us * if now_s < 6.0 { 1.0 } else { 1.4 };
                    now_s += us / 1e6;
                    us
                })
                .collect();
            Made::on_phone(Backend::Htp)
                .plan(|plan| (plan.mode.sustained, plan.budget) = (true, Budget::Seconds(20.0)))
                .clean(latencies)
                .phone_counter(early, Some(7.0), |t_s| if t_s < 4.5 { 0.0 } else { 1.0 })
                .phone_counter(late, Some(7.0), |t_s| if t_s < 15.0 { 0.0 } else { 3.0 })
                .phone_counter("cpu.freq.policy7", Some(2500.0), |t_s| if t_s < 6.0 { 2500.0 } else { 1500.0 })
                .phone_counter("thermal.npu.nsp0", None, |t_s| if t_s < 6.0 { 45.0 } else { 80.0 })
                .store()
        };
        for (early, late) in
            [("cooling.cdsp", "cooling.npu"), ("cooling.npu", "cooling.cdsp"), ("cooling.gpu", "cooling.cdsp")]
        {
            let store = made(early, late);
            let run = only(&store);
            let found = findings(&store, run);
            let texts = found.iter().flat_map(|finding| {
                let evidence = finding.evidence.iter().map(|evidence| evidence.text.clone());
                evidence.chain([finding.title.clone()])
            });
            let reasons = crate::analysis::trust(&store, run).map(|trust| trust.reasons).unwrap_or_default();
            let all: Vec<String> = texts
                .chain(reasons.into_iter().map(|reason| reason.finding.title))
                .chain([told(&store).text()])
                .collect();
            let after = |text: &str, words: &str| {
                let (_, rest) = text.split_once(words)?;
                rest.split(' ').next()?.parse::<f64>().ok()
            };
            let onsets: Vec<f64> = all
                .iter()
                .filter_map(|text| after(text, "throttled from ").or_else(|| after(text, "which started at ")))
                .collect();
            assert!(onsets.len() >= 2, "{early}: the finding and the slowdown: {all:#?}");
            assert!(onsets.iter().all(|onset| (4.4..4.7).contains(onset)), "{early}: {onsets:?} in {all:#?}");
        }
    }

    #[test]
    fn a_slowdown_is_told_once() {
        for by in [1.3, 1.07] {
            let store = slower(by, |_| 51.0).store();
            let found = findings(&store, only(&store));
            let texts = |finding: &Finding| {
                let evidence = finding.evidence.iter().map(|evidence| evidence.text.clone());
                std::iter::once(finding.title.clone()).chain(evidence).any(|text| text.starts_with("over time: slower"))
            };
            assert_eq!(found.iter().filter(|finding| texts(finding)).count(), 1, "{found:#?}");
            let known = found.iter().any(|finding| SAME.contains(&finding.id));
            assert_ne!(known, found.iter().any(|finding| finding.id == "bound.slowdown"), "{found:#?}");
        }
        let mut own = Vec::new();
        let store = slower(1.3, |_| 51.0).store();
        tell(only(&store), sustained(&store, only(&store)).and_then(|told| told.slowdown).as_ref(), &mut own);
        assert_eq!((own.len(), own[0].id), (1, "bound.slowdown"));
        assert!(own[0].title.contains("from 10.0 s on, by 30 %"), "{own:?}");
        assert!(own[0].evidence.iter().any(|evidence| evidence.text == "not read: clocks, temperatures"), "{own:?}");
    }
}
