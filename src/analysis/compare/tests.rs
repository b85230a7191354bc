//! Made-up runs with known differences.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up figures")]

mod counters;
mod figures;
mod intervals;
mod layers;
mod mismatch;
mod pool;

use super::*;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Driver, Stage, TensorData};

/// A generator of uniform numbers in 0..1, the same on every platform.
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

    /// Nearly normal: mean 0, standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.even()).sum::<f64>() - 6.0
    }
}

/// Latencies around `mean_us` with 5 % noise; each takes over `correlation` of the previous one's deviation.
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
