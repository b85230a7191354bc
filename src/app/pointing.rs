//! The mouse: a click focuses and selects, the wheel scrolls what is under the pointer.

use super::action::Gesture;
use super::geometry::{Hit, LivePart};
use super::movement::{show, step};
use super::pages::{Part, Section};
use super::panes;
use super::parts::{Overlay, Page, Pane};
use super::symbols::UNICODE;
use super::view::View;
use crate::store::Store;

/// Rows scrolled per wheel step.
const WHEEL: isize = 3;

/// Performs a mouse action at a cell.
pub fn point(view: &mut View, store: &Store, (x, y): (u16, u16), gesture: Gesture) {
    let turn = match gesture {
        Gesture::Click => None,
        Gesture::Wheel { down } => Some(if down { WHEEL } else { -WHEEL }),
    };
    match (view.overlays.last(), view.page) {
        // A popup gets the wheel exclusively; clicks only affect what lies below.
        (Some(Overlay::Help { .. } | Overlay::Picker(_) | Overlay::Backends { .. }), _) | (_, Page::Start) => {
            if let Some(turn) = turn {
                step(view, store, turn);
            }
        }
        (_, Page::Live) => {
            let layout = view.layout(store, view.area);
            let Some(hit) = layout.hit(x, y) else { return };
            match turn {
                Some(turn) => scroll_live(view, store, hit.part, turn),
                None => click_live(view, store, hit, layout.inside(layout.status).width),
            }
        }
        (_, Page::Compare) => compare(view, store, (x, y), turn),
        _ => list(view, store, (x, y), turn),
    }
}

fn scroll_live(view: &mut View, store: &Store, part: LivePart, turn: isize) {
    let pane = match part {
        LivePart::Pane(pane) => pane,
        // With the details open, steps larger than one scroll them.
        LivePart::Details => return step(view, store, turn),
        LivePart::LogLine | LivePart::Footer => return,
    };
    // The focus stays; popups above the panes are not scrolled with them.
    let (focus, overlays) = (std::mem::replace(&mut view.focus, pane), std::mem::take(&mut view.overlays));
    step(view, store, turn);
    (view.focus, view.overlays) = (focus, overlays);
}

fn click_live(view: &mut View, store: &Store, hit: Hit<LivePart>, status_columns: u16) {
    let LivePart::Pane(pane) = hit.part else { return };
    let pane = hit.tab.unwrap_or(pane);
    if pane != Pane::Layers {
        view.overlays.clear();
    }
    show(view, pane);
    match (pane, hit.row) {
        (Pane::Layers, Some(row)) => {
            // The header is the first row.
            let index = row.checked_sub(1).map(|row| view.layers_top + row);
            if let Some(&op) = index.and_then(|index| view.shown.layers.order.get(index)) {
                view.selected = Some(op);
            }
        }
        (Pane::Status, Some(0)) => {
            let frame = view.layout(store, view.area);
            let left = frame.inside(frame.status).x - frame.status.x;
            let tab = hit.column.checked_sub(left);
            if let Some(run) = tab.and_then(|at| panes::tab_at(&view.shown, status_columns, at)) {
                view.show_run(store, run);
            }
        }
        _ => {}
    }
}

fn compare(view: &mut View, store: &Store, (x, y): (u16, u16), turn: Option<isize>) {
    let layout = panes::compare_layout(view, store, view.area);
    let Some(hit) = layout.hit(x, y) else { return };
    let focused = std::mem::replace(&mut view.comparing.part, hit.part);
    match (turn, hit.part, hit.row) {
        (Some(turn), ..) => {
            view.comparing.step(turn);
            view.comparing.part = focused;
        }
        (None, Part::Layers, Some(row)) if row > 0 => view.comparing.select(row - 1),
        (None, ..) => {}
    }
}

fn list(view: &mut View, store: &Store, (x, y): (u16, u16), turn: Option<isize>) {
    let Some((layout, content)) = view.page_layout(store, view.area, &UNICODE) else { return };
    let Some(hit) = layout.hit(x, y) else { return };
    let Some(browser) = view.browser_mut() else { return };
    browser.hold(&content.entries);
    let focused = std::mem::replace(&mut browser.section, hit.part);
    let row = hit.row;
    match (turn, hit.part) {
        (Some(turn), _) => {
            step(view, store, turn);
            if let Some(browser) = view.browser_mut() {
                browser.section = focused;
            }
        }
        (None, Section::List) => {
            let index = row.map(|row| browser.list_top + row).filter(|index| *index < content.entries.len());
            if let Some(index) = index {
                browser.select(&content.entries, index);
            }
        }
        (None, Section::Detail) => {
            if let Some(row) = row {
                browser.select_item_at(row);
            }
        }
        (None, Section::Log) => {}
    }
}
