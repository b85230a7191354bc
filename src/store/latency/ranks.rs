//! Ranks of percentiles and of their bounding order statistics.

/// Rank (from 1) of a percentile by the nearest-rank method.
pub(super) fn rank(count: u64, quantile: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and count")]
    let rank = (count as f64 * quantile - 1e-9).ceil() as u64;
    rank.clamp(1, count.max(1))
}

/// The position of a quantile among this many samples: a rank (from 1), and the fraction of the way to the
/// next one. This is the median-unbiased estimate that Hyndman and Fan recommend, their type 8.
pub fn between_ranks(count: u64, quantile: f64) -> (u64, f64) {
    let at = ((count as f64 + 1.0 / 3.0) * quantile + 1.0 / 3.0).clamp(1.0, count.max(1) as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and count")]
    let rank = at as u64;
    (rank, at - rank as f64)
}

/// Ranks of the order statistics that enclose a quantile with at least 95 % confidence: the largest `l` with
/// `P(B < l) <= 2.5 %` and the smallest `u` with `P(B >= u) <= 2.5 %`, where `B` is binomial. `None` if no
/// sample is far enough out.
pub(super) fn order_statistic_ranks(count: u64, quantile: f64) -> (Option<u64>, Option<u64>) {
    const TAIL: f64 = 0.025;
    if count == 0 || quantile <= 0.0 || quantile >= 1.0 {
        return (None, None);
    }
    // Start well outside the interval and walk inwards on exact binomial terms; 8 sigma contain all the
    // relevant mass.
    let mean = count as f64 * quantile;
    let sigma = (mean * (1.0 - quantile)).sqrt();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=count")]
    let from = (mean - 8.0 * sigma - 2.0).max(0.0) as u64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=count")]
    let to = ((mean + 8.0 * sigma + 2.0) as u64).min(count);
    let log_term = |k: u64| {
        ln_factorial(count) - ln_factorial(k) - ln_factorial(count - k)
            + k as f64 * quantile.ln()
            + (count - k) as f64 * (1.0 - quantile).ln()
    };
    let mut low = None;
    let mut below = 0.0;
    for k in from..=to {
        below += log_term(k).exp();
        // P(B <= k) is small enough: the (k+1)-th smallest sample is a lower bound.
        if below > TAIL {
            break;
        }
        low = Some(k + 1);
    }
    let mut high = None;
    let mut above = 0.0;
    for k in (from..=to).rev() {
        above += log_term(k).exp();
        // P(B >= k) is small enough: the k-th smallest sample is an upper bound.
        if above > TAIL {
            break;
        }
        high = Some(k);
    }
    (low.filter(|&l| l >= 1 && l <= count), high.filter(|&u| u >= 1 && u <= count))
}

/// ln(n!): exact sums below 20, Stirling's series from there (error below 1e-10).
fn ln_factorial(n: u64) -> f64 {
    if n < 20 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64 + 1.0;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_the_binomial() {
        // Published order-statistic bounds of the median: n = 100 gives ranks 40 and 61.
        assert_eq!(order_statistic_ranks(100, 0.5), (Some(40), Some(61)));
        assert_eq!(order_statistic_ranks(20, 0.5), (Some(6), Some(15)));
        // 0.5^5 > 2.5 %: five samples do not bound the median, six do.
        assert_eq!(order_statistic_ranks(5, 0.5), (None, None));
        assert_eq!(order_statistic_ranks(6, 0.5), (Some(1), Some(6)));
        // p99 has an upper bound from 368 samples on (0.99^368 < 2.5 %).
        assert_eq!(order_statistic_ranks(367, 0.99).1, None);
        assert_eq!(order_statistic_ranks(368, 0.99).1, Some(368));
    }

    #[test]
    fn quantiles_lie_between_ranks_as_published() {
        // R's quantile(1:n, p, type = 8).
        for (count, quantile, value) in [
            (10, 0.5, 5.5),
            (5, 0.95, 5.0),
            (100, 0.95, 95.65),
            (50, 0.95, 48.15),
            (4, 0.25, 1.416_666_7),
            (1, 0.5, 1.0),
        ] {
            let (rank, part) = between_ranks(count, quantile);
            assert!((rank as f64 + part - value).abs() < 1e-6, "{count} {quantile}: {rank} {part}");
        }
    }

    #[test]
    fn intervals_hold_for_many_samples() {
        let (low, high) = order_statistic_ranks(1_000_000, 0.5);
        let half_width = 1.96 * 500.0;
        assert!((low.unwrap() as f64 - (500_000.0 - half_width)).abs() < 3.0);
        assert!((high.unwrap() as f64 - (500_001.0 + half_width)).abs() < 3.0);
    }
}
