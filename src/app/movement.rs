//! Navigation: focus, selections, scrolling, the shown run.

use super::pages::{self, Part};
use super::parts::{Overlay, Page, Pane};
use super::symbols::UNICODE;
use super::view::View;
use crate::store::Store;

/// Rows per page of the focused list, minus one that stays visible.
pub(super) fn page(view: &View) -> isize {
    let rows = match view.browser().filter(|_| view.overlays.is_empty()) {
        Some(browser) => browser.page_rows(),
        None if view.page == Page::Compare => view.comparing.page_rows(),
        None => view.page_rows,
    };
    isize::try_from(rows.max(2) - 1).unwrap_or(1)
}

/// Shows the next or previous run.
pub(super) fn step_run(view: &mut View, store: &Store, step: isize) {
    let ids: Vec<_> = store.runs().iter().map(|run| run.id).collect();
    let Some(last) = ids.len().checked_sub(1) else { return };
    let now = view.run_of(store).and_then(|run| ids.iter().position(|id| *id == run.id)).unwrap_or(last);
    let then = now.saturating_add_signed(step).min(last);
    view.show_run(store, ids[then]);
}

/// Moves the focus to the next or previous pane or section.
pub(super) fn focus(view: &mut View, store: &Store, forward: bool) {
    match (view.overlays.last(), view.page) {
        (None, Page::Start) => view.start.step_section(store, forward),
        (None, Page::Compare) => {
            let part = if view.comparing.part == Part::Figures { Part::Layers } else { Part::Figures };
            view.comparing.part = part;
        }
        (None, page) if page.list().is_some() => {
            let Some(content) = pages::content(view, store, &UNICODE) else { return };
            if let Some(browser) = view.browser_mut() {
                browser.hold(&content.entries);
                browser.focus(content.log, forward);
            }
        }
        (None | Some(Overlay::Details { .. }), Page::Live) => {
            view.overlays.clear();
            let pane = view.focus.step(if forward { 1 } else { Pane::ALL.len() - 1 });
            show(view, pane);
        }
        (Some(Overlay::Picker(_) | Overlay::Backends { .. }), _) => step(view, store, if forward { 1 } else { -1 }),
        _ => {}
    }
}

/// Focuses a pane.
pub(super) fn show(view: &mut View, pane: Pane) {
    view.focus = pane;
    if pane.is_main() {
        view.main = pane;
    }
}

/// Moves the selection or scrolls by rows in the focused part.
pub(super) fn step(view: &mut View, store: &Store, step: isize) {
    let moved = |at: usize| at.saturating_add_signed(step);
    match (view.overlays.last_mut(), view.page) {
        // The panes know their line count and stop at the last line.
        (Some(Overlay::Help { scroll }), _) => *scroll = moved(*scroll).min(MAX_SCROLL),
        (Some(Overlay::Picker(picker)), _) => picker.step(step),
        (Some(Overlay::Backends { selected }), _) => {
            *selected = moved(*selected).min(view.start.backends.len().saturating_sub(1));
        }
        (Some(Overlay::Details { scroll }), _) if step.unsigned_abs() > 1 => {
            *scroll = moved(*scroll).min(MAX_SCROLL);
        }
        (None, Page::Start) => view.start.step(store, step),
        (None, Page::Compare) => view.comparing.step(step),
        (None, page) if page.list().is_some() => step_page(view, store, step),
        // With the details open, single steps go from layer to layer.
        (Some(Overlay::Details { scroll }), _) => {
            *scroll = 0;
            step_layer(view, step);
        }
        (Some(Overlay::Filter), _) => step_layer(view, step),
        (None, _) => match view.focus {
            Pane::Layers => step_layer(view, step),
            Pane::Log => {
                let last = store.logs().len().saturating_sub(1);
                view.log_back = view.log_back.saturating_add_signed(step.saturating_neg()).min(last);
            }
            pane => {
                if let Some(index) = scroll_index(pane) {
                    view.scroll[index] = moved(view.scroll[index]).min(MAX_SCROLL);
                }
            }
        },
    }
}

fn step_page(view: &mut View, store: &Store, step: isize) {
    let Some(content) = pages::content(view, store, &UNICODE) else { return };
    let lines = match view.run_of(store) {
        Some(run) if content.log => pages::log_of(store, run.id).count(),
        _ => 0,
    };
    if let Some(browser) = view.browser_mut() {
        browser.step(&content.entries, step, lines);
    }
}

/// Upper bound on the lines of any scrollable text.
const MAX_SCROLL: usize = 4_000;

/// Index of a pane in [`View::scroll`].
pub(super) fn scroll_index(pane: Pane) -> Option<usize> {
    match pane {
        Pane::Status => Some(0),
        Pane::Memory => Some(1),
        Pane::Host => Some(2),
        _ => None,
    }
}

fn step_layer(view: &mut View, step: isize) {
    let order = &view.shown.layers.order;
    let Some(last) = order.len().checked_sub(1) else { return };
    let position = view.position().saturating_add_signed(step).min(last);
    view.selected = Some(view.shown.layers.order[position]);
}
