//! Sizes: where panes and sections are on a screen of a size, and what of selections and scrolling fits there.

use super::layout::{self, Layout, LayoutWishes};
use super::pages::{self, PageLayout, PageWishes};
use super::panes;
use super::parts::{Asked, Overlay, Page, Pane};
use super::shown::Wishes;
use super::symbols::{Symbols, UNICODE};
use super::view::View;
use crate::event::Stage;
use crate::store::{Run, Store};
use ratatui::layout::Rect;

impl View {
    /// The layout at a size.
    pub fn layout(&self, store: &Store, area: Rect) -> Layout {
        let run = self.run_of(store);
        let failure_rows = match (self.shown.standing, run) {
            (Some(standing), Some(run)) if standing.failed => panes::failure_rows(run, area.width),
            _ => 0,
        };
        layout::live(
            area,
            LayoutWishes {
                main: self.main,
                zoomed: self.zoomed.then_some(self.focus),
                details: self.overlays.iter().any(|overlay| matches!(overlay, Overlay::Details { .. })),
                failure_rows,
                latency: self.shown.latency.count > 0,
                counters: run.is_some_and(|run| store.device_counters().sampler(&run.plan.device).is_some()),
            },
        )
    }

    /// Brings the view up to date before a frame of this size: takes what is new from the store unless paused, and keeps
    /// selections and scrolling within what there is. Returns true if another frame is needed though nothing happens.
    pub fn prepare(&mut self, store: &Store, area: Rect, now_us: u64) -> bool {
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
        // The characters differ between the sets, the rows do not.
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

    /// A text that is scrolled to its end goes back with the first key.
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
