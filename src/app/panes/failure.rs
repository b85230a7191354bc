//! Why a run failed and what to do next.

use super::Context;
use crate::app::pages::what_failed;
use crate::app::theme::Meaning;
use crate::app::widgets::{put, width, wrap};
use crate::diagnosis::{Fault, cause};
use crate::event::{CheckOutcome, CheckResult, Failure, clean_text};
use crate::store::Run;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Columns of the labels.
const LABEL: u16 = 6;
/// Log lines repeated here; the log pane has them all.
const LOG_LINES: usize = 4;

struct Line {
    label: &'static str,
    text: String,
    meaning: Meaning,
}

/// Rows needed for the report of a run at a given width.
pub fn rows(run: &Run, columns: u16) -> u16 {
    let Some(failure) = &run.failure else { return 0 };
    // The status pane may have only half of the width; an extra row is better than a truncated hint.
    let columns = if columns >= 110 && !run.clean.is_empty() { columns / 2 } else { columns };
    u16::try_from(lines(failure, &run.checks, columns.saturating_sub(4)).len()).unwrap_or(u16::MAX)
}

/// Draws the report of a failed run; `after` is how far it got.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>, run: &Run, after: &str) {
    let Some(failure) = &run.failure else { return };
    let lines = lines(failure, &run.checks, area.width.saturating_sub(2));
    for (y, line) in (0..area.height).zip(&lines) {
        if line.label == "failed" {
            let x = put(buf, area, 1, y, context.symbols().failed, context.style(Meaning::Alert));
            let x = put(buf, area, x + 1, y, &line.text, context.style(Meaning::Alert));
            put(buf, area, x + 1, y, after, context.style(Meaning::Muted));
            continue;
        }
        put(buf, area, 1, y, line.label, context.style(Meaning::Muted));
        put(buf, area, 1 + LABEL, y, &line.text, context.style(line.meaning));
    }
}

fn lines(failure: &Failure, checks: &[CheckResult], columns: u16) -> Vec<Line> {
    let room = columns.saturating_sub(LABEL).max(16);
    let mut lines = Vec::new();
    let mut add = |label: &'static str, text: &str, meaning: Meaning| {
        for (i, text) in wrap(&clean_text(text), room).into_iter().enumerate() {
            lines.push(Line { label: if i == 0 { label } else { "" }, text, meaning });
        }
    };
    add("failed", &format!("failed in {}", failure.stage), Meaning::Alert);
    add("what", &what_failed(failure), Meaning::Title);
    let fault = Fault::of(failure);
    match &fault {
        Some(fault) => add("why", &fault.sentence(), Meaning::Alert),
        None => add("why", &failure.message, Meaning::Text),
    }
    // A confirmed cause outweighs advice based only on the failure.
    let mut confirmed: Vec<&CheckResult> = checks.iter().filter(|r| r.outcome == CheckOutcome::Confirms).collect();
    confirmed.dedup_by_key(|result| result.cause.as_str());
    for result in &confirmed {
        let title = cause(&result.cause).map_or(result.cause.as_str(), |cause| cause.title.as_str());
        add("cause", &format!("{title} (confirmed: {})", result.detail), Meaning::Alert);
        if let Some(cause) = cause(&result.cause) {
            add("fix", &cause.fix, Meaning::Accent);
        }
    }
    match &failure.hint {
        _ if !confirmed.is_empty() => {}
        Some(hint) => add("next", hint, Meaning::Accent),
        None => add("next", "no advice for this; the log has the backend's own messages", Meaning::Muted),
    }
    // For a refused op the first errors show why; for anything else the last lines show how it ended.
    let skip = if fault.is_some() { 0 } else { failure.log_tail.len().saturating_sub(LOG_LINES) };
    for (i, line) in failure.log_tail[skip..].iter().take(LOG_LINES).enumerate() {
        let text = clean_text(line);
        let text = if width(&text) > room { crate::app::widgets::fit(&text, room, "…").into_owned() } else { text };
        lines.push(Line { label: if i == 0 { "log" } else { "" }, text, meaning: Meaning::Muted });
    }
    lines
}
