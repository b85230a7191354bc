//! Two models layer by layer: each layer's distance from the reference, the distribution of its values, where images
//! differ.

use super::{Content, Entry, Item, Sign};
use crate::accuracy::{AccuracyDocument, ChannelFigures, DiffGrid, LayerDocument, PairDocument, SideDocument, Spread};
use crate::app::format;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::event::clean_text;
use std::fmt::Write;

/// Columns of the bar before a layer's name, and the SQNR that fills it, dB.
const BAR: usize = 8;
const FULL_DB: f64 = 60.0;
/// Rows of a histogram, one for each two bins.
const HEIGHT: usize = 16;
/// Columns of a histogram's bars.
const WIDTH: usize = 16;
/// Map cells from no difference to the largest.
const SHADES: [char; 6] = [' ', '.', ':', '+', '#', '@'];

/// What the page shows.
pub fn content(document: Option<&AccuracyDocument>, symbols: &Symbols) -> Content {
    let Some(document) = document else {
        let empty = "no comparison is open; `qnnscope accuracy REFERENCE TEST --view` creates one".to_owned();
        return Content { empty, ..Content::default() };
    };
    let first = document.first();
    let entries = (0..document.layers.len()).map(|at| entry(document, at, first == Some(at), symbols));
    Content { head: head(document), entries: entries.collect(), empty: "no layer was read".to_owned(), log: false }
}

fn head(document: &AccuracyDocument) -> Vec<(String, Meaning)> {
    let side = |side: &SideDocument| {
        let name = side.model.rsplit('/').next().unwrap_or(&side.model);
        let simulated = if side.simulated { " (simulated)" } else { "" };
        let device = side.device.as_ref().map_or_else(String::new, |device| format!(" of {}", clean_text(device)));
        format!("{} on {}{device}{simulated}", clean_text(name), clean_text(&side.backend))
    };
    let sides =
        format!("{} against {}; {}", side(&document.test), side(&document.reference), clean_text(&document.inputs));
    let mut head = vec![(sides, Meaning::Text)];
    match (&document.first_diverging, &document.verdict) {
        (Some(first), Some(verdict)) => {
            let text = format!("diverges: {} ({}): {}", first.layer.test, first.cause.name(), verdict.because);
            head.push((clean_text(&text), Meaning::Alert));
        }
        _ => head.push((format!("no layer is below {} dB", document.min_sqnr_db), Meaning::Good)),
    }
    head
}

fn entry(document: &AccuracyDocument, at: usize, is_first: bool, symbols: &Symbols) -> Entry {
    let layer = &document.layers[at];
    let is_below = layer.sqnr_db.is_some_and(|sqnr| sqnr < document.min_sqnr_db);
    let sign = match (is_first, is_below) {
        (true, _) => Sign::Problem,
        (false, true) => Sign::Warning,
        (false, false) => Sign::Note,
    };
    let fill = layer.sqnr_db.map_or(if layer.mse == Some(0.0) { 1.0 } else { 0.0 }, |sqnr| sqnr / FULL_DB);
    let name = clean_text(&layer.test);
    Entry {
        // Names may repeat.
        key: format!("{at}"),
        sign,
        tag: format!("{:>8}", quality(layer)),
        title: format!("{} {name}", bar(fill, BAR, symbols)),
        note: (clean_text(&layer.op_type), if is_first { Meaning::Alert } else { Meaning::Muted }),
        items: items(document, layer, is_first, symbols),
    }
}

/// SQNR as displayed.
fn quality(layer: &LayerDocument) -> String {
    match layer.sqnr_db {
        Some(sqnr) => format!("{sqnr:.1} dB"),
        None if layer.mse == Some(0.0) => "equal".to_owned(),
        None => "-".to_owned(),
    }
}

/// A bar that fills `fraction` (0 to 1) of `columns` columns.
fn bar(fraction: f64, columns: usize, symbols: &Symbols) -> String {
    let parts = symbols.parts.len().saturating_sub(1).max(1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let filled = (fraction.clamp(0.0, 1.0) * (columns * parts) as f64).round() as usize;
    let part =
        |column: usize| symbols.parts.get(filled.saturating_sub(column * parts).min(parts)).copied().unwrap_or(" ");
    (0..columns).map(part).collect()
}

fn items(document: &AccuracyDocument, layer: &LayerDocument, is_first: bool, symbols: &Symbols) -> Vec<Item> {
    let mut items = vec![Item::new("layer", clean_text(&layer.test)).meaning(Meaning::Title)];
    let mut made = format!("{} `{}`", layer.op_type, layer.op);
    if layer.reference != layer.test {
        let _ = write!(made, "; in the reference `{}`", layer.reference);
    }
    items.push(Item::new("made by", clean_text(&made)));
    if let Some(node) = layer.source_node.as_ref().filter(|node| **node != layer.op) {
        items.push(Item::new("node", clean_text(node)));
    }
    if let (true, Some(first), Some(verdict)) = (is_first, &document.first_diverging, &document.verdict) {
        let text = format!("{}: {}", first.cause.name(), verdict.because);
        items.push(Item::new("cause", clean_text(&text)).meaning(Meaning::Alert));
        items.push(Item::new("fix", clean_text(&first.remedy)));
    }
    let own = layer.own_sqnr_db.map_or_else(String::new, |own| format!("; {own:.1} dB on the reference's values"));
    items.push(Item::new("SQNR", format!("{}{own}", quality(layer))));
    let figure = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {value:.3e}"));
    let errors: Vec<String> = [
        figure("largest", layer.max_abs),
        figure("mean", layer.mean_abs),
        figure("mean square", layer.mse),
        layer.cosine.map(|cosine| format!("cosine {cosine:.5}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !errors.is_empty() {
        items.push(Item::new("error", errors.join(", ")));
    }
    if let Some(pair) = document.pair_of(layer) {
        items.extend(range(layer, pair, symbols));
        if pair.not_finite > 0 {
            let text = format!(
                "{} of {} values are NaN or infinite",
                format::count(pair.not_finite),
                format::count(pair.elements)
            );
            items.push(Item::new("left out", text).meaning(Meaning::Warn));
        }
        if let Some(share) = pair.differing_share.filter(|_| layer.mse.is_none()) {
            items.push(Item::new("differ", format!("{:.2} % of the values", share * 100.0)));
        }
    }
    if !layer.worst_channels.is_empty() {
        let channel = |row: &ChannelFigures| {
            let sqnr = row.sqnr_db.map_or_else(|| "-".to_owned(), |sqnr| format!("{sqnr:.1} dB"));
            format!("{} ({sqnr}, {:.0} % of the error)", row.channel, row.noise_share * 100.0)
        };
        let rows: Vec<String> = layer.worst_channels.iter().map(channel).collect();
        items.push(Item::new("worst", rows.join(", ")));
    }
    items.extend(layer.histogram.as_ref().and_then(|spread| histogram(spread, symbols)));
    items.extend(layer.map.as_ref().and_then(map));
    items
}

/// The observed range against the encoding's range.
fn range(layer: &LayerDocument, pair: &PairDocument, symbols: &Symbols) -> Option<Item> {
    let span = |low: Option<f64>, high: Option<f64>| Some(format!("{:.4} {} {:.4}", low?, symbols.arrow, high?));
    let seen = span(pair.seen_min, pair.seen_max)?;
    let Some(held) = span(pair.encoded_min, pair.encoded_max) else { return Some(Item::new("range", seen)) };
    let used = pair.used_share.map_or_else(String::new, |used| format!(", {:.0} % used", used * 100.0));
    let clipped = layer.clipped_share.map_or_else(String::new, |share| format!(", {:.2} % clipped", share * 100.0));
    let is_bad = layer.clipped_share.is_some_and(|share| share > 0.001);
    let meaning = if is_bad { Meaning::Warn } else { Meaning::Text };
    Some(Item::new("range", format!("{seen}; encoded {held}{used}{clipped}")).meaning(meaning))
}

/// Bars of both sides, bin by bin.
fn histogram(spread: &Spread, symbols: &Symbols) -> Option<Item> {
    let bins = spread.reference.len();
    if bins == 0 || bins != spread.test.len() {
        return None;
    }
    let together = bins.div_ceil(HEIGHT);
    let sums = |counts: &[u64]| counts.chunks(together).map(|bins| bins.iter().sum()).collect::<Vec<u64>>();
    let (reference, test) = (sums(&spread.reference), sums(&spread.test));
    let most = reference.iter().chain(&test).max().copied().unwrap_or(0);
    if most == 0 {
        return None;
    }
    let width = (spread.to - spread.from) / bins as f64 * together as f64;
    // Clipping and outliers show as a few values: square roots keep them visible.
    let bar = |count: u64| bar((count as f64 / most as f64).sqrt(), WIDTH, symbols);
    let mut lines = format!("{:>10} {:<WIDTH$} {:<WIDTH$}\n", "from", "reference", "test");
    for (at, (&x, &y)) in reference.iter().zip(&test).enumerate() {
        let edge = spread.from + width * at as f64;
        let _ = writeln!(lines, "{:>10} {} {}", short(edge), bar(x), bar(y));
    }
    let about = "histogram of values (lengths are square roots of counts)";
    Some(Item { literal: Some(lines), ..Item::new("values", about) })
}

/// A number in at most ten columns.
fn short(value: f64) -> String {
    if value == 0.0 || (0.001..100_000.0).contains(&value.abs()) {
        format!("{value:.4}")
    } else {
        format!("{value:.2e}")
    }
}

/// Where an image differs.
fn map(grid: &DiffGrid) -> Option<Item> {
    if grid.columns == 0 || grid.mean_abs.len() != grid.rows.checked_mul(grid.columns)? {
        return None;
    }
    let most = grid.mean_abs.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Some(Item::new("image", "differs nowhere"));
    }
    let shade = |value: &f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the last shade")]
        let at = (value / most * (SHADES.len() - 1) as f64).ceil() as usize;
        SHADES[at.min(SHADES.len() - 1)]
    };
    let rows = grid.mean_abs.chunks(grid.columns);
    let lines: Vec<String> = rows.map(|row| format!("|{}|", row.iter().map(shade).collect::<String>())).collect();
    let text = format!("where it differs; {} is a mean error of {most:.2e}", SHADES[SHADES.len() - 1]);
    Some(Item { literal: Some(lines.join("\n")), ..Item::new("image", text) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::symbols::{ASCII, UNICODE};

    #[test]
    fn bars_fill_from_the_left() {
        assert_eq!(bar(0.5, 4, &UNICODE), "██  ");
        assert_eq!((bar(2.0, 2, &UNICODE), bar(-1.0, 2, &UNICODE)), ("██".to_owned(), "  ".to_owned()));
        assert_eq!(bar(1.0, 3, &ASCII).chars().count(), 3);
    }

    #[test]
    fn maps_are_drawn_row_by_row() {
        let grid = DiffGrid { rows: 2, columns: 3, mean_abs: vec![0.0, 0.5, 1.0, 0.0, 0.0, 0.01] };
        let item = map(&grid).unwrap();
        assert_eq!(item.literal.unwrap(), "| +@|\n|  .|");
        // A document that contradicts its own data is not drawn.
        assert!(map(&DiffGrid { rows: 3, columns: 3, mean_abs: vec![1.0] }).is_none());
        assert!(map(&DiffGrid { rows: usize::MAX, columns: usize::MAX, mean_abs: vec![] }).is_none());
    }

    #[test]
    fn histograms_have_a_row_for_each_pair_of_bins() {
        let spread = Spread { from: 0.0, to: 3.2, reference: vec![4; 32], test: vec![1; 32] };
        let text = histogram(&spread, &UNICODE).unwrap().literal.unwrap();
        assert_eq!(text.lines().count(), 17);
        // 1 of 4: the root is a half.
        assert!(text.lines().nth(1).unwrap().ends_with("████████        "), "{text}");
        assert!(histogram(&Spread { test: vec![], ..spread }, &UNICODE).is_none());
    }
}
