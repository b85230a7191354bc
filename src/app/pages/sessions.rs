//! The history's sessions, which the view can open.

use super::{Content, Entry, Item, Sign};
use crate::app::format;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::event::clean_text;
use crate::history::{self, RunEntry, State};
use crate::text::noun;
use std::path::Path;

/// What the page shows.
pub fn content(sessions: Option<&[history::Entry]>, symbols: &Symbols) -> Content {
    let Some(sessions) = sessions else {
        let empty = "this view shows its own runs; `qnnscope open` shows the history".to_owned();
        return Content { empty, ..Content::default() };
    };
    let text = "session history, newest first; enter opens one".to_owned();
    Content {
        head: if sessions.is_empty() { Vec::new() } else { vec![(text, Meaning::Muted)] },
        entries: sessions.iter().map(|session| entry(session, symbols)).collect(),
        empty: "no sessions yet: every run is kept from now on".to_owned(),
        log: false,
    }
}

fn entry(session: &history::Entry, symbols: &Symbols) -> Entry {
    let failed = session.runs.iter().any(|run| run.status == "failed");
    let sign = match session.state {
        State::Unreadable => Sign::Problem,
        State::CutOff => Sign::Warning,
        _ if failed => Sign::Problem,
        _ => Sign::Note,
    };
    let backends: Vec<&str> = session.runs.iter().map(|run| run.backend.as_str()).collect();
    let model = session.runs.first().map(|run| file_name(&run.model)).unwrap_or_default();
    let name = session.marks.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    let state = match session.state {
        State::Whole => "",
        State::CutOff => "cut off",
        State::Recording => "recording",
        State::Unreadable => "unreadable",
    };
    let mut items = vec![Item::new("session", session.id.clone()).meaning(Meaning::Title)];
    items.push(Item::new("started", format!("{} UTC on {}", session.started_at(), clean_text(&session.host))));
    for (number, run) in (1..).zip(&session.runs) {
        let meaning = if run.status == "failed" { Meaning::Alert } else { Meaning::Text };
        items.push(Item::new(if number == 1 { "runs" } else { "" }, run_text(run, symbols)).meaning(meaning));
        items.extend(run.error.as_ref().map(|error| Item::new("", clean_text(error)).meaning(Meaning::Warn)));
    }
    if !session.marks.tags.is_empty() {
        let tags: Vec<&str> = session.marks.tags.iter().map(String::as_str).collect();
        items.push(Item::new("tags", tags.join(", ")));
    }
    items.extend(session.marks.note.as_ref().map(|note| Item::new("note", note.clone())));
    Entry {
        key: session.id.clone(),
        sign,
        tag: session.started_at().get(..16).unwrap_or_default().to_owned(),
        title: format!("{name}{model} on {}", backends.join(", ")),
        note: (state.to_owned(), Meaning::Warn),
        items,
    }
}

fn run_text(run: &RunEntry, symbols: &Symbols) -> String {
    let simulated = if run.simulated { ", simulated" } else { "" };
    let time = |name: &str, us: Option<f64>| us.map(|us| format!(", {name} {}", format::duration(us, symbols)));
    let figures: String = [time("p50", run.p50_us), time("p99", run.p99_us)].into_iter().flatten().collect();
    let device = clean_text(&run.device);
    format!(
        "{} on {device}{simulated}: {}{figures}, {} {}",
        run.backend,
        run.status,
        format::count(run.inferences),
        noun(run.inferences, "inference")
    )
}

fn file_name(path: &str) -> String {
    clean_text(&Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::symbols::UNICODE;
    use crate::history::Marks;

    #[test]
    fn a_session_says_what_it_holds_and_how_it_ended() {
        let run = RunEntry {
            model: "/models/net\u{1b}[31m.dlc".to_owned(),
            sha256: None,
            backend: "htp".to_owned(),
            device: "local".to_owned(),
            device_model: None,
            build_id: None,
            simulated: true,
            status: "unfinished".to_owned(),
            error: Some("the session ended in stage execute".to_owned()),
            inferences: 1200,
            p50_us: Some(1500.0),
            p99_us: None,
        };
        let session = history::Entry {
            id: "20261122-101500".to_owned(),
            started_us: 1_795_342_500_000_000,
            bytes: 1,
            state: State::CutOff,
            host: "a host".to_owned(),
            tool_version: "0.1.0".to_owned(),
            marks: Marks { name: Some("reference".to_owned()), ..Marks::default() },
            marks_error: None,
            runs: vec![run],
        };
        let content = content(Some(&[session]), &UNICODE);
        let entry = &content.entries[0];
        assert_eq!((entry.sign, entry.note.0.as_str()), (Sign::Warning, "cut off"));
        assert!(entry.title.starts_with("reference: net") && entry.title.ends_with(" on htp"), "{}", entry.title);
        assert!(!entry.title.contains('\u{1b}'));
        let texts: Vec<&str> = entry.items.iter().map(|item| item.text.as_str()).collect();
        assert!(texts[2].starts_with("htp on local, simulated: unfinished, p50 1.50 ms, "), "{texts:?}");
        assert_eq!(texts[3], "the session ended in stage execute");
    }
}
