//! The course of latencies over a phase: blocks of consecutive inferences, trends and steps between them,
//! bimodality, and how strongly neighbours correlate. Medians throughout, so that isolated slow inferences
//! have no effect.

use crate::store::LatencyStats;

/// Minimum number of inferences for judging the course.
pub const MIN_SAMPLES: usize = 40;
/// Minimum number of inferences in a block.
const BLOCK: usize = 5;
/// Maximum number of blocks.
const MAX_BLOCKS: usize = 40;
/// Quantile of the normal distribution for 99 % intervals.
const Z_99: f64 = 2.576;

/// Consecutive inferences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Index of the first inference.
    pub first: usize,
    /// Start of the first inference, host monotonic microseconds.
    pub from_us: u64,
    /// End of the last one.
    pub to_us: u64,
    /// Median latency, microseconds.
    pub median_us: f64,
}

impl Block {
    fn middle_us(&self) -> f64 {
        f64::midpoint(self.from_us as f64, self.to_us as f64)
    }
}

/// A steady rise or fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Change from the first to the last block as a fraction of the median; positive is slower.
    pub change: f64,
    /// Its 99 % interval.
    pub interval: (f64, f64),
}

/// A change from one level to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// First inference of the new level.
    pub index: usize,
    /// Its start, host monotonic microseconds.
    pub at_us: u64,
    /// Median of the blocks before, microseconds.
    pub before_us: f64,
    /// Median of the blocks from there on, microseconds.
    pub after_us: f64,
}

/// Two separate levels that the inferences fall on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoLevels {
    /// Centre of the lower level, microseconds.
    pub low_us: f64,
    /// Centre of the higher level, microseconds.
    pub high_us: f64,
    /// Share of inferences on the higher one.
    pub high_share: f64,
}

/// The phase in blocks of equally many inferences; none below [`MIN_SAMPLES`].
pub fn blocks(latency: &LatencyStats) -> Vec<Block> {
    let samples = latency.samples_us();
    if samples.len() < MIN_SAMPLES {
        return Vec::new();
    }
    let size = (samples.len() / MAX_BLOCKS).max(BLOCK);
    // A remainder too small for its own block joins the last one.
    let count = samples.len() / size;
    let bounds: Vec<usize> = (0..count).map(|block| block * size).chain([samples.len()]).collect();
    let mut timed = latency.timed();
    let mut buffer: Vec<f32> = Vec::with_capacity(size * 2);
    let mut blocks = Vec::with_capacity(count);
    for pair in bounds.windows(2) {
        buffer.clear();
        let (mut from_us, mut to_us) = (None, 0);
        for (start_us, latency_us) in timed.by_ref().take(pair[1] - pair[0]) {
            from_us.get_or_insert(start_us);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency, far below 2^63")]
            let end_us = start_us + latency_us as u64;
            to_us = end_us;
            buffer.push(latency_us);
        }
        let median_us = f64::from(select_median(&mut buffer));
        let first = pair[0] * usize::try_from(latency.stride()).unwrap_or(1);
        blocks.push(Block { first, from_us: from_us.unwrap_or(0), to_us, median_us });
    }
    blocks
}

fn select_median(values: &mut [f32]) -> f32 {
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        _ => *values.select_nth_unstable_by(middle, f32::total_cmp).1,
    }
}

/// Median of a few numbers; 0 if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Standard deviation estimated from the median distance, for numbers around zero.
fn scatter(residuals: impl IntoIterator<Item = f64>) -> f64 {
    1.4826 * median(residuals.into_iter().map(f64::abs))
}

/// The trend of the blocks (Theil-Sen), if its interval excludes zero and it exceeds the scatter of the
/// blocks.
pub fn trend(blocks: &[Block]) -> Option<Trend> {
    let n = blocks.len();
    let middle = median(blocks.iter().map(|block| block.median_us));
    let span_us = blocks.last()?.middle_us() - blocks.first()?.middle_us();
    if middle <= 0.0 || span_us <= 0.0 {
        return None;
    }
    let slope = |a: &Block, b: &Block| (b.median_us - a.median_us) / (b.middle_us() - a.middle_us()).max(1.0);
    let mut slopes = Vec::with_capacity(n * n / 2);
    for (at, a) in blocks.iter().enumerate() {
        slopes.extend(blocks[at + 1..].iter().map(|b| slope(a, b)));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    // Interval from the variance of Kendall's score.
    let blocks_f = n as f64;
    let half = Z_99 * (blocks_f * (blocks_f - 1.0) * (2.0 * blocks_f + 5.0) / 18.0).sqrt() / 2.0;
    let centre = slopes.len() as f64 / 2.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the slopes")]
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
    if half >= centre {
        return None;
    }
    let share = |slope: f64| slope * span_us / middle;
    let slope = median(slopes.iter().copied());
    let interval = (share(at(centre - half)), share(at(centre + half)));
    let start_us = blocks[0].middle_us();
    let level = median(blocks.iter().map(|block| block.median_us - slope * (block.middle_us() - start_us)));
    let rest = blocks.iter().map(|b| b.median_us - level - slope * (b.middle_us() - start_us));
    let change = share(slope);
    let excludes_zero = interval.0 * interval.1 > 0.0;
    (excludes_zero && change.abs() * middle > 2.0 * scatter(rest)).then_some(Trend { change, interval })
}

/// The clearest step of the blocks, if its height exceeds the scatter of the blocks on both sides.
pub fn step(blocks: &[Block]) -> Option<Step> {
    const SIDE: usize = 3;
    if blocks.len() < 2 * SIDE {
        return None;
    }
    let level = |blocks: &[Block]| median(blocks.iter().map(|block| block.median_us));
    let distance =
        |blocks: &[Block], level: f64| blocks.iter().map(|block| (block.median_us - level).abs()).sum::<f64>();
    let split = (SIDE..=blocks.len() - SIDE)
        .map(|at| {
            let (left, right) = blocks.split_at(at);
            (at, distance(left, level(left)) + distance(right, level(right)))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))?
        .0;
    let (left, right) = blocks.split_at(split);
    let (before_us, after_us) = (level(left), level(right));
    let rest = left.iter().map(|b| b.median_us - before_us).chain(right.iter().map(|b| b.median_us - after_us));
    // The best of all splits always has some height, and more of it the fewer blocks there are. The factor
    // was calibrated on noise, about one course in a hundred of which may pass.
    let factor = 3.0 + 32.0 / blocks.len() as f64;
    let stands_out = (after_us - before_us).abs() > factor * scatter(rest);
    let first = right.first()?;
    stands_out.then_some(Step { index: first.first, at_us: first.from_us, before_us, after_us })
}

/// True if the step explains the blocks better than the trend does.
pub fn is_rather_a_step(blocks: &[Block], step: &Step, trend: &Trend) -> bool {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return false };
    let middle = median(blocks.iter().map(|block| block.median_us));
    let slope = trend.change * middle / (last.middle_us() - first.middle_us()).max(1.0);
    let level = median(blocks.iter().map(|b| b.median_us - slope * (b.middle_us() - first.middle_us())));
    let off_line = |b: &Block| (b.median_us - level - slope * (b.middle_us() - first.middle_us())).abs();
    let off_step = |b: &Block| (b.median_us - if b.first < step.index { step.before_us } else { step.after_us }).abs();
    blocks.iter().map(off_step).sum::<f64>() < blocks.iter().map(off_line).sum::<f64>()
}

/// Two levels, if a clear valley separates them: each with at least a tenth of the inferences, 15 % apart,
/// and far apart relative to their widths.
pub fn two_levels(latency: &LatencyStats) -> Option<TwoLevels> {
    const BINS: usize = 24;
    const MIN_SHARE: f64 = 0.1;
    let samples = latency.samples_us();
    if samples.len() < 2 * MIN_SAMPLES {
        return None;
    }
    let stride = samples.len().div_ceil(4096);
    let mut values: Vec<f64> = samples.iter().step_by(stride).map(|us| f64::from(*us).max(0.001).ln()).collect();
    values.sort_unstable_by(f64::total_cmp);
    // The slowest and fastest 2 % may be anything.
    let cut = values.len() / 50;
    let values = &values[cut..values.len() - cut];
    let (low, high) = (*values.first()?, *values.last()?);
    if high - low < 0.14 {
        return None;
    }
    let mut bins = [0.0f64; BINS];
    for value in values {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bins")]
        let bin = ((value - low) / (high - low) * BINS as f64) as usize;
        bins[bin.min(BINS - 1)] += 1.0;
    }
    let around = |at: usize| {
        let from = at.saturating_sub(1);
        let near = &bins[from..(at + 2).min(BINS)];
        near.iter().sum::<f64>() / near.len() as f64
    };
    let smooth: Vec<f64> = (0..BINS).map(around).collect();
    let peak = |range: std::ops::Range<usize>| smooth[range].iter().copied().fold(0.0, f64::max);
    // The deepest valley relative to the lower of its neighbouring peaks.
    let valley = (1..BINS - 1)
        .map(|at| (at, smooth[at] / peak(0..at).min(peak(at + 1..BINS)).max(1e-9)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?
        .0;
    let lower_peak = peak(0..valley).min(peak(valley + 1..BINS));
    let floor = smooth[valley];
    // Less than half as many, and not by chance: each smoothed bin averages three.
    let clear = floor < 0.5 * lower_peak && 3.0 * (lower_peak - floor) > 3.0 * (3.0 * (lower_peak + floor)).sqrt();
    let edge = low + (valley as f64 + 0.5) / BINS as f64 * (high - low);
    let part = values.partition_point(|value| *value < edge);
    let (left, right) = values.split_at(part);
    let high_share = right.len() as f64 / values.len() as f64;
    if !clear || !(MIN_SHARE..=1.0 - MIN_SHARE).contains(&high_share) {
        return None;
    }
    let (low, high) = (left[left.len() / 2], right[right.len() / 2]);
    let width = |part: &[f64]| (part[part.len() * 9 / 10] - part[part.len() / 10]) / 2.0;
    let apart = high - low > 0.14 && high - low > width(left) + width(right);
    apart.then_some(TwoLevels { low_us: low.exp(), high_us: high.exp(), high_share })
}

/// Inferences per independent one: 1 if they are independent, more if neighbours correlate. Compares the
/// variance of batch means with that of the samples (slow inferences are capped at p95); `None` below 100
/// inferences.
pub fn dependence(latency: &LatencyStats) -> Option<f64> {
    const BATCHES: usize = 25;
    let samples = latency.samples_us();
    if samples.len() < 4 * BATCHES {
        return None;
    }
    let top = latency.percentile_us(95.0)?;
    let size = samples.len() / BATCHES;
    let value = |us: &f32| f64::from(*us).min(top);
    let used = &samples[..size * BATCHES];
    let mean = used.iter().map(value).sum::<f64>() / used.len() as f64;
    let variance = used.iter().map(|us| (value(us) - mean).powi(2)).sum::<f64>() / (used.len() - 1) as f64;
    let of_batch = |batch: &[f32]| (batch.iter().map(value).sum::<f64>() / size as f64 - mean).powi(2);
    let between = used.chunks(size).map(of_batch).sum::<f64>() / (BATCHES - 1) as f64;
    (variance > 0.0).then(|| (size as f64 * between / variance).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{steady, steady_from};

    fn stats(latencies_us: &[f64]) -> LatencyStats {
        let mut stats = LatencyStats::default();
        let mut now_us = 0.0;
        for us in latencies_us {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small made-up numbers")]
            stats.push(now_us as u64, (us * 1000.0) as u64);
            now_us += us;
        }
        stats
    }

    #[test]
    fn noise_has_no_course() {
        for count in [40, 100, 300, 1000, 20_000] {
            for percent in [1.0, 10.0, 60.0] {
                let stats = stats(&steady(1000.0, percent, count));
                let blocks = blocks(&stats);
                let seen = (trend(&blocks), step(&blocks), two_levels(&stats));
                assert_eq!(seen, (None, None, None), "{count} {percent}");
                assert!(dependence(&stats).is_none_or(|tau| tau < 2.0), "{count} {percent}");
            }
        }
        assert!(blocks(&stats(&[1.0; 39])).is_empty());
    }

    #[test]
    fn noise_hardly_ever_looks_like_more() {
        const COURSES: u64 = 300;
        for count in [40, 100, 300] {
            let mut seen = [0u32; 4];
            for seed in 1..=COURSES {
                let stats = stats(&steady_from(seed.wrapping_mul(0x2545_f491_4f6c_dd1d), 1000.0, 30.0, count));
                let blocks = blocks(&stats);
                seen[0] += u32::from(trend(&blocks).is_some_and(|trend| trend.change.abs() >= 0.05));
                seen[1] +=
                    u32::from(step(&blocks).is_some_and(|step| (step.after_us / step.before_us - 1.0).abs() >= 0.05));
                seen[2] += u32::from(two_levels(&stats).is_some());
                seen[3] += u32::from(dependence(&stats).is_some_and(|tau| tau >= 4.0));
            }
            assert!(seen.iter().all(|seen| *seen <= 9), "of {COURSES} courses of {count}: {seen:?}");
        }
    }

    #[test]
    fn a_slow_rise_is_a_trend_with_its_size() {
        let rising: Vec<f64> =
            steady(1000.0, 5.0, 400).iter().enumerate().map(|(i, us)| us * (1.0 + 0.2 * i as f64 / 400.0)).collect();
        let blocks = blocks(&stats(&rising));
        let trend = trend(&blocks).unwrap();
        assert!((trend.change - 0.18).abs() < 0.04, "{trend:?}");
        assert!(trend.interval.0 > 0.1 && trend.interval.1 < 0.3, "{trend:?}");
        assert!(step(&blocks).is_none_or(|step| !is_rather_a_step(&blocks, &step, &trend)));
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut latencies = steady(1000.0, 5.0, 300);
        latencies[180..].iter_mut().for_each(|us| *us *= 1.3);
        let blocks = blocks(&stats(&latencies));
        let step = step(&blocks).unwrap();
        assert!(step.index.abs_diff(180) <= 8 && (step.after_us / step.before_us - 1.3).abs() < 0.03, "{step:?}");
        assert!(trend(&blocks).is_none_or(|trend| is_rather_a_step(&blocks, &step, &trend)));
    }

    #[test]
    fn two_levels_are_told_from_one_with_a_tail() {
        let mut two = steady(1000.0, 5.0, 400);
        two.iter_mut().enumerate().filter(|(i, _)| i * 7919 % 100 < 30).for_each(|(_, us)| *us *= 2.0);
        let levels = two_levels(&stats(&two)).unwrap();
        assert!((levels.low_us - 1000.0).abs() < 30.0 && (levels.high_us - 2000.0).abs() < 60.0, "{levels:?}");
        assert!((levels.high_share - 0.3).abs() < 0.05, "{levels:?}");
        // Squared noise: one level with a long tail.
        let tail: Vec<f64> = steady(1000.0, 100.0, 400).iter().map(|us| 1000.0 + (us / 200.0).powi(4)).collect();
        assert_eq!(two_levels(&stats(&tail)), None);
    }

    #[test]
    fn neighbours_that_are_alike_count_less() {
        let noise = steady(0.0, 0.0, 0);
        assert_eq!(dependence(&stats(&noise)), None);
        // A random walk that forgets after about twenty inferences.
        let mut level = 0.0;
        let walk: Vec<f64> = steady(1.0, 100.0, 2000)
            .iter()
            .map(|us| {
                level = 0.95 * level + (us - 1.0);
                1000.0 + 20.0 * level
            })
            .collect();
        assert!(dependence(&stats(&walk)).unwrap() > 10.0);
    }
}
