//! Selection of another backend for the same model.

use super::Context;
use crate::app::theme::Meaning;
use crate::app::widgets::{popup, put, wrap};
use crate::event::{LOCAL_DEVICE, clean_text};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws the popup.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>, selected: usize) {
    let title = context.style(Meaning::Title);
    let width = 64u16.min(area.width);
    let rows = rows(context, width.saturating_sub(8));
    let height = rows.iter().map(|row| row.lines.len()).sum::<usize>();
    let height = u16::try_from(height).unwrap_or(u16::MAX).saturating_add(2);
    let inner = popup(buf, area, width, height, &[("switch backend", title)], context.theme);
    let mut y = 0;
    for (i, row) in rows.iter().enumerate() {
        for (j, line) in row.lines.iter().enumerate() {
            if y >= inner.height {
                return;
            }
            let on = i == selected;
            if on {
                let band = Rect { y: inner.y + y, height: 1, ..inner };
                buf.set_style(band, context.style(Meaning::Selection));
            }
            if j == 0 {
                let marker = if on { context.symbols().marker } else { " " };
                put(buf, inner, 0, y, marker, Style::default());
                let style = if on { Style::default() } else { context.style(Meaning::Title) };
                put(buf, inner, 2, y, row.name, style);
            }
            put(buf, inner, 7, y, line, if on { Style::default() } else { context.style(row.meaning) });
            y += 1;
        }
    }
}

struct Row {
    name: &'static str,
    lines: Vec<String>,
    meaning: Meaning,
}

fn rows(context: &Context<'_>, room: u16) -> Vec<Row> {
    let current = context.run.map(|run| run.plan.backend);
    let local = context.run.is_none_or(|run| run.plan.device == LOCAL_DEVICE);
    let row = |row: &crate::app::BackendAvailability| {
        let (text, meaning) = match &row.available {
            Err(reason) => (format!("not available: {}", clean_text(reason)), Meaning::Muted),
            Ok(()) if local && row.backend.is_simulated_here() => {
                ("simulated on this machine".to_owned(), Meaning::Simulated)
            }
            Ok(()) if Some(row.backend) == current => ("the current one; runs it again".to_owned(), Meaning::Muted),
            Ok(()) => ("available".to_owned(), Meaning::Good),
        };
        Row { name: row.backend.name(), lines: wrap(&text, room), meaning }
    };
    context.view.start.backends.iter().map(row).collect()
}
