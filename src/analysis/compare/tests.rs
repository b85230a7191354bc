//! Runs made up with known differences.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up figures")]

use super::*;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Driver, Stage, TensorData};

/// A generator of even numbers in 0..1 that is the same everywhere.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }

    /// Nearly normal, mean 0, deviation 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.even()).sum::<f64>() - 6.0
    }
}

/// Latencies around `mean_us` with 5 % noise; each takes `correlation` of the deviation before it.
pub fn latencies(seed: u64, count: usize, mean_us: f64, correlation: f64) -> Vec<f64> {
    let mut draws = Draws::new(seed);
    let mut deviation = draws.normal();
    (0..count)
        .map(|_| {
            deviation = correlation * deviation + (1.0 - correlation * correlation).sqrt() * draws.normal();
            mean_us * (1.0 + 0.05 * deviation)
        })
        .collect()
}

/// Figures of these latencies in one launch.
fn launch(latencies_us: &[f64]) -> SideLaunch {
    let (count, mut sorted) = (latencies_us.len(), latencies_us.to_vec());
    sorted.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let supported = count as f64 * (1.0 - quantile) >= 1.0 - 1e-9;
        supported.then(|| sorted[(count as f64 * quantile - 1e-9).ceil() as usize - 1])
    };
    let mean = latencies_us.iter().sum::<f64>() / count as f64;
    let variance = latencies_us.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
    let (mean, stddev) = (Some(mean), Some(variance.sqrt()));
    SideLaunch { samples: count as u64, mean, stddev, min: Some(sorted[0]), p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/// A run that measured these latencies in one launch.
pub fn one_launch(backend: Backend, latencies_us: &[f64]) -> Side {
    let mut side = side(backend, latencies_us);
    side.latency.as_mut().unwrap().launches = Vec::new();
    side
}

/// A run that measured these latencies in five launches.
pub fn side(backend: Backend, latencies_us: &[f64]) -> Side {
    let count = latencies_us.len();
    let mut sorted = latencies_us.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let supported = count as f64 * (1.0 - quantile) >= 1.0 - 1e-9;
        let rank = (count as f64 * quantile - 1e-9).ceil() as usize;
        supported.then(|| sorted[rank.clamp(1, count) - 1])
    };
    let mean = latencies_us.iter().sum::<f64>() / count as f64;
    let variance = latencies_us.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
    Side {
        origin: "made up".to_owned(),
        backend,
        device: "local".to_owned(),
        device_model: None,
        simulated: false,
        driver: Driver::Runner,
        clean_level: ProfilingLevel::Off,
        model: Some("model.dlc".to_owned()),
        model_sha256: Some("a".repeat(64)),
        build_id: Some("v2.47".to_owned()),
        settings: Vec::new(),
        mode: crate::event::Mode::default(),
        warmup: 5,
        seed: Some(1),
        inputs: vec![TensorData {
            name: "x".to_owned(),
            source: "random".to_owned(),
            bytes: 4,
            quantization: None,
            sha256: None,
        }],
        failure: None,
        stages_us: vec![(Stage::Compose, 1000.0), (Stage::Finalize, 2000.0)],
        first_us: Some(3.0 * mean),
        latency: Some(SideLatency {
            count: count as u64,
            support: count as u64,
            mean: Some(mean),
            stddev: Some(variance.sqrt()),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: sorted.last().copied(),
            series: Some(Series { stride: 1, values: latencies_us.to_vec() }),
            launches: latencies_us.chunks(count.div_ceil(5).max(2)).map(launch).collect(),
        }),
        service: None,
        throughput_ips: Some(1e6 / mean / 1.01),
        memory_peak: Some(1e8),
        memory_delta: Some(5e7),
        cpu_percent: Some(99.0),
        energy_mj: None,
        power_w: None,
        counters: Vec::new(),
        ops: Vec::new(),
        op_time_derived: false,
        outputs: Vec::new(),
        judged: None,
        facts: None,
        around: None,
        crowded: None,
        together: None,
        notes: Vec::new(),
    }
}

fn op(name: &str, op_type: &str, time_us: Option<f64>, producer: Option<usize>) -> SideOp {
    SideOp { name: name.to_owned(), op_type: Some(op_type.to_owned()), macs: None, time_us, producer }
}

fn row<'a>(comparison: &'a Comparison, id: &str) -> &'a Row {
    comparison.rows.iter().find(|row| row.id == id).unwrap()
}

fn difference<'a>(comparison: &'a Comparison, id: &str, column: usize) -> &'a Difference {
    row(comparison, id).cells[column].difference.as_ref().unwrap()
}

fn two(a: &[f64], b: &[f64]) -> Comparison {
    compare(&[side(Backend::Cpu, a), side(Backend::Cpu, b)], &CompareOptions::default())
}

/// How many of `seeds` pairs have an interval that holds `truth`.
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
    // Single draws would hold it in about 70 of 100 pairs here.
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
    // The other way round it is better.
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
    // Equal runs differ by 3 %, and more launches do not change that; by more than 3.5 % they do.
    let c = on_levels(20, &[1080.0, 1190.0, 1030.0, 1120.0, 1090.0]);
    assert!(difference(&two(&a, &c), "p50_us", 1).launches_to_tell.unwrap() > 20);
    // Inferences of the same noise in launches that agree tell less than the largest of these steps apart.
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
    // Launches are held up by others for ever so long; each of them has inferences that nobody disturbed.
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
    // Of more inferences the fastest is faster; one launch has no usual one.
    assert_eq!(one_launch(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0)).latency.unwrap().fastest_us(), None);
    let mut other = sides(&busy(1, 1000.0), &busy(20, 1100.0));
    other[1].latency.as_mut().unwrap().launches.iter_mut().for_each(|launch| launch.samples = 300);
    let told = compare(&other, &CompareOptions::default());
    assert!(difference(&told, "fastest_us", 1).no_interval.as_ref().unwrap().contains("fastest of 300"));
}

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
    // The same run twice is no second launch, whichever it is the same as.
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
    // Among simulated runs the quicker one is marked.
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
    // Resampled figures are moved to those given by the difference to their own: with the same figures they stay in place.
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
        // Against a constant that is moved to 1, the interval is that of the values; it lies around their figure.
        let [low, high] = relative_interval(statistic, (&constant, 1.0), (&one, figure)).unwrap();
        assert!(low + 1.0 <= figure && figure <= high + 1.0, "{statistic:?}: {low} {high}");
        let flat = relative_interval(statistic, (&constant, 7.0), (&constant, 14.0)).unwrap();
        assert!(flat.iter().all(|bound| (bound - 1.0).abs() < 1e-12), "{statistic:?}");
    }
}

#[test]
fn settings_that_differ_are_named() {
    let setting =
        |key: &str, value: &str, applied| SideSetting { key: key.to_owned(), value: value.to_owned(), applied };
    let base = side(Backend::Htp, &latencies(1, 100, 1000.0, 0.0));
    let mut other = base.clone();
    other.settings = vec![
        setting("--perf-profile", "burst", true),
        setting("htp_config.O", "3", true),
        setting("--vtcm-mb", "8", false),
    ];
    other.latency = side(Backend::Htp, &latencies(2, 100, 1000.0, 0.0)).latency;
    other.driver = Driver::NetRun;
    other.clean_level = ProfilingLevel::Basic;
    other.build_id = Some("v2.51".to_owned());
    let found = mismatches(&[base.clone(), other.clone()], 0);
    let ids: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, ["driver", "profiling", "sdk_build", "setting.optimization_level", "setting.perf_profile"]);
    assert!(found[4].text.contains("burst in 2, not set in 1"), "{}", found[4].text);
    // The same setting under another key is the same; another backend has other settings.
    let mut same = base.clone();
    same.settings = vec![setting("htp_config.performance_mode", "burst", true)];
    let mut flag = base.clone();
    flag.latency.clone_from(&other.latency);
    flag.settings = vec![setting("--perf-profile", "burst", true)];
    assert_eq!(mismatches(&[same, flag], 0), []);
    let latency = side(Backend::Htp, &latencies(3, 100, 1000.0, 0.0)).latency;
    let pinned = |pin: &str| Side {
        settings: vec![setting("--pin", pin, true)],
        latency: if pin == "free" { other.latency.clone() } else { latency.clone() },
        ..base.clone()
    };
    assert_eq!(mismatches(&[base.clone(), pinned("spread")], 0), [], "there was nothing to spread");
    assert_eq!(mismatches(&[pinned("free"), pinned("spread")], 0)[0].id, "setting.pin");
    assert_eq!(mismatches(&[base.clone(), pinned("0")], 0)[0].id, "setting.pin");
    other = Side { backend: Backend::Cpu, driver: Driver::Runner, clean_level: ProfilingLevel::Off, ..other };
    other.build_id.clone_from(&base.build_id);
    assert_eq!(mismatches(&[base, other], 0), []);
}

/// The run at a rate: latencies count from planned starts, which the schedule makes long.
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
    // A queue fills the time as a tight loop does, and its rate is no throughput of the model.
    assert_eq!(difference(&comparison, "throughput_ips", 1).verdict, DifferenceVerdict::Unknown);
    assert!(row(&comparison, "throughput_ips").cells.iter().all(|cell| !cell.best));
    // At one rate the latencies from planned starts are what is requested.
    let both = [paced(Backend::Cpu, &slow, 20.0), paced(Backend::Gpu, &tight, 20.0)];
    let comparison = compare(&both, &CompareOptions::default());
    assert!(!comparison.alone && comparison.mismatches.is_empty(), "{:?}", comparison.mismatches);
    assert!(row(&comparison, "p50_us").cells.iter().all(|cell| cell.value.unwrap() > 3e6));
}

#[test]
fn warm_up_data_and_runs_that_are_there_twice_are_named() {
    let base = side(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0));
    let mut other = side(Backend::Cpu, &latencies(2, 100, 1000.0, 0.0));
    other.warmup = 1;
    other.seed = Some(9);
    let found = mismatches(&[base.clone(), other.clone(), base.clone()], 0);
    let ids: Vec<(&str, usize)> = found.iter().map(|found| (found.id.as_str(), found.column)).collect();
    assert_eq!(ids, [("warmup", 1), ("inputs", 1), ("same_run", 2)]);
    assert!(found[0].text.contains("1 inference, 1 with 5 inferences"), "{}", found[0].text);
    assert!(found[2].text.contains("3 is the same run as 1"), "{}", found[2].text);
    // Random data of another model differs by nature; what a run without figures was fed with does not matter.
    other.model_sha256 = Some("b".repeat(64));
    other.warmup = base.warmup;
    let found = mismatches(&[base.clone(), other.clone()], 0);
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["model"]);
    other = Side { latency: None, warmup: 0, seed: None, model_sha256: base.model_sha256.clone(), ..other };
    assert_eq!(mismatches(&[base, other], 0), []);
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
    // Of thinned rounds each latency stands for as many.
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

/// A convolution and its activation: one backend times both, one times them as the convolution, one as the activation.
fn fused_three_ways() -> Vec<Side> {
    let times = [[Some(80.0), Some(20.0)], [Some(150.0), None], [None, Some(50.0)]];
    times
        .into_iter()
        .map(|[conv, relu]| {
            let mut side = side(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0));
            side.ops = vec![
                op("first", "Conv2d", Some(10.0), None),
                op("conv_token_7", "Conv2d", conv, Some(0)),
                op("relu", "ElementWiseNeuron", relu, Some(1)),
                op("add", "ElementWiseBinary", Some(5.0), Some(2)),
            ];
            side
        })
        .collect()
}

#[test]
fn fused_ops_are_one_layer_in_all_columns() {
    let sides = fused_three_ways();
    let rows = layers(&sides, 0);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["first", "conv_token_7", "add"]);
    let times: Vec<Option<f64>> = rows[1].cells.iter().map(|cell| cell.time_us).collect();
    assert_eq!(times, [Some(100.0), Some(150.0), Some(50.0)]);
    assert_eq!(rows[1].fused, ["relu"]);
    assert_eq!(rows[1].cells[1].difference_us, Some(50.0));
    let totals = type_totals(&sides, &rows);
    let conv = totals.iter().find(|row| row.op_type == "Conv2d").unwrap();
    assert_eq!(conv.cells[2], TypeCell { ops: 2, time_us: Some(60.0) });
    let neuron = totals.iter().find(|row| row.op_type == "ElementWiseNeuron").unwrap();
    assert_eq!(neuron.cells[0], TypeCell { ops: 1, time_us: None });
}

#[test]
fn no_time_is_lost_or_counted_twice() {
    let sides = fused_three_ways();
    let rows = layers(&sides, 0);
    for (column, side) in sides.iter().enumerate() {
        let own: f64 = side.ops.iter().filter_map(|op| op.time_us).sum();
        let shown: f64 = rows.iter().filter_map(|row| row.cells[column].time_us).sum();
        assert!((own - shown).abs() < 1e-9);
    }
}

#[test]
fn layers_are_sorted_by_what_is_asked() {
    let mut sides = fused_three_ways();
    sides.truncate(2);
    sides[1].ops[3].time_us = Some(1.0);
    let sorted = |sort| {
        let mut rows = layers(&sides, 0);
        sort_layers(&mut rows, sort);
        rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(sorted(LayerSort::Difference), ["conv_token_7", "add", "first"]);
    assert_eq!(sorted(LayerSort::Winners), ["add", "first", "conv_token_7"]);
    assert_eq!(sorted(LayerSort::Losers), ["conv_token_7", "first", "add"]);
    assert_eq!(sorted(LayerSort::Order), ["first", "conv_token_7", "add"]);
    assert_eq!(sorted(LayerSort::Time), ["conv_token_7", "first", "add"]);
    assert_eq!(sorted(LayerSort::Name), ["add", "conv_token_7", "first"]);
}

#[test]
fn refused_ops_are_named() {
    let mut failed = side(Backend::Htp, &latencies(1, 100, 1000.0, 0.0));
    failed.latency = None;
    let message = "op `bad` (Conv2d) was refused by backendValidateOpConfig with 3110; then composing failed";
    failed.failure = Some(SideFailure {
        stage: Stage::Compose,
        call: "backendValidateOpConfig".to_owned(),
        code: Some(3110),
        message: message.to_owned(),
        op: refused_op(message),
    });
    let mut good = side(Backend::Cpu, &latencies(2, 100, 1000.0, 0.0));
    good.ops = vec![op("bad", "Conv2d", Some(1.0), None)];
    let comparison = compare(&[failed, good], &CompareOptions::default());
    assert_eq!(comparison.baseline, 1, "a run without figures is no baseline");
    assert_eq!(comparison.refused.len(), 1);
    assert_eq!((comparison.refused[0].op.as_str(), comparison.refused[0].op_type.as_deref()), ("bad", Some("Conv2d")));
    assert_eq!(refused_op("the op `x` failed"), None);
}

#[test]
fn inputs_must_have_been_the_same() {
    let base = side(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0));
    assert_eq!(same_inputs(&base, &base), Ok(None));
    let with = |change: &dyn Fn(&mut Side)| {
        let mut other = base.clone();
        change(&mut other);
        other
    };
    let from = |source: &str, sha256: Option<&str>| {
        with(&|side| {
            source.clone_into(&mut side.inputs[0].source);
            side.inputs[0].sha256 = sha256.map(ToOwned::to_owned);
        })
    };
    let reason = |other: &Side| same_inputs(&base, other).unwrap_err();
    assert!(reason(&with(&|side| side.seed = Some(2))).contains("seeds"));
    assert!(reason(&with(&|side| side.inputs[0].bytes = 1)).contains("--input"));
    assert!(reason(&with(&|side| side.inputs.clear())).contains("unknown"));
    assert!(reason(&from("a.raw", None)).contains("in the other"));
    assert_eq!(same_inputs(&from("a.raw", Some("1")), &from("b.raw", Some("1"))), Ok(None));
    assert!(same_inputs(&from("a.raw", Some("1")), &from("a.raw", Some("2"))).is_err());
    assert!(same_inputs(&from("a.raw", None), &from("b.raw", None)).is_err());
    assert!(same_inputs(&from("a.raw", None), &from("a.raw", None)).unwrap().is_some());
}

#[test]
fn counters_are_those_of_the_runs_machine_while_it_was_measured() {
    use crate::event::{
        Budget, CounterInfo, CounterSample, CounterSet, DeviceInfo, DeviceKind, Event, InferenceBatch, Phase, Record,
        RunId, RunPlan,
    };
    use crate::store::Store;
    let mut store = Store::new();
    let mut apply = |t_us: u64, run: Option<u32>, event: Event| {
        store.apply(&Record { seq: 0, t_us, run: run.map(RunId), event });
    };
    let info = |id: &str, unit: &str| CounterInfo {
        id: id.to_owned(),
        label: id.to_owned(),
        unit: unit.to_owned(),
        maximum: None,
        unavailable: None,
    };
    apply(0, None, Event::CountersDeclared(vec![info("host.cpu.freq", "MHz")]));
    for (set, device) in [(1, "phone"), (2, "other")] {
        apply(
            0,
            None,
            Event::DeviceSeen(DeviceInfo {
                id: device.to_owned(),
                kind: DeviceKind::Adb,
                model: None,
                soc: Some("SM8650".to_owned()),
                hexagon_arch: None,
                abi: "arm64-v8a".to_owned(),
                os: "Android".to_owned(),
            }),
        );
        let counters = vec![info("gpu.freq", "MHz"), info("memory.free", "bytes"), info("thermal.npu", "°C")];
        apply(
            0,
            None,
            Event::CounterSetDeclared(CounterSet { set, device: device.to_owned(), period_us: 10, counters }),
        );
    }
    let plan = RunPlan { device: "phone".to_owned(), ..plan() };
    apply(1, Some(0), Event::RunStarted(Box::new(plan)));
    for (t_us, mhz) in [(50, 100.0), (100, 300.0), (150, 500.0), (900, 9.0)] {
        let values = vec![Some(mhz), Some(1.0), None];
        apply(t_us, None, Event::Counters(CounterSample { set: 1, t_us, values: values.clone() }));
        apply(t_us, None, Event::Counters(CounterSample { set: 2, t_us, values }));
        apply(t_us, None, Event::Counters(CounterSample { set: 0, t_us, values: vec![Some(1.0)] }));
    }
    let batch = InferenceBatch {
        phase: Phase::Clean,
        first_index: 0,
        start_us: vec![90, 120],
        latency_ns: vec![20_000; 2],
        late_ns: Vec::new(),
    };
    apply(200, Some(0), Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(2) });
    apply(200, Some(0), Event::Inferences(batch));
    let run = &store.runs()[0];
    let expected = SideCounter {
        id: "gpu.freq".to_owned(),
        unit: "MHz".to_owned(),
        mean: 300.0,
        min: 300.0,
        max: 300.0,
        samples: 1,
    };
    assert_eq!(counters(&store, run), [expected]);
    let side = Side::of(&store, run);
    assert_eq!((side.device_model.as_deref(), side.counters.len()), (Some("SM8650"), 1));
    let comparison = compare(&[side.clone(), side], &CompareOptions::default());
    assert_eq!(row(&comparison, "counter.gpu.freq").better, Better::Neither);
}

fn plan() -> crate::event::RunPlan {
    serde_json::from_value(serde_json::json!({
        "device": "local", "backend": "gpu", "model": "m.dlc", "warmup": 0, "budget": {"iterations": 2},
        "profiling": "off", "profiling_budget": null, "simulated": false
    }))
    .unwrap()
}
