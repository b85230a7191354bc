//! Where the files of a run are, and what the checks after a failed one found.

use serde::{Deserialize, Serialize};

/// Where the files of a run are, and which paths its process searches. On this machine the folder is that of its libraries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Folder of the run's libraries, where the run is made.
    pub folder: String,
    /// Folders of `LD_LIBRARY_PATH`, separated by `:`.
    pub library_path: String,
    /// Folders of `ADSP_LIBRARY_PATH` as the process has it; `;` separates them.
    pub dsp_path: String,
    /// Files that were sent, by their names there; empty on this machine.
    #[serde(default)]
    pub files: Vec<PlacedFile>,
}

/// A file that was sent to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedFile {
    /// Name in the run's folder.
    pub name: String,
    /// Where it came from on this machine.
    pub from: String,
}

/// What a check of a cause found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Id of the cause in the catalogue.
    pub cause: String,
    /// Id of the check in the catalogue.
    pub check: String,
    /// What it says about the cause.
    pub outcome: CheckOutcome,
    /// What was seen, or why nothing could be; one sentence.
    pub detail: String,
}

/// What a check says of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It is so.
    Confirms,
    /// It is not so.
    Refutes,
    /// What was seen fits, and would fit without this cause too.
    Neutral,
    /// It could not be told.
    Unknown,
}

impl CheckOutcome {
    /// Word for people and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirms => "confirms",
            Self::Refutes => "refutes",
            Self::Neutral => "neutral",
            Self::Unknown => "unknown",
        }
    }
}
