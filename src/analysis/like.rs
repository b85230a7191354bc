//! Whether a run was measured the way a published figure was, and what may explain the gap. The conditions
//! are data.

use super::compare::{Arithmetic, graph_facts};
use crate::backends::Backend;
use crate::event::{DeviceKind, Like, RunStatus, SettingOutcome};
use crate::store::{Run, Store};
use crate::text::{counted, duration_text};
use serde::Serialize;

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It does.
    Met,
    /// It does not.
    NotMet,
    /// The session does not show it.
    CannotTell,
    /// It does not apply to this run.
    DoesNotApply,
}

/// A condition of a published procedure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Condition {
    /// Stable id.
    pub id: &'static str,
    /// What the procedure requires.
    pub text: &'static str,
    /// Whether it holds.
    pub state: State,
    /// What was observed.
    pub observed: String,
    /// Known effect of not meeting it.
    pub worth: Option<&'static str>,
    /// The same as a range, per cent of latency, if it has been quantified.
    pub worth_percent: Option<[f64; 2]>,
    /// Where the condition comes from.
    pub source: &'static str,
}

/// A run compared with a published procedure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LikeReport {
    /// Whose procedure.
    pub like: Like,
    /// The published percentile.
    pub percent: f64,
    /// Its value in this run, microseconds; `None` with fewer samples than it needs.
    pub figure_us: Option<f64>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Difference from the published figure, if one was given.
    pub gap: Option<Gap>,
}

/// A difference from a published figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// The published figure, microseconds.
    pub published_us: f64,
    /// This run relative to it, per cent; positive is slower.
    pub percent: f64,
    /// True if the published figure lies in this run's 95 % interval.
    pub within_noise: bool,
    /// Ids of conditions that are not, or may not be, met and are known to cost time; largest effect first.
    pub explained_by: Vec<&'static str>,
}

impl LikeReport {
    /// Number of conditions met, and number that apply.
    pub fn met(&self) -> (usize, usize) {
        let count = |wanted: &dyn Fn(State) -> bool| self.conditions.iter().filter(|at| wanted(at.state)).count();
        (count(&|state| state == State::Met), count(&|state| state != State::DoesNotApply))
    }
}

type Look = fn(&Store, &Run) -> (State, String);

struct Rule {
    id: &'static str,
    text: &'static str,
    worth: Option<&'static str>,
    worth_percent: Option<[f64; 2]>,
    source: &'static str,
    look: Look,
}

impl Rule {
    const fn new(id: &'static str, text: &'static str, source: &'static str, look: Look) -> Self {
        Self { id, text, worth: None, worth_percent: None, source, look }
    }

    const fn worth(mut self, worth: &'static str) -> Self {
        self.worth = Some(worth);
        self
    }
}

const FAQ: &str = "Qualcomm AI Hub FAQ";
const HTP: &str = "Qualcomm's HTP backend documentation";
const MLPERF: &str = "MLPerf Inference rules, single stream";

/// Possible explanations of a gap, ordered by weight.
const AIHUB: [Rule; 7] = [
    Rule::new("device", "a device, no emulation", FAQ, device).worth("only figures from a device are comparable"),
    Rule::new("burst", "performance profile burst", HTP, burst)
        .worth("it sets the clocks: a large effect, and the first thing to try when slower than published"),
    Rule::new("fp16", "float graphs compute in fp16 (relaxed precision)", FAQ, relaxed)
        .worth("fp32 arithmetic is slower, or falls back to another backend"),
    Rule {
        worth: Some("a shell process was 9.7 % slower on average over 65 phones (median 5.3 %, from -3.6 % to 58 %)"),
        worth_percent: Some([-3.6, 58.0]),
        ..Rule::new("priority", "priority of a foreground app", FAQ, priority)
    },
    Rule::new("cool", "a device that was cool before the run", FAQ, cool)
        .worth("a warm device throttles: rankings can change between the first minute and the thirtieth"),
    Rule::new("inferences", "100 inferences", FAQ, hundred),
    Rule::new("profiling", "no per-op profiling in the latencies", FAQ, unprofiled)
        .worth("per-op profiling can make an inference much slower"),
];

const MLPERF_RULES: [Rule; 7] = [
    Rule::new("samples", "at least 1,024 samples", MLPERF, enough_samples),
    Rule::new("duration", "at least 60 s", MLPERF, long_enough),
    Rule::new("single_stream", "back-to-back inferences, each sent when the previous one is done", MLPERF, one_stream),
    Rule::new("complete", "the run completed", MLPERF, complete),
    Rule::new("profiling", "no per-op profiling in the latencies", MLPERF, unprofiled),
    Rule::new("device", "a device, no emulation", MLPERF, device),
    Rule::new("data", "inputs from the benchmark's data set, and its accuracy run passed", MLPERF, data),
];

/// Compares the run with the published procedure of its plan. `None` if it has none, or the run has not
/// ended.
pub fn like(store: &Store, run: &Run) -> Option<LikeReport> {
    let like = run.plan.mode.like.filter(|_| run.is_ended())?;
    let (rules, percent) = match like {
        Like::Aihub => (AIHUB.as_slice(), 50.0),
        Like::Mlperf => (MLPERF_RULES.as_slice(), 90.0),
    };
    let conditions: Vec<Condition> = rules.iter().map(|rule| condition(rule, store, run)).collect();
    let figure = run.clean.percentile(percent);
    let gap = run.plan.mode.published_us.zip(figure.value_us).map(|(published_us, figure_us)| {
        let open = |condition: &&Condition| {
            matches!(condition.state, State::NotMet | State::CannotTell) && condition.worth.is_some()
        };
        let inside = |low: f64, high: f64| (low..=high).contains(&published_us);
        Gap {
            published_us,
            percent: 100.0 * (figure_us / published_us - 1.0),
            within_noise: figure.ci95_us.0.zip(figure.ci95_us.1).is_some_and(|(low, high)| inside(low, high)),
            explained_by: conditions.iter().filter(open).map(|condition| condition.id).collect(),
        }
    });
    Some(LikeReport { like, percent, figure_us: figure.value_us, conditions, gap })
}

fn condition(rule: &Rule, store: &Store, run: &Run) -> Condition {
    let (state, observed) = (rule.look)(store, run);
    Condition {
        id: rule.id,
        text: rule.text,
        state,
        observed,
        worth: rule.worth,
        worth_percent: rule.worth_percent,
        source: rule.source,
    }
}

fn met_if(met: bool, observed: impl Into<String>) -> (State, String) {
    (if met { State::Met } else { State::NotMet }, observed.into())
}

fn device(store: &Store, run: &Run) -> (State, String) {
    if run.plan.simulated {
        return (State::NotMet, "the backend is simulated".to_owned());
    }
    let device = store.device(&run.plan.device);
    let what = device.and_then(|device| device.soc.clone()).unwrap_or_else(|| run.plan.device.clone());
    met_if(device.is_some_and(|device| device.kind == DeviceKind::Adb || device.soc.is_some()), what)
}

/// The state of a setting, found by the end of its key, and its value.
fn setting(run: &Run, name: &str, value: &[&str]) -> (State, String) {
    let named = |key: &str| key.replace('-', "_").ends_with(name);
    let found =
        run.settings.iter().rev().find(|setting| named(&setting.key) && value.contains(&setting.value.as_str()));
    match found.map(|setting| &setting.outcome) {
        Some(SettingOutcome::Applied) => (State::Met, "applied".to_owned()),
        Some(SettingOutcome::NoEffect(reason)) => (State::NotMet, format!("no effect: {reason}")),
        Some(SettingOutcome::Refused(reason)) => (State::NotMet, format!("refused: {reason}")),
        None => (State::CannotTell, "the run did not get that far".to_owned()),
    }
}

fn burst(_: &Store, run: &Run) -> (State, String) {
    if run.plan.backend != Backend::Htp {
        return (State::DoesNotApply, format!("the {} backend has no performance profiles", run.plan.backend));
    }
    setting(run, "perf_profile", &["burst"])
}

fn relaxed(_: &Store, run: &Run) -> (State, String) {
    // For a graph without ops, such as one from a context binary, only the inputs and outputs are known.
    let arithmetic = run.graph().filter(|graph| !graph.ops.is_empty()).map(|graph| graph_facts(graph).arithmetic);
    if let Some(fixed @ (Arithmetic::Int8 | Arithmetic::Int16)) = arithmetic {
        return (State::DoesNotApply, format!("the graph computes in {}", fixed.label()));
    }
    setting(run, "precision", &["float16", "fp16", "16", "half"])
}

fn priority(_: &Store, run: &Run) -> (State, String) {
    match run.settings.iter().find(|setting| setting.key == "nice") {
        Some(_) => setting(run, "nice", &["-10"]),
        None => (State::CannotTell, "it has the priority of the shell it was started from".to_owned()),
    }
}

fn cool(store: &Store, run: &Run) -> (State, String) {
    let warm =
        run.confounds.iter().find(|confound| ["thermal_status", "start_temperature"].contains(&confound.id.as_str()));
    match (warm, store.device_facts(&run.plan.device)) {
        (Some(confound), _) => (State::NotMet, confound.observation.clone()),
        (None, Some(facts)) if facts.hottest_celsius.is_some() || facts.thermal_status.is_some() => {
            (State::Met, "no sensor reported heat before the run".to_owned())
        }
        _ => (State::CannotTell, "no temperature was reported before the run".to_owned()),
    }
}

fn hundred(_: &Store, run: &Run) -> (State, String) {
    met_if(run.clean.count() == 100, counted(run.clean.count(), "inference"))
}

fn unprofiled(_: &Store, run: &Run) -> (State, String) {
    let level = run.plan.clean_profiling().name();
    met_if(level != "detailed", format!("profiling {level}"))
}

fn enough_samples(_: &Store, run: &Run) -> (State, String) {
    met_if(run.clean.count() >= 1024, counted(run.clean.count(), "sample"))
}

fn long_enough(_: &Store, run: &Run) -> (State, String) {
    let span_us = run.clean.span_us();
    // qnn-net-run's rounds lose a few inferences of the last one.
    met_if(span_us >= 59.9e6, format!("{} of inferences", duration_text(span_us)))
}

fn one_stream(_: &Store, run: &Run) -> (State, String) {
    match run.plan.mode.rate_hz {
        Some(rate) => (State::NotMet, format!("paced at {rate} per second")),
        None => (State::Met, "back to back".to_owned()),
    }
}

fn complete(_: &Store, run: &Run) -> (State, String) {
    match run.status() {
        Some(RunStatus::Ok) => (State::Met, "it did".to_owned()),
        Some(RunStatus::Stopped) => (State::NotMet, "it was stopped".to_owned()),
        Some(RunStatus::Failed) | None => (State::NotMet, "it failed".to_owned()),
    }
}

fn data(_: &Store, run: &Run) -> (State, String) {
    if run.inputs.iter().any(|input| input.source == "random") {
        return (State::NotMet, "random data".to_owned());
    }
    (State::CannotTell, "the origin of these files is unknown, and accuracy is not measured here".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Feed, op, plan};
    use crate::event::{Confound, Event, RunPlan, Setting};
    use crate::models::{DataType, Graph, Tensor, TensorKind};

    fn run_like(like: Like, published_us: Option<f64>) -> RunPlan {
        let mut plan = plan();
        plan.mode.like = Some(like);
        plan.mode.published_us = published_us;
        plan
    }

    fn state(report: &LikeReport, id: &str) -> State {
        report.conditions.iter().find(|condition| condition.id == id).unwrap().state
    }

    #[test]
    fn a_profile_job_on_a_rooted_phone_meets_all() {
        let mut feed = Feed::on_phone(run_like(Like::Aihub, Some(2000.0)), Some(32.0));
        for (key, value) in
            [("--like aihub: perf_profile", "burst"), ("--like aihub: precision", "float16"), ("nice", "-10")]
        {
            let outcome = SettingOutcome::Applied;
            feed.run(Event::SettingApplied(Setting { key: key.to_owned(), value: value.to_owned(), outcome }));
        }
        feed.clean(0, 100, |_| 2000.0);
        feed.end();
        let report = like(&feed.store, feed.only()).unwrap();
        assert!(report.conditions.iter().all(|condition| condition.state == State::Met), "{:#?}", report.conditions);
        let gap = report.gap.unwrap();
        assert!(gap.within_noise && gap.explained_by.is_empty() && gap.percent.abs() < 1e-6, "{gap:?}");
    }

    #[test]
    fn what_is_missing_explains_the_gap_weightiest_first() {
        let mut feed = Feed::on_phone(run_like(Like::Aihub, Some(1000.0)), Some(52.0));
        let warm =
            Confound { id: "start_temperature".to_owned(), observation: "52 °C".to_owned(), advice: String::new() };
        feed.run(Event::ConfoundsFound(vec![warm]));
        let reason = SettingOutcome::NoEffect("only root".to_owned());
        feed.run(Event::SettingApplied(Setting { key: "nice".to_owned(), value: "-10".to_owned(), outcome: reason }));
        let burst = "--like aihub: perf_profile".to_owned();
        let refused = SettingOutcome::Refused("13003".to_owned());
        feed.run(Event::SettingApplied(Setting { key: burst, value: "burst".to_owned(), outcome: refused }));
        feed.clean(0, 100, |_| 1500.0);
        feed.end();
        let report = like(&feed.store, feed.only()).unwrap();
        let gap = report.gap.unwrap();
        assert_eq!(gap.explained_by, ["burst", "fp16", "priority", "cool"]);
        assert!((gap.percent - 50.0).abs() < 0.1 && !gap.within_noise, "{gap:?}");
    }

    #[test]
    fn what_a_run_does_not_have_explains_nothing() {
        let report = |backend, dtype| {
            let mut plan = run_like(Like::Aihub, Some(1000.0));
            plan.backend = backend;
            let mut feed = Feed::on_phone(plan, None);
            let tensor = |name: &str, kind| Tensor {
                name: name.to_owned(),
                dtype: DataType(dtype),
                shape: vec![1, 8],
                quantization: None,
                kind,
            };
            let mut relu = op("Relu", &[1, 8], &[1], &[1, 8]);
            relu.outputs = vec![tensor("y", TensorKind::Output)];
            let inputs = vec![tensor("x", TensorKind::Input)];
            let outputs = relu.outputs.clone();
            let graph = Graph { name: "g".to_owned(), inputs, outputs, ops: vec![relu], parameter_bytes: 0 };
            feed.run(Event::GraphComposed(Box::new(graph)));
            feed.clean(0, 100, |_| 1500.0);
            feed.end();
            like(&feed.store, feed.only()).unwrap()
        };
        let (fixed, float) = (0x0408, 0x0232);
        let int8 = report(Backend::Cpu, fixed);
        assert_eq!((state(&int8, "fp16"), state(&int8, "burst")), (State::DoesNotApply, State::DoesNotApply));
        assert_eq!(int8.met().1, 5, "neither counts");
        assert_eq!(int8.gap.unwrap().explained_by, ["priority", "cool"]);
        let htp = report(Backend::Htp, float);
        assert_eq!((state(&htp, "fp16"), state(&htp, "burst"), htp.met().1), (State::CannotTell, State::CannotTell, 7));
        assert_eq!(htp.gap.unwrap().explained_by, ["burst", "fp16", "priority", "cool"]);
    }

    #[test]
    fn single_stream_counts_samples_and_seconds() {
        for (count, latency_us, samples, duration) in [
            (1024, 60_000.0, State::Met, State::Met),
            (1023, 60_000.0, State::NotMet, State::Met),
            (2000, 1_000.0, State::Met, State::NotMet),
        ] {
            let mut feed = Feed::on_phone(run_like(Like::Mlperf, None), None);
            feed.clean(0, count, |_| latency_us);
            feed.end();
            let report = like(&feed.store, feed.only()).unwrap();
            assert_eq!((state(&report, "samples"), state(&report, "duration")), (samples, duration), "{count}");
            assert_eq!((report.percent, report.figure_us.is_some()), (90.0, true));
            assert_eq!((state(&report, "complete"), state(&report, "single_stream")), (State::Met, State::Met));
        }
    }

    #[test]
    fn ids_are_unique_and_every_weight_has_its_words() {
        for rules in [AIHUB.as_slice(), MLPERF_RULES.as_slice()] {
            let mut ids: Vec<&str> = rules.iter().map(|rule| rule.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), rules.len());
            assert!(rules.iter().all(|rule| rule.worth_percent.is_none() || rule.worth.is_some()));
        }
    }
}
