//! What users give sessions: a name, tags, a note. They are kept beside the session, so that the index holds nothing that is
//! nowhere else.

use super::{HistoryError, remove};
use crate::event::{clean_text, clean_whole};
use crate::files::{read_at_most, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Largest file of marks that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Name, tags and note of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Name.
    #[serde(default)]
    pub name: Option<String>,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// Note.
    #[serde(default)]
    pub note: Option<String>,
}

impl Marks {
    /// True if the user gave nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The marks beside a session; none where there is no file of them, or none that can be understood.
    pub(super) fn read(folder: &Path, id: &str) -> Self {
        let bytes = read_at_most(&file(folder, id), MAX_BYTES).unwrap_or_default();
        let marks: Self = serde_json::from_slice(&bytes).unwrap_or_default();
        marks.cleaned()
    }

    pub(super) fn write(&self, folder: &Path, id: &str) -> Result<(), HistoryError> {
        if self.is_empty() {
            return Self::remove(folder, id);
        }
        let path = file(folder, id);
        let written = serde_json::to_vec_pretty(self).map_err(Into::into).and_then(|text| write_whole(&path, &text));
        written.map_err(|source| HistoryError::io("write", &path, source))
    }

    pub(super) fn remove(folder: &Path, id: &str) -> Result<(), HistoryError> {
        remove(&file(folder, id))
    }

    /// Without control characters, and without what is empty.
    #[must_use]
    pub fn cleaned(self) -> Self {
        let kept = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Self {
            name: self.name.and_then(|name| kept(clean_text(&name))),
            tags: self.tags.into_iter().filter_map(|tag| kept(clean_text(&tag))).collect(),
            note: self.note.and_then(|note| kept(clean_whole(&note))),
        }
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}
