//! One figure over several launches: its mean and spread.

use super::student::t_975;

/// Percentiles are resolved to one part in a thousand, so launches that agree to the last digit may still
/// differ by this much.
pub(super) const RESOLUTION: f64 = 0.0005;

/// A figure over several launches, on the scale of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of launches.
    pub launches: usize,
    /// Geometric mean, in the figure's unit.
    pub middle: f64,
    /// Relative standard deviation between launches (of the logarithms).
    pub deviation: f64,
    /// Largest value divided by the smallest, less 1.
    pub range: f64,
    pub(super) log_mean: f64,
}

impl Spread {
    /// From the values of at least two launches; `None` for fewer, or if any is not above 0.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
            return None;
        }
        let count = values.len() as f64;
        let log_mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value.ln() - log_mean).powi(2)).sum();
        let (least, most) =
            values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), value| (a.min(*value), b.max(*value)));
        Some(Self {
            launches: values.len(),
            middle: log_mean.exp(),
            deviation: (squares / (count - 1.0)).sqrt().max(RESOLUTION),
            range: most / least - 1.0,
            log_mean,
        })
    }

    /// Variance of the mean of the logarithms.
    pub(super) fn variance_of_mean(&self) -> f64 {
        self.deviation.powi(2) / self.launches as f64
    }

    pub(super) fn freedom(&self) -> f64 {
        self.launches as f64 - 1.0
    }

    /// The same for this many launches with the same variation.
    #[must_use]
    pub fn of_launches(self, launches: usize) -> Self {
        Self { launches, ..self }
    }

    /// Half of the mean's 95 % interval, on the scale of logarithms: 0.05 is about 5 % to each side.
    pub fn half_width(&self) -> f64 {
        t_975(self.freedom()) * self.variance_of_mean().sqrt()
    }

    /// 95 % interval of the mean: where it would settle with ever more launches.
    pub fn interval(&self) -> [f64; 2] {
        let half = self.half_width();
        [(self.log_mean - half).exp(), (self.log_mean + half).exp()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students_on_the_scale_of_factors() {
        let spread = Spread::of(&[1000.0, 1100.0, 1210.0]).unwrap();
        assert!((spread.middle - 1100.0).abs() < 1e-6 && (spread.range - 0.21).abs() < 1e-9);
        assert!((spread.deviation - 1.1f64.ln()).abs() < 1e-9);
        let half = 4.303 * 1.1f64.ln() / 3f64.sqrt();
        let [low, high] = spread.interval();
        assert!((low - 1100.0 * (-half).exp()).abs() < 1e-6 && (high - 1100.0 * half.exp()).abs() < 1e-6);
    }

    #[test]
    fn equal_launches_are_no_closer_than_figures_are_told_and_one_launch_has_no_spread() {
        let spread = Spread::of(&[5.0; 3]).unwrap();
        assert!(spread.half_width() > 0.001 && spread.range == 0.0);
        assert_eq!(Spread::of(&[5.0]), None);
        assert_eq!(Spread::of(&[5.0, 0.0]), None);
        assert_eq!(Spread::of(&[5.0, f64::NAN]), None);
    }
}
