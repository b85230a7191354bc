//! What no folding of events comes to.

/// No count, time or sum of a digest reaches this: sums of some of them still fit, whoever wrote them.
pub(super) const MOST: u64 = 1 << 58;
