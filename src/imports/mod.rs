//! Imports other tools' files as the events of a session file, so that panes, analysis, comparison and
//! reports need no special case for them. What a file lacks stays absent.
//!
//! One source file per kind: an [`Import`] that recognises its files by their content and adds their contents
//! to a [`Draft`]. All kinds are listed in [`KINDS`].

mod ai_hub;
mod benchmark_model;
mod draft;
mod error;
mod etdump;
mod flatbuffer;
mod genie;
mod inspector;
mod json;
mod op_trace;
mod optrace;
mod ort_profile;
mod perf_yaml;
mod profile_csv;
mod profile_log;
mod sample;
#[cfg(test)]
mod tests;

pub use error::ImportError;

use crate::event::Record;
use draft::Draft;
use error::Problem;
use sample::Sample;
use std::path::Path;

/// A kind of file written by another tool.
trait Import: Sync {
    /// Stable name, such as `qnn-profile-log`.
    fn kind(&self) -> &'static str;

    /// Name for users.
    fn label(&self) -> &'static str;

    /// True if the content shows that the file is of this kind.
    fn is_it(&self, sample: &Sample) -> bool;

    /// Adds the file's contents to the draft.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it looked like.
    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem>;
}

/// All kinds, the most clearly recognisable ones first.
static KINDS: [&dyn Import; 13] = [
    &etdump::Etdump,
    &profile_csv::ViewerCsv,
    &profile_csv::OrtCsv,
    &ai_hub::AiHub,
    &op_trace::OpTrace,
    &genie::Genie,
    &optrace::Optrace,
    &ort_profile::OrtProfile,
    &inspector::InspectorTable,
    &perf_yaml::PerfYaml,
    &benchmark_model::BenchmarkModel,
    &profile_log::ProfileLog,
    &optrace::Qhas,
];

/// An imported file.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Kind of the file, such as `qnn-profile-log`.
    pub kind: &'static str,
    /// Name for users.
    pub label: &'static str,
    /// The records of an equivalent session file, in order.
    pub records: Vec<Record>,
    /// What is missing or was omitted, and why.
    pub notes: Vec<String>,
}

/// The kinds with their names for users, in the order in which a file is matched against them.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|import| (import.kind(), import.label()))
}

/// Imports another tool's file, which the user knows by `name`; `None` for a file of no known kind, a pipe or
/// a device.
///
/// # Errors
/// The file cannot be read, or looks like a known kind and is damaged.
pub fn open(path: &Path, name: &Path) -> Result<Option<Imported>, ImportError> {
    let io = |source| ImportError::Io { path: name.to_owned(), source };
    // Streams that can be read only once are not examined.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Ok(None);
    }
    let sample = Sample::read(path, name).map_err(io)?;
    let Some(import) = KINDS.iter().find(|import| import.is_it(&sample)) else { return Ok(None) };
    let mut draft = Draft::new(import.kind(), import.label(), &sample);
    import.read(&sample, &mut draft).and_then(|()| draft.check()).map_err(|problem| match problem {
        Problem::Io(source) => io(source),
        Problem::Content(reason) => {
            ImportError::Unreadable { path: name.to_owned(), label: import.label(), reason: reason.clone() }
        }
    })?;
    Ok(Some(draft.finish()))
}
