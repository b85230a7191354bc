//! Geometry: where panes and sections are at a screen size, and the bounds of selections and scrolling there.

use super::layout::{self, Layout, LayoutWishes, NAMES_WIDTH};
use super::pages::{self, CompareLayout, PageLayout, PageWishes, Part, Section};
use super::panes;
use super::parts::{Asked, Overlay, Page, Pane};
use super::shown::Wishes;
use super::symbols::{Symbols, UNICODE};
use super::view::View;
use super::widgets;
use crate::event::Stage;
use crate::store::{Run, Store};
use ratatui::layout::{Position, Rect};
use std::ops::Range;

/// What lies under a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit<T> {
    /// The part of the screen, including its frame.
    pub part: T,
    /// Row inside the frame; `None` on the frame.
    pub row: Option<usize>,
    /// Column from the part's left edge, frame included.
    pub column: u16,
    /// The pane named by the title at this cell, if panes share one place.
    pub tab: Option<Pane>,
}

/// A part of the live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LivePart {
    /// One of the panes.
    Pane(Pane),
    /// Details of a layer.
    Details,
    /// The newest log line.
    LogLine,
    /// Hints.
    Footer,
}

impl Layout {
    /// What lies under a cell; `None` outside everything.
    pub fn hit(&self, x: u16, y: u16) -> Option<Hit<LivePart>> {
        let framed = Pane::ALL.map(|pane| (LivePart::Pane(pane), self.area(pane)));
        let framed = framed.into_iter().chain([(LivePart::Details, self.details)]);
        let plain = [(LivePart::LogLine, self.log_line), (LivePart::Footer, self.footer)];
        let at = Position { x, y };
        hit(framed, at, |area| self.inside(area)).or_else(|| hit(plain, at, |area| area)).map(|hit| match hit.part {
            LivePart::Pane(pane) if hit.row.is_none() && y == self.area(pane).y => {
                let named = self.tabs(pane).into_iter().find(|(_, columns)| columns.contains(&hit.column));
                Hit { tab: named.map(|(pane, _)| pane), ..hit }
            }
            _ => hit,
        })
    }

    /// Panes named in a pane's title, with their columns from its left edge: on a small screen those that share
    /// the main place.
    pub fn tabs(&self, pane: Pane) -> Vec<(Pane, Range<u16>)> {
        if self.names_all != Some(pane) {
            return Vec::new();
        }
        // A stretch of border, the focus marker, a space.
        let mut x = 3;
        let mains = Pane::ALL.into_iter().filter(|pane| pane.is_main());
        mains
            .map(|pane| {
                let columns = x..x + widgets::width(pane.name());
                x = columns.end + 1;
                (pane, columns)
            })
            .collect()
    }
}

impl PageLayout {
    /// What lies under a cell; `None` on the head, the hints, and outside.
    pub fn hit(&self, x: u16, y: u16) -> Option<Hit<Section>> {
        let sections = [(Section::List, self.list), (Section::Detail, self.detail), (Section::Log, self.log)];
        hit(sections, Position { x, y }, |area| self.inside(area))
    }
}

impl CompareLayout {
    /// What lies under a cell; `None` on the head, the hints, and outside.
    pub fn hit(&self, x: u16, y: u16) -> Option<Hit<Part>> {
        let parts = [(Part::Figures, self.figures), (Part::Layers, self.layers)];
        hit(parts, Position { x, y }, |area| self.inside(area))
    }
}

/// The part whose area contains a cell, and the position in it.
fn hit<T>(parts: impl IntoIterator<Item = (T, Rect)>, at: Position, inside: impl Fn(Rect) -> Rect) -> Option<Hit<T>> {
    let (part, area) = parts.into_iter().find(|(_, area)| area.contains(at))?;
    let within = inside(area);
    let row = within.contains(at).then(|| usize::from(at.y - within.y));
    Some(Hit { part, row, column: at.x - area.x, tab: None })
}

impl View {
    /// The layout at a size.
    pub fn layout(&self, store: &Store, area: Rect) -> Layout {
        let run = self.run_of(store);
        let failure_rows = match (self.shown.standing, run) {
            (Some(standing), Some(run)) if standing.failed => panes::failure_rows(run, area.width),
            _ => 0,
        };
        let layout = layout::live(
            area,
            LayoutWishes {
                main: self.main,
                zoomed: self.zoomed.then_some(self.focus),
                details: self.overlays.iter().any(|overlay| matches!(overlay, Overlay::Details { .. })),
                failure_rows,
                latency: self.shown.latency.count > 0,
                counters: run.is_some_and(|run| store.device_counters().sampler(&run.plan.device).is_some()),
            },
        );
        let takes_turns = layout.rules && !self.zoomed && self.focus != Pane::Layers;
        let has_room = layout.area(self.main).width >= NAMES_WIDTH;
        Layout { names_all: (takes_turns && has_room).then_some(self.main), ..layout }
    }

    /// Updates the view before a frame of this size: takes new data from the store unless paused, and clamps selections
    /// and scrolling. Returns true if another frame is needed even without events.
    pub fn prepare(&mut self, store: &Store, area: Rect, now_us: u64) -> bool {
        self.area = area;
        match &self.asked {
            Some(Asked::Run { runs, .. }) if store.runs().len() > *runs => self.asked = None,
            Some(Asked::Stop(id)) if store.run(*id).is_none_or(Run::is_ended) => self.asked = None,
            _ => {}
        }
        self.tell_failures(store);
        let run = self.run_of(store).map(|run| run.id);
        if run != self.shown.run {
            (self.counter, self.moment) = (None, None);
            if !std::mem::take(&mut self.keep_selection) {
                let (left, row) = (self.shown.run, self.selected);
                self.selected_before.extend(left.zip(row));
                self.selected = run.and_then(|run| self.selected_before.get(&run).copied());
            }
            self.layers_top = 0;
            self.scroll = [0; 3];
        }
        let layout = self.layout(store, area);
        let parts = layout::latency_parts(layout.inside(layout.latency));
        let wishes = Wishes {
            run,
            frozen: self.paused.is_some(),
            sort: self.sort,
            filter: &self.filter,
            bins: usize::from(parts.histogram.width.max(8)),
        };
        let more = self.shown.refresh(store, wishes, now_us);
        self.known.refresh(store, self.run_of(store), self.paused.is_some(), now_us);
        self.settle_page(store, area);
        if self.page == Page::Compare {
            self.comparing.refresh(store, self.paused.is_some(), now_us);
            let layout = panes::compare_layout(self, store, area);
            self.comparing.settle(store, &layout);
        }
        // A failure may just have appeared and changed the layout.
        let layout = self.layout(store, area);
        let rows = panes::layer_rows(layout.inside(layout.layers));
        if self.focus == Pane::Layers || !layout.layers.is_empty() {
            self.keep_selection_visible(rows);
        }
        self.keep_scrolls_within(store, &layout, area);
        let focused = layout.inside(layout.area(self.focus));
        self.page_rows = match self.focus {
            Pane::Layers => rows.max(1),
            _ => usize::from(focused.height).max(1),
        };
        more
    }

    /// The layout of a page with a list; `None` for the others.
    pub fn page_layout(&self, store: &Store, area: Rect, symbols: &Symbols) -> Option<(PageLayout, pages::Content)> {
        let content = pages::content(self, store, symbols)?;
        let browser = self.browser()?;
        let wishes = PageWishes {
            head_rows: pages::paragraph_rows(&content.head, area.width.saturating_sub(2)).len(),
            entries: content.entries.len(),
            log: content.log.then(|| self.run_of(store).map_or(0, |run| pages::log_of(store, run.id).count())),
            zoomed: browser.zoomed.then_some(browser.section),
        };
        Some((pages::layout(area, wishes), content))
    }

    fn settle_page(&mut self, store: &Store, area: Rect) {
        // The symbol sets differ in characters, not in rows.
        let Some((layout, content)) = self.page_layout(store, area, &UNICODE) else { return };
        let run = self.run_of(store).map(|run| run.id);
        let log: Vec<u64> = match run {
            Some(run) if content.log => pages::log_of(store, run).map(|(number, _)| number).collect(),
            _ => Vec::new(),
        };
        if let Some(browser) = self.browser_mut() {
            browser.settle(run, &content.entries, &layout, &log);
        }
    }

    /// Text scrolled to its end scrolls back with the first key.
    fn keep_scrolls_within(&mut self, store: &Store, layout: &Layout, area: Rect) {
        let rows = |pane: Pane| usize::from(layout.inside(layout.area(pane)).height);
        let limits = [
            Stage::ALL.len().saturating_sub(1),
            panes::MEMORY_ROWS.saturating_sub(rows(Pane::Memory)),
            panes::counter_count(self, store).saturating_sub(rows(Pane::Host)),
        ];
        for (scroll, limit) in self.scroll.iter_mut().zip(limits) {
            *scroll = (*scroll).min(limit);
        }
        self.log_back = self.log_back.min(store.logs().len().saturating_sub(rows(Pane::Log)));
        let limit = match self.overlays.last() {
            Some(Overlay::Help { .. }) => panes::last_help_scroll(self, store, area),
            Some(Overlay::Details { .. }) => {
                let inner = layout.inside(layout.details);
                self.run_of(store).map_or(0, |run| panes::last_details_scroll(self, run, inner))
            }
            _ => return,
        };
        if let Some(Overlay::Help { scroll } | Overlay::Details { scroll }) = self.overlays.last_mut() {
            *scroll = (*scroll).min(limit);
        }
    }

    fn keep_selection_visible(&mut self, rows: usize) {
        let (len, position) = (self.shown.layers.order.len(), self.position());
        self.layers_top = self.layers_top.min(len.saturating_sub(rows));
        if position < self.layers_top {
            self.layers_top = position;
        } else if rows > 0 && position >= self.layers_top + rows {
            self.layers_top = position + 1 - rows;
        }
    }
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
            counters: true,
        }
    }

    fn parts(layout: &Layout) -> Vec<(LivePart, Rect)> {
        let mut parts: Vec<_> = Pane::ALL.iter().map(|pane| (LivePart::Pane(*pane), layout.area(*pane))).collect();
        parts.extend([(LivePart::Details, layout.details), (LivePart::LogLine, layout.log_line)]);
        parts.push((LivePart::Footer, layout.footer));
        parts.retain(|(_, area)| !area.is_empty());
        parts
    }

    #[test]
    fn every_pane_is_hit_at_its_centre_and_at_its_borders() {
        for (width, height) in [(80, 24), (80, 45), (110, 30), (200, 60)] {
            for details in [false, true] {
                // Not in the corner of the screen: the code must not assume an origin of (0, 0).
                let area = Rect::new(3, 2, width, height);
                let layout = layout::live(area, LayoutWishes { details, ..wishes() });
                let parts = parts(&layout);
                assert!(parts.len() >= 5, "{layout:?}");
                for (part, area) in parts {
                    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
                    let corners = [(area.x, area.y), (right, area.y), (area.x, bottom), (right, bottom)];
                    let centre = (area.x + area.width / 2, area.y + area.height / 2);
                    for (x, y) in corners.into_iter().chain([centre]) {
                        let hit = layout.hit(x, y).unwrap_or_else(|| panic!("{part:?} at {x},{y} of {width}x{height}"));
                        assert_eq!((hit.part, hit.column), (part, x - area.x), "{x},{y} of {width}x{height}");
                    }
                    if let LivePart::Pane(_) = part {
                        assert_eq!(layout.hit(area.x, area.y).unwrap().row, None, "the title is no row");
                        let inside = layout.inside(area);
                        assert_eq!(layout.hit(inside.x, inside.y).map(|hit| hit.row), Some(Some(0)));
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_outside() {
        let area = Rect::new(3, 2, 80, 24);
        let layout = layout::live(area, wishes());
        for (x, y) in [(0, 0), (2, 5), (83, 5), (10, 1), (10, 26), (u16::MAX, u16::MAX)] {
            assert_eq!(layout.hit(x, y), None, "{x},{y}");
        }
        assert_eq!(Layout::default().hit(0, 0), None);
        let page = pages::layout(area, PageWishes { head_rows: 2, entries: 4, log: Some(9), zoomed: None });
        assert_eq!(page.hit(4, page.head.y), None, "the head has nothing to choose");
        for (section, area) in [(Section::List, page.list), (Section::Detail, page.detail), (Section::Log, page.log)] {
            let hit = page.hit(area.x + area.width / 2, area.y + area.height / 2).unwrap();
            assert_eq!((hit.part, page.hit(area.x, area.y).unwrap().row), (section, None));
        }
    }

    #[test]
    fn the_title_of_the_main_place_has_a_tab_for_each_pane() {
        let area = Rect::new(0, 0, 80, 24);
        let layout =
            Layout { names_all: Some(Pane::Log), ..layout::live(area, LayoutWishes { main: Pane::Log, ..wishes() }) };
        let y = layout.log.y;
        let tab = |x: u16| layout.hit(x, y).unwrap().tab;
        // "-> layers memory host log"
        assert_eq!(
            [2, 3, 8, 9, 10, 15, 17, 22].map(tab),
            [
                None,
                Some(Pane::Layers),
                Some(Pane::Layers),
                None,
                Some(Pane::Memory),
                Some(Pane::Memory),
                Some(Pane::Host),
                Some(Pane::Log),
            ]
        );
        assert_eq!(layout.hit(3, y + 1).unwrap().tab, None);
        assert_eq!(Layout { names_all: None, ..layout }.hit(3, y).unwrap().tab, None);
    }
}
