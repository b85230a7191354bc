//! Shares of launches, and when another is added.

use super::*;
use crate::event::InferenceBatch;
use proptest::prelude::*;

fn plan(planned: u32, limit: u32) -> RunPlan {
    let text = r#"{"device":"local","backend":"cpu","model":"m","warmup":1,"budget":{"iterations":100},
        "profiling":"detailed","profiling_budget":{"iterations":25},"simulated":false}"#;
    let mut plan: RunPlan = serde_json::from_str(text).unwrap();
    plan.mode.launches = Launches { planned, limit, seed: 1 };
    plan
}

fn task() -> RunTask {
    let text = r#"{"runtime_dir":"/r","backend":"cpu","model":"/m","graph":null,"inputs":[],"input_list":null,
        "native_input":false,"seed":1,"save_outputs":"/o","save_context":"/c","profile_log":"/p","straight":null,
        "warmup":1,"budget":{"iterations":100},"rate_hz":null,"profiling":"detailed",
        "profiling_budget":{"iterations":25},"settings":[],"log_level":"warning","allow_unknown_runtime":false}"#;
    serde_json::from_str(text).unwrap()
}

fn launched(median_us: u64) -> Launched {
    let mut clean = LatencyStats::default();
    (0..4).for_each(|at| clean.push(at, median_us * 1000));
    Launched { status: RunStatus::Ok, clean, made_all: false, saved: Vec::new(), other: None }
}

fn iterations(budget: Budget) -> u64 {
    match budget {
        Budget::Iterations(count) => count,
        other => panic!("{other:?}"),
    }
}

/// Long enough that launches are not added merely for being cheap.
const SLOW: Duration = Duration::from_secs(7);

#[test]
fn inferences_are_shared_and_files_are_written_once() {
    let mut course = Course::new(&plan(3, 3));
    let tasks: Vec<RunTask> = (0..3).map(|_| course.begin(&task()).1).collect();
    let counts: Vec<(u64, u64)> =
        tasks.iter().map(|task| (iterations(task.budget), iterations(task.profiling_budget))).collect();
    assert_eq!(counts, [(34, 9), (33, 8), (33, 8)]);
    assert!(tasks[0].save_outputs.is_some() && tasks[0].save_context.is_some() && tasks[0].profile_log.is_some());
    for task in &tasks[1..] {
        assert_eq!((&task.save_outputs, &task.save_context, &task.profile_log), (&None, &None, &None));
    }
    assert!(tasks.iter().all(|task| task.slow_load.is_none()), "the user asked for three");
}

#[test]
fn launches_that_only_settle_a_disagreement_are_short_and_leave_layers_out() {
    let mut course = Course::new(&plan(3, 60));
    let mut tasks = Vec::new();
    for at in 0..12 {
        tasks.push(course.begin(&task()).1);
        course.after(&launched(1000 + 1000 * (at % 2)), Duration::from_millis(300));
    }
    let counts: Vec<u64> = tasks.iter().map(|task| iterations(task.profiling_budget)).collect();
    assert_eq!(counts, [9, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0, 0]);
    assert_eq!((tasks[9].profiling, tasks[10].profiling), (ProfilingLevel::Detailed, ProfilingLevel::Off));
    let counts: Vec<u64> = tasks.iter().map(|task| iterations(task.budget)).collect();
    assert_eq!(counts, [34, 33, 33, 33, 33, 33, 33, 33, 33, 33, 17, 17]);

    let mut asked_for = Course::new(&plan(12, 12));
    let last = (0..12).map(|_| asked_for.begin(&task()).1).last().unwrap();
    assert_eq!((iterations(last.budget), last.profiling), (8, ProfilingLevel::Detailed), "as the user asked");
}

#[test]
fn qnn_net_run_measures_layers_in_its_first_launch() {
    let mut course = Course::new(&RunPlan { driver: Driver::NetRun, ..plan(3, 10) });
    let tasks: Vec<RunTask> = (0..3).map(|_| course.begin(&task()).1).collect();
    assert_eq!((tasks[0].profiling, iterations(tasks[0].profiling_budget)), (ProfilingLevel::Detailed, 25));
    assert!(tasks[1..].iter().all(|task| task.profiling == ProfilingLevel::Off));
}

#[test]
fn launches_are_added_while_they_disagree() {
    let mut course = Course::new(&plan(3, 5));
    let mut go = |median_us| {
        let (event, _) = course.begin(&task());
        (course.after(&launched(median_us), SLOW) == Next::Launch, event)
    };
    assert!(go(1000).0 && go(2000).0);
    assert!(go(1000).0, "twice as long is no agreement");
    let (goes_on, event) = go(2000);
    let Event::LaunchStarted { index: 3, of: 4, reason: Some(reason) } = event else { panic!("{event:?}") };
    assert!(reason.contains("apart by a factor of 2.0"), "{reason}");
    assert!(goes_on && !go(1000).0, "five are the limit");

    let mut agreed = Course::new(&plan(3, 10));
    for index in 0..3 {
        agreed.begin(&task());
        let next = agreed.after(&launched(1000), SLOW);
        assert_eq!(next, if index < 2 { Next::Launch } else { Next::Enough });
    }
}

#[test]
fn a_run_that_has_enough_keeps_pace_with_the_one_it_is_compared_with() {
    let mut course = Course::new(&plan(3, 10));
    for _ in 0..3 {
        course.begin(&task());
        course.after(&launched(1000), SLOW);
    }
    course.keep_pace();
    let (event, task) = course.begin(&task());
    let Event::LaunchStarted { index: 3, of: 4, reason: Some(reason) } = event else { panic!("{event:?}") };
    assert!(reason.contains("takes turns"), "{reason}");
    assert_eq!(iterations(task.budget), 33, "as many inferences as the others");
    assert_eq!(course.after(&launched(1000), SLOW), Next::Enough);
}

#[test]
fn a_number_that_was_asked_for_is_kept_to() {
    let mut course = Course::new(&plan(2, 2));
    course.begin(&task());
    assert_eq!(course.after(&launched(1000), Duration::from_secs(1000)), Next::Launch, "however long they take");
    course.begin(&task());
    assert_eq!(course.after(&launched(2000), SLOW), Next::Over, "however far apart they lie");
}

#[test]
fn launches_without_a_median_are_no_reason_for_more() {
    let mut course = Course::new(&plan(3, 10));
    for index in 0..3 {
        course.begin(&task());
        let empty = Launched { clean: LatencyStats::default(), ..launched(1) };
        assert_eq!(course.after(&empty, SLOW), if index < 2 { Next::Launch } else { Next::Over });
    }
}

#[test]
fn a_launch_that_made_everything_or_did_not_end_well_is_the_last() {
    for last in [
        Launched { made_all: true, ..launched(1000) },
        Launched { status: RunStatus::Failed, ..launched(1000) },
        Launched { status: RunStatus::Stopped, ..launched(1000) },
    ] {
        let mut course = Course::new(&plan(3, 10));
        course.begin(&task());
        assert_eq!(course.after(&last, SLOW), Next::Over, "{last:?}");
    }
}

#[test]
fn a_slow_load_makes_all_inferences_in_one_launch() {
    let (_, task) = Course::new(&plan(3, 10)).begin(&task());
    assert_eq!(iterations(task.budgets(9.0).0), 34);
    assert_eq!(task.budgets(11.0), (Budget::Iterations(100), Budget::Iterations(25)));
    assert!(task.slow_load_text(11.0).unwrap().contains("--launches"));
    let gate = LaunchGate::new();
    gate.begin(&task, false, false);
    gate.lets_pass(&Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(100) });
    gate.lets_pass(&Event::RunFinished { status: RunStatus::Ok });
    assert!(gate.end().made_all);
}

#[test]
fn the_gate_keeps_the_end_and_what_was_said_before() {
    let gate = LaunchGate::new();
    let log =
        |text: &str| Event::Log(crate::event::LogLine::new(crate::event::LogLevel::Warning, LogSource::Qnnscope, text));
    gate.begin(&task(), false, false);
    assert!(gate.lets_pass(&log("hot")));
    let batch = |latency_ns| InferenceBatch {
        phase: Phase::Clean,
        first_index: 0,
        start_us: vec![0, 10],
        latency_ns: vec![latency_ns; 2],
        late_ns: Vec::new(),
    };
    assert!(gate.lets_pass(&Event::Inferences(batch(5_000))));
    assert!(!gate.lets_pass(&Event::RunFinished { status: RunStatus::Ok }));
    let first = gate.end();
    assert_eq!((first.status, first.clean.percentile_us(50.0)), (RunStatus::Ok, Some(5.0)));
    gate.begin(&task(), true, false);
    assert!(!gate.lets_pass(&log("hot")) && gate.lets_pass(&log("hotter")));
    let second = gate.end();
    assert_eq!((second.status, second.clean.count()), (RunStatus::Failed, 0), "it never said how it ended");
}

#[test]
fn every_order_comes() {
    let mut seen = std::collections::BTreeMap::new();
    let mut turns = Turns::new(3);
    for _ in 0..600 {
        let mut runs = [0, 1, 2];
        turns.shuffle(&mut runs);
        *seen.entry(runs).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 6);
    assert!(seen.values().all(|count| (60..=140).contains(count)), "{seen:?}");
}

proptest! {
    #[test]
    fn shares_add_up(all in 0..1_000_000u64, of in 1..50u32) {
        let sum: u64 = (0..of).map(|index| iterations(share(Budget::Iterations(all), index, of))).sum();
        prop_assert_eq!(sum, all);
    }
}
