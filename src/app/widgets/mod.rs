//! Drawing primitives for panes. Each takes a buffer and an area, clips to both, and changes nothing else.

mod bars;
mod chart;
mod text;

pub use bars::{bar, columns, progress, sparkline};
pub use chart::{Window, line_chart, points, points_in};
pub use text::{fit, fit_end, pane, popup, put, put_right, scroll_marks, width, wrap, wrap_literal};
