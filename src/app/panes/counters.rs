//! Counters of the run's device and of the host: newest value and recent course; unreadable ones show why.

use super::Context;
use crate::app::format;
use crate::app::parts::Pane;
use crate::app::symbols::{Symbols, UNICODE};
use crate::app::theme::Meaning;
use crate::app::view::View;
use crate::app::widgets::{fit, fit_end, put, put_right, scroll_marks, sparkline, width};
use crate::event::{Gap, clean_text};
use crate::store::{CounterSeries, DeviceSeries, Run, SamplerState, Store, by_importance};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// One line of the pane.
enum Row<'a> {
    Heading(String),
    /// The device, unless it is this machine; the series; whether it has a current value.
    Counter(Option<&'a str>, &'a CounterSeries, State),
}

/// Whether a counter has a current value.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Why it has none.
    gap: Option<Gap>,
    /// Age of its newest value if too old to be current, microseconds.
    old_us: Option<u64>,
}

impl Row<'_> {
    fn is_selected(&self, selected: Option<&(Option<String>, String)>) -> bool {
        match (self, selected) {
            (Row::Counter(of, series, _), Some((device, id))) => *of == device.as_deref() && series.info.id == *id,
            _ => false,
        }
    }
}

/// Rows of the pane.
pub fn count(view: &View, store: &Store) -> usize {
    rows(store, view.run_of(store), view.shown.at_us, &UNICODE).len()
}

/// Row of the selected counter, if it is known.
pub fn position(view: &View, store: &Store) -> Option<usize> {
    let rows = rows(store, view.run_of(store), view.shown.at_us, &UNICODE);
    rows.iter().position(|row| row.is_selected(view.counter.as_ref()))
}

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let inner = context.frame(buf, area, Pane::Host, &[]);
    let mut rows = rows(context.store, context.run, context.view.shown.at_us, context.symbols());
    // If there is room for only a few rows, they show the counters themselves.
    if inner.height < 6 && context.view.scroll[2] == 0 && context.view.counter.is_none() {
        rows.retain(|row| matches!(row, Row::Counter(..)));
    }
    if rows.is_empty() {
        context.empty(buf, inner, "no counters of the host yet");
        return;
    }
    let label_room =
        rows.iter().map(|row| if let Row::Counter(_, series, _) = row { width(&series.info.label) } else { 0 });
    let label_room = label_room.max().unwrap_or(0).min(inner.width / 2).min(24);
    let height = usize::from(inner.height);
    let top = context.view.scroll[2].min(rows.len().saturating_sub(height));
    for (y, row) in (0..inner.height).zip(rows.iter().skip(top)) {
        if row.is_selected(context.view.counter.as_ref()) {
            let band = Rect { y: inner.y + y, height: 1, ..inner };
            buf.set_style(band, context.style(Meaning::Accent));
            put(buf, inner, 0, y, context.symbols().marker, context.style(Meaning::Accent));
        }
        match row {
            Row::Heading(text) => {
                let room = inner.width.saturating_sub(2);
                let text = fit(text, room, context.symbols().ellipsis);
                put(buf, inner, 1, y, &text, context.style(Meaning::Title));
            }
            Row::Counter(_, series, state) => counter(buf, inner, y, label_room, context, series, *state),
        }
    }
    if !context.rules {
        scroll_marks(buf, inner, top, rows.len().saturating_sub(top + height), context.theme);
    }
}

/// The device of the shown run first, readable counters before unreadable ones, then the host.
fn rows<'a>(store: &'a Store, run: Option<&'a Run>, at_us: u64, symbols: &Symbols) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let device = run.map_or("", |run| run.plan.device.as_str());
    let all = store.device_counters();
    let of_device = || all.series().iter().filter(|series| series.device == device);
    if of_device().next().is_some() {
        rows.push(Row::Heading(heading(store, device, at_us, symbols)));
        let readable = of_device().filter(|series| series.series.info.unavailable.is_none());
        let readable = by_importance(readable).into_iter();
        let state = |series: &DeviceSeries| State { gap: series.gap, old_us: series.old_us(at_us) };
        rows.extend(readable.map(|series| Row::Counter(Some(device), &series.series, state(series))));
        let unreadable = of_device().filter(|series| series.series.info.unavailable.is_some());
        rows.extend(unreadable.map(|series| Row::Counter(Some(device), &series.series, State::default())));
        rows.push(Row::Heading("this machine".to_owned()));
    }
    rows.extend(store.counters().iter().map(|series| Row::Counter(None, series, State::default())));
    rows
}

/// The device, and the cost of sampling it.
fn heading(store: &Store, device: &str, at_us: u64, symbols: &Symbols) -> String {
    let sampler = store.device_counters().sampler(device);
    let state = match sampler {
        Some(SamplerState { ended: Some(ended), .. }) if !ended.resumes => ", no longer sampled".to_owned(),
        Some(SamplerState { ended: Some(ended), gaps, .. }) => {
            let since_us = gaps.last().map_or(0, |gap| at_us.saturating_sub(gap.from_us));
            let why = ended.reason.as_deref().map_or(String::new(), |reason| format!(": {}", clean_text(reason)));
            format!(", no readings for {}{why}", format::duration(since_us as f64, symbols))
        }
        Some(sampler) => sampler.report.as_ref().map_or_else(String::new, |report| {
            let cost = report.cpu_us_per_tick;
            let cost = cost.map(|us| format!(", {} a tick", format::duration(us, symbols))).unwrap_or_default();
            let late = sampler.late + sampler.missed;
            let late = if late > 0 { format!(", {late} late") } else { String::new() };
            format!("  {:.0}/s{cost}{late}", report.rate_hz)
        }),
        None => String::new(),
    };
    format!("{}{state}", clean_text(device))
}

fn counter(
    buf: &mut Buffer,
    inner: Rect,
    y: u16,
    label_room: u16,
    context: &Context<'_>,
    series: &CounterSeries,
    State { gap, old_us }: State,
) {
    const VALUE_ROOM: u16 = 10;
    let symbols = context.symbols();
    let muted = context.style(Meaning::Muted);
    let label = clean_text(&series.info.label);
    put(buf, inner, 1, y, &fit(&label, label_room, symbols.ellipsis), muted);
    let x = label_room + 2;
    let reason = series.info.unavailable.clone().or_else(|| gap.map(|gap| gap.text().to_owned()));
    if let Some(reason) = reason {
        let text = format!("{} {}", symbols.missing, clean_text(&reason));
        let room = inner.width.saturating_sub(x + 1);
        put(buf, inner, x, y, &fit_end(&text, room, symbols.ellipsis), muted);
        return;
    }
    let points = shown(series, context.view.shown.at_us);
    let latest = points.last().copied().flatten();
    let value = latest.map_or_else(|| symbols.missing.to_owned(), |value| format::with_unit(value, &series.info.unit));
    // An old value is shown in grey, with its age.
    let is_current = latest.is_some() && old_us.is_none();
    let style = context.style(if is_current { Meaning::Text } else { Meaning::Muted });
    put_right(buf, inner, x + VALUE_ROOM, VALUE_ROOM, y, &value, style, "");
    let chart = Rect {
        x: inner.x + (x + VALUE_ROOM + 1).min(inner.width),
        y: inner.y + y,
        width: inner.width.saturating_sub(x + VALUE_ROOM + 2),
        height: 1,
    };
    if let Some(us) = old_us.filter(|_| latest.is_some()) {
        let age = format!("{} old", format::duration(us as f64, symbols));
        put(buf, chart, 0, 0, &fit(&age, chart.width, symbols.ellipsis), muted);
        return;
    }
    let newest = &points[points.len().saturating_sub(usize::from(chart.width))..];
    let range = range(newest, series.info.maximum);
    sparkline(buf, chart, newest.iter().copied(), range, context.style(Meaning::Series4), symbols);
}

/// The values up to the shown time; as many as any chart has columns.
fn shown(series: &CounterSeries, at_us: u64) -> Vec<Option<f64>> {
    const ENOUGH: usize = 512;
    let points = series.points();
    let end = points.partition_point(|(t_us, _)| *t_us <= at_us);
    points.range(end.saturating_sub(ENOUGH)..end).map(|point| point.1).collect()
}

/// The natural range from 0 if there is one, else the observed range with a margin.
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
