//! A device counter: its identity, the files it needs, and how to parse them into a value.

use super::catalogue::{Cadence, Group, Parse};
use super::value::Parser;
use crate::event::{CounterInfo, Gap};

/// Placeholder for the watched process in a path.
pub const PID: &str = "{pid}";

/// How the device's shell reads a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// Its first line.
    Line,
    /// The lines `KEY:` of these keys.
    Keys(Vec<String>),
    /// The first lines with this prefix.
    Prefix(&'static str),
    /// Its first lines, unfiltered.
    Table,
    /// The first lines of all files matching the glob.
    Glob,
    /// The text of an Android service.
    Service,
}

/// A file and how to read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileRead {
    /// Path, glob or service name; [`PID`] represents the watched process.
    pub path: String,
    /// How it is read.
    pub how: How,
}

/// A counter that can be sampled.
#[derive(Debug, Clone)]
pub struct Counter {
    /// Stable id, such as `cpu.freq.policy4`.
    pub id: String,
    /// For people.
    pub label: String,
    /// What it tells about.
    pub group: Group,
    /// Unit of the values.
    pub unit: String,
    /// Upper end of the natural range, in the unit.
    pub maximum: Option<f64>,
    /// Its meaning and pitfalls.
    pub about: String,
    /// How often it is read.
    pub cadence: Cadence,
    /// Readable only by root here.
    pub needs_root: bool,
    /// Sampled unless the user chooses otherwise.
    pub chosen: bool,
    /// Its files; the first one holds the value.
    pub files: Vec<FileRead>,
    /// How they become a value.
    pub parser: Parser,
}

/// A counter that cannot be sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    /// Its declaration; `unavailable` has the reason.
    pub info: CounterInfo,
    /// Why not.
    pub reason: Gap,
    /// True if root could probably open it.
    pub needs_root: bool,
}

impl Counter {
    /// The declaration of the counter.
    pub fn info(&self) -> CounterInfo {
        CounterInfo {
            id: self.id.clone(),
            label: self.label.clone(),
            unit: self.unit.clone(),
            maximum: self.maximum,
            unavailable: None,
        }
    }

    /// True if it is about the watched process.
    pub fn is_of_process(&self) -> bool {
        self.group == Group::Process
    }
}

/// How the files of a row with this parser are read.
pub(super) fn how(parse: Parse, keys: &[String], path: &str) -> How {
    if path.starts_with("dumpsys:") {
        return How::Service;
    }
    match parse {
        Parse::KeyedKb => How::Keys(keys.to_vec()),
        Parse::CpuBusy | Parse::CpuBusiest => How::Prefix("cpu"),
        Parse::Pressure | Parse::TimeInState => How::Table,
        Parse::Sum => How::Glob,
        _ => How::Line,
    }
}
