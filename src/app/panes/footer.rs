//! The last line: the available keys, pending requests, and whether the view is frozen.

use super::Context;
use super::status::plural;
use crate::app::action::KeyAction;
use crate::app::format;
use crate::app::keymap::KeyContext;
use crate::app::pages::{Counts, PAGES, opened_by};
use crate::app::parts::Page;
use crate::app::replay::Replay;
use crate::app::theme::Meaning;
use crate::app::widgets::{fit, put, put_right, width};
use crate::text::noun;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Keys the footer leaves out: navigation keys are well known and listed in the help.
const UNSAID: [KeyAction; 17] = [
    KeyAction::Toggle,
    KeyAction::PreviousEntry,
    KeyAction::Up,
    KeyAction::Down,
    KeyAction::PageUp,
    KeyAction::PageDown,
    KeyAction::First,
    KeyAction::Last,
    KeyAction::Interrupt,
    KeyAction::Mouse,
    KeyAction::Redraw,
    KeyAction::Suspend,
    KeyAction::FocusPrevious,
    KeyAction::PreviousRun,
    KeyAction::SortPrevious,
    KeyAction::DeleteBack,
    KeyAction::DeleteAll,
];

/// Draws the line.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    if area.is_empty() {
        return;
    }
    let view = context.view;
    let symbols = context.symbols();
    let key_context = view.key_context(context.store);
    let mut right: Vec<(String, Style)> = Vec::new();
    if context.store.lost() > 0 {
        right.push((format!(" {} lost ", format::count(context.store.lost())), context.style(Meaning::Warn)));
    }
    if let Some(paused) = view.paused {
        let waiting = context.store.records().saturating_sub(paused.records);
        let text = format!(" PAUSED +{} {} ", format::count(waiting), noun(waiting, "event"));
        right.push((text, context.style(Meaning::Selection)));
    } else if let Some(replay) = &view.replay {
        right.push((replay_text(context, replay), context.style(Meaning::Selection)));
    } else if view.over {
        right.push((" ended ".to_owned(), context.style(Meaning::Muted)));
    }
    let found = findings(context, &key_context);
    let counted = found.is_some();
    right.extend(found);
    let mut end = area.width;
    for (text, style) in right.iter().rev() {
        put_right(buf, area, end, area.width, 0, text, *style, symbols.ellipsis);
        end = end.saturating_sub(width(text) + 1);
    }
    let room = Rect { width: end, ..area };
    if let Some(notice) = &view.notice {
        let text = crate::event::clean_text(notice);
        let text = fit(&text, end.saturating_sub(2), symbols.ellipsis);
        put(buf, room, 1, 0, &text, context.style(Meaning::Warn));
        return;
    }
    let on_a_list = !matches!(view.page, Page::Start | Page::Live) && view.overlays.is_empty();
    let mut x = 1;
    for (action, keys) in view.keymap.reachable(&key_context) {
        let said = (!UNSAID.contains(&action) || (action == KeyAction::Toggle && key_context.screen == "compare"))
            && (action != KeyAction::NextRun || view.shown.runs.len() > 1)
            && (action != KeyAction::FocusNext || matches!(key_context.screen, "live" | "start") || on_a_list)
            && opened_by(action).is_none_or(|row| view.page != row.page && (row.offered)(view, context.store))
            && (action != KeyAction::Findings || !counted)
            && (action != KeyAction::Open || key_context.screen != "compare" || !view.comparing.totals)
            && (action != KeyAction::Back || key_context.screen != "start" || !context.store.runs().is_empty());
        let Some(key) = keys.first().filter(|_| said) else { continue };
        let key = key.to_string();
        let word = word(action, key_context.screen, view.paused.is_some(), view.comparing.totals);
        if x + width(&key) + 1 + width(word) > end {
            break;
        }
        x = put(buf, room, x, 0, &key, context.style(Meaning::Key));
        x = put(buf, room, x + 1, 0, word, context.style(Meaning::Muted)) + 2;
    }
}

/// Position and speed of the recording.
fn replay_text(context: &Context<'_>, replay: &Replay) -> String {
    let time = |us: u64| format::duration(us as f64, context.symbols());
    let doing = match (replay.wanted_us, replay.playing) {
        (Some(_), _) => "seeking",
        (None, true) => "playing",
        (None, false) => "stopped",
    };
    let (at, of) = (replay.at_us.saturating_sub(replay.start_us), replay.end_us.saturating_sub(replay.start_us));
    format!(" {doing} {} of {} at {}x ", time(at), time(of), replay.speed)
}

/// How many findings need attention; shown on the live view, which does not list them.
fn findings(context: &Context<'_>, key_context: &KeyContext) -> Option<(String, Style)> {
    let counts = Counts::of(&context.view.known.findings);
    let mut words = Vec::new();
    for (count, word) in [(counts.problems, "problem"), (counts.warnings, "warning")] {
        if count > 0 {
            words.push(plural(count as u64, word));
        }
    }
    let shown = matches!(key_context.screen, "live" | "details") && !words.is_empty();
    let reachable = context.view.keymap.reachable(key_context);
    let key = reachable.iter().find(|(action, _)| *action == KeyAction::Findings).and_then(|(_, keys)| keys.first());
    let key = key.map_or_else(String::new, |key| format!("{key} "));
    shown.then(|| (format!("{key}{} ", words.join(", ")), context.style(counts.meaning())))
}

fn word(action: KeyAction, screen: &str, paused: bool, totals: bool) -> &'static str {
    match (action, screen) {
        (KeyAction::Open, "live") => "details",
        (KeyAction::Open, "filter") => "keep",
        (KeyAction::Back, "filter") => "clear",
        (KeyAction::Open, "start") => "choose",
        (KeyAction::OpTypes, _) if totals => "layers",
        (KeyAction::Open, "compare") => "look at layer",
        (KeyAction::NextEntry, "compare") => "next run",
        (KeyAction::Toggle, "compare") => "in or out",
        (KeyAction::FocusNext, "start") => "next section",
        (KeyAction::Pause, _) if paused => "go on",
        (KeyAction::Open, screen) => {
            let list = PAGES.iter().find(|row| row.name == screen).and_then(|row| row.list.as_ref());
            list.map(|list| list.open).filter(|word| !word.is_empty()).unwrap_or_else(|| action.short())
        }
        _ => action.short(),
    }
}
