//! The start screen: device, model, backends, run.

use super::Context;
use crate::app::start::{Item, devices};
use crate::app::theme::Meaning;
use crate::app::widgets::{fit, fit_end, pane, put, width};
use crate::event::{LOCAL_DEVICE, clean_text};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// One row of the form: a heading, an item, or a blank.
enum Row {
    Heading(&'static str),
    Item(Item, String, String, Meaning),
    Note(String),
    Air,
}

/// Draws the screen.
pub fn draw(buf: &mut Buffer, area: Rect, context: &Context<'_>) {
    let symbols = context.symbols();
    let rows = rows(context);
    let columns = area.width.min(92);
    let body = Rect { height: area.height.saturating_sub(1), ..area };
    let wanted = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(4);
    let height = wanted.min(body.height);
    let place =
        Rect { x: body.x + (body.width - columns) / 2, y: body.y + (body.height - height) / 3, width: columns, height };
    let title =
        [("qnnscope", context.style(Meaning::Title)), (" profiler for QNN models", context.style(Meaning::Muted))];
    let inner = pane(buf, place, &title, false, false, context.theme);
    let air = u16::from(inner.height + 1 >= wanted - 2);
    let inner = Rect { y: inner.y + air, height: inner.height.saturating_sub(air), ..inner };
    let selected = context.view.start.item(context.store);
    let at = rows.iter().position(|row| matches!(row, Row::Item(item, ..) if *item == selected)).unwrap_or(0);
    let visible = usize::from(inner.height);
    // The selected row and its heading stay visible.
    let top = (at + 2).saturating_sub(visible).min(rows.len().saturating_sub(visible));
    for (y, row) in (0..inner.height).zip(rows.iter().skip(top)) {
        match row {
            Row::Air => {}
            Row::Note(text) => {
                let room = inner.width.saturating_sub(6);
                put(buf, inner, 4, y, &fit_end(text, room, symbols.ellipsis), context.style(Meaning::Muted));
            }
            Row::Heading(text) => {
                put(buf, inner, 2, y, text, context.style(Meaning::Title));
            }
            Row::Item(item, sign, text, meaning) => {
                let on = *item == selected;
                let style = if on { Style::default() } else { context.style(*meaning) };
                if on {
                    let band = Rect { x: inner.x + 1, y: inner.y + y, width: inner.width.saturating_sub(2), height: 1 };
                    buf.set_style(band.intersection(inner), context.style(Meaning::Selection));
                    put(buf, inner, 2, y, symbols.marker, style);
                }
                let x = put(buf, inner, 4, y, sign, style) + 1;
                let room = inner.width.saturating_sub(x + 2);
                // Paths differ at their ends, devices at their beginnings.
                let cut = if matches!(item, Item::Device(_)) { fit_end } else { fit };
                put(buf, inner, x, y, &cut(text, room, symbols.ellipsis), style);
            }
        }
    }
}

fn rows(context: &Context<'_>) -> Vec<Row> {
    let form = &context.view.start;
    let symbols = context.symbols();
    let radio = |on: bool| (if on { symbols.radios.0 } else { symbols.radios.1 }).to_owned();
    let mut rows = vec![Row::Heading("Device")];
    let devices = devices(context.store);
    let room = devices.iter().map(|device| width(&device.id)).max().unwrap_or(0);
    for device in devices {
        let sign = radio(form.device == device.id);
        let padding = " ".repeat(usize::from(room.saturating_sub(width(&device.id))));
        let meaning = if device.problem.is_some() { Meaning::Warn } else { Meaning::Text };
        let advice = device.problem.map(|advice| format!(": {advice}")).unwrap_or_default();
        let text = format!("{}{padding}  {}{advice}", clean_text(&device.id), clean_text(&device.about));
        rows.push(Row::Item(Item::Device(device.id), sign, text, meaning));
    }
    if let Some(problem) = context.store.adb_problem() {
        let advice = problem.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        rows.push(Row::Note(clean_text(&format!("no devices behind adb: {}{advice}", problem.reason))));
    }
    rows.push(Row::Air);
    rows.push(Row::Heading("Model"));
    for (i, model) in form.models.iter().enumerate() {
        let text = clean_text(&model.to_string_lossy());
        rows.push(Row::Item(Item::Model(i), radio(form.model == Some(i)), text, Meaning::Text));
    }
    let browse = format!("choose a file{}", symbols.ellipsis);
    rows.push(Row::Item(Item::Browse, " + ".to_owned(), browse, Meaning::Accent));
    rows.push(Row::Air);
    rows.push(Row::Heading("Backends (one run each, in this order)"));
    for (i, (backend, ticked)) in form.backends.iter().zip(&form.ticked).enumerate() {
        let name = backend.backend.name();
        let elsewhere = form.device != LOCAL_DEVICE;
        let (sign, text, meaning) = match &backend.available {
            Err(reason) if !elsewhere => {
                let sign = format!(" {} ", symbols.missing);
                (sign, format!("{name}  not available: {}", clean_text(reason)), Meaning::Muted)
            }
            _ => {
                let sign = if *ticked { symbols.ticks.0 } else { symbols.ticks.1 };
                let about = if !elsewhere && backend.backend.is_simulated_here() {
                    ("simulated on this machine", Meaning::Simulated)
                } else {
                    ("", Meaning::Text)
                };
                (sign.to_owned(), format!("{name}  {}", about.0), about.1)
            }
        };
        rows.push(Row::Item(Item::Backend(i), sign, text, meaning));
    }
    rows.push(Row::Air);
    let (text, meaning) = match form.request() {
        Ok(_) => ("run", Meaning::Good),
        Err(missing) => (missing, Meaning::Muted),
    };
    rows.push(Row::Item(Item::Run, symbols.arrow.to_owned(), text.to_owned(), meaning));
    rows
}
