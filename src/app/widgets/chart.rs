//! A chart of many samples in few cells.

use super::put;
use crate::app::symbols::Symbols;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Which samples a chart shows: whole buckets, so that points do not change as new samples arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First sample shown.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// Samples per point.
    pub bucket: usize,
}

/// Samples per point. In steps, because each step redraws the whole chart; beyond the last one the chart scrolls, which
/// bounds the work per frame.
const BUCKETS: [usize; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48];

impl Window {
    /// The window on `len` samples for `points` points.
    pub fn new(len: usize, points: usize) -> Self {
        if points == 0 {
            return Self { start: len, end: len, bucket: 1 };
        }
        let wanted = len.div_ceil(points);
        let bucket = BUCKETS.into_iter().find(|bucket| *bucket >= wanted).unwrap_or(BUCKETS[BUCKETS.len() - 1]);
        let start = len.div_ceil(bucket).saturating_sub(points) * bucket;
        Self { start, end: len, bucket }
    }
}

/// For every bucket of the window its mean, and its largest sample if above `spike` (else the mean again).
pub fn points(samples: &[f32], window: Window, spike: f64) -> Vec<(f32, f32)> {
    let shown = samples.get(window.start..window.end.min(samples.len())).unwrap_or(&[]);
    shown
        .chunks(window.bucket)
        .map(|chunk| {
            let (sum, high) = chunk.iter().fold((0.0, f32::NEG_INFINITY), |(sum, high), &v| (sum + v, high.max(v)));
            let mean = sum / chunk.len() as f32;
            (mean, if f64::from(high) > spike { high } else { mean })
        })
        .collect()
}

/// Number of points that fit into `width` columns.
pub fn points_in(width: u16, symbols: &Symbols) -> usize {
    usize::from(width) * if symbols.braille { 2 } else { 1 }
}

/// Draws ranges between `low` and `high` from the left; values outside are drawn at the edge.
pub fn line_chart(
    buf: &mut Buffer,
    area: Rect,
    ranges: &[(f32, f32)],
    (low, high): (f64, f64),
    style: Style,
    symbols: &Symbols,
) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let (per_x, per_y) = if symbols.braille { (2usize, 4usize) } else { (1, 1) };
    let rows = usize::from(area.height) * per_y;
    let span = if high > low { high - low } else { 1.0 };
    let row_of = |value: f32| -> usize {
        let fraction = ((f64::from(value) - low) / span).clamp(0.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and rows - 1")]
        let up = (fraction * (rows - 1) as f64).round() as usize;
        rows - 1 - up
    };
    let mut dots = vec![0u8; usize::from(area.width) * usize::from(area.height)];
    let mut previous: Option<(usize, usize)> = None;
    for (i, &(lo, hi)) in ranges.iter().enumerate() {
        let column = i / per_x;
        if column >= usize::from(area.width) {
            break;
        }
        if !lo.is_finite() || !hi.is_finite() {
            previous = None;
            continue;
        }
        let (mut top, mut bottom) = (row_of(hi), row_of(lo));
        let own = (top, bottom);
        // Joined to its neighbour, so that a jump is a line rather than two dots.
        if let Some((before_top, before_bottom)) = previous {
            if before_bottom < top {
                top = before_bottom + 1;
            } else if before_top > bottom {
                bottom = before_top - 1;
            }
        }
        previous = Some(own);
        for row in top.min(own.0)..=bottom.max(own.1) {
            dots[row / per_y * usize::from(area.width) + column] |= dot(i % per_x, row % per_y);
        }
    }
    for (index, &bits) in dots.iter().enumerate().filter(|(_, bits)| **bits != 0) {
        #[expect(clippy::cast_possible_truncation, reason = "the index lies within the area")]
        let (x, y) = ((index % usize::from(area.width)) as u16, (index / usize::from(area.width)) as u16);
        if symbols.braille {
            if let Some(cell) = buf.cell_mut((area.x + x, area.y + y)) {
                cell.set_char(char::from_u32(0x2800 + u32::from(bits)).unwrap_or('*')).set_style(style);
            }
        } else {
            put(buf, area, x, y, "*", style);
        }
    }
}

/// Bit of a Braille dot; column 0 or 1, row 0 to 3.
fn dot(column: usize, row: usize) -> u8 {
    const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    BITS[column][row]
}

#[cfg(test)]
mod tests {
    use super::super::super::symbols::{ASCII, UNICODE};
    use super::*;

    #[test]
    fn windows_hold_whole_buckets() {
        assert_eq!(Window::new(0, 10), Window { start: 0, end: 0, bucket: 1 });
        assert_eq!(Window::new(10, 10), Window { start: 0, end: 10, bucket: 1 });
        assert_eq!(Window::new(11, 10), Window { start: 0, end: 11, bucket: 2 });
        assert_eq!(Window::new(480, 10), Window { start: 0, end: 480, bucket: 48 });
        assert_eq!(Window::new(1000, 10), Window { start: 528, end: 1000, bucket: 48 });
        assert_eq!(Window::new(5, 0).end, 5);
    }

    #[test]
    fn points_keep_the_spikes() {
        let samples = [1.0, 9.0, 2.0, 4.0, 3.0];
        let window = Window { start: 0, end: 5, bucket: 2 };
        assert_eq!(points(&samples, window, 8.0), [(5.0, 9.0), (3.0, 3.0), (3.0, 3.0)]);
    }

    #[test]
    fn lines_are_joined_and_clipped() {
        let area = Rect::new(0, 0, 3, 3);
        let mut buf = Buffer::empty(area);
        line_chart(&mut buf, area, &[(0.0, 0.0), (2.0, 2.0), (9.0, 9.0)], (0.0, 2.0), Style::default(), &ASCII);
        assert_eq!(buf, Buffer::with_lines([" **", " * ", "*  "]));
        let mut buf = Buffer::empty(Rect::new(0, 0, 1, 1));
        line_chart(&mut buf, area, &[(0.0, 0.0), (2.0, 2.0)], (0.0, 2.0), Style::default(), &UNICODE);
        assert_eq!(buf, Buffer::with_lines(["⡸"]));
    }
}
