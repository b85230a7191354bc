//! Where the panes are.

use super::parts::Pane;
use ratatui::layout::Rect;

/// Below this size panes are stacked instead of side by side.
pub(super) const WIDE: (u16, u16) = (110, 30);

/// What the layout depends on besides the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutWishes {
    /// The pane in the main area of a small screen.
    pub main: Pane,
    /// One pane alone.
    pub zoomed: Option<Pane>,
    /// Details of a layer are open.
    pub details: bool,
    /// Rows needed for the report of a failure; 0 without one.
    pub failure_rows: u16,
    /// There are latencies to show.
    pub latency: bool,
    /// A device's counters are sampled.
    pub counters: bool,
}

/// Areas of the panes; hidden ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// Run status.
    pub status: Rect,
    /// Latency.
    pub latency: Rect,
    /// Layers.
    pub layers: Rect,
    /// Details of a layer.
    pub details: Rect,
    /// Memory.
    pub memory: Rect,
    /// Host counters.
    pub host: Rect,
    /// Log.
    pub log: Rect,
    /// The newest log line, if there is no room for the pane.
    pub log_line: Rect,
    /// Hints.
    pub footer: Rect,
    /// Panes have a line above them instead of a frame around them.
    pub rules: bool,
    /// The pane in the main area, whose title names all panes sharing it.
    pub names_all: Option<Pane>,
}

impl Layout {
    /// Area of a pane.
    pub fn area(&self, pane: Pane) -> Rect {
        match pane {
            Pane::Status => self.status,
            Pane::Latency => self.latency,
            Pane::Layers => self.layers,
            Pane::Memory => self.memory,
            Pane::Host => self.host,
            Pane::Log => self.log,
        }
    }

    fn area_mut(&mut self, pane: Pane) -> &mut Rect {
        match pane {
            Pane::Status => &mut self.status,
            Pane::Latency => &mut self.latency,
            Pane::Layers => &mut self.layers,
            Pane::Memory => &mut self.memory,
            Pane::Host => &mut self.host,
            Pane::Log => &mut self.log,
        }
    }

    /// The area inside the frame of a pane at `area`.
    pub fn inside(&self, area: Rect) -> Rect {
        inside(area, self.rules)
    }
}

/// The area inside a frame, or below a line, at `area`.
pub(super) fn inside(area: Rect, rules: bool) -> Rect {
    if rules || area.width < 2 || area.height < 2 {
        Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area }
    } else {
        Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
    }
}

/// The panes of the live view.
///
/// ```text
///   small (80x24)                  large (from 110x30)
///   +- status ---------------+     +- status -----+- latency ---------------+
///   +- latency --------------+     |              | chart  histogram  table |
///   | chart  histogram table |     +- layers -----+------+- memory ---------+
///   +- layers | memory | ... +     |                     +- host -----------+
///   |                        |     |                     |                  |
///   newest log line                +- log ---------------+------------------+
///   hints                          hints
/// ```
///
/// On a small screen the focused pane takes the main area. Details of a layer take the right half of the middle, or the
/// main area.
pub fn live(area: Rect, wishes: LayoutWishes) -> Layout {
    let mut layout = Layout::default();
    let (body, footer) = split_bottom(area, u16::from(area.height > 1));
    layout.footer = footer;
    if let Some(pane) = wishes.zoomed {
        *layout.area_mut(pane) = body;
        if wishes.details && pane == Pane::Layers {
            if body.width >= WIDE.0 {
                (layout.layers, layout.details) = split_right(body, body.width / 2);
            } else {
                (layout.layers, layout.details) = (Rect::default(), body);
            }
        }
        return layout;
    }
    if area.width >= WIDE.0 && area.height >= WIDE.1 {
        large(&mut layout, body, wishes);
    } else {
        small(&mut layout, body, wishes);
    }
    layout
}

fn large(layout: &mut Layout, body: Rect, wishes: LayoutWishes) {
    let mut top_height = (body.height / 3).clamp(12, 18);
    let mut status_width = (body.width * 9 / 25).clamp(50, 76);
    if wishes.failure_rows > 0 {
        top_height = top_height.max(wishes.failure_rows + 8).min(body.height * 3 / 5);
        status_width = if wishes.latency { body.width / 2 } else { body.width };
    }
    let (top, rest) = split_top(body, top_height);
    (layout.status, layout.latency) = split_left(top, status_width);
    let (middle, log) = split_bottom(rest, (body.height / 6).clamp(5, 10));
    layout.log = log;
    let side_width = (body.width * 7 / 25).clamp(40, 58);
    if wishes.details {
        (layout.layers, layout.details) = split_right(middle, (middle.width / 2).clamp(side_width, 90));
        return;
    }
    let (layers, side) = split_right(middle, side_width);
    layout.layers = layers;
    (layout.memory, layout.host) = split_top(side, (side.height * 2 / 5).clamp(5, 12));
}

fn small(layout: &mut Layout, body: Rect, wishes: LayoutWishes) {
    layout.rules = true;
    let height = body.height;
    let (mut rest, log_line) = split_bottom(body, u16::from(height >= 14));
    layout.log_line = log_line;
    let status_height = match height {
        0..=6 => 0,
        7..=11 => 2,
        _ if wishes.failure_rows > 0 => (wishes.failure_rows + 6).min(height * 3 / 4),
        _ => 4,
    };
    (layout.status, rest) = split_top(rest, status_height);
    if height >= 16 && (wishes.failure_rows == 0 || height >= 30) {
        (layout.latency, rest) = split_top(rest, 7 + (height.saturating_sub(23) / 4).min(6));
    }
    if wishes.details {
        layout.details = rest;
        return;
    }
    if wishes.counters && wishes.failure_rows == 0 && (22..38).contains(&height) && wishes.main != Pane::Host {
        // Heat and throttling belong on the first screen.
        (rest, layout.host) = split_bottom(rest, (rest.height * 2 / 5).clamp(4, 8));
    }
    if height >= 38 {
        let (main, bottom) = split_bottom(rest, 10);
        rest = main;
        (layout.memory, layout.host) = split_left(bottom, bottom.width / 2);
    }
    let shown = layout.area(wishes.main).is_empty();
    *layout.area_mut(if shown { wishes.main } else { Pane::Layers }) = rest;
}

pub(super) fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

pub(super) fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    split_top(area, area.height.saturating_sub(height))
}

pub(super) fn split_left(area: Rect, width: u16) -> (Rect, Rect) {
    let width = width.min(area.width);
    (Rect { width, ..area }, Rect { x: area.x + width, width: area.width - width, ..area })
}

fn split_right(area: Rect, width: u16) -> (Rect, Rect) {
    split_left(area, area.width.saturating_sub(width))
}

/// Narrower main areas name only the visible pane.
pub(super) const NAMES_WIDTH: u16 = 60;

/// Parts of the latency pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyParts {
    /// Chart over time.
    pub chart: Rect,
    /// Histogram.
    pub histogram: Rect,
    /// Percentiles.
    pub table: Rect,
}

/// Columns of the table of percentiles: a name and two figures.
pub const TABLE_WIDTH: u16 = 28;

/// Chart, histogram and table side by side; when room is short, the table is the last to go.
pub fn latency_parts(inside: Rect) -> LatencyParts {
    if inside.is_empty() {
        return LatencyParts::default();
    }
    let (rest, table) = split_right(inside, TABLE_WIDTH);
    let gap = |area: Rect| Rect { width: area.width.saturating_sub(2), ..area };
    if rest.width < 14 {
        return LatencyParts { table, ..LatencyParts::default() };
    }
    let (chart, histogram) = split_right(rest, rest.width * 2 / 5);
    let (chart, histogram) = if histogram.width < 12 { (rest, Rect::default()) } else { (chart, histogram) };
    LatencyParts { chart: gap(chart), histogram: gap(histogram), table }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes() -> LayoutWishes {
        LayoutWishes {
            main: Pane::Layers,
            zoomed: None,
            details: false,
            failure_rows: 0,
            latency: true,
            counters: false,
        }
    }

    fn areas(layout: &Layout) -> Vec<Rect> {
        let Layout { status, latency, layers, details, memory, host, log, log_line, footer, .. } = *layout;
        [status, latency, layers, details, memory, host, log, log_line, footer].to_vec()
    }

    #[test]
    fn panes_fill_the_screen_and_never_overlap() {
        for width in [1, 5, 40, 80, 109, 110, 160, 200, 300] {
            for height in [1, 2, 6, 9, 13, 16, 24, 30, 40, 60, 100] {
                for details in [false, true] {
                    for failure_rows in [0, 6, 40] {
                        let area = Rect::new(0, 0, width, height);
                        let layout = live(
                            area,
                            LayoutWishes { details, failure_rows, counters: details != (width == 80), ..wishes() },
                        );
                        let areas = areas(&layout);
                        let sum: u32 = areas.iter().map(|area| area.area()).sum();
                        assert_eq!(sum, area.area(), "{width}x{height} {layout:?}");
                        for (i, a) in areas.iter().enumerate() {
                            assert_eq!(a.intersection(area).area(), a.area(), "{width}x{height}");
                            assert!(areas[i + 1..].iter().all(|b| !a.intersects(*b) || a.is_empty() || b.is_empty()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_small_screen_shows_what_has_the_focus() {
        let area = Rect::new(0, 0, 80, 24);
        assert_eq!(live(area, wishes()).layers.height, 11);
        let layout = live(area, LayoutWishes { main: Pane::Log, ..wishes() });
        assert_eq!((layout.log.height, layout.layers.height), (11, 0));
    }

    #[test]
    fn a_devices_counters_are_on_the_first_screen() {
        for (width, height, rows) in [(80, 24, 4), (100, 30, 6)] {
            let area = Rect::new(0, 0, width, height);
            let layout = live(area, LayoutWishes { counters: true, ..wishes() });
            assert_eq!(layout.host.height, rows, "{width}x{height}");
            assert!(layout.layers.height >= 6, "{layout:?}");
        }
    }

    #[test]
    fn a_zoomed_pane_has_everything_but_the_hints() {
        let layout = live(Rect::new(0, 0, 80, 24), LayoutWishes { zoomed: Some(Pane::Memory), ..wishes() });
        assert_eq!((layout.memory, layout.footer), (Rect::new(0, 0, 80, 23), Rect::new(0, 23, 80, 1)));
    }
}
