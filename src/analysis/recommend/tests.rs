use super::*;
use crate::analysis::compare::tests::{latencies, side};
use crate::analysis::compare::{GraphFacts, Side, SideFailure, SideSetting};
use crate::devices::soc_by_part;
use crate::event::{Member, Mode, Stage};

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

fn on(part: &str) -> RecommendTarget<'static> {
    RecommendTarget { soc: Some(soc_by_part(part).unwrap()) }
}

fn chosen(facts: &GraphFacts, target: RecommendTarget<'_>) -> Option<Backend> {
    expected(facts, target, &[], &Constraints::default()).backend
}

fn recommend(sides: &[Side], constraints: &Constraints) -> Recommendation {
    measured(sides, &[], RecommendTarget::default(), constraints).unwrap()
}

fn nothing_to_choose(sides: &[Side]) -> bool {
    measured(sides, &[], RecommendTarget::default(), &Constraints::default()).is_none()
}

#[test]
fn the_graph_and_the_soc_decide_where_nothing_was_measured() {
    assert_eq!(chosen(&facts(Arithmetic::Int8), on("SM8650")), Some(Backend::Htp));
    assert_eq!(chosen(&facts(Arithmetic::Int16), on("SM8650")), Some(Backend::Htp));
    // v73 without fp16: only the SoC table shows it.
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
    assert!(
        answer.would_change.iter().any(|change| change.contains("that cpu or gpu refuses: not checked")),
        "{answer:?}"
    );
}

#[test]
fn what_would_change_the_answer_is_told() {
    let answer = expected(&facts(Arithmetic::Float), on("SM8635"), &[], &Constraints::default());
    assert!(answer.would_change.iter().any(|change| change.contains("quantising")), "{answer:?}");
    let answer = expected(&facts(Arithmetic::Float), RecommendTarget::default(), &[], &Constraints::default());
    assert!(answer.would_change.iter().any(|change| change.contains("--soc")), "{answer:?}");
}

#[test]
fn constants_beyond_the_memory_are_a_missed_constraint_and_nothing_is_invented() {
    let constraints = Constraints { max_memory_mb: Some(5.0), latency_budget_ms: Some(1.0), ..Constraints::default() };
    let answer = expected(&facts(Arithmetic::Int8), on("SM8650"), &[], &constraints);
    assert_eq!(answer.backend, None);
    for candidate in &answer.candidates {
        let [latency, memory] = candidate.constraints.as_slice() else { panic!("{candidate:?}") };
        assert_eq!((latency.value, latency.met), (None, None));
        assert_eq!(memory.met, Some(false));
    }
    let roomy = Constraints { max_memory_mb: Some(500.0), ..Constraints::default() };
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
    assert!(nothing_to_choose(&sides[..1]));
}

#[test]
fn a_simulated_run_does_not_win_by_its_time() {
    let mut htp = side(Backend::Htp, &latencies(1, 200, 1.0, 0.0));
    htp.simulated = true;
    htp.facts = Some(facts(Arithmetic::Int8));
    let cpu = side(Backend::Cpu, &latencies(2, 200, 1000.0, 0.0));
    let constraints = Constraints { latency_budget_ms: Some(5.0), ..Constraints::default() };
    let answer = recommend(&[htp.clone(), cpu.clone()], &constraints);
    assert_eq!((answer.backend, answer.column), (Some(Backend::Cpu), Some(1)));
    let simulated = answer.candidates.iter().find(|candidate| candidate.simulated).unwrap();
    assert_eq!((simulated.score, simulated.constraints[0].met), (None, None));
    assert!(answer.to_measure.iter().any(|wanted| wanted.contains("on a device")), "{answer:?}");
    assert!(answer.summary.contains("HTP was simulated"), "{}", answer.summary);
    // The same if the real run misses the constraint.
    let tight = Constraints { latency_budget_ms: Some(0.1), ..Constraints::default() };
    let missed = recommend(&[htp.clone(), cpu], &tight);
    assert_eq!((missed.basis, missed.backend), (Basis::Measured, None));
    assert!(missed.to_measure.iter().any(|wanted| wanted.contains("it was simulated here")), "{missed:?}");
    assert!(missed.to_measure.iter().any(|wanted| wanted.contains("suggests htp")), "{missed:?}");
    // With only simulated runs the graph decides, and the answer says so.
    let elsewhere = Side { device: "other".to_owned(), ..htp.clone() };
    let answer = recommend(&[htp, elsewhere], &Constraints::default());
    assert!(answer.would_change.iter().any(|change| change.contains("that cpu or gpu refuses:")), "{answer:?}");
    assert_eq!((answer.basis, answer.backend), (Basis::Graph, Some(Backend::Htp)));
    assert!(answer.summary.contains("no run has figures"), "{}", answer.summary);
}

#[test]
fn constraints_rule_runs_out() {
    let mut quick = side(Backend::Gpu, &latencies(1, 200, 1000.0, 0.0));
    quick.memory_peak = Some(900.0 * 1_048_576.0);
    let slow = side(Backend::Cpu, &latencies(2, 200, 3000.0, 0.0));
    let sides = [quick, slow];
    let lean = Constraints { max_memory_mb: Some(200.0), ..Constraints::default() };
    let answer = recommend(&sides, &lean);
    assert_eq!(answer.backend, Some(Backend::Cpu));
    assert!(answer.candidates[1].reasons[0].contains("900 MiB against a limit of 200 MiB"), "{answer:?}");
    let tight = Constraints { max_memory_mb: Some(200.0), latency_budget_ms: Some(2.0), ..Constraints::default() };
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

#[test]
fn a_backend_that_was_not_asked_does_not_win_by_that() {
    let accepted = |backend| Support { backend, asked: 60, refused: Vec::new(), soc: None };
    let said = [accepted(Backend::Htp), accepted(Backend::Cpu)];
    let float = facts(Arithmetic::Float);
    let answer = expected(&float, RecommendTarget::default(), &said, &Constraints::default());
    assert_eq!(answer.backend, Some(Backend::Htp), "{answer:?}");
    let gpu = answer.candidates.iter().find(|candidate| candidate.backend == Backend::Gpu).unwrap();
    assert!(gpu.reasons.iter().any(|reason| reason.contains("op support is unknown")), "{gpu:?}");
    assert!(answer.would_change.iter().any(|change| change.contains("that gpu refuses:")), "{answer:?}");
    // It may still win if the others cannot run the model, and if no backend was asked none is penalised.
    assert_eq!(expected(&float, on("SM8635"), &said, &Constraints::default()).backend, Some(Backend::Gpu));
    let open = expected(&float, RecommendTarget::default(), &[], &Constraints::default());
    assert!(open.candidates.iter().all(|candidate| !candidate.reasons.iter().any(|r| r.contains("unknown: it"))));
    let all = |change: &String| ["cpu", "gpu", "htp"].into_iter().all(|backend| change.contains(backend));
    assert!(open.would_change.iter().any(|change| change.contains(" refuses: ") && all(change)), "{open:?}");
}

#[test]
fn the_best_is_tested_against_each_of_the_others() {
    let quick = latencies(1, 200, 1000.0, 0.0);
    let slow = side(Backend::Cpu, &latencies(2, 200, 3000.0, 0.0));
    let sides = [slow, side(Backend::Gpu, &quick), side(Backend::Gpu, &quick)];
    let answer = recommend(&sides, &Constraints::default());
    assert_eq!(answer.column, Some(1));
    assert!(answer.summary.contains("column 3 is not told apart"), "{}", answer.summary);
}

#[test]
fn ties_are_told_by_the_figure_that_orders() {
    // Medians are alike; the second has a longer tail, and 200 latencies give no interval for p99.
    let even = latencies(1, 200, 1000.0, 0.0);
    let mut spiky = latencies(2, 200, 1000.0, 0.0);
    (0..8).for_each(|at| spiky[25 * at] = 1500.0);
    let tails = Constraints { latency_critical: true, ..Constraints::default() };
    let answer = recommend(&[side(Backend::Cpu, &even), side(Backend::Gpu, &spiky)], &tails);
    assert_eq!(answer.backend, Some(Backend::Cpu));
    assert!(answer.summary.contains("not tested against column 2"), "{}", answer.summary);
    assert!(!answer.summary.contains("told apart from"), "{}", answer.summary);
    let many = |seed| latencies(seed, 1000, 1000.0, 0.0);
    let answer = recommend(&[side(Backend::Cpu, &many(1)), side(Backend::Gpu, &many(2))], &tails);
    assert!(answer.summary.contains("by p99 column"), "{}", answer.summary);
}

fn member(group: u32, index: u32, of: u32) -> Member {
    Member { group, index, of }
}

#[test]
fn rounds_are_one_candidate() {
    let round = |backend, group, index, seed, us| {
        let mode = Mode { repeat: Some(member(group, index, 2)), ..Mode::default() };
        Side { mode, ..side(backend, &latencies(seed, 60, us, 0.0)) }
    };
    let sides = [
        round(Backend::Cpu, 0, 0, 1, 2000.0),
        round(Backend::Gpu, 1, 0, 2, 1000.0),
        round(Backend::Cpu, 0, 1, 3, 2000.0),
        round(Backend::Gpu, 1, 1, 4, 1000.0),
    ];
    let budget = Constraints { latency_budget_ms: Some(1.5), ..Constraints::default() };
    let answer = recommend(&sides, &budget);
    assert_eq!((answer.backend, answer.column, answer.candidates.len()), (Some(Backend::Gpu), Some(1), 2));
    assert!(answer.candidates[0].reasons.contains(&"2 rounds together".to_owned()), "{answer:?}");
    // A round of 60 supports p95, and both together are compared by the same percentile.
    assert!(answer.candidates[0].constraints[0].text.starts_with("p95 "), "{answer:?}");
    assert_eq!(answer.candidates[1].column, Some(0));
    assert!(nothing_to_choose(&[sides[0].clone(), sides[2].clone()]), "an A/A test has no winner");
    let again = Side { mode: Mode { repeat: Some(member(1, 0, 2)), ..Mode::default() }, ..sides[0].clone() };
    assert!(nothing_to_choose(&[sides[0].clone(), again]));
}

#[test]
fn one_rate_of_a_sweep_counts_for_all_backends() {
    let at = |backend, group: u32, index: u32, rate_hz: Option<f64>, us: f64| {
        let mode = Mode { rate_hz, sweep: Some(member(group, index, 3)), ..Mode::default() };
        let plain = side(backend, &latencies(u64::from(3 * group + index), 60, us, 0.0));
        Side { service: rate_hz.and(plain.latency.clone()), mode, ..plain }
    };
    let rates = [Some(10.0), Some(50.0), Some(400.0)];
    let sweep = |backend, group: u32, us: f64, rates: [Option<f64>; 3]| {
        (0u32..).zip(rates).map(|(index, rate)| at(backend, group, index, rate, us)).collect::<Vec<_>>()
    };
    assert!(nothing_to_choose(&sweep(Backend::Cpu, 0, 3000.0, rates)));
    // The slower one cannot sustain 400/s, so both are judged at 50/s.
    let both = [sweep(Backend::Cpu, 0, 3000.0, rates), sweep(Backend::Gpu, 1, 1000.0, rates)].concat();
    let answer = recommend(&both, &Constraints::default());
    assert_eq!((answer.backend, answer.column, answer.candidates.len()), (Some(Backend::Gpu), Some(4), 2));
    assert!(answer.candidates[0].reasons.iter().any(|reason| reason.contains("50/s counts")), "{answer:?}");
    let free = [Some(10.0), Some(50.0), None];
    let both = [sweep(Backend::Cpu, 0, 3000.0, free), sweep(Backend::Gpu, 1, 1000.0, free)].concat();
    assert_eq!(recommend(&both, &Constraints::default()).column, Some(5));
}

#[test]
fn a_choice_takes_another_backend_device_model_or_setting() {
    let base = side(Backend::Cpu, &latencies(1, 60, 1000.0, 0.0));
    let other = side(Backend::Cpu, &latencies(2, 60, 1000.0, 0.0));
    assert!(nothing_to_choose(&[base.clone(), other.clone()]));
    let setting = SideSetting { key: "cpu_config.num_threads".to_owned(), value: "2".to_owned(), applied: true };
    for changed in [
        Side { device: "phone".to_owned(), ..other.clone() },
        Side { model_sha256: Some("b".repeat(64)), ..other.clone() },
        Side { settings: vec![setting], ..other },
    ] {
        assert!(!nothing_to_choose(&[base.clone(), changed]));
    }
}

#[test]
fn the_percentile_of_a_budget_is_the_one_of_the_findings() {
    let sides =
        [side(Backend::Cpu, &latencies(1, 60, 1000.0, 0.0)), side(Backend::Gpu, &latencies(2, 200, 900.0, 0.0))];
    for (percent, texts) in [(None, ["p99 ", "p95 "]), (Some(50.0), ["p50 ", "p50 "]), (Some(75.0), ["p75 ", "p75 "])] {
        let constraints =
            Constraints { latency_budget_ms: Some(5.0), latency_percent: percent, ..Constraints::default() };
        let answer = recommend(&sides, &constraints);
        for (candidate, text) in answer.candidates.iter().zip(texts) {
            let check = &candidate.constraints[0];
            assert!(check.text.starts_with(text) && check.met == Some(true), "{check:?}");
            assert!(check.text.ends_with("against a budget of 5.00 ms"), "{check:?}");
        }
    }
    let constraints =
        Constraints { latency_budget_ms: Some(5.0), latency_percent: Some(99.0), ..Constraints::default() };
    let few = recommend(&sides, &constraints).candidates.into_iter().find(|one| one.backend == Backend::Cpu).unwrap();
    assert_eq!((few.constraints[0].met, few.eligible), (None, true));
    assert!(few.constraints[0].text.contains("p99 needs at least 100 inferences; there are 60"), "{few:?}");
}
