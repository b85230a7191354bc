//! Tests of the latency statistics.

use super::*;

fn stats(latencies_us: impl IntoIterator<Item = u64>) -> LatencyStats {
    let mut stats = LatencyStats::default();
    let mut now = 0;
    for us in latencies_us {
        stats.push(now, us * 1000);
        now += us;
    }
    stats
}

#[test]
fn known_sequence() {
    let s = stats(1..=1000);
    assert_eq!(s.mean_us(), Some(500.5));
    assert!((s.stddev_us().unwrap() - 288.819_4).abs() < 0.001);
    assert_eq!((s.min_us(), s.max_us()), (Some(1.0), Some(1000.0)));
    for (percent, expected) in [(50.0, 500.0), (90.0, 900.0), (95.0, 950.0), (99.0, 990.0), (99.9, 999.0)] {
        let got = s.percentile_us(percent).unwrap();
        assert!((got - expected).abs() <= expected * 0.001, "p{percent}: {got}");
    }
    let throughput = s.throughput_ips().unwrap();
    assert!((throughput - 1000.0 * 1e6 / 500_500.0).abs() < 0.01);
}

#[test]
fn time_between_rounds_is_in_no_throughput() {
    let mut s = LatencyStats::default();
    for round in 0..3 {
        s.interrupt();
        for i in 0..10 {
            s.push(round * 1_000_000 + i * 1000, 1_000_000);
        }
    }
    assert_eq!(s.windows_us(), [(0, 10_000), (1_000_000, 1_010_000), (2_000_000, 2_010_000)]);
    assert!((s.span_us() - 30_000.0).abs() < 1e-6);
    assert!((s.throughput_ips().unwrap() - 1000.0).abs() < 1e-6);
}

#[test]
fn samples_keep_their_moments() {
    let mut s = LatencyStats::default();
    for (start_us, latency_us) in [(5_000_000_000, 70), (5_000_000_100, 80), (5_100_000_000, 90)] {
        s.push(start_us, latency_us * 1000);
    }
    let timed: Vec<(u64, f32)> = s.timed().collect();
    assert_eq!(timed, [(5_000_000_000, 70.0), (5_000_000_100, 80.0), (5_100_000_000, 90.0)]);
}

#[test]
fn unsupported_percentiles_are_absent() {
    let s = stats(1..=99);
    assert!(s.percentile_us(50.0).is_some() && s.percentile_us(95.0).is_some());
    assert_eq!(s.percentile_us(99.0), None);
    assert_eq!(stats(1..=999).percentile_us(99.9), None);
    assert!(stats(1..=1000).percentile_us(99.9).is_some());
    let none = LatencyStats::default();
    assert_eq!((none.mean_us(), none.percentile_us(50.0), none.stddev_us()), (None, None, None));
    assert_eq!(stats([7]).stddev_us(), None);
}

#[test]
fn bins_hold_every_sample() {
    let s = stats((0..5000).map(|i| 100 + (i * 37) % 400));
    let bins = s.bins(20);
    assert_eq!(bins.len(), 20);
    assert_eq!(bins.iter().map(|b| b.1).sum::<u64>(), 5000);
    assert!(stats([5]).bins(4).iter().map(|b| b.1).sum::<u64>() == 1);
}

#[test]
fn interruptions_part_launches_with_figures_of_their_own() {
    let mut s = LatencyStats::default();
    s.interrupt();
    for launch in 0..3u64 {
        for i in 0..100 {
            s.push(launch * 1_000_000 + i * 1000, (1000 + launch * 500 + i) * 1000);
        }
        s.interrupt();
        s.interrupt();
    }
    assert_eq!((s.launch_count(), s.count()), (3, 300));
    let launches = s.launches();
    for (index, launch) in launches.iter().enumerate() {
        let base = 1000.0 + index as f64 * 500.0;
        let figures = launch.figures;
        assert_eq!((launch.index, figures.count, launch.samples_us.len()), (index, 100, 100));
        assert_eq!((figures.min_us, figures.max_us, figures.mean_us), (base, base + 99.0, base + 49.5));
        let p50 = figures.percentile_us(50.0).unwrap();
        assert!((p50 - (base + 49.5)).abs() <= 0.001 * p50, "{p50}");
        let (low, high) = figures.percentile(50.0).unwrap().ci95_us;
        assert!(low.unwrap() < p50 && p50 < high.unwrap());
        assert_eq!(figures.percentile_us(99.9), None, "100 inferences do not support it");
        assert_eq!(launch.timed().next().unwrap().0, index as u64 * 1_000_000);
        assert_eq!(launch.timed().count(), 100);
    }
    assert_eq!(stats(1..=10).launch_count(), 1);
    assert_eq!(LatencyStats::default().launches().len(), 0);
}

#[test]
fn the_last_launch_takes_what_more_launches_would() {
    let mut s = LatencyStats::default();
    for launch in 0..2 * MAX_LAUNCHES as u64 {
        s.push(launch * 1000, 1000);
        s.interrupt();
    }
    assert_eq!(s.launch_count(), MAX_LAUNCHES);
    let launches = s.launches();
    assert_eq!(launches.iter().map(|launch| launch.figures.count).sum::<u64>(), 2 * MAX_LAUNCHES as u64);
    assert_eq!(launches.iter().map(|launch| launch.samples_us.len()).sum::<usize>(), 2 * MAX_LAUNCHES);
}

/// Memory that grows with the number of inferences, in bytes.
fn bytes(s: &LatencyStats) -> usize {
    let (samples, steps) = s.course.capacity();
    4 * (samples + steps) + size_of_val(s.slowest())
}

#[test]
fn memory_is_bounded_and_the_figures_hold_after_fifteen_million_inferences() {
    const COUNT: u64 = 15_000_000;
    const PERIOD_US: u64 = 200;
    let mut s = LatencyStats::default();
    for i in 0..COUNT {
        if i % (COUNT / 3) == 0 {
            s.interrupt();
        }
        // Rising by 50 %, with every 64th inference twice as slow, and one outlier.
        let level = 100_000 + 50_000 * i / COUNT;
        let latency_ns = if i == 7_654_321 { 9_000_000 } else { level * (1 + u64::from(i % 64 == 0)) };
        s.push(i * PERIOD_US, latency_ns);
    }
    assert!(bytes(&s) <= 8 * EXACT_LIMIT + 16_384, "{}", bytes(&s));
    assert!(!s.is_exact() && s.stride() == 16 && s.count() == COUNT);
    assert!(s.samples_us().len() > EXACT_LIMIT / 2);
    assert_eq!(s.max_us(), Some(9000.0));
    assert!((s.percentile_us(50.0).unwrap() - 125.4).abs() < 0.4, "{:?}", s.percentile_us(50.0));
    // Events with a power-of-two period are neither always nor never kept.
    let slow = s.samples_us().iter().filter(|us| **us > 199.0).count() as f64 / s.samples_us().len() as f64;
    assert!((slow * 64.0 - 1.0).abs() < 0.1, "{slow}");
    assert!((s.count_above(199.9) as f64 - COUNT as f64 / 64.0).abs() < COUNT as f64 / 640.0);
    assert_eq!(s.slowest()[0], Slow { index: 7_654_321, start_us: 7_654_321 * PERIOD_US, latency_ns: 9_000_000 });
    assert_eq!(s.slowest().len(), SLOWEST_KEPT);
    // The course is covered evenly: starts increase, and each tenth of the time contains a tenth of the
    // latencies.
    let span_us = COUNT * PERIOD_US;
    let mut tenths = [0usize; 10];
    let mut last = 0;
    for (start_us, latency_us) in s.timed() {
        assert!(start_us >= last);
        last = start_us;
        let level = 100.0 + 50.0 * start_us as f64 / span_us as f64;
        let times = f64::from(latency_us) / level;
        assert!((times - 1.0).abs() < 0.01 || (times - 2.0).abs() < 0.01 || latency_us > 8000.0, "{start_us} {times}");
        tenths[usize::try_from(start_us * 10 / span_us).unwrap()] += 1;
    }
    let even = s.samples_us().len() / 10;
    assert!(tenths.iter().all(|tenth| tenth.abs_diff(even) < even / 50), "{tenths:?}");
    // Each launch keeps its own part of it.
    let launches = s.launches();
    assert_eq!(launches.len(), 3);
    for (index, launch) in launches.iter().enumerate() {
        assert_eq!(launch.figures.count, COUNT / 3);
        assert!(launch.samples_us.len().abs_diff(s.samples_us().len() / 3) < 10);
        let start_us = launch.timed().next().unwrap().0;
        assert!(start_us.abs_diff(index as u64 * span_us / 3) < 100 * PERIOD_US, "{start_us}");
    }
}

#[test]
fn up_to_the_limit_every_latency_is_kept() {
    let mut s = LatencyStats::default();
    (0..EXACT_LIMIT as u64 - 1).for_each(|i| s.push(i, 1000));
    assert!(s.is_exact() && s.samples_us().len() == EXACT_LIMIT - 1);
    s.push(EXACT_LIMIT as u64, 1000);
    assert!(!s.is_exact());
}
