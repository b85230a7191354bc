//! Which figures are compared, and which cannot win.

use super::*;

#[test]
fn paused_inferences_do_not_tell_the_throughput() {
    let mut paced = side(Backend::Cpu, &latencies(1, 200, 1000.0, 0.0));
    paced.throughput_ips = Some(30.0);
    let comparison = compare(&[paced.clone(), paced], &CompareOptions::default());
    let reason = difference(&comparison, "throughput_ips", 1).no_interval.as_ref().unwrap();
    assert!(reason.contains("did not run back to back"), "{reason}");
}

#[test]
fn simulated_runs_win_nothing_by_their_times() {
    let mut simulated = side(Backend::Htp, &latencies(1, 200, 10.0, 0.0));
    simulated.simulated = true;
    simulated.memory_peak = Some(1.0);
    let real = side(Backend::Cpu, &latencies(2, 200, 1000.0, 0.0));
    let slower = side(Backend::Gpu, &latencies(3, 200, 2000.0, 0.0));
    let comparison = compare(&[simulated.clone(), real, slower], &CompareOptions::default());
    for id in ["p50_us", "throughput_ips", "memory_peak_bytes"] {
        assert!(!row(&comparison, id).cells[0].best, "{id}");
        assert_eq!(difference(&comparison, id, 1).verdict, DifferenceVerdict::NotComparable, "{id}");
        assert_eq!(difference(&comparison, id, 2).verdict, DifferenceVerdict::NotComparable, "{id}");
    }
    assert!(row(&comparison, "p50_us").cells[1].best);
    assert_eq!(comparison.mismatches.iter().filter(|found| found.id == "simulated").count(), 2);
    // Among simulated runs, the faster one is marked.
    let mut other = simulated.clone();
    other.latency = side(Backend::Htp, &latencies(4, 200, 20.0, 0.0)).latency;
    assert!(row(&compare(&[simulated, other], &CompareOptions::default()), "p50_us").cells[0].best);
}

#[test]
fn thinned_latencies_are_moved_to_the_figures_of_all() {
    let all: Vec<f32> = latencies(1, 20_000, 1000.0, 0.0).iter().map(|us| *us as f32).collect();
    let series = Series::thinned(&all);
    assert_eq!((series.stride, series.values.len()), (5, 4000));
    assert_eq!(Series::thinned(&all[..4000]).stride, 1);
    assert!(Series::thinned(&[]).values.is_empty());
    let thinned = Resampled::new(&series.values, 300, 0).unwrap();
    let [low, high] = relative_interval(Statistic::P50, (&thinned, 1000.0), (&thinned, 1010.0)).unwrap();
    assert!(low < 0.01 && 0.01 < high && low > 0.005 && high < 0.015, "{low} {high}");
}

#[test]
fn a_ring_of_equal_blocks_has_the_figures_of_the_values() {
    // Resampled figures are shifted by the difference between the given figures and their own: with equal
    // figures they stay put.
    let values: Vec<f64> = (1..=1000).map(f64::from).collect();
    let one = Resampled::new(&values, 50, 0).unwrap();
    let constant = Resampled::new(&[7.0; 1000], 50, 1).unwrap();
    for (statistic, figure) in [
        (Statistic::P50, 500.0),
        (Statistic::P95, 950.0),
        (Statistic::P99, 990.0),
        (Statistic::Mean, 500.5),
        (Statistic::Stddev, 288.819_436),
    ] {
        // Against a constant shifted to 1, the interval is that of the values and contains their figure.
        let [low, high] = relative_interval(statistic, (&constant, 1.0), (&one, figure)).unwrap();
        assert!(low + 1.0 <= figure && figure <= high + 1.0, "{statistic:?}: {low} {high}");
        let flat = relative_interval(statistic, (&constant, 7.0), (&constant, 14.0)).unwrap();
        assert!(flat.iter().all(|bound| (bound - 1.0).abs() < 1e-12), "{statistic:?}");
    }
}

/// The run at a rate: latencies count from planned starts, and the schedule makes them long.
fn paced(backend: Backend, latencies_us: &[f64], rate_hz: f64) -> Side {
    let alone = side(backend, latencies_us);
    let late: Vec<f64> = latencies_us.iter().map(|us| us + 3e6).collect();
    let mode = crate::event::Mode { rate_hz: Some(rate_hz), ..crate::event::Mode::default() };
    Side { service: alone.latency, mode, throughput_ips: Some(rate_hz), ..side(backend, &late) }
}

#[test]
fn runs_of_different_schedules_are_compared_by_their_inferences_alone() {
    let (slow, tight) = (latencies(1, 200, 2000.0, 0.0), latencies(2, 200, 1000.0, 0.0));
    let comparison =
        compare(&[paced(Backend::Cpu, &slow, 20.0), side(Backend::Cpu, &tight)], &CompareOptions::default());
    assert!(comparison.alone);
    let relative = difference(&comparison, "p50_us", 1).relative.unwrap();
    assert!((relative + 0.5).abs() < 0.05, "{relative}");
    assert_eq!(difference(&comparison, "p50_us", 1).verdict, DifferenceVerdict::Better);
    assert_eq!(comparison.mismatches.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["rate"]);
    let text = &comparison.mismatches[0].text;
    assert!(text.contains("1 was paced at 20/s") && text.contains("inferences alone"), "{text}");
    // A queue keeps the backend as busy as a tight loop does, and its rate is not the model's throughput.
    assert_eq!(difference(&comparison, "throughput_ips", 1).verdict, DifferenceVerdict::Unknown);
    assert!(row(&comparison, "throughput_ips").cells.iter().all(|cell| !cell.best));
    // At a single rate, the latencies from planned starts are what was requested.
    let both = [paced(Backend::Cpu, &slow, 20.0), paced(Backend::Gpu, &tight, 20.0)];
    let comparison = compare(&both, &CompareOptions::default());
    assert!(!comparison.alone && comparison.mismatches.is_empty(), "{:?}", comparison.mismatches);
    assert!(row(&comparison, "p50_us").cells.iter().all(|cell| cell.value.unwrap() > 3e6));
}
