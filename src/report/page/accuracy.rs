//! A comparison of two models, layer by layer.

use super::overview::dash;
use super::{Block, Section, Table};
use crate::accuracy::{AccuracyDocument, LayerDocument, SideDocument};
use crate::report::charts::{Chart, Mark, Plot};
use crate::report::mask::Mask;
use crate::text::{counted, three_digits};

/// Maximum number of layers in a short report.
const BRIEF: usize = 12;
/// Maximum number of layers in the chart.
const CHARTED: usize = 30;
/// Height in the chart of a layer without any difference, dB.
const EQUAL_DB: f64 = 100.0;

/// The sections of a document; `shown` is its file, which is named if there are several.
pub fn sections(document: &AccuracyDocument, shown: Option<&str>, mask: &Mask) -> Vec<Section> {
    let title = shown.map_or_else(|| "Accuracy layer by layer".to_owned(), |file| format!("Accuracy: {file}"));
    let mut about = vec![Block::Facts(facts(document))];
    about.extend(verdict(document, mask));
    let mut sections = vec![Section { title, is_sub: false, blocks: about }];
    let mut sub = |title: &str, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            sections.push(Section { title: title.to_owned(), is_sub: true, blocks });
        }
    };
    let mut layers: Vec<Block> = chart(document, mask).into_iter().collect();
    layers.push(Block::Table(table(document, mask)));
    sub("SQNR by layer", layers);
    if let Some(layer) = document.first().map(|at| &document.layers[at]) {
        sub("Values of the first diverging layer", spread(layer));
    }
    let notes = document.notes.iter().cloned().map(Block::Text);
    let fusion = "Every tensor was read, which prevents op fusion: rounding may differ from the fused graph.";
    let simulated = [&document.reference, &document.test].iter().any(|side| side.simulated);
    let emulated = simulated.then(|| "HTP was simulated: its numbers come from the compiler's emulation.".to_owned());
    sub("Limits", notes.chain([Block::Text(fusion.to_owned())]).chain(emulated.map(Block::Text)).collect());
    sections
}

fn facts(document: &AccuracyDocument) -> Vec<(String, String)> {
    let side = |side: &SideDocument| {
        let simulated = if side.simulated { " [simulated]" } else { "" };
        let build = side.runtime.build_id.as_ref().map_or_else(String::new, |build| format!(", {build}"));
        let device = side.device.as_ref().map_or_else(String::new, |device| format!(" of {device}"));
        format!("{} on {}{device}{simulated}{build}", side.model, side.backend)
    };
    let found = format!(
        "{}, {} of the test without a pair",
        counted(document.pairs.len() as u64, "pair"),
        document.test_only.len()
    );
    [
        ("reference", side(&document.reference)),
        ("test", side(&document.test)),
        ("inputs", document.inputs.clone()),
        ("tensors", found),
        ("limit", format!("{} dB", three_digits(document.min_sqnr_db))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn verdict(document: &AccuracyDocument, mask: &Mask) -> Vec<Block> {
    let (Some(first), Some(verdict)) = (&document.first_diverging, &document.verdict) else {
        let read = if document.bisected { "None of the layers read" } else { "No layer" };
        return vec![Block::Text(format!("{read} diverges."))];
    };
    let name = mask.name(&first.layer.test);
    let lead =
        format!("{name} ({}) is the first layer that diverges: {}.", first.layer.op_type, quality(first.layer.sqnr_db));
    let lines = vec![
        ("cause".to_owned(), format!("{}: {}", first.cause.name(), verdict.because)),
        ("next".to_owned(), first.remedy.clone()),
    ];
    vec![Block::Warning(lead), Block::Facts(lines)]
}

fn quality(sqnr_db: Option<f64>) -> String {
    sqnr_db.map_or_else(|| "no ratio".to_owned(), |sqnr| format!("{} dB", three_digits(sqnr)))
}

/// SQNR as text; `equal` without any difference.
fn sqnr(layer: &LayerDocument) -> String {
    match layer.sqnr_db {
        Some(sqnr) => three_digits(sqnr),
        None if layer.mse == Some(0.0) => "equal".to_owned(),
        None => dash(None),
    }
}

fn chart(document: &AccuracyDocument, mask: &Mask) -> Option<Block> {
    let value = |layer: &LayerDocument| layer.sqnr_db.or((layer.mse == Some(0.0)).then_some(EQUAL_DB));
    let mut rows: Vec<(usize, f64)> =
        document.layers.iter().enumerate().filter_map(|(at, layer)| Some((at, value(layer)?.max(0.0)))).collect();
    let all = rows.len();
    // If there are many, only the worst ones, in graph order.
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    rows.truncate(CHARTED);
    rows.sort_unstable_by_key(|row| row.0);
    let title =
        if all > rows.len() { format!("The {} worst of {all} layers", rows.len()) } else { "All layers".to_owned() };
    let rows: Vec<(String, f64)> =
        rows.into_iter().map(|(at, sqnr)| (mask.name(&document.layers[at].test).into_owned(), sqnr)).collect();
    (rows.len() > 1).then(|| {
        Block::Chart(Chart { title, x: "SQNR, dB".to_owned(), y: "layer".to_owned(), plot: Plot::Bars { rows } })
    })
}

fn table(document: &AccuracyDocument, mask: &Mask) -> Table {
    let columns = [
        "tensor",
        "type",
        "#SQNR dB",
        "#own dB",
        "#largest error",
        "#mean error",
        "#cosine",
        "#clipped %",
        "worst channels",
    ];
    let mut table = Table::new(&columns, BRIEF);
    table.is_long = document.layers.len() > BRIEF;
    let first = document.first();
    // A short report starts with what matters most.
    let mut order: Vec<usize> = (0..document.layers.len()).collect();
    order.sort_by_key(|at| (Some(*at) != first, *at));
    for at in order {
        let layer = &document.layers[at];
        let figure = |value: Option<f64>| dash(value.map(|value| format!("{value:.3e}")));
        let channels: Vec<String> = layer.worst_channels.iter().map(|row| row.channel.to_string()).collect();
        table.rows.push(vec![
            format!("{}{}", mask.name(&layer.test), if Some(at) == first { " (first)" } else { "" }),
            layer.op_type.clone(),
            sqnr(layer),
            dash(layer.own_sqnr_db.map(three_digits)),
            figure(layer.max_abs),
            figure(layer.mean_abs),
            dash(layer.cosine.map(|cosine| format!("{cosine:.5}"))),
            dash(layer.clipped_share.map(|share| three_digits(share * 100.0))),
            channels.join(", "),
        ]);
    }
    table
}

/// Histograms of both sides.
fn spread(layer: &LayerDocument) -> Vec<Block> {
    let Some(histogram) = &layer.histogram else { return Vec::new() };
    let width = (histogram.to - histogram.from) / histogram.reference.len().max(1) as f64;
    let chart = |title: &str, counts: &[u64]| {
        let edge = |at: usize| histogram.from + width * at as f64;
        let bins = counts.iter().enumerate().map(|(at, count)| (edge(at), *count as f64)).collect();
        let zero = Mark { at: 0.0, label: "0".to_owned() };
        let marks = Some(zero).filter(|mark| (histogram.from..=histogram.to).contains(&mark.at)).into_iter().collect();
        Block::Chart(Chart {
            title: title.to_owned(),
            x: "value".to_owned(),
            y: "values".to_owned(),
            plot: Plot::Bins { bins, marks },
        })
    };
    vec![chart("Reference", &histogram.reference), chart("Test", &histogram.test)]
}
