//! Quantiles of Student's t distribution.

/// 97.5 % quantiles for 1 to 30 degrees of freedom, and of the normal distribution.
const T_975: ([f64; 30], f64) = (
    [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ],
    1.960,
);
/// 90 % quantiles, likewise.
const T_90: ([f64; 30], f64) = (
    [
        3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350, 1.345, 1.341, 1.337,
        1.333, 1.330, 1.328, 1.325, 1.323, 1.321, 1.319, 1.318, 1.316, 1.315, 1.314, 1.313, 1.311, 1.310,
    ],
    1.282,
);

/// Half width of a 95 % interval, in standard errors.
pub(super) fn t_975(freedom: f64) -> f64 {
    quantile(&T_975, freedom)
}

/// The additional margin for a difference to be detected nine times in ten.
pub(super) fn t_90(freedom: f64) -> f64 {
    quantile(&T_90, freedom)
}

/// Interpolates linearly in the inverse of the degrees of freedom, where the quantile is nearly linear.
fn quantile((table, normal): &([f64; 30], f64), freedom: f64) -> f64 {
    let freedom = freedom.max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and at least 1")]
    let below = freedom as usize;
    let last = table.len();
    if below >= last {
        return normal + (table[last - 1] - normal) * last as f64 / freedom;
    }
    let (at, next) = (1.0 / below as f64, 1.0 / (below + 1) as f64);
    let part = (at - 1.0 / freedom) / (at - next);
    table[below - 1] + (table[below] - table[below - 1]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables_and_lie_between_their_neighbours() {
        assert!((t_975(2.0) - 4.303).abs() < 1e-9 && (t_90(5.0) - 1.476).abs() < 1e-9);
        // Known values for 60 and 120 degrees of freedom.
        assert!((t_975(60.0) - 2.000).abs() < 0.002 && (t_975(120.0) - 1.980).abs() < 0.002);
        assert!((t_90(60.0) - 1.296).abs() < 0.001);
        // Between the entries it errs on the safe side, by less than 2 %.
        for (freedom, known) in [(2.5, 3.5747), (3.5, 2.9401), (7.5, 2.3330)] {
            assert!((known..1.02 * known).contains(&t_975(freedom)), "{freedom}: {}", t_975(freedom));
        }
        let mut last = f64::INFINITY;
        for step in 0..400 {
            let t = t_975(1.0 + f64::from(step) * 0.25);
            assert!(t < last, "{step}");
            last = t;
        }
        assert!((t_975(0.3) - t_975(1.0)).abs() < 1e-9);
    }
}
