//! The panes. Each draws from the store, view, theme and area into a buffer, and changes nothing else.

mod backends;
mod compare;
mod counters;
mod details;
mod failure;
mod file_picker;
mod footer;
mod help;
mod latency;
mod layers;
mod log;
mod memory;
mod pages;
mod start;
mod status;

pub(super) use compare::layout as compare_layout;
pub(super) use counters::{count as counter_count, position as counter_position};
pub(super) use details::last_scroll as last_details_scroll;
pub(super) use failure::rows as failure_rows;
pub(super) use help::last_scroll as last_help_scroll;
pub(super) use layers::visible_rows as layer_rows;
pub(super) use memory::ROWS as MEMORY_ROWS;
pub(super) use status::{plural, tab_at};

use super::layout::Layout;
use super::parts::{Overlay, Page, Pane};
use super::symbols::Symbols;
use super::theme::{Meaning, Theme};
use super::view::View;
use super::widgets;
use crate::store::{Run, Store};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The input of a pane.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The store.
    pub store: &'a Store,
    /// The view.
    pub view: &'a View,
    /// The theme.
    pub theme: &'a Theme,
    /// The run that is shown.
    pub run: Option<&'a Run>,
    /// The shown time, host monotonic microseconds.
    pub now_us: u64,
    /// Panes have a line above instead of a frame.
    pub rules: bool,
    /// The pane whose title names all panes sharing its place.
    pub names_all: Option<Pane>,
}

impl<'a> Context<'a> {
    /// The look of a meaning.
    pub fn style(&self, meaning: Meaning) -> Style {
        self.theme.style(meaning)
    }

    /// The characters in use.
    pub fn symbols(&self) -> &'a Symbols {
        &self.theme.symbols
    }

    /// True if the figures of the run are simulated.
    pub fn simulated(&self) -> bool {
        self.run.is_some_and(|run| run.plan.simulated)
    }

    /// Draws a pane's frame with its name and further title pieces; returns the inner area.
    pub fn frame(&self, buf: &mut Buffer, area: Rect, pane: Pane, more: &[(&str, Style)]) -> Rect {
        let title = self.style(Meaning::Title);
        let muted = self.style(Meaning::Muted);
        let focused = self.view.focus == pane && self.view.overlays.is_empty();
        let names = self.names(pane);
        let mut pieces: Vec<(&str, Style)> = Vec::new();
        let dot = format!(" {} ", self.symbols().dot);
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                pieces.push((" ", muted));
            }
            pieces.push((name, if *name == pane.name() { title } else { muted }));
        }
        let mut used: u16 = 7 + names.iter().map(|name| widgets::width(name) + 1).sum::<u16>();
        for (text, style) in more {
            used = used.saturating_add(widgets::width(text) + 3);
            if used > area.width {
                break;
            }
            pieces.push((&dot, muted));
            pieces.push((text, *style));
        }
        widgets::pane(buf, area, &pieces, focused, self.rules, self.theme)
    }

    /// On a small screen the title of the main area names all panes sharing it.
    fn names(&self, pane: Pane) -> Vec<&'static str> {
        if self.names_all == Some(pane) {
            Pane::ALL.iter().filter(|pane| pane.is_main()).map(|pane| pane.name()).collect()
        } else {
            vec![pane.name()]
        }
    }

    /// A sentence shown if there is no content.
    pub fn empty(&self, buf: &mut Buffer, inner: Rect, text: &str) {
        for (y, line) in (0..inner.height).zip(widgets::wrap(text, inner.width.saturating_sub(2))) {
            widgets::put(buf, inner, 1, y, &line, self.style(Meaning::Muted));
        }
    }
}

/// Draws the screen.
pub(super) fn draw(buf: &mut Buffer, area: Rect, store: &Store, view: &View, theme: &Theme, now_us: u64) {
    buf.set_style(area, theme.style(Meaning::Text));
    let page = view.page_layout(store, area, &theme.symbols);
    let layout = view.layout(store, area);
    let now_us = view.paused.map_or(now_us, |paused| paused.at_us);
    let context = Context {
        store,
        view,
        theme,
        run: view.run_of(store),
        now_us,
        rules: layout.rules,
        names_all: layout.names_all,
    };
    match &page {
        Some((layout, said)) => pages::draw(buf, layout, said, &context),
        None if view.page == Page::Compare => compare::draw(buf, area, &context),
        None if view.page == Page::Start => start::draw(buf, area, &context),
        None => live(buf, &layout, &context),
    }
    for overlay in &view.overlays {
        match overlay {
            Overlay::Help { scroll } => help::draw(buf, area, &context, *scroll),
            Overlay::Picker(picker) => file_picker::draw(buf, area, &context, picker),
            Overlay::Details { scroll } => details::draw(buf, layout.details, &context, *scroll),
            Overlay::Backends { selected } => backends::draw(buf, area, &context, *selected),
            // The filter is entered in the title of the layers.
            Overlay::Filter => {}
        }
    }
    let footer = match view.page {
        Page::Live => layout.footer,
        _ => Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area },
    };
    footer::draw(buf, footer, &context);
}

/// The shown run, for titles: its number, backend and model, and whether it is simulated.
fn run_title(context: &Context<'_>) -> Vec<(String, Style)> {
    let Some(run) = context.run else { return Vec::new() };
    let muted = context.style(Meaning::Muted);
    let mut pieces = Vec::new();
    if let Some(number) = context.store.run_number(run.id) {
        pieces.push((format!("run {number} on {}", run.plan.backend.name()), context.style(Meaning::Accent)));
    }
    if context.simulated() {
        pieces.push(("simulated".to_owned(), context.style(Meaning::Simulated)));
    }
    pieces.push((status::file_name(&run.plan.model), muted));
    pieces
}

fn live(buf: &mut Buffer, layout: &Layout, context: &Context<'_>) {
    for pane in Pane::ALL {
        let area = layout.area(pane);
        if area.is_empty() {
            continue;
        }
        match pane {
            Pane::Status => status::draw(buf, area, context),
            Pane::Latency => latency::draw(buf, area, context),
            Pane::Layers => layers::draw(buf, area, context),
            Pane::Memory => memory::draw(buf, area, context),
            Pane::Host => counters::draw(buf, area, context),
            Pane::Log => log::draw(buf, area, context),
        }
    }
    log::line(buf, layout.log_line, context);
}
