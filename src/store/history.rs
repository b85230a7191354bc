//! A counter over a whole session, in steps that grow with it: coarse, but nothing falls out at the far end.

/// Steps at most.
const STEPS: usize = 2048;
/// Width of a step at first, microseconds.
const WIDTH_US: u64 = 100_000;

/// Sums by step.
#[derive(Debug, Clone, Default)]
pub struct History {
    begun_us: u64,
    width_us: u64,
    /// Sum and number of the values in each step.
    steps: Vec<(f64, u32)>,
}

impl History {
    /// Takes a value. One from before the first value counts as in the first step.
    pub fn push(&mut self, t_us: u64, value: f64) {
        if self.steps.is_empty() {
            (self.begun_us, self.width_us) = (t_us, WIDTH_US);
        }
        let mut index = self.index(t_us);
        while index >= STEPS {
            self.steps = self.steps.chunks(2).map(merged).collect();
            self.width_us *= 2;
            index = self.index(t_us);
        }
        if index >= self.steps.len() {
            self.steps.resize(index + 1, (0.0, 0));
        }
        let (sum, count) = &mut self.steps[index];
        *sum += value;
        *count = count.saturating_add(1);
    }

    /// Mean of the values from `from_us` up to `to_us`, to the width of a step; `None` where there are none.
    pub fn mean(&self, from_us: u64, to_us: u64) -> Option<f64> {
        if self.steps.is_empty() || to_us < self.begun_us {
            return None;
        }
        let last = self.index(to_us).min(self.steps.len() - 1);
        let inside = self.steps.get(self.index(from_us)..=last)?;
        let (sum, count) = merged(inside);
        (count > 0).then(|| sum / f64::from(count))
    }

    /// The first value's moment, host monotonic microseconds; `None` without values.
    pub fn begun_us(&self) -> Option<u64> {
        (!self.steps.is_empty()).then_some(self.begun_us)
    }

    fn index(&self, t_us: u64) -> usize {
        usize::try_from(t_us.saturating_sub(self.begun_us) / self.width_us.max(1)).unwrap_or(usize::MAX)
    }
}

fn merged(steps: &[(f64, u32)]) -> (f64, u32) {
    steps.iter().fold((0.0, 0), |(sum, count), step| (sum + step.0, count.saturating_add(step.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_hour_at_twenty_hertz_is_bounded_and_whole() {
        let mut history = History::default();
        for i in 0..72_000u64 {
            history.push(1_000_000 + i * 50_000, if i < 36_000 { 10.0 } else { 20.0 });
        }
        assert!(history.steps.len() <= STEPS && history.steps.len() > STEPS / 4);
        let at = |minute: u64| history.mean(minute * 60_000_000, (minute + 1) * 60_000_000).unwrap();
        assert_eq!((at(1), at(58)), (10.0, 20.0));
        assert_eq!(history.begun_us(), Some(1_000_000));
        assert_eq!((history.mean(0, 10), History::default().mean(0, 10)), (None, None));
    }

    proptest! {
        #[test]
        fn no_value_is_lost(values in proptest::collection::vec((0..10_000_000_000u64, -1e3..1e3f64), 1..200)) {
            let mut history = History::default();
            let mut values = values;
            values.sort_by_key(|value| value.0);
            for (t_us, value) in &values {
                history.push(*t_us, *value);
            }
            let (sum, count) = merged(&history.steps);
            prop_assert_eq!(count as usize, values.len());
            prop_assert!((sum - values.iter().map(|value| value.1).sum::<f64>()).abs() < 1e-6);
            prop_assert!(history.steps.len() <= STEPS);
        }
    }
}
