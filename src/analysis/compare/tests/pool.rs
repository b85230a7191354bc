//! Runs and rounds of the same thing combined into one side.

use super::*;

#[test]
fn rounds_and_runs_of_the_same_thing_are_launches_of_one_side() {
    let rounds: Vec<Side> =
        [(0, 0, 1000.0), (1, 0, 1500.0), (0, 1, 1010.0), (1, 1, 1490.0), (0, 2, 990.0), (1, 2, 1510.0)]
            .into_iter()
            .zip(30..)
            .map(|((group, index, level), seed)| {
                let mut side = one_launch(Backend::Cpu, &latencies(seed, 100, level, 0.0));
                side.mode.repeat = Some(crate::event::Member { group, index, of: 3 });
                side
            })
            .collect();
    let pooled = pool_rounds(&rounds);
    assert_eq!(pooled.len(), 2);
    assert_eq!(pooled[0].latency.as_ref().unwrap().launches().len(), 3);
    assert_eq!(pooled[0].together.as_deref(), Some("3 rounds together"));
    let comparison = compare(&pooled, &CompareOptions::default());
    assert_eq!(difference(&comparison, "p50_us", 1).verdict, DifferenceVerdict::Worse);
    assert!((pooled[1].throughput_ips.unwrap() / (1e6 / 1500.0 / 1.01) - 1.0).abs() < 0.02);

    // Files of the same thing, and one on another build that is not.
    let mut files: Vec<Side> =
        (0..4).map(|seed| one_launch(Backend::Cpu, &latencies(50 + seed, 100, 1000.0, 0.0))).collect();
    files[3].build_id = Some("v2.51".to_owned());
    assert_eq!(same_thing(&files[0], &files[1]), Ok(()));
    assert!(same_thing(&files[0], &files[3]).unwrap_err().contains("runtime builds"));
    let pooled = pool_same(&files);
    let launches: Vec<usize> = pooled.iter().map(|side| side.latency.as_ref().unwrap().launches().len()).collect();
    assert_eq!(launches, [3, 1]);
    // A duplicate of a run is not a second launch, whichever run it duplicates.
    files.push(files[1].clone());
    assert_eq!(pool_same(&files).len(), 3);
    for change in [
        (|side: &mut Side| side.device = "phone".to_owned()) as fn(&mut Side),
        |side| side.model_sha256 = None,
        |side| side.model_sha256 = Some("b".repeat(64)),
        |side| side.mode.rate_hz = Some(30.0),
        |side| side.warmup = 50,
        |side| side.latency = None,
    ] {
        let mut other = files[1].clone();
        change(&mut other);
        assert!(same_thing(&files[0], &other).is_err());
    }
}

#[test]
fn rounds_are_put_together_as_one_distribution() {
    let (one, two) = (latencies(1, 60, 1000.0, 0.0), latencies(2, 40, 3000.0, 0.0));
    let [a, b] = [&one, &two].map(|values| side(Backend::Cpu, values).latency.unwrap());
    let all: Vec<f64> = one.iter().chain(&two).copied().collect();
    let (together, truth) = (SideLatency::pooled(&[&a, &b]).unwrap(), side(Backend::Cpu, &all).latency.unwrap());
    assert_eq!((together.count, together.support), (100, 40));
    for (own, truth) in [
        (together.mean, truth.mean),
        (together.stddev, truth.stddev),
        (together.p50, truth.p50),
        (together.p95, truth.p95),
        (together.max, truth.max),
    ] {
        assert!((own.unwrap() / truth.unwrap() - 1.0).abs() < 0.002, "{own:?} {truth:?}");
    }
    // In thinned rounds each latency represents the same number of inferences.
    let mut thin = a.clone();
    thin.series = Some(Series { stride: 4, values: one.iter().step_by(4).copied().collect() });
    let kept = SideLatency::pooled(&[&thin, &b]).unwrap().series.unwrap();
    assert_eq!((kept.stride, kept.values.len()), (4, 25));
    thin.count = u64::MAX;
    assert_eq!(SideLatency::pooled(&[&thin, &b]).map(|all| all.count), Some(u64::MAX));
    thin.series = None;
    assert_eq!(SideLatency::pooled(&[&thin, &b]), None);
    // No percentile that a single round does not support.
    assert_eq!((together.percentile_us(99.0), a.percentile_us(99.9)), (None, None));
    assert!(together.percentile_us(75.0).unwrap() > 2500.0);
}
