//! A counter of a device: what it is, which files it needs, and how they become a value.

use super::catalogue::{Cadence, Group, Parse};
use super::value::Parser;
use crate::event::{CounterInfo, Gap};

/// Stands in a path for the watched process.
pub const PID: &str = "{pid}";

/// How a file is read by the device's shell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// Its first line.
    Line,
    /// The lines `KEY:` of these keys.
    Keys(Vec<String>),
    /// The first lines that begin with this.
    Prefix(&'static str),
    /// Its first lines, whatever they are.
    Table,
    /// The first lines of all files that match the glob.
    Glob,
    /// The text of an Android service.
    Service,
}

/// A file, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileRead {
    /// Path, glob or name of a service; [`PID`] stands for the watched process.
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
    /// What it means and how it misleads.
    pub about: String,
    /// How often it is read.
    pub cadence: Cadence,
    /// Only root can read it here.
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
    /// What it is; `unavailable` says why not in words.
    pub info: CounterInfo,
    /// Why not.
    pub reason: Gap,
    /// True if it would probably open for root.
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

    /// True if it tells about the watched process.
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
