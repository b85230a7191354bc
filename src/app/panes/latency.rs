//! Latency: chart over time, histogram, percentiles now and overall.

use super::Context;
use super::status::phase_name;
use crate::app::format::{self, TimeScale};
use crate::app::layout::latency_parts;
use crate::app::parts::Pane;
use crate::app::shown::LatencyFigures;
use crate::app::theme::Meaning;
use crate::app::widgets::{Window, columns, line_chart, points, points_in, put, put_right, width};
use crate::store::PERCENTILES;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let figures = &context.view.shown.latency;
    let muted = context.style(Meaning::Muted);
    let symbols = context.symbols();
    let mut title: Vec<(String, Style)> = Vec::new();
    if let Some(phase) = figures.phase {
        title.push((phase_name(phase).to_owned(), muted));
        title.push((format!("n {}", format::count(figures.count)), muted));
        if let Some(mean) = figures.mean {
            title.push((format!("mean {}", format::duration(mean, symbols)), context.style(Meaning::Text)));
        }
        if let Some(throughput) = figures.throughput {
            title.push((format!("{}/s", format::three_digits(throughput)), muted));
        }
        let launch = context.view.shown.standing.and_then(|standing| standing.launch);
        if let Some(percent) = launch.and_then(|launch| launch.spread_percent) {
            let digits = usize::from(percent < 10.0);
            title.push((format!("{percent:.digits$} % apart"), context.style(Meaning::Text)));
        }
        if context.simulated() {
            title.push(("simulated".to_owned(), context.style(Meaning::Simulated)));
        }
    }
    let pieces: Vec<(&str, Style)> = title.iter().map(|(text, style)| (text.as_str(), *style)).collect();
    let inner = context.frame(buf, area, Pane::Latency, &pieces);
    let (Some(run), Some(phase)) = (context.run, figures.phase) else {
        context.empty(buf, inner, "no inference has finished yet");
        return;
    };
    let stats = run.latency(phase);
    let samples = &stats.samples_us()[..figures.charted.min(stats.samples_us().len())];
    let parts = latency_parts(inner);
    let scale = TimeScale::for_max(figures.all[3].or(figures.max).unwrap_or(0.0), symbols);
    let moment = context.view.moment.and_then(|t_us| stats.timed().position(|(start_us, _)| start_us >= t_us));
    chart(buf, parts.chart, context, samples, &scale, moment);
    histogram(buf, parts.histogram, context, figures, &scale);
    table(buf, parts.table, context, figures, &scale);
}

/// `moment` is the sample the user jumped to.
fn chart(
    buf: &mut Buffer,
    area: Rect,
    context: &Context<'_>,
    samples: &[f32],
    scale: &TimeScale,
    moment: Option<usize>,
) {
    if area.height < 2 || area.width < 8 {
        return;
    }
    let symbols = context.symbols();
    let muted = context.style(Meaning::Muted);
    let window = Window::new(samples.len(), points_in(area.width.saturating_sub(8), symbols));
    let Some((low, high, spike)) = chart_range(&samples[window.start..]) else { return };
    let ranges = points(samples, window, spike);
    let (top, bottom) = (scale.number(high), scale.number(low));
    let label = width(&top).max(width(&bottom)) + 1;
    let plot = Rect { x: area.x + label, width: area.width.saturating_sub(label), height: area.height - 1, ..area };
    put_right(buf, area, label - 1, label, 0, &top, muted, "");
    put_right(buf, area, label - 1, label, area.height - 2, &bottom, muted, "");
    if area.height >= 4 {
        put_right(buf, area, label - 1, label, (area.height - 2) / 2, scale.unit, muted, "");
    }
    line_chart(buf, plot, &ranges, (low, high), context.style(Meaning::Series1), symbols);
    if let Some(point) = moment.and_then(|index| index.checked_sub(window.start)).map(|at| at / window.bucket) {
        let x = u16::try_from(point / if symbols.braille { 2 } else { 1 }).unwrap_or(u16::MAX);
        for y in (0..plot.height).filter(|_| x < plot.width) {
            // The line of the chart stays in front.
            if buf.cell((plot.x + x, plot.y + y)).is_some_and(|cell| cell.symbol() == " ") {
                put(buf, plot, x, y, symbols.divider, context.style(Meaning::Accent));
            }
        }
    }
    let y = area.height - 1;
    let which = if window.start == 0 { "all" } else { "last" };
    let text = format!("{which} {}", format::count((window.end - window.start) as u64));
    let more = if window.bucket > 1 { format!(", mean of {} and peaks", window.bucket) } else { String::new() };
    let row = Rect { x: plot.x, width: plot.width, ..area };
    let x = put(buf, row, 0, y, &text, muted);
    if x + width(&more) <= row.width {
        put(buf, row, x, y, &more, muted);
    }
}

/// The range of the chart and the threshold for peaks: from the smallest sample to slightly above all but the slowest
/// two per cent, so that one peak does not flatten everything else.
fn chart_range(samples: &[f32]) -> Option<(f64, f64, f64)> {
    // With many samples, every n-th is enough for an axis percentile.
    let step = samples.len().div_ceil(2048).max(1);
    let mut some: Vec<f32> = samples.iter().copied().step_by(step).collect();
    let last = some.len().checked_sub(1)?;
    let at = last * 98 / 100;
    let (_, p98, _) = some.select_nth_unstable_by(at, f32::total_cmp);
    let p98 = f64::from(*p98);
    let low = samples.iter().copied().fold(f32::INFINITY, f32::min);
    let low = f64::from(low);
    let span = (p98 - low).max(low * 0.02).max(0.01);
    Some(((low - span * 0.1).max(0.0), p98 + span * 0.4, p98 + span * 0.1))
}

fn histogram(buf: &mut Buffer, area: Rect, context: &Context<'_>, figures: &LatencyFigures, scale: &TimeScale) {
    if area.height < 2 || figures.bins.is_empty() {
        return;
    }
    let symbols = context.symbols();
    let counts: Vec<u64> = figures.bins.iter().map(|bin| bin.1).collect();
    let plot = Rect { height: area.height - 1, ..area };
    columns(buf, plot, &counts, context.style(Meaning::Series2), symbols);
    let muted = context.style(Meaning::Muted);
    let y = area.height - 1;
    let low = figures.bins.first().map_or(0.0, |bin| bin.0);
    let high = figures.bins.last().map_or(0.0, |bin| bin.0);
    let end = put(buf, area, 0, y, &scale.number(low), muted);
    // The last column includes everything above its edge.
    let high = format!("{}{}", scale.number(high), if figures.bins.len() > 1 { "+" } else { "" });
    if end + width(&high) < area.width {
        put_right(buf, area, area.width, width(&high), y, &high, muted, "");
    }
    let middle = format!("{} ", scale.unit);
    let at = (area.width.saturating_sub(width(&middle))) / 2;
    if end < at && at + width(&middle) + width(&high) < area.width {
        put(buf, area, at, y, &middle, muted);
    }
}

fn table(buf: &mut Buffer, area: Rect, context: &Context<'_>, figures: &LatencyFigures, scale: &TimeScale) {
    let symbols = context.symbols();
    let (muted, text) = (context.style(Meaning::Muted), context.style(Meaning::Text));
    let title = context.style(Meaning::Title);
    let right = area.width.saturating_sub(1);
    let (now_end, all_end) = (right.saturating_sub(10), right);
    put(buf, area, 0, 0, scale.unit, muted);
    put_right(buf, area, now_end, 11, 0, &format!("last {}", format::count(figures.now_count as u64)), title, "");
    put_right(buf, area, all_end, 9, 0, "overall", title, "");
    let mut row = |y: u16, name: &str, now: Option<f64>, all: Option<f64>, style: Style| {
        put(buf, area, 0, y, name, muted);
        put_right(buf, area, now_end, 11, y, &scale.or_missing(now, symbols), style, "");
        put_right(buf, area, all_end, 9, y, &scale.or_missing(all, symbols), style, "");
    };
    let names = ["p50", "p90", "p95", "p99", "p99.9"];
    debug_assert_eq!(names.len(), PERCENTILES.len());
    for (i, name) in names.into_iter().enumerate() {
        row(u16::try_from(i + 1).unwrap_or(0), name, figures.now[i], figures.all[i], text);
    }
    let now = figures.now_range;
    row(6, "mean", now.map(|now| now.0), figures.mean, text);
    row(7, "min", now.map(|now| now.1), figures.min, text);
    row(8, "max", now.map(|now| now.2), figures.max, text);
    row(9, "stddev", None, figures.stddev, muted);
    let rest = [
        ("first inference", figures.first.map(|us| format::duration(us, symbols))),
        ("warm-up mean", figures.warmup.map(|us| format::duration(us, symbols))),
        ("profiling costs", figures.overhead.map(|factor| format!("{}{factor:.2}", symbols.times))),
    ];
    for (y, (name, value)) in (11..).zip(rest) {
        let value = value.unwrap_or_else(|| symbols.missing.to_owned());
        put(buf, area, 0, y, name, muted);
        put_right(buf, area, all_end, 12, y, &value, text, "");
    }
}
