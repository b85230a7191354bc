//! External bounds of a run: heat, clocks, other processes, a cold start, a model in pieces.

use super::super::course::Block;
use super::super::heat::{held_back, slows_with, that_count, throttled_from_us};
use super::super::load::load;
use super::super::window::{counter, watched};
use super::super::{Evidence, EvidencePlace, Finding, FindingKind, Severity};
use super::held_back_text;
use crate::backends::Backend;
use crate::event::{LogLevel, SettingOutcome, Stage};
use crate::store::{Run, Store};
use crate::text::duration_text;

/// Share of the machine used by other processes that bounds a run.
const CONTENDED: f64 = 0.25;
/// A clock below this fraction of its maximum is low.
const LOW_CLOCK: f64 = 0.6;
/// Ratio of the first inference to the median from which a start is cold.
const COLD: f64 = 3.0;
/// Minimum difference between the two, microseconds.
const COLD_BY_US: f64 = 1000.0;
/// Loading time from which it is a cost of its own, microseconds.
const LONG_LOAD_US: f64 = 1e6;
/// Keywords of a warning that ops do not run on the backend: that something falls back, ...
const FALLBACK: [&str; 5] = ["fallback", "falling back", "fall back", "falls back", "will run on"];
/// ... and that it concerns ops. Libraries also fall back to older code paths, which moves no op.
const OPS: [&str; 5] = ["op ", "ops", "operat", "node", "layer"];
/// Log lines and counters shown in a finding.
const SHOWN: usize = 3;

fn bound(id: &'static str, severity: Severity, title: String, evidence: Vec<Evidence>) -> Finding {
    Finding::new(id, FindingKind::Bound, severity, title, evidence)
}

/// Throttling: something is limited, or latency rises with heat or dropping clocks. The course of an
/// emulator's latency proves nothing.
pub(super) fn heat(store: &Store, run: &Run, blocks: &[Block], slower: bool) -> Option<Finding> {
    let slower = slower && !run.plan.simulated;
    let counts = that_count(store, run, slower);
    let follows = if slower { slows_with(store, run, blocks) } else { None };
    let first = counts.iter().min_by_key(|held| held.since_us);
    if first.is_none() && follows.is_none() {
        return None;
    }
    let mut evidence: Vec<Evidence> = Vec::new();
    if let Some(first) = first {
        evidence.push(Evidence::at(held_back_text(run, first), EvidencePlace::Moment(first.since_us)));
    }
    let others =
        counts.iter().filter(|held| first.is_none_or(|first| held.counter.info().id != first.counter.info().id));
    evidence.extend(others.take(SHOWN - 1).map(|held| Evidence::at(held_back_text(run, held), held.counter.place())));
    if let Some(follows) = &follows {
        let info = follows.counter.info();
        let text = format!(
            "latency follows {} (rank correlation {:+.2}), which went from {:.0} to {:.0} {}",
            info.label, follows.correlation, follows.first, follows.last, info.unit
        );
        evidence.push(Evidence::at(text.trim_end().to_owned(), follows.counter.place()));
    }
    let onset = throttled_from_us(store, run, slower);
    let start_us = run.clean.window_us().map_or(run.started_us, |window| window.0);
    let title = match onset {
        Some(since_us) if since_us > start_us => {
            format!("thermally throttled from {:.1} s into the clean phase", (since_us - start_us) as f64 / 1e6)
        }
        Some(_) => "thermally throttled from the start".to_owned(),
        None => format!(
            "inferences slow down as {} {}",
            follows.as_ref().map_or("the device", |follows| follows.counter.label()),
            follows.as_ref().map_or("warms", |follows| if follows.last > follows.first { "rises" } else { "falls" })
        ),
    };
    Some(bound("bound.thermal-throttling", Severity::Warning, title, evidence))
}

/// Clocks lower than possible, for reasons other than heat.
pub(super) fn clocks(store: &Store, run: &Run) -> Option<Finding> {
    if run.plan.simulated {
        return None;
    }
    let mut evidence = Vec::new();
    let mut title = None;
    // Only HTP has profiles to apply.
    let of_profile = |key: &str| run.plan.backend == Backend::Htp && key.ends_with("perf_profile");
    for setting in run.settings.iter().filter(|setting| of_profile(&setting.key)) {
        let (what, reason) = match &setting.outcome {
            SettingOutcome::Applied => continue,
            SettingOutcome::NoEffect(reason) => ("had no effect", reason),
            SettingOutcome::Refused(reason) => ("was refused", reason),
        };
        title.get_or_insert_with(|| format!("the performance profile {} is not active", setting.value));
        evidence.push(Evidence::new(format!("{} {} {what}: {reason}", setting.key, setting.value)));
    }
    let windows_us = run.clean.windows_us();
    let prefix = match run.plan.backend {
        Backend::Cpu => "cpu.freq.",
        Backend::Gpu => "gpu.freq",
        Backend::Htp | Backend::Unknown => "",
    };
    // A run on the CPU should be on the fastest cluster.
    let clock = watched(store, run)
        .filter(|counter| !prefix.is_empty() && counter.info().id.starts_with(prefix))
        .filter_map(|counter| Some((counter, counter.info().maximum?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((clock, top)) = clock {
        let held = held_back(store, run).iter().any(|held| held.concerns_backend);
        if let Some(mean) = clock.mean_in(windows_us).filter(|mean| *mean < LOW_CLOCK * top && !held) {
            title.get_or_insert_with(|| {
                format!("the clock is low: {:.0} % of its maximum on average", 100.0 * mean / top)
            });
            let text = format!("{}: mean {mean:.0} of at most {top:.0} {}", clock.label(), clock.info().unit);
            evidence.push(Evidence::at(text, clock.place()));
        }
    }
    let facts = store.device_facts(&run.plan.device);
    let slow = |governor: &str| matches!(governor, "powersave" | "conservative");
    for cluster in facts.iter().flat_map(|facts| &facts.clusters) {
        if let Some(governor) = cluster.governor.as_deref().filter(|governor| slow(governor)) {
            title.get_or_insert_with(|| format!("the governor {governor} holds the CPU clocks down"));
            evidence.push(Evidence::new(format!("governor {governor} on the cores {:?}", cluster.cpus)));
        }
    }
    Some(bound("bound.clocks", Severity::Warning, title?, evidence))
}

/// Other processes competing for the same cores.
pub(super) fn contention(store: &Store, run: &Run) -> Option<Finding> {
    if run.plan.simulated {
        return None;
    }
    let load = load(store, run).ok().filter(|load| load.share() >= CONTENDED)?;
    let text = format!(
        "{1:.1} of {0:.0} cores were busy in the clean phase, {2:.1} of them with this run ({3} readings)",
        load.cores, load.busy_cores, load.own_cores, load.readings
    );
    let mut evidence = vec![Evidence::at(text, load.busy.place())];
    if let Some((p50, p99)) = run.service().percentile_us(50.0).zip(run.service().percentile_us(99.0)) {
        evidence.push(Evidence::new(format!("p99 {} against p50 {}", duration_text(p99), duration_text(p50))));
    }
    let pressure = counter(store, run, "pressure.cpu");
    let waited = pressure.and_then(|pressure| Some((pressure, pressure.mean_in(run.clean.windows_us())?)));
    if let Some((pressure, mean)) = waited {
        let text = format!("tasks waited for a core {mean:.0} % of the time");
        evidence.push(Evidence::at(text, pressure.place()));
    }
    let title =
        format!("other processes compete for the cores: they kept {:.1} of {:.0} busy", load.others(), load.cores);
    Some(bound("bound.contention", Severity::Warning, title, evidence))
}

/// The cost of the first result.
pub(super) fn cold_start(run: &Run) -> Option<Finding> {
    // The emulator's start time says nothing about a device.
    let p50 = run.service().percentile_us(50.0).filter(|_| !run.plan.simulated)?;
    let first = run.first_us();
    let stages = run.stages.iter().filter(|time| time.stage.is_reported() && time.stage != Stage::Teardown);
    let load_us: f64 =
        stages.clone().filter(|time| time.stage != Stage::FirstInference).map(|time| time.duration_us).sum();
    let cold = first.filter(|first| *first >= COLD * p50 && first - p50 >= COLD_BY_US);
    let long = Some(load_us).filter(|load_us| *load_us >= LONG_LOAD_US);
    let mut evidence = Vec::new();
    if let Some(first) = cold {
        evidence.push(Evidence::new(format!(
            "first inference {}, median {}",
            duration_text(first),
            duration_text(p50)
        )));
    }
    if long.is_some() {
        let longest = stages.max_by(|a, b| a.duration_us.total_cmp(&b.duration_us))?;
        let stage = longest.stage.name().replace('_', " ");
        evidence.push(Evidence::new(format!(
            "loading takes {}, most of it {stage} ({})",
            duration_text(load_us),
            duration_text(longest.duration_us)
        )));
    }
    let title = match (long, cold) {
        (Some(load_us), _) => format!(
            "a cold start costs {}, as much as {:.0} inferences",
            duration_text(load_us + first.unwrap_or(0.0)),
            (load_us + first.unwrap_or(0.0)) / p50
        ),
        (None, Some(first)) => format!("the first inference takes {:.1} times as long as later ones", first / p50),
        (None, None) => return None,
    };
    Some(bound("bound.cold-start", Severity::Info, title, evidence))
}

/// Ops that run elsewhere, or a model of which only one part was measured.
pub(super) fn fallback(store: &Store, run: &Run) -> Option<Finding> {
    let says = |text: &str| {
        let text = text.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        has(&FALLBACK) && has(&OPS)
    };
    let lines: Vec<_> = {
        let of_run = store.logs().iter().filter(|line| line.run == Some(run.id));
        of_run.filter(|line| line.line.level <= LogLevel::Warning && says(&line.line.text)).collect()
    };
    let mut evidence: Vec<Evidence> = lines
        .iter()
        .take(SHOWN)
        .map(|line| Evidence::at(format!("log: {}", shortened(&line.line.text)), EvidencePlace::Moment(line.t_us)))
        .collect();
    let pieces = pieces(run);
    if pieces > 1 {
        let names: Vec<&str> = run.graphs.iter().take(SHOWN).map(|graph| graph.name.as_str()).collect();
        let more = if pieces > names.len() { ", …" } else { "" };
        evidence.push(Evidence::new(format!("graphs {}{more}", names.join(", "))));
    }
    let title = if pieces > 1 {
        format!("the model is split into {pieces} graphs: this run measured one of them")
    } else if !lines.is_empty() {
        format!("the log reports ops that fall back to another backend ({} warnings)", lines.len())
    } else {
        return None;
    };
    let severity = if lines.is_empty() { Severity::Info } else { Severity::Warning };
    Some(bound("bound.fallback", severity, title, evidence))
}

/// Number of graphs that are numbered parts of one model: their names differ only in the last number.
fn pieces(run: &Run) -> usize {
    let stem = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        (stem.len() < name.len() && stem.ends_with(['_', '-', '.'])).then(|| stem.to_owned())
    };
    let Some(first) = run.graph().and_then(|graph| stem(&graph.name)) else { return 1 };
    run.graphs.iter().filter(|graph| stem(&graph.name).as_ref() == Some(&first)).count()
}

fn shortened(text: &str) -> String {
    const LENGTH: usize = 160;
    if text.chars().count() <= LENGTH {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(LENGTH).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::super::roofline::roofline;
    use super::super::bounds;
    use crate::analysis::testing::{Made, moment, only, op, silent_phone, steady};
    use crate::analysis::{EvidencePlace, Finding};
    use crate::backends::Backend;
    use crate::event::{Cluster, DeviceFacts, Event, SettingOutcome, Stage};
    use crate::models::Graph;
    use crate::store::Store;

    fn found(store: &Store) -> Vec<Finding> {
        let run = only(store);
        bounds(store, run, &roofline(store, run)).findings
    }

    fn ids(store: &Store) -> Vec<&'static str> {
        found(store).iter().map(|finding| finding.id).collect()
    }

    fn phone(backend: Backend) -> Made {
        Made::on_phone(backend).clean(steady(10_000.0, 5.0, 500))
    }

    #[test]
    fn throttling_names_its_first_moment() {
        let store = phone(Backend::Htp)
            .phone_counter("cooling.cdsp", Some(7.0), |t_s| if t_s < 2.02 { 0.0 } else { 3.0 })
            .phone_counter("service.thermal.status", Some(6.0), |t_s| if t_s < 3.0 { 0.0 } else { 2.0 })
            .store();
        let found = found(&store);
        assert_eq!((found.len(), found[0].id), (1, "bound.thermal-throttling"));
        let Some(EvidencePlace::Moment(at_us)) = found[0].evidence[0].at else { panic!("{found:?}") };
        assert!((moment(2.02)..=moment(2.12)).contains(&at_us));
        assert!(found[0].title.contains("from 2.1 s"), "{}", found[0].title);
        assert_eq!(found[0].evidence.len(), 2);
    }

    #[test]
    fn a_cool_device_is_not_throttled() {
        let store = phone(Backend::Htp)
            .phone_counter("cooling.cdsp", Some(7.0), |_| 0.0)
            .phone_counter("cooling.gpu", Some(7.0), |t_s| if t_s < 2.0 { 0.0 } else { 3.0 })
            .phone_counter("thermal.npu.nsphvx-0", None, |t_s| 40.0 + t_s)
            .store();
        assert!(ids(&store).is_empty(), "another part's cooling, and heat that costs nothing");
    }

    #[test]
    fn slowing_down_with_heat_is_throttling_without_any_cooling_device() {
        let rising: Vec<f64> =
            steady(10_000.0, 2.0, 500).iter().enumerate().map(|(i, us)| us * (1.0 + i as f64 / 2000.0)).collect();
        let made = Made::on_phone(Backend::Htp).clean(rising.clone());
        let store = made.phone_counter("thermal.npu.nsphvx-0", None, |t_s| 60.0 + 6.0 * t_s.max(0.0)).store();
        let found = found(&store);
        assert_eq!(found[0].id, "bound.thermal-throttling");
        assert!(found[0].evidence[0].text.contains("rank correlation"), "{found:?}");
        let made = Made::on_phone(Backend::Htp).clean(rising);
        assert!(ids(&made.phone_counter("thermal.npu.nsphvx-0", None, |_| 60.0).store()).is_empty());
    }

    #[test]
    fn clocks_are_low_by_profile_governor_or_figure() {
        let refused = SettingOutcome::Refused("not on this part".to_owned());
        let store = phone(Backend::Htp).setting("perf_profile", "burst", refused).store();
        assert_eq!(ids(&store), ["bound.clocks"]);
        let store = phone(Backend::Htp).setting("perf_profile", "burst", SettingOutcome::Applied).store();
        assert!(ids(&store).is_empty());
        let clock = |mhz: f64| {
            let made = phone(Backend::Cpu).phone_counter("cpu.freq.policy0", Some(2000.0), |_| 1900.0);
            ids(&made.phone_counter("cpu.freq.policy7", Some(3000.0), move |_| mhz).store())
        };
        assert_eq!(clock(1200.0), ["bound.clocks"]);
        assert!(clock(2900.0).is_empty());
        let governor = |name: &str| {
            let cluster =
                Cluster { cpus: vec![0], min_freq_hz: None, max_freq_hz: None, governor: Some(name.to_owned()) };
            ids(&phone(Backend::Htp).facts(DeviceFacts { clusters: vec![cluster], ..silent_phone() }).store())
        };
        assert_eq!(governor("powersave"), ["bound.clocks"]);
        assert!(governor("walt").is_empty());
    }

    #[test]
    fn others_on_the_cores_are_contention() {
        let loaded = |busy: f64| {
            let clusters =
                vec![Cluster { cpus: (0..8).collect(), min_freq_hz: None, max_freq_hz: None, governor: None }];
            let made = phone(Backend::Cpu).facts(DeviceFacts { clusters, ..silent_phone() }).runner_cores(2.0);
            ids(&made.phone_counter("cpu.busy", Some(100.0), move |_| busy).store())
        };
        assert_eq!(loaded(75.0), ["bound.contention"]);
        assert!(loaded(30.0).is_empty());
    }

    #[test]
    fn a_cold_start_is_told_where_it_costs() {
        let cold = |first: f64, load: f64| {
            let made = Made::local(Backend::Cpu).first(first).stage(Stage::Finalize, load);
            ids(&made.clean(steady(1000.0, 5.0, 200)).store())
        };
        assert_eq!(cold(5000.0, 100.0), ["bound.cold-start"]);
        assert_eq!(cold(1500.0, 2e6), ["bound.cold-start"]);
        assert!(cold(1500.0, 5e5).is_empty());
    }

    #[test]
    fn fallback_is_what_the_log_or_the_names_of_graphs_say() {
        let made = || Made::local(Backend::Htp).clean(steady(1000.0, 5.0, 200));
        assert_eq!(ids(&made().log(0.1, "Op foo not supported, falling back to CPU").store()), ["bound.fallback"]);
        for harmless in ["all is well", "not a GPE program, falling back to hexagon_nn_get_id_from_graph"] {
            assert!(ids(&made().log(0.1, harmless).store()).is_empty(), "{harmless}");
        }
        let graph = |name: &str| {
            Event::GraphComposed(Box::new(Graph {
                name: name.to_owned(),
                inputs: Vec::new(),
                outputs: Vec::new(),
                ops: vec![op("Relu", &[1], &[], &[1])],
                parameter_bytes: 0,
            }))
        };
        assert_eq!(ids(&made().event(graph("ep_0")).event(graph("ep_1")).store()), ["bound.fallback"]);
        assert!(ids(&made().event(graph("prefill")).event(graph("decode")).store()).is_empty());
        assert!(ids(&made().event(graph("resnet50")).event(graph("resnet18")).store()).is_empty());
    }
}
