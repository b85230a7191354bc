//! The conditions under which a run was measured.

use super::super::Evidence;
use super::super::heat::can_tell;
use super::super::load::TOO_MUCH;
use super::{Reason, Seen, TrustVerdict};
use crate::backends::Backend;
use crate::backends::ProfilingLevel;
use crate::event::{OpUnit, RunStatus};
use crate::store::Run;
use crate::text::{counted, duration_text, rate_text};

/// Minimum significant share of the machine taken by other processes.
const LOAD_MATTERS: f64 = 0.1;
/// Increase of the inference time by tracing, as a factor, from which it distorts the layers.
const TRACING_MATTERS: f64 = 1.25;

/// What applies to a simulated run: it says nothing about a device.
pub(super) fn simulated(run: &Run) -> Reason {
    let text = format!("{} ran in this machine's {} emulation library", run.plan.backend, run.plan.backend);
    let title = "simulated: these times come from an emulation and do not predict a device".to_owned();
    let mut reason = Reason::new(TrustVerdict::Not, "trust.simulated", title, vec![Evidence::new(text)]);
    // It was requested, and is stated wherever a figure is shown.
    reason.finding.severity = super::Severity::Info;
    reason
}

/// Conditions that affect times.
pub(super) fn judge(seen: &Seen<'_>, reasons: &mut Vec<Reason>, not_judged: &mut Vec<String>) {
    match &seen.load {
        Ok(_) => reasons.extend(background(seen)),
        Err(why) => not_judged.push(format!("load from other processes: {why}")),
    }
    if seen.run.plan.device != "local" && !can_tell(seen.store, seen.run) {
        let why = "no counter of cooling or clock limits was read (--counters 'cooling*,cpu.limit*,service.thermal*')";
        not_judged.push(format!("throttling: {why}"));
    }
    reasons.extend(seen.run.confounds.iter().filter_map(|confound| {
        let (weight, id) = weight_of(&confound.id)?;
        Some(Reason::new(
            weight,
            id,
            confound.observation.clone(),
            vec![Evidence::new(format!("seen before the run; {}", confound.advice))],
        ))
    }));
    reasons.extend(overloaded(seen.run));
    reasons.extend(tracing(seen.run));
    reasons.extend(shell(seen.run));
    reasons.extend(imported(seen.run));
}

/// What applies to any run, simulated or not.
pub(super) fn whole(seen: &Seen<'_>, reasons: &mut Vec<Reason>) {
    let run = seen.run;
    reasons.extend(throttled(seen));
    reasons.extend(elsewhere(run));
    if let Some(failure) = run.failure.as_ref().filter(|_| run.status() == Some(RunStatus::Failed)) {
        let text = format!("failed in stage {}: {}", failure.stage, failure.message);
        let title =
            format!("the run failed after {}: the figures cover part of it", counted(run.clean.count(), "inference"));
        reasons.push(Reason::new(TrustVerdict::WithCare, "trust.failed", title, vec![Evidence::new(text)]));
    }
    let lost = seen.store.lost();
    if lost > 0 {
        let text = format!("{} lost, see the log", counted(lost, "item"));
        let title = "this session lost data: counters or figures have gaps".to_owned();
        reasons.push(Reason::new(TrustVerdict::WithCare, "trust.lost-data", title, vec![Evidence::new(text)]));
    }
    reasons.extend(zero_times(run));
    let (mixed, told) = (run.ops.mismatched(), run.ops.inferences());
    if mixed > 0 {
        let text = format!("{mixed} of {} detailed inferences reported different ops from the first one", mixed + told);
        let title = "the ops of inferences differ: layer times leave some out".to_owned();
        reasons.push(Reason::new(TrustVerdict::WithCare, "trust.mixed-ops", title, vec![Evidence::new(text)]));
    }
}

/// An ONNX model of which QNN ran nothing: the figures are correct, but of something other than what was
/// requested.
fn elsewhere(run: &Run) -> Option<Reason> {
    let placed = run.nodes.as_ref().filter(|placed| placed.is_all_cpu() && !placed.nodes.is_empty())?;
    let title = format!("nothing ran on {}: the figures are the CPU's", run.plan.backend);
    let text = format!("ONNX Runtime ran {} of its own", counted(placed.nodes.len() as u64, "node"));
    Some(Reason::new(TrustVerdict::Not, "trust.not-on-qnn", title, vec![Evidence::new(text)]))
}

/// Layers none of which took any time. If the unit is cycles, nothing was measured.
fn zero_times(run: &Run) -> Option<Reason> {
    let inferences = run.ops.inferences();
    run.ops.mean_total().filter(|total| *total == 0.0 && !run.ops.rows().is_empty())?;
    let evidence = vec![Evidence::new(format!(
        "{} in {}",
        counted(run.ops.rows().len() as u64, "layer"),
        counted(inferences, "detailed inference")
    ))];
    let (weight, title) = match run.ops.unit()? {
        OpUnit::Cycles => (
            TrustVerdict::Not,
            format!(
                "{} reports 0 cycles for every layer: it measured nothing, and may have executed nothing",
                run.plan.backend.name().to_uppercase()
            ),
        ),
        OpUnit::Us => (
            TrustVerdict::Trusted,
            "every layer takes less than 1 us, the backend's resolution: layers cannot be compared".to_owned(),
        ),
    };
    Some(Reason::new(weight, "trust.zero-times", title, evidence))
}

fn background(seen: &Seen<'_>) -> Option<Reason> {
    let load = seen.load.as_ref().ok().filter(|load| load.share() >= LOAD_MATTERS)?;
    let text = format!(
        "{1:.1} of {0:.0} cores were busy, {2:.1} of them with this run ({3} readings)",
        load.cores, load.busy_cores, load.own_cores, load.readings
    );
    let title = load.text();
    let too_much = seen.run.plan.backend == Backend::Cpu && load.share() >= TOO_MUCH;
    let weight = if too_much { TrustVerdict::Not } else { TrustVerdict::WithCare };
    Some(Reason::new(weight, "trust.background-load", title, vec![Evidence::at(text, load.busy.place())]))
}

fn throttled(seen: &Seen<'_>) -> Option<Reason> {
    let held: Vec<_> = seen.held_back.iter().filter(|held| held.concerns_backend).collect();
    let first = held.first()?;
    let evidence = held
        .iter()
        .take(3)
        .map(|held| Evidence::at(super::super::bounds::held_back_text(seen.run, held), held.counter.place()));
    let title = if first.from_start {
        "the device was already throttled when measuring began".to_owned()
    } else {
        "the device throttled during the measurement".to_owned()
    };
    Some(Reason::new(TrustVerdict::WithCare, "trust.throttled", title, evidence.collect()))
}

/// What a disturbance seen before the run means for its figures.
fn weight_of(confound: &str) -> Option<(TrustVerdict, &'static str)> {
    Some(match confound {
        "thermal_status" => (TrustVerdict::WithCare, "trust.thermal-status"),
        "start_temperature" => (TrustVerdict::WithCare, "trust.start-temperature"),
        "power_save" => (TrustVerdict::WithCare, "trust.power-save"),
        "battery_low" => (TrustVerdict::WithCare, "trust.battery-low"),
        "busy_process" => (TrustVerdict::WithCare, "trust.busy-process"),
        // A tethered phone is normally charging; the heat shows elsewhere if it matters.
        "charging" => (TrustVerdict::Trusted, "trust.charging"),
        "screen_on" => (TrustVerdict::Trusted, "trust.screen-on"),
        _ => return None,
    })
}

/// A schedule that the backend cannot keep up with: latencies from planned starts are then those of an
/// ever-growing queue.
fn overloaded(run: &Run) -> Option<Reason> {
    let pace = run.pace.as_ref().filter(|pace| pace.is_overloaded())?;
    let (count, mean_us) = (run.clean.count(), pace.service.mean_us()?);
    let text = format!(
        "an inference alone takes {} on average and the next is due after {}; {} of {count} were late, {} never started",
        duration_text(mean_us),
        duration_text(pace.period_us()),
        pace.missed,
        pace.unstarted()
    );
    let title = format!(
        "too slow for {} starts per second: latencies from the planned starts grow with the length of the run",
        rate_text(pace.rate_hz)
    );
    Some(Reason::new(TrustVerdict::Not, "trust.overloaded", title, vec![Evidence::new(text)]))
}

/// The latencies are those of the clean phase, so tracing only affects the layers.
fn tracing(run: &Run) -> Option<Reason> {
    if let Some(factor) = run.overhead_factor().filter(|factor| *factor >= TRACING_MATTERS) {
        let clean = run.clean.mean_us().map_or_else(String::new, duration_text);
        let detailed = run.detailed.mean_us().map_or_else(String::new, duration_text);
        let text = format!("mean {detailed} while layers are timed, {clean} without");
        let title = format!(
            "timing layers makes an inference {factor:.2} times as long: small layers look larger than they are"
        );
        return Some(Reason::new(TrustVerdict::Trusted, "trust.tracing-cost", title, vec![Evidence::new(text)]));
    }
    None
}

/// What another tool measured, and how, is known only to the extent that its file says so.
fn imported(run: &Run) -> Option<Reason> {
    let origin = run.plan.mode.origin.as_ref()?;
    let level = origin.clean_level.name();
    let text = if origin.is_summary {
        "the file has one figure for all inferences, so their variation is unknown".to_owned()
    } else {
        format!("{}, profiling {level}", counted(run.clean.count(), "inference"))
    };
    let title =
        format!("measured by another tool ({}): load, clocks and heat during the run are unknown", origin.label);
    Some(Reason::new(TrustVerdict::WithCare, "trust.imported", title, vec![Evidence::new(text)]))
}

fn shell(run: &Run) -> Option<Reason> {
    let driver = run.plan.driver;
    if !driver.traits().is_from_shell {
        return None;
    }
    let profiled = if run.plan.clean_profiling() == ProfilingLevel::Basic { ", with basic profiling" } else { "" };
    let text = format!("started by {} from the adb shell{profiled}", driver.label());
    let title = "measured in a shell process: a foreground app has another scheduling class".to_owned();
    let mut reason = Reason::new(TrustVerdict::Trusted, "trust.scheduler-class", title, vec![Evidence::new(text)]);
    reason.finding.source = Some("AI Hub FAQ: up to 58 % apart, 5 % in the median");
    Some(reason)
}

#[cfg(test)]
mod tests {
    use crate::analysis::testing::{Made, only, op, steady};
    use crate::analysis::trust::{TrustVerdict, trust};
    use crate::backends::Backend;
    use crate::event::{Event, OpUnit, RunStatus};
    use crate::store::Store;

    fn found(store: &Store) -> Vec<(&'static str, TrustVerdict)> {
        let trust = trust(store, only(store)).unwrap();
        let mut found: Vec<_> = trust.reasons.iter().map(|reason| (reason.finding.id, reason.weight)).collect();
        // These runs have one launch, which is a finding except on a simulator.
        let one = found.iter().position(|found| *found == ("trust.one-launch", TrustVerdict::WithinLaunch));
        assert_eq!(one.is_none(), only(store).plan.simulated, "{found:?}");
        found.retain(|(id, _)| *id != "trust.one-launch");
        found
    }

    fn quiet(backend: Backend) -> Made {
        Made::local(backend).clean(steady(10_000.0, 5.0, 500))
    }

    #[test]
    fn a_simulated_run_is_only_told_to_be_that() {
        let mut latencies = steady(10_000.0, 5.0, 500);
        latencies[250..].iter_mut().for_each(|us| *us *= 3.0);
        let store = Made::local(Backend::Htp).simulated().clean(latencies).store();
        assert_eq!(found(&store), [("trust.simulated", TrustVerdict::Not)]);
        let run = only(&store);
        assert_eq!(trust(&store, run).unwrap().reasons[0].finding.severity, crate::analysis::Severity::Info);
    }

    #[test]
    fn load_of_others_weighs_by_its_part_and_the_backend() {
        let loaded = |backend, busy: f64| {
            let made = quiet(backend).runner_cores(1.0).host_counter("host.cpu.busy", Some(100.0), move |_| busy);
            found(&made.host_counter("host.load.1m", Some(4.0), |_| 1.0).store())
        };
        assert_eq!(loaded(Backend::Cpu, 30.0), []);
        assert_eq!(loaded(Backend::Cpu, 45.0), [("trust.background-load", TrustVerdict::WithCare)]);
        assert_eq!(loaded(Backend::Cpu, 90.0), [("trust.background-load", TrustVerdict::Not)]);
        assert_eq!(loaded(Backend::Gpu, 90.0), [("trust.background-load", TrustVerdict::WithCare)]);
    }

    #[test]
    fn tracing_and_the_shell_are_told_and_weigh_nothing() {
        let store = quiet(Backend::Cpu).detailed(&steady(17_000.0, 5.0, 50)).store();
        assert_eq!(found(&store), [("trust.tracing-cost", TrustVerdict::Trusted)]);
        assert_eq!(found(&quiet(Backend::Cpu).detailed(&steady(11_000.0, 5.0, 50)).store()), []);
        let phone = Made::on_phone(Backend::Htp).clean(steady(10_000.0, 5.0, 500)).store();
        assert_eq!(found(&phone), [("trust.scheduler-class", TrustVerdict::Trusted)]);
    }

    #[test]
    fn a_schedule_that_cannot_be_kept_is_told_and_its_queue_is_no_drift() {
        let paced = |rate_hz: f64| Made::local(Backend::Cpu).paced(rate_hz, &steady(10_000.0, 5.0, 500)).store();
        assert_eq!(found(&paced(1000.0)), [("trust.overloaded", TrustVerdict::Not)]);
        assert_eq!(found(&paced(50.0)), []);
    }

    #[test]
    fn what_disturbs_a_device_weighs_by_what_it_does() {
        let store = |id: &str| found(&quiet(Backend::Cpu).confound(id, "seen").store());
        assert_eq!(store("charging"), [("trust.charging", TrustVerdict::Trusted)]);
        assert_eq!(store("power_save"), [("trust.power-save", TrustVerdict::WithCare)]);
        assert_eq!(store("busy_process"), [("trust.busy-process", TrustVerdict::WithCare)]);
        assert_eq!(store("something_new"), []);
    }

    #[test]
    fn throttling_of_what_the_backend_uses_is_a_reason_and_other_cooling_is_none() {
        let on_phone = |id: &str| {
            let made = Made::on_phone(Backend::Htp).clean(steady(10_000.0, 5.0, 500));
            found(&made.phone_counter(id, Some(5.0), |t_s| if t_s < 2.0 { 0.0 } else { 1.0 }).store())
        };
        assert_eq!(on_phone("cooling.cdsp")[0], ("trust.throttled", TrustVerdict::WithCare));
        assert_eq!(on_phone("cooling.gpu"), [("trust.scheduler-class", TrustVerdict::Trusted)]);
    }

    #[test]
    fn without_counters_of_cooling_it_is_said_which_would_tell() {
        let not_judged = |made: Made| {
            let store = made.clean(steady(10_000.0, 5.0, 500)).store();
            trust(&store, only(&store)).unwrap().not_judged.join("; ")
        };
        assert!(not_judged(Made::on_phone(Backend::Htp)).contains("--counters 'cooling*"));
        let cool = Made::on_phone(Backend::Htp).phone_counter("cooling.cdsp", Some(5.0), |_| 0.0);
        assert!(!not_judged(cool).contains("throttling"));
        assert!(!not_judged(Made::local(Backend::Cpu)).contains("throttling"));
    }

    #[test]
    fn layers_without_any_time_are_no_figures() {
        let zero = |backend, unit| {
            let made = Made::on_phone(backend).clean(steady(1000.0, 1.0, 300));
            let store = made
                .graph(vec![op("Relu", &[1], &[], &[1]), op("Add", &[1], &[], &[1])])
                .op_times(unit, &[0, 0])
                .store();
            found(&store).into_iter().find(|(id, _)| *id == "trust.zero-times")
        };
        assert_eq!(zero(Backend::Htp, OpUnit::Cycles), Some(("trust.zero-times", TrustVerdict::Not)));
        assert_eq!(zero(Backend::Cpu, OpUnit::Us), Some(("trust.zero-times", TrustVerdict::Trusted)));
    }

    #[test]
    fn lost_data_mixed_ops_and_failures_are_told() {
        let lost = Event::Lost { source: "test".to_owned(), reason: "-".to_owned(), count: 3 };
        assert_eq!(found(&quiet(Backend::Cpu).event(lost).store()), [("trust.lost-data", TrustVerdict::WithCare)]);
        let mixed = quiet(Backend::Cpu)
            .op_times(OpUnit::Us, &[5, 6])
            .event(Event::OpTimes(crate::event::OpSample { inference: 10, values: vec![1] }));
        assert_eq!(found(&mixed.store()), [("trust.mixed-ops", TrustVerdict::WithCare)]);
        let failure = crate::event::Failure::new(crate::event::Stage::Execute, "graphExecute", "it broke");
        let failed = quiet(Backend::Cpu).event(Event::Failed(Box::new(failure))).ended(RunStatus::Failed);
        assert_eq!(found(&failed.store()), [("trust.failed", TrustVerdict::WithCare)]);
    }
}
