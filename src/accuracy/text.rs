//! A comparison as text.

use super::cause::db;
use super::comparison::AccuracyOutcome;
use super::layer::Layer;
use super::metrics::ChannelFigures;
use super::pairs::How;
use super::side::Side;
use crate::event::clean_text;
use crate::text::{three_digits, wrapped};
use std::fmt::Write;

/// Maximum width of a tensor name in the table, characters.
const NAME: usize = 34;
/// Maximum number of layers listed unless all are requested.
const MOST: usize = 40;

/// The comparison in lines of at most `width` columns; `all` lists every layer, and how each pair was found.
pub fn accuracy_text(outcome: &AccuracyOutcome, width: usize, all: bool) -> String {
    let mut out = String::new();
    for (role, at) in [("reference", 0), ("test     ", 1)] {
        let backend = outcome.sides[at].backend;
        let device = outcome.sides[at].device().map_or_else(String::new, |id| format!(" of {}", clean_text(id)));
        let simulated = if outcome.sides[at].is_simulated() { " (simulated)" } else { "" };
        let runtime = &outcome.runtimes[at];
        let build = runtime.build_id.clone().unwrap_or_else(|| runtime.provider.clone());
        let _ = writeln!(out, "{role}  {} on {backend}{device}{simulated}  {build}", outcome.models[at].path);
    }
    let found = |how: How| outcome.pairing.pairs.iter().filter(|pair| pair.how == how).count();
    let _ = writeln!(
        out,
        "{}; {} tensors paired ({} by name, {} by op, {} by order), {} of the test without a pair",
        outcome.inputs,
        outcome.pairing.pairs.len(),
        found(How::Name),
        found(How::Op) + found(How::Map),
        found(How::Order),
        outcome.pairing.test_only.len()
    );
    out.push('\n');
    verdict(&mut out, outcome, width);
    out.push('\n');
    table(&mut out, outcome, all);
    if all {
        pairs(&mut out, outcome);
    }
    out.push('\n');
    let fusion = "Every tensor was read, which prevents op fusion: such graphs give no times, and rounding may differ from the fused \
                  graph.";
    for note in outcome.notes.iter().map(String::as_str).chain([fusion]) {
        out.push_str(&wrapped("note: ", "      ", note, width));
    }
    if outcome.sides.iter().any(Side::is_simulated) {
        out.push_str(&wrapped(
            "note: ",
            "      ",
            "HTP was simulated on this machine; its numbers come from the compiler's emulation.",
            width,
        ));
    }
    out
}

fn verdict(out: &mut String, outcome: &AccuracyOutcome, width: usize) {
    let Some(first) = &outcome.first else {
        let read = if outcome.bisected { "none of the layers read" } else { "no layer" };
        let text = format!("{read} is below {} dB.", three_digits(outcome.min_sqnr_db));
        out.push_str(&wrapped("agrees: ", "        ", &text, width));
        return;
    };
    let layer = &outcome.layers[first.layer];
    let pair = &outcome.pairing.pairs[layer.pair];
    let node = outcome.names.get(&layer.op).filter(|node| **node != layer.op);
    let lead = format!(
        "`{}` ({} `{}`{}) is the first: {}, while its inputs have {}{}.",
        pair.test.tensor.name,
        layer.op_type,
        layer.op,
        node.map_or_else(String::new, |node| format!(", node `{node}`")),
        quality(layer),
        db(first.inherited_db),
        layer.own_sqnr_db.map_or_else(String::new, |own| format!("; computed on the reference's values {}", db(own)))
    );
    out.push_str(&wrapped("diverges: ", "          ", &lead, width));
    out.push_str(&wrapped("cause:    ", "          ", &format!("{}: {}.", first.cause.name(), first.because), width));
    out.push_str(&wrapped("next:     ", "          ", &format!("{}.", first.remedy), width));
}

fn quality(layer: &Layer) -> String {
    match (layer.figures.sqnr_db, layer.figures.differing_share) {
        (Some(sqnr), _) => db(sqnr),
        (None, Some(share)) if layer.is_counted() => format!("{} % differ", three_digits(share * 100.0)),
        _ => "undefined (the reference is zero)".to_owned(),
    }
}

fn table(out: &mut String, outcome: &AccuracyOutcome, all: bool) {
    let _ = writeln!(
        out,
        "{:<NAME$}  {:<18} {:>8} {:>8} {:>9} {:>9} {:>8} {:>7} {:>7}  worst channels",
        "tensor of the test", "type", "SQNR dB", "own dB", "max err", "mean err", "cosine", "clip %", "used %"
    );
    let marked = outcome.first.as_ref().map(|first| first.layer);
    let shown = |at: usize| all || outcome.layers.len() <= MOST || near(outcome, at);
    let mut left_out = 0;
    for (at, layer) in outcome.layers.iter().enumerate() {
        if !shown(at) {
            left_out += 1;
            continue;
        }
        let name = &outcome.pairing.pairs[layer.pair].test.tensor.name;
        let figures = &layer.figures;
        let node = outcome.names.get(&layer.op).filter(|node| *node != name && **node != layer.op);
        let node = node.map_or_else(String::new, |node| format!("  of `{}`", shortened(node, NAME)));
        let mark = if marked == Some(at) { " <" } else { "" };
        let _ = writeln!(
            out,
            "{:<NAME$}  {:<18} {:>8} {:>8} {:>9} {:>9} {:>8} {:>7} {:>7}  {}{node}{mark}",
            shortened(name, NAME),
            shortened(&layer.op_type, 18),
            cell(figures.sqnr_db),
            cell(layer.own_sqnr_db),
            cell(figures.max_abs),
            cell(figures.mean_abs),
            figures.cosine.map_or_else(|| "-".to_owned(), |cosine| format!("{cosine:.5}")),
            cell(figures.clipped_share.map(|share| share * 100.0)),
            cell(figures.used_share.map(|share| share * 100.0)),
            channels(&figures.worst_channels),
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "{left_out} more layers; --all lists them");
    }
}

/// The layers listed if there are many: the worst ones, those around the first diverging one, and the last
/// ones.
fn near(outcome: &AccuracyOutcome, at: usize) -> bool {
    let first = outcome.first.as_ref().map(|first| first.layer);
    let worse = |other: &Layer| {
        let value = |layer: &Layer| layer.figures.sqnr_db.unwrap_or(f64::INFINITY);
        value(other) < value(&outcome.layers[at])
    };
    first.is_some_and(|first| at.abs_diff(first) <= 5)
        || at + 3 >= outcome.layers.len()
        || outcome.layers.iter().filter(|other| worse(other)).count() < MOST / 2
}

fn cell(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.is_infinite() => "equal".to_owned(),
        Some(value) if value != 0.0 && value.abs() < 0.1 => format!("{value:.1e}"),
        Some(value) => three_digits(value),
    }
}

fn channels(rows: &[ChannelFigures]) -> String {
    rows.iter().map(|row| row.channel.to_string()).collect::<Vec<_>>().join(",")
}

fn shortened(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(count - width + 1).collect::<String>())
    }
}

fn pairs(out: &mut String, outcome: &AccuracyOutcome) {
    let _ = writeln!(out, "\npairs (test = reference)");
    for pair in &outcome.pairing.pairs {
        let how = match pair.how {
            How::Name => "name",
            How::Map => "map of the conversion",
            How::Op => "op",
            How::Order => "order and shape",
        };
        let moved = pair.layout.text().map_or_else(String::new, |axes| format!(", axes {axes}"));
        let _ = writeln!(out, "  {} = {}  ({how}{moved})", pair.test.tensor.name, pair.reference.tensor.name);
    }
    for (what, names) in
        [("only in the reference", &outcome.pairing.reference_only), ("only in the test", &outcome.pairing.test_only)]
    {
        if !names.is_empty() {
            let _ = writeln!(out, "  {what}: {}", names.join(", "));
        }
    }
}
