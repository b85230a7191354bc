//! The history as text, and as `qnnscope.sessions/1`.

use super::layout::shortened;
use crate::event::{LOCAL_DEVICE, clean_text};
use crate::history::{Entry, RunEntry, State};
use crate::text::{bytes_text, count_text, duration_text, noun};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// Schema of the document.
pub const SESSIONS_SCHEMA: &str = "qnnscope.sessions/1";

/// The sessions of the history.
#[derive(Debug, Serialize)]
pub struct SessionsDocument<'a> {
    schema: &'static str,
    sessions: Vec<Row<'a>>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    started_at: String,
    #[serde(flatten)]
    entry: &'a Entry,
}

impl<'a> SessionsDocument<'a> {
    /// The document of these sessions.
    pub fn new(entries: &'a [Entry]) -> Self {
        let rows = entries.iter().map(|entry| Row { started_at: entry.started_at(), entry });
        Self { schema: SESSIONS_SCHEMA, sessions: rows.collect() }
    }
}

/// A table of sessions, one line per run.
pub fn sessions_text(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.id.len()).max().unwrap_or(0).max(7);
    let mut out =
        format!("{:width$}  {:<7}  {:>9}  {:>9}  {:<10}  what\n", "session", "backend", "p50", "p99", "state");
    for entry in entries {
        let mut id = entry.id.as_str();
        for run in &entry.runs {
            let _ = writeln!(out, "{}", line(id, width, entry, run));
            id = "";
        }
        if entry.runs.is_empty() {
            let _ =
                writeln!(out, "{id:width$}  {:<7}  {:>9}  {:>9}  {:<10}  {}", "", "", "", state(entry), marks(entry));
        }
    }
    // Names of models and notes may contain anything.
    out.lines().map(|line| clean_text(line.trim_end()) + "\n").collect()
}

fn line(id: &str, width: usize, entry: &Entry, run: &RunEntry) -> String {
    let us = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), duration_text);
    let state = if entry.state == State::Recording { "recording" } else { run.status.as_str() };
    let model =
        Path::new(&run.model).file_name().map_or_else(|| run.model.clone(), |name| name.to_string_lossy().into());
    let simulated = if run.simulated { " (simulated)" } else { "" };
    let device = if run.device == LOCAL_DEVICE { String::new() } else { format!(" on {}", device(run)) };
    let marks = if id.is_empty() { String::new() } else { marks(entry) };
    let (p50, p99, model) = (us(run.p50_us), us(run.p99_us), shortened(&model, 40));
    format!("{id:width$}  {:<7}  {p50:>9}  {p99:>9}  {state:<10}  {model}{device}{simulated}{marks}", run.backend)
}

fn device(run: &RunEntry) -> String {
    run.device_model.as_ref().map_or_else(|| run.device.clone(), |model| format!("{} ({model})", run.device))
}

fn state(entry: &Entry) -> &'static str {
    match entry.state {
        State::Whole => "whole",
        State::CutOff => "cut off",
        State::Recording => "recording",
        State::Unreadable => "unreadable",
    }
}

fn marks(entry: &Entry) -> String {
    let name = entry.marks.name.as_ref().map(|name| format!("  {name}"));
    let tags = entry.marks.tags.iter().map(|tag| format!(" #{tag}"));
    let note = entry.marks.note.as_ref().map(|note| format!("  {}", shortened(note.lines().next().unwrap_or(""), 40)));
    name.into_iter().chain(tags).chain(note).collect()
}

/// Everything the history knows about a session.
pub fn session_text(entry: &Entry, file: &Path) -> String {
    let mut out = String::new();
    let name = entry.marks.name.as_ref().map_or_else(String::new, |name| format!("  {name}"));
    let _ = writeln!(out, "session    {}{name}", entry.id);
    let _ = writeln!(out, "started    {} UTC on {}, qnnscope {}", entry.started_at(), entry.host, entry.tool_version);
    let _ = writeln!(out, "file       {} ({}, {})", file.display(), bytes_text(entry.bytes as f64), state(entry));
    if !entry.marks.tags.is_empty() {
        let tags: Vec<&str> = entry.marks.tags.iter().map(String::as_str).collect();
        let _ = writeln!(out, "tags       {}", tags.join(", "));
    }
    if let Some(note) = &entry.marks.note {
        let _ = writeln!(out, "note       {}", note.replace('\n', "\n           "));
    }
    for (number, run) in (1..).zip(&entry.runs) {
        let simulated = if run.simulated { ", simulated" } else { "" };
        let build = run.build_id.as_ref().map_or_else(String::new, |build| format!(", {build}"));
        let _ = writeln!(out, "run {number:<6} {} on {}{simulated}{build}: {}", run.backend, device(run), run.status);
        let _ = writeln!(out, "           {}", run.model);
        let figures = [("p50", run.p50_us), ("p99", run.p99_us)];
        let figures: Vec<String> =
            figures.into_iter().filter_map(|(name, us)| Some(format!("{name} {}", duration_text(us?)))).collect();
        if run.inferences > 0 {
            let _ = writeln!(
                out,
                "           {} of {} {}",
                figures.join(", "),
                count_text(run.inferences as f64),
                noun(run.inferences, "inference")
            );
        }
        if let Some(error) = &run.error {
            let _ = writeln!(out, "           {error}");
        }
    }
    out.lines().map(|line| clean_text(line) + "\n").collect()
}
