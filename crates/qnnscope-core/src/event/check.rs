//! Where the files of a run are, and the results of the checks after a failed one.

use serde::{Deserialize, Serialize};

/// Where the files of a run are, and which paths its process searches. On this machine the folder is that of its libraries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Folder of the run's libraries on the machine it runs on.
    pub folder: String,
    /// Folders of `LD_LIBRARY_PATH`, separated by `:`.
    pub library_path: String,
    /// The process's `ADSP_LIBRARY_PATH`; folders separated by `;`.
    pub dsp_path: String,
    /// Files sent, by their names there; empty on this machine.
    #[serde(default)]
    pub files: Vec<PlacedFile>,
}

/// A file that was sent to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedFile {
    /// Name in the run's folder.
    pub name: String,
    /// Its source on this machine.
    pub from: String,
}

/// The result of checking a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Id of the cause in the catalogue.
    pub cause: String,
    /// Id of the check in the catalogue.
    pub check: String,
    /// What it says about the cause.
    pub outcome: CheckOutcome,
    /// The observation, or why there is none; one sentence.
    pub detail: String,
}

/// A check's verdict on a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The cause applies.
    Confirms,
    /// The cause does not apply.
    Refutes,
    /// The observation fits, but would fit without this cause too.
    Neutral,
    /// Could not be determined.
    Unknown,
}

impl CheckOutcome {
    /// Name in text and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirms => "confirms",
            Self::Refutes => "refutes",
            Self::Neutral => "neutral",
            Self::Unknown => "unknown",
        }
    }
}
