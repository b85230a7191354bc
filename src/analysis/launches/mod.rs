//! Figures that repeat: the variation between equal launches, and what can be concluded despite it.
//!
//! A launch is a fresh process. Its thread placement, memory layout, clocks and power state last as long as it does, so
//! thousands of inferences in one launch say nothing about the next. The launch is the unit counted here: each
//! contributes one value (its median, say), and intervals and tests are of those values. That is the random effect of a
//! two-level model with the within-launch noise already in it. Values are taken as logarithms, since launches differ by
//! factors.
//!
//! With three to ten launches a two-level bootstrap is far too sure of itself (three values give ten different
//! resamples), so intervals of one run are Student's; those of a difference come from ranks, which hold for launches on
//! two levels, too, and from the ratios of neighbours if two sides alternated. Simulations show the rates at which all
//! this holds: `cargo bench --bench repeatability`.

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
