//! Profiling logs: of real runs, handmade, and damaged.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod command;
mod hostile;
mod made;
mod rules;
mod threads;
mod viewer;

use qnnscope::backends::profile_log::{Decoder, Event, Message, ProfileLogError, write_csv, write_json, write_text};
use std::fmt::Write;
use std::io::Cursor;
use std::path::PathBuf;
use support::repo;

fn fixture(name: &str) -> PathBuf {
    repo("tests/data/profile-logs").join(name)
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn read_text(name: &str) -> String {
    String::from_utf8(read(name)).unwrap()
}

/// Names of all logs, without `.log`.
fn logs() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(fixture(""))
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".log")?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(names.len(), 44, "{names:?}");
    names
}

fn csv(log: &[u8], location: &str) -> String {
    let mut out = Vec::new();
    write_csv(Cursor::new(log), location, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Only the rows.
fn rows(log: &[u8]) -> Vec<String> {
    csv(log, "x").lines().skip(5).map(str::to_owned).collect()
}

fn text(log: &[u8], location: &str) -> String {
    let mut out = Vec::new();
    write_text(log, location, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(log: &[u8]) -> serde_json::Value {
    let mut out = Vec::new();
    write_json(log, "x", &mut out).unwrap();
    serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
}

/// A message's entire content, for comparison.
fn describe(message: &Message<'_>) -> String {
    fn describe_event(event: &Event<'_>, out: &mut String) {
        write!(
            out,
            "({:?} {:?} {:?} {:?} {:?}",
            event.name(),
            event.event_type(),
            event.unit(),
            event.value(),
            event.timestamp()
        )
        .unwrap();
        event.events().for_each(|below| describe_event(&below, out));
        out.push(')');
    }
    let mut out = format!(
        "{:?} {:?} {} {:?} {:?} {} ",
        message.method(),
        message.seq(),
        message.time_us(),
        message.interval(),
        message.graph_name(),
        message.is_private()
    );
    message.events().for_each(|below| describe_event(&below, &mut out));
    out
}

/// Messages of all chunks that are complete by now.
fn drain(decoder: &mut Decoder, found: &mut Vec<String>) -> Result<(), ProfileLogError> {
    while let Some(chunk) = decoder.next_chunk()? {
        found.extend(chunk.messages().map(|message| describe(&message)));
    }
    Ok(())
}

fn messages(log: &[u8]) -> Vec<String> {
    let (mut decoder, mut found) = (Decoder::new(), Vec::new());
    decoder.push(log);
    drain(&mut decoder, &mut found).unwrap();
    found
}
