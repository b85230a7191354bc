//! Choosing a model file.

use super::Context;
use crate::app::format;
use crate::app::picker::{EntryKind, Picker};
use crate::app::theme::Meaning;
use crate::app::widgets::{fit, popup, put, put_right, scroll_marks};
use crate::event::clean_text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws the popup.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>, picker: &Picker) {
    let symbols = context.symbols();
    let muted = context.style(Meaning::Muted);
    let title = context.style(Meaning::Title);
    let height = area.height.saturating_sub(2).max(area.height.min(4));
    let inner = popup(buf, area, 92, height.min(40), &[("choose a model", title)], context.theme);
    if inner.is_empty() {
        return;
    }
    let dir = clean_text(&picker.dir.to_string_lossy());
    put(buf, inner, 0, 0, &fit(&dir, inner.width, symbols.ellipsis), muted);
    let text = clean_text(&picker.text);
    let x = put(buf, inner, 0, 1, "/ ", context.style(Meaning::Key));
    let x = put(buf, inner, x, 1, &fit(&text, inner.width.saturating_sub(x + 1), symbols.ellipsis), title);
    let x = put(buf, inner, x, 1, symbols.cursor, context.style(Meaning::Accent));
    if text.is_empty() {
        put(buf, inner, x + 1, 1, "type to filter, or type or paste a path", muted);
    }
    let list = Rect { y: inner.y + 2.min(inner.height), height: inner.height.saturating_sub(2), ..inner };
    let visible = picker.visible();
    let message = match &picker.listing {
        None => Some(format!("reading{}", symbols.ellipsis)),
        Some(Err(reason)) => Some(format!("cannot read this folder: {}", clean_text(reason))),
        Some(Ok(_)) if visible.is_empty() && !picker.filter().is_empty() => {
            Some("no match; enter uses the text as a path".to_owned())
        }
        Some(Ok(_)) if visible.is_empty() => Some("this folder is empty".to_owned()),
        Some(Ok(_)) => None,
    };
    if let Some(message) = message {
        context.empty(buf, list, &message);
        return;
    }
    let rows = usize::from(list.height);
    let selected = picker.selected.min(visible.len().saturating_sub(1));
    let top = selected.saturating_sub(rows.saturating_sub(1) / 2).min(visible.len().saturating_sub(rows));
    for (y, (at, entry)) in (0..list.height).zip(visible.iter().enumerate().skip(top)) {
        let on = at == selected;
        let meaning = match entry.kind {
            EntryKind::Parent | EntryKind::Directory => Meaning::Accent,
            EntryKind::Model => Meaning::Title,
            EntryKind::File => Meaning::Muted,
        };
        let style = if on { Style::default() } else { context.style(meaning) };
        if on {
            buf.set_style(Rect { y: list.y + y, height: 1, ..list }, context.style(Meaning::Selection));
            put(buf, list, 0, y, symbols.marker, style);
        }
        let slash = if matches!(entry.kind, EntryKind::Parent | EntryKind::Directory) { "/" } else { "" };
        let name = format!("{}{slash}", entry.name);
        put(buf, list, 2, y, &fit(&name, list.width.saturating_sub(16), symbols.ellipsis), style);
        if let Some(bytes) = entry.bytes {
            let style = if on { style } else { muted };
            put_right(buf, list, list.width, 12, y, &format::bytes(bytes), style, "");
        }
    }
    scroll_marks(buf, list, 0, visible.len().saturating_sub(top + rows), context.theme);
}
