//! Repeatability: how much equal launches vary, and what can be concluded despite it.
//!
//! A launch is a fresh process. Its thread placement, memory layout, clocks and power state last as long as
//! it does, so thousands of inferences in one launch say nothing about the next. The launch is therefore the
//! unit of analysis: each contributes one value (such as its median), and intervals and tests are about those
//! values. That is the random effect of a two-level model, with the within-launch noise already included.
//! Values are taken as logarithms, since launches differ by factors.
//!
//! With three to ten launches a two-level bootstrap is far too confident (three values give ten different
//! resamples). So the intervals of one run are Student's; those of a difference come from ranks, which also
//! hold for launches on two levels, and from the ratios of neighbours if the two sides alternated.
//! Simulations show at which rates all this holds: `cargo bench --bench repeatability`.

mod between;
mod difference;
mod enough;
mod paired;
mod ranks;
mod spread;
mod student;

pub use between::{BetweenLaunches, between_launches, percentile};
pub use difference::{Difference, InTime, between_runs, difference};
pub use enough::{
    CHEAP_LAUNCHES, CHEAP_TIME, FIRST_LAUNCHES, MANY_LAUNCHES, MANY_TIME, MORE_TIME, MOST_LAUNCHES, MoreLaunches,
    QUICK_LAUNCHES, QUICK_TIME, launches_to_tell, minimal_difference, needs_more,
};
pub use spread::Spread;
