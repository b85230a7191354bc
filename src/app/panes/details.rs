//! Everything about one layer.

use super::Context;
use crate::app::format;
use crate::app::rows::{LayerRows, TimeBasis};
use crate::app::symbols::{Symbols, UNICODE};
use crate::app::theme::Meaning;
use crate::app::view::View;
use crate::app::widgets::{pane, put, scroll_marks, wrap};
use crate::event::{OpUnit, clean_text};
use crate::models::{Op, Quantization, Tensor};
use crate::store::Run;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Columns of the labels.
const LABEL: u16 = 15;

struct Lines {
    room: u16,
    lines: Vec<(String, String, Meaning)>,
}

impl Lines {
    fn add(&mut self, label: &str, value: &str) {
        self.add_as(label, value, Meaning::Text);
    }

    fn add_as(&mut self, label: &str, value: &str, meaning: Meaning) {
        for (i, part) in wrap(value, self.room).into_iter().enumerate() {
            self.lines.push((if i == 0 { label.to_owned() } else { String::new() }, part, meaning));
        }
    }

    fn heading(&mut self, text: &str) {
        self.lines.push((String::new(), String::new(), Meaning::Text));
        self.lines.push((text.to_owned(), String::new(), Meaning::Title));
    }
}

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>, scroll: usize) {
    let muted = context.style(Meaning::Muted);
    let mut title = vec![("details", context.style(Meaning::Title))];
    if context.simulated() {
        title.push((" ", muted));
        title.push((context.symbols().dot, muted));
        title.push((" ", muted));
        title.push(("simulated", context.style(Meaning::Simulated)));
    }
    let inner = pane(buf, area, &title, true, context.rules, context.theme);
    let row = context.view.selected_row();
    let (Some(run), Some(row)) = (context.run, row) else {
        context.empty(buf, inner, "no layer is selected");
        return;
    };
    let lines = lines(context.view, run, row, context.symbols(), inner.width);
    let height = usize::from(inner.height);
    let top = scroll.min(lines.len().saturating_sub(height));
    for (y, (label, value, meaning)) in (0..inner.height).zip(lines.iter().skip(top)) {
        let heading = value.is_empty() && *meaning == Meaning::Title;
        put(buf, inner, 1, y, label, if heading { context.style(Meaning::Title) } else { muted });
        put(buf, inner, 1 + LABEL, y, value, context.style(*meaning));
    }
    if !context.rules {
        scroll_marks(buf, inner, top, lines.len().saturating_sub(top + height), context.theme);
    }
}

/// The maximum scroll position of the details in a pane of this inner area.
pub fn last_scroll(view: &View, run: &Run, inner: Rect) -> usize {
    // The symbol sets differ in characters, not in lines.
    let count = |row| lines(view, run, row, &UNICODE, inner.width).len();
    view.selected_row().map_or(0, count).saturating_sub(usize::from(inner.height))
}

fn lines(view: &View, run: &Run, row: usize, symbols: &Symbols, width: u16) -> Vec<(String, String, Meaning)> {
    let mut lines = Lines { room: width.saturating_sub(LABEL + 2).max(8), lines: Vec::new() };
    times(&mut lines, &view.shown.layers, symbols, run, row);
    if let Some(op) = run.op(row) {
        structure(&mut lines, &view.shown.layers, symbols, row, op);
    } else {
        lines.heading("graph");
        lines.add_as("", "not an op of the graph: added by the backend", Meaning::Muted);
    }
    lines.lines
}

fn times(lines: &mut Lines, layers: &LayerRows, symbols: &Symbols, run: &Run, row: usize) {
    let (Some(op_row), Some(figures)) = (run.ops.rows().get(row), layers.figures.get(row)) else { return };
    let missing = || symbols.missing.to_owned();
    lines.add_as("name", &clean_text(&op_row.name), Meaning::Title);
    if let Some(op) = run.op(row) {
        lines.add("type", &format!("{}  {}", clean_text(&op.op_type), clean_text(&op.package)));
    }
    if let Some(node) = run.source_of_row(row) {
        lines.add("node", &clean_text(node));
    }
    if let Some(id) = op_row.htp_op {
        lines.add("HTP op", &id.to_string());
    }
    let approx = if layers.derived { symbols.approx } else { "" };
    let time = |us: Option<f64>| us.map_or_else(missing, |us| format!("{approx}{}", format::duration(us, symbols)));
    if layers.basis == TimeBasis::Scaled {
        lines.add("scaled mean", &format!("{}, to the clean latency", time(layers.shown(figures.mean))));
    }
    let measured = run.us_per_op_unit();
    let in_us = |value: Option<f64>| value.zip(measured).map(|(value, factor)| value * factor);
    lines.add("measured mean", &format!("{}, under profiling", time(in_us(figures.mean))));
    lines.add("measured p95", &time(in_us(figures.p95)));
    lines.add("measured p99", &time(in_us(figures.p99)));
    if op_row.unit == OpUnit::Cycles {
        let cycles = |value: Option<f64>| {
            value.map_or_else(missing, |value| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cycles are positive")]
                format::count(value.round() as u64)
            })
        };
        let all = [cycles(figures.mean), cycles(figures.p95), cycles(figures.p99)];
        lines.add("cycles", &format!("mean {}, p95 {}, p99 {}", all[0], all[1], all[2]));
        let derived = measured.map(|factor| format!("{}{:.3} ns a cycle, derived", symbols.approx, factor * 1e3));
        lines.add("time from", &derived.unwrap_or_else(|| "no accelerator time is known".to_owned()));
    }
    lines.add("share", &format!("{} % of all ops", format::percent(figures.share, figures.share)));
    lines.add("inferences", &format::count(layers.inferences));
}

fn structure(lines: &mut Lines, layers: &LayerRows, symbols: &Symbols, row: usize, op: &Op) {
    let missing = || symbols.missing.to_owned();
    lines.heading("work");
    lines.add("MACs", &op.macs.map_or_else(missing, format::count));
    let mean_us = layers.figures.get(row).and_then(|figures| layers.shown(figures.mean));
    let rate = |amount: Option<u64>, unit: &str| match (amount, mean_us) {
        (Some(amount), Some(us)) if amount > 0 && us > 0.0 && layers.basis != TimeBasis::Cycles => {
            let approx = if layers.derived { symbols.approx } else { "" };
            format!("{approx}{}{unit}/s", format::si(amount as f64 / us * 1e6))
        }
        _ => missing(),
    };
    lines.add("MAC rate", &rate(op.macs, "MAC"));
    lines.add("constants", &format::bytes(op.parameter_bytes));
    lines.add("bytes moved", &op.bytes_moved.map_or_else(missing, format::bytes));
    lines.add("byte rate", &rate(op.bytes_moved, "B"));
    for (heading, tensors) in [("inputs", &op.inputs), ("outputs", &op.outputs)] {
        lines.heading(heading);
        for tensor in tensors {
            lines.add_as("", &clean_text(&tensor.name), Meaning::Text);
            lines.add_as("", &tensor_text(tensor, symbols.missing), Meaning::Muted);
        }
    }
    if !op.params.is_empty() {
        lines.heading("parameters");
        for (name, value) in &op.params {
            let text = match value.get("values").filter(|_| value.is_object()) {
                Some(values) => values.to_string(),
                None => value.to_string(),
            };
            let short: String = clean_text(&text).chars().take(200).collect();
            let name = clean_text(name);
            if crate::app::widgets::width(&name) < LABEL {
                lines.add_as(&name, &short, Meaning::Text);
            } else {
                lines.add_as("", &format!("{name} = {short}"), Meaning::Text);
            }
        }
    }
}

fn tensor_text(tensor: &Tensor, missing: &str) -> String {
    let bytes = tensor.bytes().map_or_else(|| missing.to_owned(), format::bytes);
    let kind = format!("{:?}", tensor.kind).to_lowercase();
    let quantization = match &tensor.quantization {
        None => String::new(),
        Some(Quantization::ScaleOffset { scale, offset, .. }) => format!(", scale {scale:.6}, offset {offset}"),
        Some(Quantization::AxisScaleOffset { axis, scales, .. }) => {
            format!(", {} scales along axis {axis}", scales.len())
        }
        Some(Quantization::Other { id, name }) => {
            format!(", encoding {}", name.as_ref().map_or_else(|| id.to_string(), |name| clean_text(name)))
        }
    };
    format!("{} {}, {bytes}, {kind}{quantization}", tensor.dtype.name(), tensor.shape_text())
}
