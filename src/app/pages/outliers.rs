//! Inferences that took far longer than the others, each with the surrounding counters and log lines.

use super::{Content, Entry, Item, JumpTarget, Sign};
use crate::analysis::{Around, EvidencePlace, Outlier, Outliers, limit_not_supported};
use crate::app::format;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::event::clean_text;
use crate::store::Run;
use std::fmt::Write;

/// The page's content for a run.
pub fn content(run: Option<&Run>, outliers: Option<&Outliers>, symbols: &Symbols) -> Content {
    let Some(run) = run else {
        return Content { empty: "no run yet".to_owned(), ..Content::default() };
    };
    let Some(outliers) = outliers else {
        let few = || "too few inferences in the clean phase to identify slow ones".to_owned();
        let empty = limit_not_supported(run).unwrap_or_else(few);
        return Content { empty, ..Content::default() };
    };
    let entries = outliers.kept.iter().map(|outlier| entry(run, outlier, outliers.median_us, symbols)).collect();
    let limit = format::duration(outliers.limit_us, symbols);
    let all = format::count(run.clean.count());
    let so_far = if run.is_ended() { "" } else { " so far" };
    let mut text = format!(
        "{} of {all} inferences took more than {limit} ({}){so_far}",
        format::count(outliers.count),
        outliers.limit
    );
    if outliers.count > outliers.kept.len() as u64 {
        let _ = write!(text, "; the {} slowest are listed, slowest first", outliers.kept.len());
    }
    let head = if outliers.count == 0 { Vec::new() } else { vec![(text, Meaning::Text)] };
    Content {
        head,
        entries,
        empty: format!("no inference took more than {limit} ({}){so_far}", outliers.limit),
        log: false,
    }
}

fn entry(run: &Run, outlier: &Outlier, p50: f64, symbols: &Symbols) -> Entry {
    let times = format::three_digits(outlier.latency_us / p50.max(f64::MIN_POSITIVE));
    let latency = format::duration(outlier.latency_us, symbols);
    let since_us = outlier.start_us.saturating_sub(run.clean.window_us().map_or(0, |window| window.0));
    let moment = format::duration(since_us as f64, symbols);
    let moved: Vec<&str> =
        outlier.counters.iter().filter(|around| around.moved()).map(|around| around.label.as_str()).collect();
    let text = format!("{latency}, {times} times the median of {}", format::duration(p50, symbols));
    let mut items = vec![Item::new("latency", text).meaning(Meaning::Title)];
    let at = Some(JumpTarget::Place(EvidencePlace::Moment(outlier.start_us)));
    let text = format!("inference {}, {moment} into the clean phase", format::count(outlier.index));
    items.push(Item { target: at, ..Item::new("moment", text) });
    for (index, around) in outlier.counters.iter().enumerate() {
        let target = EvidencePlace::Counter { device: around.device.clone(), id: around.id.clone() };
        let item = Item { target: Some(JumpTarget::Place(target)), ..Item::new("", around_text(around, symbols)) };
        let item = item.meaning(if around.moved() { Meaning::Accent } else { Meaning::Muted });
        items.push(Item { label: if index == 0 { "around" } else { "" }, ..item });
    }
    for (index, line) in outlier.logs.iter().enumerate() {
        let seconds = (line.t_us as f64 - outlier.start_us as f64) / 1e6;
        let text = format!("{seconds:+.3} s {:<5} {}", line.level.short(), clean_text(&line.text));
        let item = Item { target: Some(JumpTarget::Place(EvidencePlace::Moment(line.t_us))), ..Item::new("", text) };
        items.push(Item { label: if index == 0 { "log" } else { "" }, ..item });
    }
    if outlier.surroundings_gone {
        let text =
            "readings or log lines from that time are no longer in memory; a recorded session (--record) keeps them";
        items.push(Item::new("gone", text).meaning(Meaning::Warn));
    } else if outlier.counters.is_empty() && outlier.logs.is_empty() {
        items.push(
            Item::new("around", "no counters were read and nothing was logged at that time").meaning(Meaning::Muted),
        );
    }
    let told = if moved.is_empty() { String::new() } else { format!("; moved: {}", clean_text(&moved.join(", "))) };
    Entry {
        key: outlier.index.to_string(),
        sign: Sign::Warning,
        tag: format!("#{}", outlier.index),
        title: format!("{latency}, {times} x p50, at {moment}{told}"),
        note: (String::new(), Meaning::Muted),
        items,
    }
}

/// A counter before and during the inference.
fn around_text(around: &Around, symbols: &Symbols) -> String {
    let text = |value: Option<f64>| {
        value.map_or_else(|| symbols.missing.to_owned(), |value| format::with_unit(value, &around.unit))
    };
    let label = clean_text(&around.label);
    if !around.moved() {
        return format!("{label} {}", text(around.during.or(around.before)));
    }
    format!("{label} {} {} {}", text(around.before), symbols.arrow, text(around.during))
}
