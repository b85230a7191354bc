//! Bars, columns, progress and sparklines of block characters.

use super::put;
use crate::app::symbols::Symbols;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Index into a table of `len` steps for a value from 0 to 1; 0 only for 0.
fn step(fraction: f64, len: usize) -> usize {
    if fraction <= 0.0 || fraction.is_nan() {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the table")]
    let index = (fraction.min(1.0) * (len - 1) as f64).round() as usize;
    index.clamp(1, len - 1)
}

/// A horizontal bar of `fraction` (0 to 1) of `room` columns.
pub fn bar(
    buf: &mut Buffer,
    area: Rect,
    (x, y): (u16, u16),
    room: u16,
    fraction: f64,
    style: Style,
    symbols: &Symbols,
) {
    if room == 0 || fraction <= 0.0 || fraction.is_nan() {
        return;
    }
    let parts = symbols.parts;
    let per_cell = parts.len() - 1;
    let filled = step(fraction, usize::from(room) * per_cell + 1);
    let full = parts[per_cell].repeat(filled / per_cell);
    let end = put(buf, area, x, y, &full, style);
    if !filled.is_multiple_of(per_cell) {
        put(buf, area, end, y, parts[filled % per_cell], style);
    }
}

/// Columns from the bottom of `area`, one per value, the largest as high as the area.
pub fn columns(buf: &mut Buffer, area: Rect, values: &[u64], style: Style, symbols: &Symbols) {
    let max = values.iter().copied().max().unwrap_or(0);
    if max == 0 || area.is_empty() {
        return;
    }
    let per_cell = symbols.levels.len() - 1;
    let heights = usize::from(area.height) * per_cell + 1;
    for (x, &value) in (0..area.width).zip(values) {
        let mut rest = step(value as f64 / max as f64, heights);
        for y in (0..area.height).rev() {
            if rest == 0 {
                break;
            }
            let level = rest.min(per_cell);
            put(buf, area, x, y, symbols.levels[level], style);
            rest -= level;
        }
    }
}

/// A progress bar over `room` columns; `None` if the end is unknown.
pub fn progress(
    buf: &mut Buffer,
    area: Rect,
    (x, y): (u16, u16),
    room: u16,
    fraction: Option<f64>,
    (done, rest): (Style, Style),
    symbols: &Symbols,
) {
    let fraction = fraction.unwrap_or(0.0).clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and room")]
    let filled = (fraction * f64::from(room)).floor() as u16;
    let end = put(buf, area, x, y, &symbols.progress.0.repeat(usize::from(filled)), done);
    put(buf, area, end, y, &symbols.progress.1.repeat(usize::from(room.saturating_sub(filled))), rest);
}

/// One row of levels for the newest values, right-aligned; gaps stay empty. The scale is `low` to `high`.
pub fn sparkline(
    buf: &mut Buffer,
    area: Rect,
    values: impl DoubleEndedIterator<Item = Option<f64>>,
    (low, high): (f64, f64),
    style: Style,
    symbols: &Symbols,
) {
    let span = if high > low { high - low } else { 1.0 };
    let top = symbols.levels.len() - 1;
    for (i, value) in (0..area.width).zip(values.rev()) {
        let Some(value) = value else { continue };
        let fraction = ((value - low) / span).clamp(0.0, 1.0);
        // The lowest value stays visible, so that it does not look like a gap.
        let level = step(fraction, top + 1).max(1);
        put(buf, area, area.width - 1 - i, 0, symbols.levels[level], style);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::symbols::{ASCII, UNICODE};
    use super::*;

    #[test]
    fn bars_have_eighths() {
        let area = Rect::new(0, 0, 6, 1);
        let mut buf = Buffer::empty(area);
        bar(&mut buf, area, (0, 0), 4, 0.625, Style::default(), &UNICODE);
        assert_eq!(buf, Buffer::with_lines(["██▌   "]));
        let mut buf = Buffer::empty(area);
        bar(&mut buf, area, (0, 0), 4, 0.001, Style::default(), &UNICODE);
        assert_eq!(buf, Buffer::with_lines(["▏     "]));
        let mut buf = Buffer::empty(area);
        bar(&mut buf, area, (0, 0), 4, 0.5, Style::default(), &ASCII);
        assert_eq!(buf, Buffer::with_lines(["==    "]));
    }

    #[test]
    fn columns_stand_on_the_ground() {
        let area = Rect::new(0, 0, 4, 2);
        let mut buf = Buffer::empty(area);
        columns(&mut buf, area, &[16, 8, 1, 0], Style::default(), &UNICODE);
        assert_eq!(buf, Buffer::with_lines(["█   ", "██▁ "]));
    }

    #[test]
    fn gaps_in_a_sparkline_stay_empty() {
        let area = Rect::new(0, 0, 4, 1);
        let mut buf = Buffer::empty(area);
        let values = [Some(0.0), None, Some(8.0)];
        sparkline(&mut buf, area, values.into_iter(), (0.0, 8.0), Style::default(), &UNICODE);
        assert_eq!(buf, Buffer::with_lines([" ▁ █"]));
    }
}
