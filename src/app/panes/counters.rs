//! Counters of the host: newest value and recent course; what cannot be read says why.

use super::Context;
use crate::app::format;
use crate::app::theme::Meaning;
use crate::app::view::Pane;
use crate::app::widgets::{fit, fit_end, put, put_right, scroll_marks, sparkline, width};
use crate::event::clean_text;
use crate::store::CounterSeries;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let inner = context.frame(buf, area, Pane::Host, &[]);
    let counters = context.store.counters();
    if counters.is_empty() {
        context.empty(buf, inner, "no counters of the host yet");
        return;
    }
    let symbols = context.symbols();
    let label_room = counters.iter().map(|series| width(&series.info.label)).max().unwrap_or(0);
    let label_room = label_room.min(inner.width / 2).min(24);
    let value_room = 10;
    let height = usize::from(inner.height);
    let top = context.view.scroll[2].min(counters.len().saturating_sub(height));
    for (y, series) in (0..inner.height).zip(counters.iter().skip(top)) {
        let muted = context.style(Meaning::Muted);
        let label = clean_text(&series.info.label);
        put(buf, inner, 1, y, &fit(&label, label_room, symbols.ellipsis), muted);
        let x = label_room + 2;
        if let Some(reason) = &series.info.unavailable {
            let text = format!("{} {}", symbols.missing, clean_text(reason));
            let room = inner.width.saturating_sub(x + 1);
            put(buf, inner, x, y, &fit_end(&text, room, symbols.ellipsis), muted);
            continue;
        }
        let points = shown(series, context.view.shown.at_us);
        let latest = points.last().copied().flatten();
        let value = latest.map_or_else(|| symbols.missing.to_owned(), |value| value_text(value, &series.info.unit));
        let style = context.style(if latest.is_some() { Meaning::Text } else { Meaning::Muted });
        put_right(buf, inner, x + value_room, value_room, y, &value, style, "");
        let chart = Rect {
            x: inner.x + (x + value_room + 1).min(inner.width),
            y: inner.y + y,
            width: inner.width.saturating_sub(x + value_room + 2),
            height: 1,
        };
        let newest = &points[points.len().saturating_sub(usize::from(chart.width))..];
        let range = range(newest, series.info.maximum);
        sparkline(buf, chart, newest.iter().copied(), range, context.style(Meaning::Series4), symbols);
    }
    if !context.rules {
        scroll_marks(buf, inner, top, counters.len().saturating_sub(top + height), context.theme);
    }
}

/// The values up to the moment that is shown; as many as any chart has columns.
fn shown(series: &CounterSeries, at_us: u64) -> Vec<Option<f64>> {
    const ENOUGH: usize = 512;
    let points = series.points();
    let end = points.partition_point(|(t_us, _)| *t_us <= at_us);
    points.range(end.saturating_sub(ENOUGH)..end).map(|point| point.1).collect()
}

/// The natural range from 0 where there is one, else what was seen with some air.
fn range(values: &[Option<f64>], maximum: Option<f64>) -> (f64, f64) {
    if let Some(maximum) = maximum {
        return (0.0, maximum);
    }
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return (0.0, 1.0);
    }
    let air = ((high - low) * 0.2).max(high.abs() * 0.05);
    (low - air, high + air)
}

fn value_text(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => format::signed_bytes(value),
        "%" => format!("{value:.1} %"),
        "MHz" => format!("{value:.0} MHz"),
        "" => format::three_digits(value),
        unit => format!("{} {}", format::three_digits(value), clean_text(unit)),
    }
}
