//! Validates latencies from a digest.

use super::{LatencyStats, MAX_LAUNCHES};
use crate::store::bounds::MOST;

impl LatencyStats {
    /// False for a state that folding events cannot produce. A digest is a file, and anyone can write one.
    pub fn is_sound(&self) -> bool {
        let kept = self.course.len();
        self.course.is_sound()
            && self.launches.is_sound(kept)
            && self.weight > 0
            && self.windows_us.len() <= MAX_LAUNCHES
            && (self.moments.count == 0) == (kept == 0)
            && self.moments.is_sound(self.histogram.len())
            && [self.weight, self.began_us, self.first_start_us, self.last_end_us, self.past_us]
                .iter()
                .all(|n| *n < MOST)
            && self.windows_us.iter().all(|(from, to)| from <= to && *to < MOST)
    }
}
