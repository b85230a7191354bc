//! The log.

use super::Context;
use super::status::plural;
use crate::app::format;
use crate::app::parts::Pane;
use crate::app::theme::Meaning;
use crate::app::widgets::{fit_end, put, scroll_marks};
use crate::event::{LogLevel, LogSource};
use crate::store::StoredLine;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let logs = context.store.logs();
    let end = logs.partition_point(|line| line.t_us <= context.view.shown.at_us);
    let muted = context.style(Meaning::Muted);
    let counted = plural(end as u64 + context.store.logs_dropped(), "line");
    let mut title = vec![(counted.as_str(), muted)];
    let dropped = format!("{} older ones only in the session file", format::count(context.store.logs_dropped()));
    if context.store.logs_dropped() > 0 {
        title.push((&dropped, muted));
    }
    let inner = context.frame(buf, area, Pane::Log, &title);
    if end == 0 {
        context.empty(buf, inner, "nothing was logged yet");
        return;
    }
    let height = usize::from(inner.height);
    let back = context.view.log_back.min(end.saturating_sub(height));
    let bottom = end - back;
    let top = bottom.saturating_sub(height);
    // The line the user jumped to: the first one at or after that time.
    let moment = context.view.moment.map(|t_us| logs.partition_point(|line| line.t_us < t_us));
    for (y, (at, entry)) in (0..inner.height).zip(logs.range(top..bottom).enumerate()) {
        marked_row(buf, inner, context, y, entry, moment == Some(top + at));
    }
    if !context.rules {
        scroll_marks(buf, inner, top, back, context.theme);
    }
}

/// The newest line, for screens without room for the pane. A warning or error stays until a newer one arrives.
pub fn line(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    if area.is_empty() {
        return;
    }
    let logs = context.store.logs();
    let end = logs.partition_point(|line| line.t_us <= context.view.shown.at_us);
    let recent = || logs.range(..end).rev().take(200);
    let serious = recent().find(|entry| entry.line.level <= LogLevel::Warning);
    match serious.or_else(|| recent().next()) {
        Some(entry) => entry_row(buf, area, context, 0, entry),
        None => {
            put(buf, area, 1, 0, "nothing was logged yet", context.style(Meaning::Muted));
        }
    }
}

/// A line, possibly marked as relevant.
pub fn marked_row(buf: &mut Buffer, area: Rect, context: &Context<'_>, y: u16, entry: &StoredLine, marked: bool) {
    entry_row(buf, area, context, y, entry);
    if marked {
        let row = Rect { y: area.y + y, height: 1, ..area };
        buf.set_style(row, context.style(Meaning::Accent));
        put(buf, area, 0, y, context.symbols().marker, context.style(Meaning::Accent));
    }
}

fn entry_row(buf: &mut Buffer, area: Rect, context: &Context<'_>, y: u16, entry: &StoredLine) {
    let muted = context.style(Meaning::Muted);
    let (level, text) = match entry.line.level {
        LogLevel::Error => (context.style(Meaning::Alert), context.style(Meaning::Text)),
        LogLevel::Warning => (context.style(Meaning::Warn), context.style(Meaning::Text)),
        LogLevel::Info => (muted, context.style(Meaning::Text)),
        LogLevel::Verbose | LogLevel::Debug => (muted, muted),
    };
    let zero = context.store.session().map_or(0, |session| session.monotonic_us);
    let seconds = entry.t_us.saturating_sub(zero) as f64 / 1e6;
    let mut x = put(buf, area, 1, y, &format!("{seconds:9.3} "), muted);
    x = put(buf, area, x, y, &format!("{:<5} ", entry.line.level.short()), level);
    if area.width >= 70 {
        let source = match entry.line.source {
            LogSource::Backend => "backend",
            LogSource::Console => "console",
            LogSource::Device => "device",
            LogSource::Runner => "runner",
            LogSource::Program => "program",
            LogSource::Qnnscope => "qnnscope",
        };
        let run = entry
            .run
            .and_then(|run| context.store.run_number(run))
            .map_or_else(String::new, |number| number.to_string());
        x = put(buf, area, x, y, &format!("{run:>2} {source:<8} "), muted);
    }
    let room = area.width.saturating_sub(x + 1);
    put(buf, area, x, y, &fit_end(&entry.line.text, room, context.symbols().ellipsis), text);
}
