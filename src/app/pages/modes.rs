//! Results of the measurement mode: behaviour over time, a schedule, a published procedure, rounds and rates
//! of the session.

use super::{Content, Entry, Item, Sign};
use crate::analysis::{Cadence, ConditionState, LikeReport, Rounds, Sustained};
use crate::analysis::{cadence, interleaved, like, sustained};
use crate::app::format;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::event::clean_text;
use crate::report::modes::{
    cool_down_text, course, gap_lines, like_heading, pace_lines, rates_notes, rates_table, rounds_lines, state,
    windows_table,
};
use crate::store::{Run, Store};

/// Results about the shown run and its session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Modes {
    sustained: Option<Sustained>,
    like: Option<LikeReport>,
    rounds: Vec<Rounds>,
    rates: Vec<Cadence>,
}

impl Modes {
    /// Computes the results for a run and its session.
    pub fn of(store: &Store, run: &Run) -> Self {
        Self {
            sustained: sustained(store, run),
            like: like(store, run),
            rounds: interleaved(store),
            rates: cadence(store),
        }
    }

    /// True if there is anything to show beyond what every run has.
    pub fn tell(&self, run: &Run) -> bool {
        *self != Self::default() || run.pace.is_some() || run.cool_down.is_some()
    }
}

/// The page's content for a run.
pub fn content(run: Option<&Run>, modes: &Modes, symbols: &Symbols) -> Content {
    let Some(run) = run else {
        return Content { empty: "no run yet".to_owned(), ..Content::default() };
    };
    let mut entries = Vec::new();
    entries.extend(modes.sustained.as_ref().map(|told| over_time(told, symbols)));
    entries.extend(modes.like.as_ref().map(published));
    entries.extend(paced(run));
    entries.extend(run.cool_down.as_ref().map(|pause| {
        let text = clean_text(&cool_down_text(pause));
        entry("cool-down", "pause", Sign::Note, &text, vec![Item::new("pause", &text)])
    }));
    let own = entries.len();
    entries.extend(modes.rounds.iter().enumerate().map(|(index, set)| in_turns(index, set)));
    entries.extend(modes.rates.iter().enumerate().map(|(index, sweep)| by_rate(index, sweep, symbols)));
    let empty = "measured back to back, the default; --rate, --rate-sweep, --sustained, --like, --interleave and --cool-down \
                 measure differently, and this page shows their results";
    Content { head: head(&entries, own), entries, empty: empty.to_owned(), log: false }
}

/// The measurement modes of this run, and of runs of its session combined.
fn head(entries: &[Entry], own: usize) -> Vec<(String, Meaning)> {
    let words = |entries: &[Entry]| {
        let mut tags: Vec<&str> = entries.iter().map(|entry| entry.tag.as_str()).collect();
        tags.dedup();
        tags.join(", ")
    };
    let (run, session) = entries.split_at(own);
    let parts = [("this run", run), ("runs of this session", session)];
    let told = parts.into_iter().filter(|(_, entries)| !entries.is_empty());
    let text = told.map(|(what, entries)| format!("{what}: {}", words(entries))).collect::<Vec<_>>().join("; ");
    if text.is_empty() { Vec::new() } else { vec![(text, Meaning::Text)] }
}

fn entry(key: &str, tag: &str, sign: Sign, title: &str, items: Vec<Item>) -> Entry {
    Entry {
        key: key.to_owned(),
        sign,
        tag: tag.to_owned(),
        title: title.to_owned(),
        note: (String::new(), Meaning::Muted),
        items,
    }
}

/// Rows shown verbatim, except for the symbol set.
fn table(label: &'static str, text: String, rows: &[String], symbols: &Symbols) -> Item {
    let literal = Some(symbols.sentence(clean_lines(rows)));
    Item { literal, ..Item::new(label, text) }
}

fn clean_lines(rows: &[String]) -> String {
    rows.iter().map(|row| clean_text(row)).collect::<Vec<_>>().join("\n")
}

fn over_time(told: &Sustained, symbols: &Symbols) -> Entry {
    let course = course(told);
    let sign = if told.slowdown.is_some() { Sign::Warning } else { Sign::Note };
    let meaning = if told.slowdown.is_some() { Meaning::Warn } else { Meaning::Title };
    let mut items: Vec<Item> = Vec::new();
    for (index, text) in course.iter().enumerate() {
        let item = match text.strip_prefix("- ") {
            Some(seen) => Item::new("seen", clean_text(seen)),
            None => Item::new("course", clean_text(text)).meaning(if index == 0 { meaning } else { Meaning::Text }),
        };
        let more = item.label == "seen" && items.iter().any(|known| known.label == "seen");
        items.push(if more { Item { label: "", ..item } } else { item });
    }
    let text = format!("of {} each", format::duration(told.window_s * 1e6, symbols));
    items.push(table("windows", text, &windows_table(told), symbols));
    entry("over-time", "over time", sign, &clean_text(&course[0]), items)
}

fn published(report: &LikeReport) -> Entry {
    let heading = like_heading(report);
    let mut items = vec![Item::new("figure", &heading).meaning(Meaning::Title)];
    for (index, text) in gap_lines(report).into_iter().enumerate() {
        items.push(Item::new(if index == 0 { "gap" } else { "" }, clean_text(&text)));
    }
    for condition in &report.conditions {
        let (label, meaning) = match condition.state {
            ConditionState::Met => ("met", Meaning::Good),
            ConditionState::NotMet => ("not met", Meaning::Warn),
            ConditionState::CannotTell => ("unknown", Meaning::Text),
            ConditionState::DoesNotApply => (state(condition), Meaning::Muted),
        };
        let text = format!("{}: {}", condition.text, clean_text(&condition.observed));
        items.push(Item::new(label, text).meaning(meaning));
    }
    let missed = report.conditions.iter().any(|condition| condition.state == ConditionState::NotMet);
    let sign = if missed { Sign::Warning } else { Sign::Note };
    entry("published", report.like.name(), sign, &heading, items)
}

fn paced(run: &Run) -> Option<Entry> {
    let lines = pace_lines(run);
    let (first, rest) = lines.split_first()?;
    let sign =
        if run.pace.as_ref().is_some_and(crate::store::PaceStats::is_overloaded) { Sign::Warning } else { Sign::Note };
    let mut items = vec![Item::new("paced", first).meaning(Meaning::Title)];
    items.extend(rest.iter().map(|text| Item::new("", text)));
    Some(entry("paced", "paced", sign, first, items))
}

fn in_turns(index: usize, set: &Rounds) -> Entry {
    let lines = rounds_lines(set);
    let mut items = vec![Item::new("rounds", clean_text(&lines[0])).meaning(Meaning::Title)];
    items.extend(lines[1..].iter().map(|text| Item::new("", clean_text(text))));
    entry(&format!("rounds {index}"), "in turns", Sign::Note, &clean_text(&lines[0]), items)
}

fn by_rate(index: usize, sweep: &Cadence, symbols: &Symbols) -> Entry {
    let simulated = if sweep.simulated { ", simulated" } else { "" };
    let title = format!("{}{simulated} on {}: {} rates", sweep.backend, clean_text(&sweep.device), sweep.points.len());
    let mut items = vec![table("rates", title.clone(), &rates_table(sweep), symbols)];
    for (at, note) in rates_notes(sweep).iter().enumerate() {
        let odd = at == 0 && sweep.densest_is_slower;
        let meaning = if odd { Meaning::Warn } else { Meaning::Muted };
        items.push(Item::new(if at == 0 { "notes" } else { "" }, note).meaning(meaning));
    }
    let sign = if sweep.densest_is_slower { Sign::Warning } else { Sign::Note };
    entry(&format!("rates {index}"), "by rate", sign, &title, items)
}
