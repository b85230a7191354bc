//! Sums over the values of one output, and the figures derived from them.

use crate::event::{TruthFigure, TruthMetric};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Sums of one inference.
#[derive(Debug, Clone, Default)]
struct One {
    inference: u32,
    /// Rows of classes; then those with the correct class first, and among the first five.
    rows: u64,
    first: u64,
    among_five: u64,
    count: u64,
    signal: f64,
    noise: f64,
    cosine: Option<f64>,
    iou: Option<f64>,
}

/// Sums over all inferences of one output.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    all: Vec<One>,
    /// Pairs of values that were left out because one is not finite.
    pub not_finite: u64,
    differing: u64,
    low: f64,
    high: f64,
    has_span: bool,
    /// Intersection and union of each class, in elements.
    classes: BTreeMap<i64, (u64, u64)>,
}

/// True for the same number; zeros of either sign are the same.
fn is_same(a: f64, b: f64) -> bool {
    a.partial_cmp(&b) == Some(Ordering::Equal)
}

/// Rank of a correct class among the values, from 0, as a stable sort by size puts it. `None` if a value is
/// NaN.
fn rank(values: &[f64], class: usize) -> Option<usize> {
    let own = *values.get(class)?;
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let before = |(at, value): (usize, &f64)| *value > own || (is_same(*value, own) && at < class);
    Some(values.iter().enumerate().filter(|&row| before(row)).count())
}

/// Index of the first of the largest values.
pub fn best(values: impl Iterator<Item = f64>) -> usize {
    let mut found = (0, f64::NEG_INFINITY);
    for (at, value) in values.enumerate() {
        if value > found.1 {
            found = (at, value);
        }
    }
    found.0
}

impl Tally {
    /// The sums of an inference, created on first use.
    fn of(&mut self, inference: u32) -> &mut One {
        if self.all.last().is_none_or(|one| one.inference != inference) {
            self.all.push(One { inference, ..One::default() });
        }
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    /// Adds classifications: a row of values per correct class.
    pub fn take_classes(&mut self, inference: u32, values: &[f64], right: impl Iterator<Item = usize>, classes: usize) {
        let one = self.of(inference);
        for (row, class) in values.chunks_exact(classes.max(1)).zip(right) {
            let rank = rank(row, class);
            one.rows += 1;
            one.first += u64::from(rank == Some(0));
            one.among_five += u64::from(rank.is_some_and(|rank| rank < 5));
        }
    }

    /// Adds expected values x and the run's values y.
    pub fn take_values(&mut self, inference: u32, x: &[f64], y: &[f64]) {
        let (mut signal, mut noise, mut energy, mut product) = (0.0, 0.0, 0.0, 0.0);
        let (mut count, mut left_out, mut differing) = (0u64, 0u64, 0u64);
        for (&x, &y) in x.iter().zip(y) {
            if !(x.is_finite() && y.is_finite()) {
                left_out += 1;
                continue;
            }
            count += 1;
            signal += x * x;
            noise += (x - y) * (x - y);
            energy += y * y;
            product += x * y;
            differing += u64::from(!is_same(x, y));
            (self.low, self.high) = if self.has_span { (self.low.min(x), self.high.max(x)) } else { (x, x) };
            self.has_span = true;
        }
        self.not_finite += left_out;
        self.differing += differing;
        let length = signal.sqrt() * energy.sqrt();
        let one = self.of(inference);
        (one.count, one.signal, one.noise) = (count, signal, noise);
        one.cosine = (length > 0.0).then(|| product / length);
    }

    /// Adds masks: the expected and actual class of each element. `background` is a class that does not
    /// count.
    pub fn take_masks(&mut self, inference: u32, expected: &[i64], found: &[i64], background: Option<i64>) {
        let mut own: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        for (&x, &y) in expected.iter().zip(found) {
            if x == y {
                let row = own.entry(x).or_default();
                *row = (row.0 + 1, row.1 + 1);
            } else {
                own.entry(x).or_default().1 += 1;
                own.entry(y).or_default().1 += 1;
            }
        }
        if let Some(background) = background {
            own.remove(&background);
        }
        for (class, (shared, joined)) in &own {
            let row = self.classes.entry(*class).or_default();
            *row = (row.0 + shared, row.1 + joined);
        }
        self.of(inference).iou = mean_iou(&own);
    }

    /// True if every value equals the expected one.
    pub fn is_identical(&self) -> bool {
        self.has_span && self.differing == 0 && self.not_finite == 0
    }

    /// A figure over all inferences, with the worst inference.
    pub fn figure(&self, metric: TruthMetric) -> TruthFigure {
        let each = self.all.iter().filter_map(|one| Some((one.inference, self.one(metric, one)?)));
        let is_below = |a: f64, b: f64| if metric.is_error() { a > b } else { a < b };
        let worst = each.reduce(|worst, other| if is_below(other.1, worst.1) { other } else { worst });
        TruthFigure {
            metric,
            value: self.whole(metric),
            worst_inference: worst.map(|worst| worst.0),
            worst: worst.map(|worst| worst.1),
        }
    }

    fn one(&self, metric: TruthMetric, one: &One) -> Option<f64> {
        match metric {
            TruthMetric::Top1 => share(one.first, one.rows),
            TruthMetric::Top5 => share(one.among_five, one.rows),
            TruthMetric::SqnrDb => decibels(one.signal, one.noise),
            TruthMetric::Mse => mean(one.noise, one.count),
            TruthMetric::PsnrDb => self.psnr(one.noise, one.count),
            TruthMetric::Cosine => one.cosine,
            TruthMetric::Iou => one.iou,
        }
    }

    fn whole(&self, metric: TruthMetric) -> Option<f64> {
        let sum = |part: fn(&One) -> f64| self.all.iter().map(part).sum::<f64>();
        let counted = |part: fn(&One) -> u64| self.all.iter().map(part).sum::<u64>();
        let (noise, count) = (sum(|one| one.noise), counted(|one| one.count));
        match metric {
            TruthMetric::Top1 => share(counted(|one| one.first), counted(|one| one.rows)),
            TruthMetric::Top5 => share(counted(|one| one.among_five), counted(|one| one.rows)),
            TruthMetric::SqnrDb => decibels(sum(|one| one.signal), noise),
            TruthMetric::Mse => mean(noise, count),
            TruthMetric::PsnrDb => self.psnr(noise, count),
            TruthMetric::Cosine => {
                let known: Vec<f64> = self.all.iter().filter_map(|one| one.cosine).collect();
                (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
            }
            TruthMetric::Iou => mean_iou(&self.classes),
        }
    }

    /// The peak is the range of the expected values over all inferences.
    fn psnr(&self, noise: f64, count: u64) -> Option<f64> {
        let peak = self.high - self.low;
        decibels(peak * peak, mean(noise, count)?)
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// `None` without noise or without a signal.
fn decibels(signal: f64, noise: f64) -> Option<f64> {
    (signal > 0.0 && noise > 0.0).then(|| 10.0 * (signal / noise).log10())
}

fn mean_iou(classes: &BTreeMap<i64, (u64, u64)>) -> Option<f64> {
    let ratios: Vec<f64> = classes.values().filter_map(|&(shared, joined)| share(shared, joined)).collect();
    (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tally: &Tally, metric: TruthMetric) -> f64 {
        tally.figure(metric).value.unwrap()
    }

    #[test]
    fn classes_are_ranked_as_a_stable_sort_ranks_them() {
        let mut tally = Tally::default();
        // The first of equal values is the best one.
        tally.take_classes(0, &[0.5, 0.5, 0.1], [0].into_iter(), 3);
        tally.take_classes(1, &[0.5, 0.5, 0.1], [1].into_iter(), 3);
        tally.take_classes(2, &[f64::NAN, 0.5, 0.1], [1].into_iter(), 3);
        assert!((value(&tally, TruthMetric::Top1) - 1.0 / 3.0).abs() < 1e-12);
        assert!((value(&tally, TruthMetric::Top5) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(tally.figure(TruthMetric::Top1).worst_inference, Some(1));
        let mut many = Tally::default();
        let row: Vec<f64> = (0..10).map(f64::from).collect();
        many.take_classes(0, &[row.clone(), row].concat(), [5, 4].into_iter(), 10);
        assert_eq!((value(&many, TruthMetric::Top1), value(&many, TruthMetric::Top5)), (0.0, 0.5));
    }

    #[test]
    fn values_by_hand() {
        let mut tally = Tally::default();
        tally.take_values(0, &[3.0, 4.0], &[4.0, 3.0]);
        tally.take_values(1, &[0.0, 2.0, f64::NAN], &[0.0, 2.0, 1.0]);
        // Noise 2 in 4 values, signal 9 + 16 + 4, span 0..4.
        assert!((value(&tally, TruthMetric::Mse) - 0.5).abs() < 1e-12);
        assert!((value(&tally, TruthMetric::SqnrDb) - 10.0 * (29.0f64 / 2.0).log10()).abs() < 1e-12);
        assert!((value(&tally, TruthMetric::PsnrDb) - 10.0 * (16.0f64 / 0.5).log10()).abs() < 1e-12);
        assert!((value(&tally, TruthMetric::Cosine) - f64::midpoint(24.0 / 25.0, 1.0)).abs() < 1e-12);
        let worst = tally.figure(TruthMetric::Mse);
        assert_eq!((worst.worst_inference, worst.worst, tally.not_finite), (Some(0), Some(1.0), 1));
        assert!(!tally.is_identical());
    }

    #[test]
    fn equal_outputs_have_no_noise() {
        let mut tally = Tally::default();
        tally.take_values(0, &[1.0, -1.0], &[1.0, -1.0]);
        assert!(tally.is_identical());
        assert_eq!((value(&tally, TruthMetric::Mse), tally.figure(TruthMetric::SqnrDb).value), (0.0, None));
    }

    #[test]
    fn masks_count_what_they_share() {
        let mut tally = Tally::default();
        // Class 1: one of three; class 2: one of two.
        tally.take_masks(0, &[1, 1, 2, 0], &[1, 2, 2, 1], Some(0));
        assert!((value(&tally, TruthMetric::Iou) - f64::midpoint(1.0 / 3.0, 0.5)).abs() < 1e-12);
        tally.take_masks(1, &[0, 0], &[0, 0], Some(0));
        assert_eq!(tally.figure(TruthMetric::Iou).worst_inference, Some(0));
    }
}
