//! Limits of a number, as written in rules.

use serde::Deserialize;

/// Limits; all that are given must hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Range {
    above: Option<f64>,
    at_least: Option<f64>,
    below: Option<f64>,
    at_most: Option<f64>,
    not_multiple_of: Option<f64>,
}

impl Range {
    /// True if `value` is within the limits.
    pub fn holds(self, value: f64) -> bool {
        value.is_finite()
            && self.above.is_none_or(|limit| value > limit)
            && self.at_least.is_none_or(|limit| value >= limit)
            && self.below.is_none_or(|limit| value < limit)
            && self.at_most.is_none_or(|limit| value <= limit)
            && self.not_multiple_of.is_none_or(|unit| value % unit != 0.0)
    }

    /// True if there are no limits.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_as_their_words_say() {
        let range: Range = toml::from_str("above = 2\nat-most = 8\nnot-multiple-of = 4").unwrap();
        let inside: Vec<f64> = (0..10).map(f64::from).filter(|value| range.holds(*value)).collect();
        assert_eq!(inside, [3.0, 5.0, 6.0, 7.0]);
        assert!(!range.holds(f64::NAN) && !Range::default().holds(f64::INFINITY) && Range::default().is_empty());
        assert!(toml::from_str::<Range>("over = 2").is_err());
    }
}
