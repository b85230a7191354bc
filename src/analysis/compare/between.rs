//! Tests a difference by the launches of two runs.

/// The outcome of testing a difference.
pub(super) struct Tested {
    /// By the launches of both runs, or why not.
    pub between: Result<Between, String>,
    /// Interval within the launches, if one side has only one.
    pub within: Option<[f64; 2]>,
}

/// The result from the launches of two runs.
pub(super) struct Between {
    /// 95 % interval of the relative difference.
    pub interval: [f64; 2],
    /// The relative difference between launches, and whether it comes from pairs of them.
    pub relative: f64,
    pub by_pairs: bool,
    /// True if it exceeds the variation between launches.
    pub told: bool,
    /// Launches needed to detect a difference as large as the observed one, if not detected.
    pub launches_to_tell: Option<usize>,
}

impl Between {
    /// The largest difference they leave possible, as a fraction.
    pub fn up_to(&self) -> f64 {
        self.interval[0].abs().max(self.interval[1].abs())
    }

    /// The same with an interval that holds the difference of the figures shown, which are of all inferences, not means over
    /// launches. What pairs of launches show stands for itself: figures of all inferences mix the levels of launches.
    pub fn with(mut self, relative: f64) -> Self {
        if self.by_pairs {
            return self;
        }
        self.interval = [self.interval[0].min(relative), self.interval[1].max(relative)];
        self.told &= self.interval[0] > 0.0 || self.interval[1] < 0.0;
        self
    }
}
