//! Differences and their intervals, within a launch and between launches.

use super::*;

/// How many of `seeds` pairs have an interval that contains `truth`.
fn covered(seeds: u64, count: usize, factor: f64, correlation: f64, statistic: Statistic) -> u64 {
    let holds = |seed: &u64| {
        let a = latencies(2 * seed + 1, count, 1000.0, correlation);
        let b = latencies(2 * seed + 2, count, 1000.0 * factor, correlation);
        let (one, two) = (Resampled::new(&a, 300, 0).unwrap(), Resampled::new(&b, 300, 1).unwrap());
        let figure = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            match statistic {
                Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
                Statistic::P95 => sorted[(values.len() as f64 * 0.95 - 1e-9).ceil() as usize - 1],
                _ => sorted[(values.len() as f64 * 0.5 - 1e-9).ceil() as usize - 1],
            }
        };
        let [low, high] = relative_interval(statistic, (&one, figure(&a)), (&two, figure(&b))).unwrap();
        low <= factor - 1.0 && factor - 1.0 <= high
    };
    (0..seeds).filter(holds).count() as u64
}

#[test]
fn intervals_hold_the_truth_for_independent_latencies() {
    for (statistic, factor) in
        [(Statistic::P50, 1.0), (Statistic::P50, 1.1), (Statistic::Mean, 0.8), (Statistic::P95, 1.0)]
    {
        let covered = covered(100, 300, factor, 0.0, statistic);
        assert!((87..=100).contains(&covered), "{statistic:?} {factor}: {covered} of 100");
    }
}

#[test]
fn intervals_hold_the_truth_for_latencies_that_follow_each_other() {
    // Single draws would contain it in about 70 of 100 pairs here.
    let covered = covered(100, 600, 1.0, 0.7, Statistic::Mean);
    assert!(covered >= 85, "{covered} of 100");
}

#[test]
fn a_clear_difference_is_told_and_its_interval_is_narrow() {
    let comparison = two(&latencies(1, 500, 1000.0, 0.3), &latencies(2, 500, 1100.0, 0.3));
    for id in ["p50_us", "p95_us", "throughput_ips"] {
        let difference = difference(&comparison, id, 1);
        assert_eq!(difference.verdict, DifferenceVerdict::Worse, "{id} {difference:?}");
        assert_eq!(difference.no_interval, None);
        assert!(row(&comparison, id).cells[0].best && !row(&comparison, id).cells[1].best);
    }
    let [low, high] = difference(&comparison, "p50_us", 1).ci95.unwrap();
    assert!(0.075 < low && low < 0.1 && 0.1 < high && high < 0.125, "{low} {high}");
    let [low, high] = difference(&comparison, "throughput_ips", 1).ci95.unwrap();
    let truth = 1000.0 / 1100.0 - 1.0;
    assert!(low < truth && truth < high && high < 0.0, "{low} {high}");
    // In the other order it is better.
    let comparison = two(&latencies(2, 500, 1100.0, 0.3), &latencies(1, 500, 1000.0, 0.3));
    assert_eq!(difference(&comparison, "p50_us", 1).verdict, DifferenceVerdict::Better);
    assert_eq!(difference(&comparison, "throughput_ips", 1).verdict, DifferenceVerdict::Better);
}

#[test]
fn equal_runs_are_within_noise_and_none_is_best() {
    let values = latencies(1, 500, 1000.0, 0.3);
    let comparison = two(&values, &values);
    for id in ["p50_us", "p95_us", "p99_us", "jitter_us", "throughput_ips"] {
        assert_eq!(difference(&comparison, id, 1).verdict, DifferenceVerdict::WithinNoise, "{id}");
        assert!(row(&comparison, id).cells.iter().all(|cell| !cell.best), "{id}");
    }
}

#[test]
fn comparing_twice_gives_the_same() {
    let (a, b) = (latencies(1, 200, 1000.0, 0.5), latencies(2, 200, 1005.0, 0.5));
    assert_eq!(two(&a, &b), two(&a, &b));
}

#[test]
fn figures_without_an_interval_say_why() {
    let mut old = one_launch(Backend::Cpu, &latencies(1, 200, 1000.0, 0.0));
    old.latency.as_mut().unwrap().series = None;
    let few = one_launch(Backend::Cpu, &latencies(2, 10, 1000.0, 0.0));
    let new = side(Backend::Cpu, &latencies(3, 200, 1000.0, 0.0));
    let short = side(Backend::Cpu, &latencies(4, 200, 1000.0, 0.0));
    let comparison = compare(&[new, old, few, short], &CompareOptions::default());
    for (id, column, part) in [
        ("p50_us", 1, "2 has one launch"),
        ("p50_us", 2, "3 has one launch"),
        ("load_us", 1, "once per run"),
        ("max_us", 1, "grows"),
        ("p99_us", 3, "launches of 1 have up to 40 inferences"),
    ] {
        let Some(difference) = row(&comparison, id).cells[column].difference.as_ref() else {
            assert_eq!(id, "p99_us", "200 inferences support it");
            continue;
        };
        assert_eq!((difference.verdict, difference.ci95), (DifferenceVerdict::Unknown, None));
        let reason = difference.no_interval.as_ref().unwrap();
        assert!(reason.contains(part), "{id}: {reason}");
        assert_eq!(difference.within_ci95, None, "{id}: too few latencies, or none were kept");
    }
}

#[test]
fn one_launch_is_not_known_however_many_inferences_it_has() {
    let (a, b) = (latencies(1, 2000, 1000.0, 0.3), latencies(2, 2000, 1500.0, 0.3));
    for sides in
        [[one_launch(Backend::Cpu, &a), side(Backend::Cpu, &b)], [side(Backend::Cpu, &a), one_launch(Backend::Cpu, &b)]]
    {
        let comparison = compare(&sides, &CompareOptions::default());
        for id in ["p50_us", "p95_us", "throughput_ips"] {
            let difference = difference(&comparison, id, 1);
            assert_eq!((difference.verdict, difference.ci95), (DifferenceVerdict::Unknown, None), "{id}");
            let [low, high] = difference.within_ci95.unwrap();
            assert!(low * high > 0.0, "within them the difference is clear: {id} {low} {high}");
        }
    }
}

/// Latencies of launches on these levels.
fn on_levels(seed: u64, levels_us: &[f64]) -> Vec<f64> {
    levels_us.iter().zip(seed..).flat_map(|(level, seed)| latencies(seed, 100, *level, 0.3)).collect()
}

#[test]
fn what_launches_vary_is_no_difference_and_how_many_would_decide_is_told() {
    let a = on_levels(10, &[1000.0, 1100.0, 950.0, 1040.0, 1010.0]);
    let b = on_levels(20, &[1030.0, 1130.0, 980.0, 1070.0, 1040.0]);
    let comparison = two(&a, &b);
    let seen = difference(&comparison, "p50_us", 1);
    assert_eq!(seen.verdict, DifferenceVerdict::WithinNoise, "{seen:?}");
    assert!(seen.up_to.unwrap() > 0.05 && seen.launches_to_tell.is_none(), "{seen:?}");
    assert!(row(&comparison, "p50_us").cells.iter().all(|cell| !cell.best));
    // Equal runs differ by 3 %, and more launches do not change that; above 3.5 %, more launches do help.
    let c = on_levels(20, &[1080.0, 1190.0, 1030.0, 1120.0, 1090.0]);
    assert!(difference(&two(&a, &c), "p50_us", 1).launches_to_tell.unwrap() > 20);
    // Equally noisy inferences in launches that agree resolve less than the largest of these differences.
    let told = two(&on_levels(10, &[1000.0; 5]), &on_levels(20, &[1080.0; 5]));
    assert_eq!(difference(&told, "p50_us", 1).verdict, DifferenceVerdict::Worse);
    assert_eq!(difference(&told, "p50_us", 1).up_to, None);
}

#[test]
fn launches_that_others_hold_up_tell_nothing_of_a_difference() {
    let crowded = "other processes kept 1.6 of 2 cores busy (80 %)";
    let seen = |levels: &[f64], crowded: Option<&str>| {
        let sides = [(1, 1.0), (20, 2.0)].map(|(seed, factor)| {
            let levels: Vec<f64> = levels.iter().map(|us| us * factor).collect();
            let all = on_levels(seed, &levels);
            let mut side = side(Backend::Cpu, &all);
            side.latency.as_mut().unwrap().launches = all.chunks(100).map(launch).collect();
            side.crowded = crowded.map(ToOwned::to_owned);
            side
        });
        difference(&compare(&sides, &CompareOptions::default()), "p50_us", 1).clone()
    };
    let (scattered, alike) =
        ([1000.0, 1300.0, 1010.0, 1310.0, 1320.0, 990.0], [1000.0, 1010.0, 1400.0, 1020.0, 990.0, 1005.0]);
    let held_up = seen(&scattered, Some(crowded));
    assert_eq!((held_up.verdict, held_up.ci95), (DifferenceVerdict::Unknown, None));
    let reason = held_up.no_interval.unwrap();
    assert!(reason.contains("1.6 of 2 cores") && reason.contains("--pin 0"), "{reason}");
    assert_eq!(seen(&scattered, None).verdict, DifferenceVerdict::Worse, "nobody was there to hold them up");
    assert_eq!(
        seen(&alike, Some(crowded)).verdict,
        DifferenceVerdict::Worse,
        "one launch that was held up is not their middle half"
    );
}

#[test]
fn the_fastest_inferences_show_what_a_busy_machine_hides() {
    // Other processes hold up launches for arbitrarily long; each launch still has undisturbed inferences.
    let busy = |seed: u64, us: f64| -> Vec<f64> {
        let mut all = on_levels(seed, &[2.0 * us, 5.0 * us, 3.0 * us, 2.2 * us, 4.0 * us, 6.0 * us]);
        all.chunks_mut(100).zip(0u32..).for_each(|(launch, at)| launch[50] = us * (1.0 + 0.002 * f64::from(at)));
        all
    };
    let sides = |a: &[f64], b: &[f64]| {
        [a, b].map(|all| {
            let mut side = side(Backend::Cpu, all);
            side.latency.as_mut().unwrap().launches = all.chunks(100).map(launch).collect();
            side
        })
    };
    let seen = |a: &[f64], b: &[f64]| compare(&sides(a, b), &CompareOptions::default());
    let slower = seen(&busy(1, 1000.0), &busy(20, 1100.0));
    assert_eq!(difference(&slower, "p50_us", 1).verdict, DifferenceVerdict::WithinNoise);
    let fastest = difference(&slower, "fastest_us", 1);
    assert_eq!(fastest.verdict, DifferenceVerdict::Worse, "{fastest:?}");
    assert!((fastest.relative.unwrap() - 0.1).abs() < 0.01, "{fastest:?}");
    let equal = seen(&busy(1, 1000.0), &busy(20, 1000.0));
    assert_eq!(difference(&equal, "fastest_us", 1).verdict, DifferenceVerdict::WithinNoise);
    // The fastest of more inferences is faster; one launch alone has no typical one.
    assert_eq!(one_launch(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0)).latency.unwrap().fastest_us(), None);
    let mut other = sides(&busy(1, 1000.0), &busy(20, 1100.0));
    other[1].latency.as_mut().unwrap().launches.iter_mut().for_each(|launch| launch.samples = 300);
    let told = compare(&other, &CompareOptions::default());
    assert!(difference(&told, "fastest_us", 1).no_interval.as_ref().unwrap().contains("fastest of 300"));
}
