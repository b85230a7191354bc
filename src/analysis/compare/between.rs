//! Tests a difference against the launches of two runs.

/// The outcome of testing a difference.
pub(super) struct Tested {
    /// The result from the launches of both runs, or why there is none.
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
    /// Launches needed to detect a difference as large as the observed one, if it was not detected.
    pub launches_to_tell: Option<usize>,
}

impl Between {
    /// The largest difference that the launches leave possible, as a fraction.
    pub fn up_to(&self) -> f64 {
        self.interval[0].abs().max(self.interval[1].abs())
    }

    /// Extends the interval to include the difference of the figures shown, which cover all inferences
    /// instead of averaging over launches. Pairs of launches are left alone: figures over all inferences mix
    /// the levels of launches.
    pub fn with(mut self, relative: f64) -> Self {
        if self.by_pairs {
            return self;
        }
        self.interval = [self.interval[0].min(relative), self.interval[1].max(relative)];
        self.told &= self.interval[0] > 0.0 || self.interval[1] < 0.0;
        self
    }
}
