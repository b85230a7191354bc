//! What the launches of two runs say of a difference.

/// What became of the test of a difference.
pub(super) struct Tested {
    /// By the launches of both runs, or why not.
    pub between: Result<Between, String>,
    /// Interval within the launches, where there is one of one of them only.
    pub within: Option<[f64; 2]>,
}

/// What the launches of two runs say.
pub(super) struct Between {
    /// 95 % interval of the relative difference.
    pub interval: [f64; 2],
    /// The relative difference that launches show, and whether it comes from pairs of them.
    pub relative: f64,
    pub by_pairs: bool,
    /// True if it is outside of what launches vary.
    pub told: bool,
    /// Launches that would tell a difference as large as the one seen, where they do not.
    pub launches_to_tell: Option<usize>,
}

impl Between {
    /// The largest difference that they leave possible, as a part.
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
