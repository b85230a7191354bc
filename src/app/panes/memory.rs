//! Memory of the process that runs the model.

use super::Context;
use crate::app::format;
use crate::app::parts::Pane;
use crate::app::theme::Meaning;
use crate::app::widgets::{line_chart, points_in, put, put_right};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Figures of the pane.
pub const ROWS: usize = 7;

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let memory = &context.view.shown.memory;
    let symbols = context.symbols();
    let bytes = |value: Option<u64>| value.map_or_else(|| symbols.missing.to_owned(), format::bytes);
    let now = bytes(memory.rss_now);
    let mut title = Vec::new();
    if memory.rss_now.is_some() {
        title.push((now.as_str(), context.style(Meaning::Text)));
    }
    if context.simulated() {
        title.push(("simulated", context.style(Meaning::Simulated)));
    }
    let inner = context.frame(buf, area, Pane::Memory, &title);
    if memory.rss_now.is_none() {
        context.empty(buf, inner, "no sample of the runner's memory yet");
        return;
    }
    let signed = |value: Option<f64>| {
        value.map_or_else(
            || symbols.missing.to_owned(),
            |value| format!("{}{}", if value > 0.0 { "+" } else { "" }, format::signed_bytes(value)),
        )
    };
    let delta = memory.rss_delta().map(|delta| delta as f64);
    let rows: [_; ROWS] = [
        ("resident now", now.clone()),
        ("resident peak", bytes(memory.rss_peak)),
        ("before loading", bytes(memory.rss_before)),
        ("model ready", bytes(memory.rss_loaded)),
        ("model and runtime", signed(delta)),
        ("proportional", bytes(memory.pss_loaded)),
        ("per inference", signed(memory.growth_per_inference())),
    ];
    // Beside the figures if there is room, else below them.
    let wide = inner.width >= 72;
    let figures = if wide { Rect { width: 34, ..inner } } else { inner };
    let end = figures.width.saturating_sub(1);
    let skip = context.view.scroll[1].min(rows.len().saturating_sub(usize::from(figures.height)));
    for (y, (name, value)) in (0..figures.height).zip(rows.iter().skip(skip)) {
        put(buf, figures, 1, y, name, context.style(Meaning::Muted));
        put_right(buf, figures, end, end.saturating_sub(2), y, value, context.style(Meaning::Text), symbols.ellipsis);
    }
    let used = u16::try_from(rows.len()).unwrap_or(0);
    let plot = if wide {
        Rect { x: inner.x + 36, width: inner.width - 37, ..inner }
    } else if inner.height > used + 2 {
        Rect {
            x: inner.x + 1,
            y: inner.y + used + 1,
            width: inner.width.saturating_sub(2),
            height: inner.height - used - 1,
        }
    } else {
        return;
    };
    chart(buf, plot, context);
}

fn chart(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let Some(run) = context.run else { return };
    let shown = run.memory_series.partition_point(|(t_us, _)| *t_us <= context.view.shown.at_us);
    let series = &run.memory_series[..shown];
    let points = points_in(area.width, context.symbols());
    if series.len() < 2 || points == 0 || area.height < 2 {
        return;
    }
    let per_point = series.len().div_ceil(points);
    let ranges: Vec<(f32, f32)> = series
        .chunks(per_point)
        .map(|chunk| {
            let low = chunk.iter().map(|point| point.1).min().unwrap_or(0);
            let high = chunk.iter().map(|point| point.1).max().unwrap_or(0);
            (low as f32, high as f32)
        })
        .collect();
    let low = series.iter().map(|point| point.1).min().unwrap_or(0);
    let high = series.iter().map(|point| point.1).max().unwrap_or(0);
    let span = (high - low).max(high / 50).max(1) as f64;
    let bounds = (low as f64 - span * 0.1, high as f64 + span * 0.1);
    let plot = Rect { height: area.height - 1, ..area };
    line_chart(buf, plot, &ranges, bounds, context.style(Meaning::Series3), context.symbols());
    let text = format!("resident {} to {}", format::bytes(low), format::bytes(high));
    put(buf, area, 0, area.height - 1, &text, context.style(Meaning::Muted));
}
