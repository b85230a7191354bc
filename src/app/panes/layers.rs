//! The table of layers.

use super::Context;
use crate::app::format::{self, TimeScale};
use crate::app::parts::{Overlay, Pane};
use crate::app::rows::{Column, TimeBasis};
use crate::app::theme::Meaning;
use crate::app::widgets::{bar, fit, fit_end, put, put_right, scroll_marks};
use crate::event::clean_text;
use crate::text::noun;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::fmt::Write;

/// Rows of the table in a pane of this inner area.
pub fn visible_rows(inside: Rect) -> usize {
    usize::from(inside.height.saturating_sub(1))
}

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let layers = &context.view.shown.layers;
    let muted = context.style(Meaning::Muted);
    let symbols = context.symbols();
    let mut title: Vec<(String, Style)> = Vec::new();
    let filtering = matches!(context.view.overlays.last(), Some(Overlay::Filter));
    if filtering || !context.view.filter.is_empty() {
        let cursor = if filtering { symbols.cursor } else { "" };
        title.push((format!("/{}{cursor}", clean_text(&context.view.filter)), context.style(Meaning::Accent)));
    }
    let (total, shown) = (layers.figures.len() as u64, layers.order.len() as u64);
    if total > 0 {
        let counted = if shown == total {
            format!("{} {}", format::count(total), noun(total, "op"))
        } else {
            format!("{} of {} {}", format::count(shown), format::count(total), noun(total, "op"))
        };
        title.push((counted, muted));
        match layers.basis {
            TimeBasis::Scaled => title.push(("scaled to clean latency".to_owned(), muted)),
            TimeBasis::Measured => title.push(("as profiled".to_owned(), muted)),
            TimeBasis::Cycles => title.push(("cycles".to_owned(), muted)),
            TimeBasis::Nothing => {}
        }
        if layers.derived {
            title.push((format!("{} from cycles", symbols.approx), muted));
        }
        if context.simulated() {
            // First, so that it stays visible in a narrow title.
            title.insert(1.min(title.len()), ("simulated".to_owned(), context.style(Meaning::Simulated)));
        }
    }
    let pieces: Vec<(&str, Style)> = title.iter().map(|(text, style)| (text.as_str(), *style)).collect();
    let inner = context.frame(buf, area, Pane::Layers, &pieces);
    if total == 0 {
        let ended = context.run.is_some_and(crate::store::Run::is_ended);
        let text = match context.run.map(|run| run.plan.profiling.name()) {
            Some("detailed") if !ended => "layer times come with the detailed phase, after the clean one",
            Some("detailed") => "the run ended before the backend reported layer times",
            Some(_) => "this run has no layer times (profiling is not detailed)",
            None => "no run yet",
        };
        context.empty(buf, inner, text);
        return;
    }
    table(buf, inner, context);
}

/// Columns of the table with their widths; columns of width 0 are hidden.
struct Columns {
    order: u16,
    name: u16,
    op_type: u16,
    mean: u16,
    p95: u16,
    p99: u16,
    bar: u16,
    macs: u16,
}

/// Width of the share as a number.
const SHARE: u16 = 8;

impl Columns {
    fn for_width(total: u16) -> Self {
        let mut columns = Self { order: 5, name: 0, op_type: 0, mean: 10, p95: 0, p99: 0, bar: 0, macs: 0 };
        // One column for the marker of the selected row.
        let mut left = total.saturating_sub(1 + columns.order + columns.mean + SHARE);
        let mut give = |column: &mut u16, wanted: u16, keep: u16| {
            if left >= wanted + keep {
                *column = wanted;
                left -= wanted;
            }
        };
        give(&mut columns.op_type, 12, 12);
        give(&mut columns.p99, 8, 16);
        give(&mut columns.p95, 8, 16);
        give(&mut columns.macs, 7, 16);
        give(&mut columns.bar, 5, 14);
        if columns.op_type > 0 && left > 36 {
            let more = ((left - 36) / 3).min(9);
            columns.op_type += more;
            left -= more;
        }
        if columns.bar > 0 && left > 28 {
            let more = ((left - 28) / 2).min(34);
            columns.bar += more;
            left -= more;
        }
        columns.name = left;
        columns
    }
}

fn table(buf: &mut Buffer, inner: Rect, context: &Context<'_>) {
    let view = context.view;
    let layers = &view.shown.layers;
    let symbols = context.symbols();
    let columns = Columns::for_width(inner.width);
    let largest = layers.figures.iter().filter_map(|figures| figures.mean).fold(0.0, f64::max) * layers.factor;
    let scale = match layers.basis {
        TimeBasis::Cycles => None,
        _ => Some(TimeScale::for_max(largest, symbols)),
    };
    header(buf, inner, context, &columns, scale.as_ref());
    let rows = visible_rows(inner);
    let top = view.layers_top.min(layers.order.len().saturating_sub(rows));
    let position = view.position();
    for (y, (at, &row)) in (1..inner.height).zip(layers.order.iter().enumerate().skip(top)) {
        line(buf, inner, context, &columns, scale.as_ref(), (y, row as usize, at == position));
    }
    let below = layers.order.len().saturating_sub(top + rows);
    if inner.height > 1 && !context.rules {
        scroll_marks(buf, inner, top, below, context.theme);
    }
    if layers.order.is_empty() {
        let body = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
        context.empty(buf, body, "no layer matches the filter; esc clears it");
    }
}

fn header(buf: &mut Buffer, inner: Rect, context: &Context<'_>, columns: &Columns, scale: Option<&TimeScale>) {
    let sort = context.view.sort;
    let symbols = context.symbols();
    let arrow = if sort.descending { symbols.sorted.0 } else { symbols.sorted.1 };
    let approx = if context.view.shown.layers.derived { symbols.approx } else { "" };
    let unit = scale.map_or("cycles", |scale| scale.unit);
    let label = |column: Column, text: &str| {
        let on = sort.column == column;
        let style = context.style(if on { Meaning::Title } else { Meaning::Muted });
        (if on { format!("{text}{arrow}") } else { text.to_owned() }, style)
    };
    let mut x = 1;
    // Headings end where their figures end; the arrow is in the gap after them.
    let mut right = |x: &mut u16, width: u16, column: Column, text: &str| {
        if width > 0 {
            let (text, style) = label(column, text);
            *x += width;
            put_right(buf, inner, if sort.column == column { *x } else { *x - 1 }, width, 0, &text, style, "");
        }
    };
    right(&mut x, columns.order, Column::Order, "#");
    let left_columns = [(columns.name, Column::Name, "op"), (columns.op_type, Column::Type, "type")];
    let starts: Vec<(u16, u16, Column, &str)> = left_columns
        .into_iter()
        .scan(x, |x, (width, column, text)| {
            let start = *x;
            *x += width;
            Some((start, width, column, text))
        })
        .collect();
    x += columns.name + columns.op_type;
    right(&mut x, columns.mean, Column::Mean, &format!("mean {approx}{unit}"));
    right(&mut x, columns.p95, Column::P95, "p95");
    right(&mut x, columns.p99, Column::P99, "p99");
    right(&mut x, SHARE, Column::Share, "share %");
    x += columns.bar;
    right(&mut x, columns.macs, Column::Macs, "MACs");
    for (start, width, column, text) in starts.into_iter().filter(|start| start.1 > 0) {
        let (text, style) = label(column, text);
        put(buf, Rect { width: inner.width.min(start + width), ..inner }, start, 0, &text, style);
    }
}

fn line(
    buf: &mut Buffer,
    inner: Rect,
    context: &Context<'_>,
    columns: &Columns,
    scale: Option<&TimeScale>,
    (y, row, selected): (u16, usize, bool),
) {
    let Some(run) = context.run else { return };
    let (Some(op_row), Some(figures)) = (run.ops.rows().get(row), context.view.shown.layers.figures.get(row)) else {
        return;
    };
    let layers = &context.view.shown.layers;
    let symbols = context.symbols();
    let op = run.op(row);
    // The selected row has a single style; elsewhere text and labels differ.
    let style = |meaning: Meaning| if selected { Style::default() } else { context.style(meaning) };
    if selected {
        let band = Rect { y: inner.y + y, height: 1, ..inner };
        buf.set_style(band, context.style(Meaning::Selection));
        put(buf, inner, 0, y, symbols.marker, Style::default());
    }
    let number = |value: Option<f64>| match (layers.shown(value), scale) {
        (None, _) => symbols.missing.to_owned(),
        (Some(value), Some(scale)) => scale.number(value),
        (Some(value), None) => format::si(value),
    };
    let (text, muted) = (style(Meaning::Text), style(Meaning::Muted));
    let mut x = 1 + columns.order;
    let order = op.map_or_else(|| symbols.missing.to_owned(), |op| op.index.to_string());
    put_right(buf, inner, x - 1, columns.order - 1, y, &order, muted, "");
    let mut name = clean_text(&op_row.name);
    if let Some(node) = run.source_of_row(row).filter(|node| *node != op_row.name) {
        let _ = write!(name, " {} {}", symbols.dot, clean_text(node));
    }
    put(buf, inner, x, y, &fit(&name, columns.name.saturating_sub(1), symbols.ellipsis), text);
    x += columns.name;
    if columns.op_type > 0 {
        // A row without a graph op was added by the backend.
        let op_type = op.map_or_else(|| "(backend)".to_owned(), |op| clean_text(&op.op_type));
        put(buf, inner, x, y, &fit_end(&op_type, columns.op_type.saturating_sub(1), symbols.ellipsis), muted);
        x += columns.op_type;
    }
    let mut right = |x: &mut u16, room: u16, value: &str, style: Style| {
        if room > 0 {
            *x += room;
            put_right(buf, inner, *x - 1, room - 1, y, value, style, "");
        }
    };
    right(&mut x, columns.mean, &number(figures.mean), text);
    right(&mut x, columns.p95, &number(figures.p95), muted);
    right(&mut x, columns.p99, &number(figures.p99), muted);
    right(&mut x, SHARE, &format::percent(figures.share, layers.max_share), text);
    let bar_x = x;
    x += columns.bar;
    let macs = op.and_then(|op| op.macs).map_or_else(|| symbols.missing.to_owned(), |macs| format::si(macs as f64));
    right(&mut x, columns.macs, &macs, muted);
    if columns.bar > 1 && layers.max_share > 0.0 {
        let share = figures.share / layers.max_share;
        bar(buf, inner, (bar_x, y), columns.bar - 1, share, style(Meaning::Bar), symbols);
    }
}
