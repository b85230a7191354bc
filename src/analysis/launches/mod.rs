//! Figures that repeat: what launches of the same thing vary by, and what can be told in spite of it.
//!
//! A launch is a fresh process. Where its threads come to lie, its memory layout, clocks and power state stay as they are
//! while it lasts, so thousands of inferences of one launch say nothing about the next. The launch is the unit that is
//! counted here: each gives one value (its median, say), and intervals and tests are of those values. That is the random
//! effect of a two-level model with the within-launch noise already in it. Values are taken as logarithms, since launches
//! differ by factors.
//!
//! With three to ten launches a two-level bootstrap is far too sure of itself (three values give ten different resamples),
//! so intervals of one run are Student's; those of a difference come from ranks, which hold for launches on two levels, too, and from
//! the ratios of neighbours where two sides took turns. Rates at which all this holds are simulated: `cargo bench --bench repeatability`.

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
