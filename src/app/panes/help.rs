//! All keys, from the table that defines them.

use super::Context;
use crate::app::action::KeyAction;
use crate::app::keymap::KeyContext;
use crate::app::pages::PAGES;
use crate::app::parts::Overlay;
use crate::app::theme::Meaning;
use crate::app::view::View;
use crate::app::widgets::{popup, put, scroll_marks};
use crate::store::Store;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Columns of the keys.
const KEYS: u16 = 17;

/// Draws the popup.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>, scroll: usize) {
    let title = context.style(Meaning::Title);
    let lines = lines(context.view, context.store);
    let inner = popup(buf, area, 78, height(area, lines.len()), &[("keys", title)], context.theme);
    let rows = usize::from(inner.height);
    let top = scroll.min(lines.len().saturating_sub(rows));
    for (y, (keys, text)) in (0..inner.height).zip(lines.iter().skip(top)) {
        if keys.is_empty() {
            put(buf, inner, 0, y, text, title);
        } else {
            put(buf, inner, 0, y, keys, context.style(Meaning::Key));
            put(buf, inner, KEYS, y, text, context.style(Meaning::Text));
        }
    }
    scroll_marks(buf, inner, top, lines.len().saturating_sub(top + rows), context.theme);
}

/// Rows of the popup with its frame.
fn height(area: Rect, lines: usize) -> u16 {
    let wanted = u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(2);
    wanted.min(area.height.saturating_sub(2).max(3))
}

/// The maximum scroll position of the help on a screen of this size.
pub fn last_scroll(view: &View, store: &Store, area: Rect) -> usize {
    let lines = lines(view, store).len();
    lines.saturating_sub(usize::from(height(area, lines).min(area.height).saturating_sub(2)))
}

/// Keys and their help, by screen, starting with the one the help was opened from.
fn lines(view: &View, store: &Store) -> Vec<(String, String)> {
    let base = view.key_context(store);
    let below = view.overlays.iter().rev().find(|overlay| !matches!(overlay, Overlay::Help { .. }));
    let here = match (below, view.page) {
        (Some(Overlay::Picker(_)), _) => "picker",
        (Some(Overlay::Filter), _) => "filter",
        (_, page) => page.name(),
    };
    let mut screens = vec![here];
    // The pages with a list share most keys; one represents all.
    let page = view.page.list().map_or("findings", |_| here);
    screens.extend(["live", page, "compare", "start", "picker", "filter"].into_iter().filter(|screen| *screen != here));
    let mut said: Vec<(KeyAction, String)> = Vec::new();
    let mut lines = Vec::new();
    for screen in screens {
        let (heading, text_input) = match screen {
            "findings" if here != screen => ("Diagnosis, findings, outliers, modes, placement, program", false),
            "picker" => ("Choosing a file (type to filter, or a path)", true),
            "filter" => ("Typing a filter", true),
            page => (PAGES.iter().find(|row| row.name == page).map_or(page, |row| row.heading), false),
        };
        if !lines.is_empty() {
            lines.push((String::new(), String::new()));
        }
        lines.push((String::new(), heading.to_owned()));
        for (action, keys) in all(view, KeyContext { screen, text_input, ..base }) {
            // Keys shared by the live view and its pages are listed once.
            if matches!(
                screen,
                "live" | "diagnosis" | "findings" | "outliers" | "modes" | "placement" | "program" | "compare"
            ) {
                if said.contains(&(action, keys.clone())) {
                    continue;
                }
                said.push((action, keys.clone()));
            }
            lines.push((keys, action.help().to_owned()));
        }
    }
    lines
}

/// Everything available on a screen, whether something runs or not.
fn all(view: &View, base: KeyContext) -> Vec<(KeyAction, String)> {
    let mut rows: Vec<(KeyAction, String)> = Vec::new();
    for running in [true, false] {
        for (action, keys) in view.keymap.reachable(&KeyContext { running, ..base }) {
            if !rows.iter().any(|(known, _)| *known == action) {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                rows.push((action, keys.join("  ")));
            }
        }
    }
    rows.sort_by_key(|(action, _)| KeyAction::ALL.iter().position(|known| known == action));
    rows
}
