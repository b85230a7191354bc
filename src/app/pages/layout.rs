//! Where the sections of a page are.

use crate::app::layout::{WIDE, inside, split_bottom, split_left, split_top};
use ratatui::layout::Rect;

/// From this width (columns) up, the list is beside the detail; titles are sentences that should be readable
/// in full.
const SIDE_BY_SIDE: u16 = 150;

/// A part of the page that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Section {
    /// The list.
    #[default]
    List,
    /// The detail of the selected entry.
    Detail,
    /// The log of the run.
    Log,
}

/// Areas of the sections; one that is not shown is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageLayout {
    /// The head of the page.
    pub head: Rect,
    /// The list.
    pub list: Rect,
    /// The detail of the selected entry.
    pub detail: Rect,
    /// The log of the run.
    pub log: Rect,
    /// Hints.
    pub footer: Rect,
    /// Sections have a line above them instead of a frame around them.
    pub rules: bool,
}

impl PageLayout {
    /// The area inside the frame of a section at `area`.
    pub fn inside(&self, area: Rect) -> Rect {
        inside(area, self.rules)
    }
}

/// What the layout depends on besides the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWishes {
    /// Rows that the head needs.
    pub head_rows: usize,
    /// Entries of the list.
    pub entries: usize,
    /// Lines of the log below; `None` without one.
    pub log: Option<usize>,
    /// The only section shown, if the user wants one alone.
    pub zoomed: Option<Section>,
}

/// The sections of a page.
///
/// ```text
///   narrow                     wide (from 150 columns)
///   +- head ---------------+   +- head --------------------------+
///   +- list ---------------+   +- list -------+- detail ---------+
///   +- detail -------------+   |              |                  |
///   |                      |   |              |                  |
///   +- log ----------------+   +- log --------+------------------+
///   hints                      hints
/// ```
pub fn layout(area: Rect, wishes: PageWishes) -> PageLayout {
    let mut layout = PageLayout { rules: area.width < WIDE.0 || area.height < WIDE.1, ..PageLayout::default() };
    let (body, footer) = split_bottom(area, u16::from(area.height > 1));
    layout.footer = footer;
    match wishes.zoomed {
        Some(Section::List) => layout.list = body,
        Some(Section::Detail) => layout.detail = body,
        Some(Section::Log) => layout.log = body,
        None => sections(&mut layout, body, wishes),
    }
    layout
}

fn sections(layout: &mut PageLayout, body: Rect, wishes: PageWishes) {
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let frame = if layout.rules { 1 } else { 2 };
    // On a very small screen the list and its detail matter most.
    let head = match body.height {
        0..=8 => 0,
        9..=22 => rows(wishes.head_rows.min(2)) + frame,
        _ => rows(wishes.head_rows).min(body.height / if wishes.log.is_some() { 5 } else { 4 }) + frame,
    };
    let (head, rest) = split_top(body, head);
    layout.head = head;
    let log = match (wishes.log, rest.height) {
        (None, _) | (Some(_), 0..=13) => 0,
        (Some(lines), height) => (height / 3).min(rows(lines.max(1)) + frame),
    };
    let (rest, log) = split_bottom(rest, log);
    layout.log = log;
    if rest.width < SIDE_BY_SIDE {
        let wanted = rows(wishes.entries.max(1)) + frame;
        let most = if wishes.log.is_some() { (rest.height / 3).max(3) } else { (rest.height / 2).max(3) };
        (layout.list, layout.detail) = split_top(rest, wanted.min(most));
    } else {
        (layout.list, layout.detail) = split_left(rest, rest.width * 9 / 20);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_fill_the_screen_and_never_overlap() {
        for width in [1, 5, 40, 80, 109, 110, 160, 300] {
            for height in [1, 2, 6, 9, 13, 16, 24, 30, 40, 60, 100] {
                for log in [None, Some(0), Some(1000)] {
                    for entries in [0, 1, 100] {
                        let area = Rect::new(0, 0, width, height);
                        let wishes = PageWishes { head_rows: 3, entries, log, zoomed: None };
                        let layout = layout(area, wishes);
                        let areas = [layout.head, layout.list, layout.detail, layout.log, layout.footer];
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
    fn a_small_screen_shows_some_of_each() {
        let wishes = PageWishes { head_rows: 3, entries: 3, log: Some(40), zoomed: None };
        let layout = layout(Rect::new(0, 0, 80, 24), wishes);
        let heights = [layout.head, layout.list, layout.detail, layout.log].map(|area| area.height);
        assert_eq!(heights, [4, 4, 9, 6]);
    }
}
