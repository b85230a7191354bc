//! Runs side by side: which ones, their figures, their layers.

mod totals;

use super::Context;
use crate::analysis::compare::{Cell, DifferenceVerdict, LayerCell, LayerRow, Matched, Row};
use crate::app::format;
use crate::app::pages::{CompareLayout, Comparing, Part};
use crate::app::theme::Meaning;
use crate::app::view::View;
use crate::app::widgets::{self, fit, put, put_right, scroll_marks, width, wrap};
use crate::event::{RunId, clean_text};
use crate::store::Store;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Columns of one run: its value and the difference.
const COLUMN: u16 = 20;
/// Columns of the difference, including the gap before it.
const DIFFERENCE: u16 = 9;
/// Minimum columns for labels.
const LABEL: u16 = 18;

/// The layout of the page.
pub fn layout(view: &View, store: &Store, area: Rect) -> CompareLayout {
    let rows = chooser(store, area.width).len()
        + which_backend(&view.comparing, area.width).len()
        + warnings(&view.comparing, area.width).len();
    CompareLayout::new(area, rows, &view.comparing)
}

/// Draws the page.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let layout = layout(context.view, context.store, area);
    let page = Drawn { layout: &layout, context, comparing: &context.view.comparing };
    page.head(buf);
    page.figures(buf);
    page.layers(buf);
}

/// The runs of the session, each with a checkbox, as many per row as fit.
fn chooser(store: &Store, columns: u16) -> Vec<Vec<RunId>> {
    let mut rows: Vec<Vec<RunId>> = vec![Vec::new()];
    let mut used = 0;
    for run in store.runs() {
        // A checkbox, a number, a name, and what it is.
        let wide = 24;
        if used + wide > columns && used > 0 {
            rows.push(Vec::new());
            used = 0;
        }
        used += wide;
        if let Some(row) = rows.last_mut() {
            row.push(run.id);
        }
    }
    rows
}

/// Rows of the recommendation.
const RECOMMENDATION: usize = 2;

/// The recommendation at the top; the report has its reasons.
fn which_backend(comparing: &Comparing, columns: u16) -> Vec<String> {
    let Some(recommendation) = &comparing.recommendation else { return Vec::new() };
    let text = format!("which backend? {}", comparing.with_names(&clean_text(&recommendation.summary)));
    let room = columns.saturating_sub(4);
    let mut rows = wrap(&text, room);
    if rows.len() > RECOMMENDATION {
        let rest = rows.split_off(RECOMMENDATION - 1).join(" ");
        rows.push(widgets::fit_end(&rest, room, "...").into_owned());
    }
    rows
}

/// How the compared runs differ beyond the figures, and what a backend refused.
fn warnings(comparing: &Comparing, columns: u16) -> Vec<String> {
    let refused = comparing.refused().into_iter();
    let found = comparing.comparison.iter().flat_map(|comparison| &comparison.mismatches);
    let found = refused.chain(found.map(|mismatch| clean_text(&mismatch.text)));
    found.flat_map(|text| wrap(&format!("! {text}"), columns.saturating_sub(4))).collect()
}

struct Drawn<'a> {
    layout: &'a CompareLayout,
    context: &'a Context<'a>,
    comparing: &'a Comparing,
}

impl Drawn<'_> {
    fn frame(&self, buf: &mut Buffer, area: Rect, part: Option<Part>, words: &[(String, Meaning)]) -> Rect {
        let context = self.context;
        let muted = context.style(Meaning::Muted);
        let dot = format!(" {} ", context.symbols().dot);
        let mut pieces: Vec<(&str, Style)> = Vec::new();
        let mut used = 7;
        for (text, meaning) in words {
            used += width(text) + 3;
            if used > area.width && !pieces.is_empty() {
                break;
            }
            if !pieces.is_empty() {
                pieces.push((&dot, muted));
            }
            pieces.push((text, context.style(*meaning)));
        }
        let focused = part == Some(self.comparing.part) && context.view.overlays.is_empty();
        widgets::pane(buf, area, &pieces, focused, self.layout.rules, context.theme)
    }

    fn head(&self, buf: &mut Buffer) {
        if self.layout.head.is_empty() {
            return;
        }
        let (context, comparing) = (self.context, self.comparing);
        let counted =
            format!("{} of {} runs", comparing.members.iter().map(Vec::len).sum::<usize>(), context.store.runs().len());
        let words = [("compare".to_owned(), Meaning::Title), (counted, Meaning::Muted)];
        let inner = self.frame(buf, self.layout.head, None, &words);
        let rows = chooser(context.store, self.layout.head.width);
        for (y, row) in (0..inner.height).zip(&rows) {
            for (x, id) in (0u16..).step_by(24).zip(row) {
                self.choice(buf, Rect { x: inner.x + x, width: inner.width.saturating_sub(x), ..inner }, y, *id);
            }
        }
        let from = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let answer = which_backend(comparing, self.layout.head.width).into_iter().map(|line| (line, Meaning::Good));
        let warned = warnings(comparing, self.layout.head.width).into_iter().map(|line| (line, Meaning::Warn));
        for (y, (line, meaning)) in (from..inner.height).zip(answer.chain(warned)) {
            put(buf, inner, 1, y, &context.symbols().sentence(line), context.style(meaning));
        }
    }

    /// One run of the session with its checkbox.
    fn choice(&self, buf: &mut Buffer, area: Rect, y: u16, id: RunId) {
        let (context, symbols) = (self.context, self.context.symbols());
        let Some(run) = context.store.run(id) else { return };
        let selected = self.comparing.cursor == Some(id);
        let tick = if self.comparing.left_out.contains(&id) { symbols.ticks.1 } else { symbols.ticks.0 };
        let style = |meaning| if selected { context.style(Meaning::Selection) } else { context.style(meaning) };
        let area = Rect { width: area.width.min(23), ..area };
        let mut x = put(buf, area, 0, y, if selected { symbols.marker } else { " " }, style(Meaning::Accent));
        x = put(buf, area, x, y, tick, style(Meaning::Text));
        x = put(buf, area, x, y, &format!(" {}", self.run_name(id)), style(Meaning::Text));
        if run.failure.is_some() {
            put(buf, area, x + 1, y, "failed", style(Meaning::Alert));
        } else if run.plan.simulated {
            put(buf, area, x + 1, y, "simulated", style(Meaning::Simulated));
        } else if !run.is_ended() {
            put(buf, area, x + 1, y, "running", style(Meaning::Accent));
        }
    }

    fn run_name(&self, id: RunId) -> String {
        let number = self.context.store.run_number(id).unwrap_or_default();
        let backend = self.context.store.run(id).map_or("", |run| run.plan.backend.name());
        format!("{number} {backend}")
    }

    /// The visible columns of a table: those that fit, including the one under the cursor.
    fn shown_columns(&self, inner: Rect, label: u16) -> std::ops::Range<usize> {
        let count = self.comparing.columns.len();
        let fit = usize::from(inner.width.saturating_sub(label) / COLUMN).max(1);
        let at = self.comparing.cursor.and_then(|id| self.comparing.column_of(id)).unwrap_or(0);
        let first = (at + 1).saturating_sub(fit).min(count.saturating_sub(fit));
        first..(first + fit).min(count)
    }

    /// The names above the columns.
    fn header(&self, buf: &mut Buffer, inner: Rect, label: u16, baseline: usize) -> std::ops::Range<usize> {
        let context = self.context;
        let columns = self.shown_columns(inner, label);
        for (x, column) in (label..).step_by(usize::from(COLUMN)).zip(columns.clone()) {
            let id = self.comparing.columns[column];
            let run = context.store.run(id);
            let on = self.comparing.cursor.is_some_and(|id| self.comparing.column_of(id) == Some(column));
            let style = context.style(if on { Meaning::Title } else { Meaning::Muted });
            let end = x + COLUMN - DIFFERENCE;
            let simulated = run.is_some_and(|run| run.plan.simulated);
            let name = format!("{}{}", if column == baseline { "= " } else { "" }, self.comparing.column_name(column));
            put_right(buf, inner, end - 1, COLUMN - DIFFERENCE, 0, &name, style, "");
            let (word, meaning) = match (simulated, run.is_some_and(|run| run.failure.is_some())) {
                (true, _) => ("simulated", Meaning::Simulated),
                (_, true) => ("failed", Meaning::Alert),
                _ => ("", Meaning::Muted),
            };
            put(buf, inner, end, 0, word, context.style(meaning));
        }
        columns
    }

    fn figures(&self, buf: &mut Buffer) {
        if self.layout.figures.is_empty() {
            return;
        }
        let context = self.context;
        let symbols = context.symbols();
        let legend = format!("= baseline  * best  {} tie  ? untested  () not comparable", symbols.approx);
        let words = [("figures".to_owned(), Meaning::Title), (legend, Meaning::Muted)];
        let inner = self.frame(buf, self.layout.figures, Some(Part::Figures), &words);
        let Some(comparison) = &self.comparing.comparison else {
            context.empty(buf, inner, "no run is selected; space selects one");
            return;
        };
        let label = label_room(inner, self.comparing.columns.len(), 24);
        let columns = self.header(buf, inner, label, comparison.baseline);
        let rows = usize::from(inner.height.saturating_sub(1));
        let top = self.comparing.figures_top.min(comparison.rows.len().saturating_sub(rows));
        for (y, row) in (1..inner.height).zip(comparison.rows.iter().skip(top)) {
            let name = clean_text(&row.label);
            put(buf, inner, 1, y, &fit(&name, label - 1, symbols.ellipsis), context.style(Meaning::Muted));
            for (x, column) in (label..).step_by(usize::from(COLUMN)).zip(columns.clone()) {
                if let Some(cell) = row.cells.get(column) {
                    self.figure(buf, inner, (x, y), row, cell);
                }
            }
        }
        if !self.layout.rules {
            let below = comparison.rows.len().saturating_sub(top + rows);
            scroll_marks(buf, inner, top, below, context.theme);
        }
    }

    fn figure(&self, buf: &mut Buffer, inner: Rect, (x, y): (u16, u16), row: &Row, cell: &Cell) {
        let (context, symbols) = (self.context, self.context.symbols());
        let end = x + COLUMN - DIFFERENCE;
        let value = cell.value.map_or_else(|| symbols.missing.to_owned(), |value| self.value(value, &row.unit));
        let style = context.style(if cell.best { Meaning::Good } else { Meaning::Text });
        put_right(buf, inner, end - 1, COLUMN - DIFFERENCE - 2, y, &value, style, symbols.ellipsis);
        if cell.best {
            put(buf, inner, end - 1, y, "*", style);
        }
        let Some(difference) = &cell.difference else { return };
        let number = match difference.shown() {
            Some(relative) => format!("{}%", signed(relative * 100.0)),
            None => signed(difference.absolute),
        };
        let (text, meaning) = match difference.verdict {
            DifferenceVerdict::Better => (number, Meaning::Good),
            DifferenceVerdict::Worse => (number, Meaning::Warn),
            DifferenceVerdict::WithinNoise => (format!("{}{number}", symbols.approx), Meaning::Muted),
            DifferenceVerdict::Unknown => (format!("{number}?"), Meaning::Text),
            DifferenceVerdict::NotComparable => (format!("({number})"), Meaning::Muted),
        };
        put_right(buf, inner, end + DIFFERENCE - 1, DIFFERENCE - 1, y, &text, context.style(meaning), symbols.ellipsis);
    }

    fn value(&self, value: f64, unit: &str) -> String {
        match unit {
            "us" => format::duration(value, self.context.symbols()),
            "ips" => format!("{}/s", format::three_digits(value)),
            unit => format::with_unit(value, unit),
        }
    }

    fn layers(&self, buf: &mut Buffer) {
        if self.layout.layers.is_empty() {
            return;
        }
        let context = self.context;
        let Some(comparison) = &self.comparing.comparison else {
            self.frame(buf, self.layout.layers, Some(Part::Layers), &[("layers".to_owned(), Meaning::Title)]);
            return;
        };
        if self.comparing.totals {
            return self.totals(buf, comparison.baseline);
        }
        let words = [
            ("layers".to_owned(), Meaning::Title),
            (super::status::plural(comparison.layers.len() as u64, "layer"), Meaning::Muted),
            (self.comparing.sort_name().to_owned(), Meaning::Accent),
            ("shares of the clean latency".to_owned(), Meaning::Muted),
        ];
        let inner = self.frame(buf, self.layout.layers, Some(Part::Layers), &words);
        if comparison.layers.is_empty() {
            context.empty(buf, inner, "no selected run has layer times");
            return;
        }
        let label = label_room(inner, self.comparing.columns.len(), u16::MAX);
        let columns = self.header(buf, inner, label, comparison.baseline);
        let rows = usize::from(inner.height.saturating_sub(1));
        let top = self.comparing.layers_top.min(comparison.layers.len().saturating_sub(rows));
        for (y, (at, layer)) in (1..inner.height).zip(comparison.layers.iter().enumerate().skip(top)) {
            self.layer(buf, inner, y, label, columns.clone(), layer, at == self.comparing.layer);
        }
        if !self.layout.rules {
            let below = comparison.layers.len().saturating_sub(top + rows);
            scroll_marks(buf, inner, top, below, context.theme);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a place, a size and what is drawn there, each of them plain")]
    fn layer(
        &self,
        buf: &mut Buffer,
        inner: Rect,
        y: u16,
        label: u16,
        columns: std::ops::Range<usize>,
        layer: &LayerRow,
        selected: bool,
    ) {
        let (context, symbols) = (self.context, self.context.symbols());
        let band = selected && self.comparing.part == Part::Layers;
        let style = |meaning: Meaning| if band { Style::default() } else { context.style(meaning) };
        if band {
            let row = Rect { y: inner.y + y, height: 1, ..inner };
            buf.set_style(row, context.style(Meaning::Selection));
            put(buf, inner, 0, y, symbols.marker, Style::default());
        }
        let kind = layer.op_type.as_deref().map_or_else(|| "(backend)".to_owned(), clean_text);
        // How the layer was matched, and what is fused into it.
        let mut after = if layer.fused.is_empty() { String::new() } else { format!(" +{}", layer.fused.len()) };
        if layer.matched == Matched::Position {
            after = format!(" {}{after}", symbols.approx);
        }
        let types = if label >= 54 { 14 } else { 0 };
        let room = label.saturating_sub(2 + types + width(&after));
        let name = clean_text(&layer.name);
        let x = put(buf, inner, 1, y, &fit(&name, room, symbols.ellipsis), style(Meaning::Text));
        put(buf, inner, x, y, &after, style(Meaning::Muted));
        if types > 0 {
            put(
                buf,
                inner,
                label - types,
                y,
                &widgets::fit_end(&kind, types - 1, symbols.ellipsis),
                style(Meaning::Muted),
            );
        }
        for (x, column) in (label..).step_by(usize::from(COLUMN)).zip(columns) {
            let Some(cell) = layer.cells.get(column) else { continue };
            let end = x + COLUMN - DIFFERENCE;
            let (time, meaning) = time(cell, context);
            put_right(buf, inner, end - 1, COLUMN - DIFFERENCE - 2, y, &time, style(meaning), symbols.ellipsis);
            let Some(difference) = cell.difference_us else { continue };
            let sign = if difference < 0.0 { "-" } else { "+" };
            let text = format!("{sign}{}", format::duration(difference.abs(), symbols));
            let meaning = if difference < 0.0 { Meaning::Good } else { Meaning::Warn };
            put_right(buf, inner, end + DIFFERENCE - 1, DIFFERENCE, y, &text, style(meaning), symbols.ellipsis);
        }
    }
}

/// The time of a layer in a run, or why there is none.
fn time(cell: &LayerCell, context: &Context<'_>) -> (String, Meaning) {
    match (cell.time_us, cell.ops.is_empty()) {
        (Some(time), _) => (format::duration(time, context.symbols()), Meaning::Text),
        (None, true) => ("not there".to_owned(), Meaning::Muted),
        (None, false) => (context.symbols().missing.to_owned(), Meaning::Muted),
    }
}

/// Columns for the labels beside this many columns of runs.
fn label_room(inner: Rect, columns: usize, most: u16) -> u16 {
    let columns = u16::try_from(columns).unwrap_or(u16::MAX).saturating_mul(COLUMN);
    inner.width.saturating_sub(columns).clamp(LABEL.min(inner.width.max(2)), most.max(LABEL)).max(2)
}

/// A number with its sign and few digits.
fn signed(value: f64) -> String {
    if value.abs() >= 9.95 { format!("{value:+.0}") } else { format!("{value:+.1}") }
}
