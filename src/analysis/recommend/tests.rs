use super::*;
use crate::analysis::compare::tests::{latencies, side};
use crate::analysis::compare::{CompareOptions, GraphFacts, Side, SideFailure, compare};
use crate::devices::soc_by_part;
use crate::event::Stage;

fn facts(arithmetic: Arithmetic) -> GraphFacts {
    GraphFacts {
        ops: 60,
        macs: 500_000_000,
        parameter_bytes: 10 << 20,
        largest_activation_bytes: 1 << 20,
        arithmetic,
        rank: 4,
        movers: 2,
    }
}

fn on(part: &str) -> Target<'static> {
    Target { soc: Some(soc_by_part(part).unwrap()) }
}

fn chosen(facts: &GraphFacts, target: Target<'_>) -> Option<Backend> {
    expected(facts, target, &[], &Constraints::default()).backend
}

fn recommend(sides: &[Side], constraints: &Constraints) -> Recommendation {
    let comparison = compare(sides, &CompareOptions::default());
    measured(sides, &comparison, Target::default(), constraints).unwrap()
}

#[test]
fn the_graph_and_the_soc_decide_where_nothing_was_measured() {
    assert_eq!(chosen(&facts(Arithmetic::Int8), on("SM8650")), Some(Backend::Htp));
    assert_eq!(chosen(&facts(Arithmetic::Int16), on("SM8650")), Some(Backend::Htp));
    // v73 without fp16: only the table knows.
    assert_eq!(chosen(&facts(Arithmetic::Float), on("SM8635")), Some(Backend::Gpu));
    assert_eq!(chosen(&facts(Arithmetic::Int8), on("SM8250")), Some(Backend::Cpu), "no HTP");
    assert_eq!(chosen(&GraphFacts { macs: 10_000, ..facts(Arithmetic::Float) }, on("SM8650")), Some(Backend::Cpu));
    assert_ne!(chosen(&GraphFacts { rank: 6, ..facts(Arithmetic::Int8) }, on("SM8650")), Some(Backend::Htp));
}

#[test]
fn refused_ops_rule_a_backend_out() {
    let refused = Support { backend: Backend::Htp, asked: 60, refused: vec!["topk".to_owned()], soc: None };
    let answer = expected(&facts(Arithmetic::Int8), on("SM8650"), &[refused], &Constraints::default());
    assert_ne!(answer.backend, Some(Backend::Htp));
    let htp = answer.candidates.iter().find(|candidate| candidate.backend == Backend::Htp).unwrap();
    assert!(!htp.eligible && htp.reasons[0].contains("topk"), "{htp:?}");
    let accepted = Support { backend: Backend::Htp, asked: 60, refused: Vec::new(), soc: None };
    let answer = expected(&facts(Arithmetic::Int8), on("SM8650"), &[accepted], &Constraints::default());
    assert_eq!(answer.backend, Some(Backend::Htp));
    assert!(!answer.would_change.iter().any(|change| change.contains("not asked")));
}

#[test]
fn what_would_change_the_answer_is_told() {
    let answer = expected(&facts(Arithmetic::Float), on("SM8635"), &[], &Constraints::default());
    assert!(answer.would_change.iter().any(|change| change.contains("quantising")), "{answer:?}");
    let answer = expected(&facts(Arithmetic::Float), Target::default(), &[], &Constraints::default());
    assert!(answer.would_change.iter().any(|change| change.contains("--soc")), "{answer:?}");
}

#[test]
fn constants_beyond_the_memory_are_a_missed_constraint_and_nothing_is_invented() {
    let constraints = Constraints { max_memory_mb: Some(5), latency_budget_ms: Some(1.0), ..Constraints::default() };
    let answer = expected(&facts(Arithmetic::Int8), on("SM8650"), &[], &constraints);
    assert_eq!(answer.backend, None);
    for candidate in &answer.candidates {
        let [latency, memory] = candidate.constraints.as_slice() else { panic!("{candidate:?}") };
        assert_eq!((latency.value, latency.met), (None, None));
        assert_eq!(memory.met, Some(false));
    }
    let roomy = Constraints { max_memory_mb: Some(500), ..Constraints::default() };
    let answer = expected(&facts(Arithmetic::Int8), on("SM8650"), &[], &roomy);
    assert_eq!(answer.candidates[0].constraints[0].met, None, "constants are not all of the memory");
}

#[test]
fn the_quicker_run_is_recommended() {
    let sides =
        [side(Backend::Cpu, &latencies(1, 200, 2000.0, 0.0)), side(Backend::Gpu, &latencies(2, 200, 1000.0, 0.0))];
    let answer = recommend(&sides, &Constraints::default());
    assert_eq!((answer.basis, answer.backend, answer.column), (Basis::Measured, Some(Backend::Gpu), Some(1)));
    assert!((answer.candidates[1].score.unwrap() - 50.0).abs() < 2.0, "{answer:?}");
    assert!(
        measured(
            &sides[..1],
            &compare(&sides[..1], &CompareOptions::default()),
            Target::default(),
            &Constraints::default()
        )
        .is_none()
    );
}

#[test]
fn a_simulated_run_does_not_win_by_its_time() {
    let mut htp = side(Backend::Htp, &latencies(1, 200, 1.0, 0.0));
    htp.simulated = true;
    htp.facts = Some(facts(Arithmetic::Int8));
    let cpu = side(Backend::Cpu, &latencies(2, 200, 1000.0, 0.0));
    let constraints = Constraints { latency_budget_ms: Some(5.0), ..Constraints::default() };
    let answer = recommend(&[htp.clone(), cpu], &constraints);
    assert_eq!((answer.backend, answer.column), (Some(Backend::Cpu), Some(1)));
    let simulated = answer.candidates.iter().find(|candidate| candidate.simulated).unwrap();
    assert_eq!((simulated.score, simulated.constraints[0].met), (None, None));
    assert!(answer.to_measure.iter().any(|wanted| wanted.contains("on a device")), "{answer:?}");
    assert!(answer.summary.contains("HTP was simulated"), "{}", answer.summary);
    // With nothing but simulated runs the graph decides, and says so.
    let answer = recommend(&[htp.clone(), htp], &Constraints::default());
    assert_eq!((answer.basis, answer.backend), (Basis::Graph, Some(Backend::Htp)));
    assert!(answer.summary.contains("no run gave figures"), "{}", answer.summary);
}

#[test]
fn constraints_rule_runs_out() {
    let mut quick = side(Backend::Gpu, &latencies(1, 200, 1000.0, 0.0));
    quick.memory_peak = Some(900.0 * 1_048_576.0);
    let slow = side(Backend::Cpu, &latencies(2, 200, 3000.0, 0.0));
    let sides = [quick, slow];
    let lean = Constraints { max_memory_mb: Some(200), ..Constraints::default() };
    let answer = recommend(&sides, &lean);
    assert_eq!(answer.backend, Some(Backend::Cpu));
    assert!(answer.candidates[1].reasons[0].contains("900.0 MB against a limit of 200 MB"), "{answer:?}");
    let tight = Constraints { max_memory_mb: Some(200), latency_budget_ms: Some(2.0), ..Constraints::default() };
    let answer = recommend(&sides, &tight);
    assert_eq!((answer.basis, answer.backend, answer.column), (Basis::Measured, None, None));
    assert!(answer.summary.contains("no run"), "{}", answer.summary);
}

#[test]
fn energy_decides_where_power_is_critical_and_known() {
    let mut quick = side(Backend::Gpu, &latencies(1, 200, 1000.0, 0.0));
    let mut lean = side(Backend::Cpu, &latencies(2, 200, 2000.0, 0.0));
    let power = Constraints { power_critical: true, ..Constraints::default() };
    let answer = recommend(&[quick.clone(), lean.clone()], &power);
    assert_eq!(answer.backend, Some(Backend::Gpu));
    assert!(answer.would_change.iter().any(|change| change.contains("energy")), "{answer:?}");
    (quick.energy_mj, lean.energy_mj) = (Some(9.0), Some(3.0));
    assert_eq!(recommend(&[quick, lean], &power).backend, Some(Backend::Cpu));
}

#[test]
fn runs_that_noise_does_not_set_apart_are_a_tie() {
    let sides =
        [side(Backend::Cpu, &latencies(1, 200, 1000.0, 0.0)), side(Backend::Gpu, &latencies(2, 200, 1000.0, 0.0))];
    let answer = recommend(&sides, &Constraints::default());
    assert!(answer.summary.contains("not clearly"), "{}", answer.summary);
}

#[test]
fn failed_runs_and_wrong_outputs_do_not_win() {
    let mut failed = side(Backend::Gpu, &latencies(1, 200, 100.0, 0.0));
    failed.latency = None;
    failed.failure = Some(SideFailure {
        stage: Stage::Compose,
        call: "graphAddNode".to_owned(),
        code: Some(3110),
        message: "no".to_owned(),
        op: None,
    });
    let good = side(Backend::Cpu, &latencies(2, 200, 1000.0, 0.0));
    let answer = recommend(&[failed, good], &Constraints::default());
    assert_eq!(answer.backend, Some(Backend::Cpu));
    assert!(answer.summary.contains("the others failed"), "{}", answer.summary);
}
