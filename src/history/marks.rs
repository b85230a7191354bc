//! What users add to sessions: a name, tags, a note. These are stored beside the session, so that the index
//! holds nothing that exists nowhere else.

use super::{HistoryError, remove};
use crate::event::{clean_text, clean_whole};
use crate::files::{open_regular, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a marks file, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum length of a name or tag, characters: they must fit in a line of a list.
const LONGEST_WORD: usize = 100;
/// Maximum length of a note, characters.
const LONGEST_NOTE: usize = 10_000;
/// Maximum number of tags per session.
const MOST_TAGS: usize = 50;

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
    /// True if the user added nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The marks beside a session; empty if there is no file.
    ///
    /// # Errors
    /// The file cannot be read or understood. It is the user's data, so nothing may replace it.
    pub(super) fn read(folder: &Path, id: &str) -> Result<Self, HistoryError> {
        let path = file(folder, id);
        let broken = |reason: String| HistoryError::Marks { path: path.clone(), reason };
        let mut bytes = Vec::new();
        match open_regular(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)) {
            Ok(_) if bytes.len() as u64 > MAX_BYTES => {
                return Err(broken(format!("it has more than {MAX_BYTES} bytes")));
            }
            Ok(_) => {}
            // A dangling link counts as existing.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
                return Ok(Self::default());
            }
            Err(error) => return Err(broken(error.to_string())),
        }
        let marks: Self = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        Ok(marks.cleaned())
    }

    /// What is wrong with them: texts that a list could not show, or names that already mean something else.
    pub(super) fn fault(&self) -> Option<String> {
        let length = |text: &str| text.chars().count();
        if let Some(name) = &self.name
            && let Some(reason) = name_fault(name)
        {
            return Some(format!("a session cannot have the name `{}`: {reason}", shortened(name)));
        }
        if let Some(tag) = self.tags.iter().find(|tag| length(tag) > LONGEST_WORD) {
            let (tag, length) = (shortened(tag), length(tag));
            return Some(format!("the tag `{tag}` has {length} characters; the limit is {LONGEST_WORD}"));
        }
        if self.tags.len() > MOST_TAGS {
            return Some(format!("{} tags are too many; the limit is {MOST_TAGS}", self.tags.len()));
        }
        let note = self.note.as_deref().map_or(0, length);
        (note > LONGEST_NOTE).then(|| format!("the note has {note} characters; the limit is {LONGEST_NOTE}"))
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

    /// Removes control characters and empty texts.
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

/// Why a name would not find its session.
fn name_fault(name: &str) -> Option<String> {
    let length = name.chars().count();
    if length > LONGEST_WORD {
        return Some(format!("it has {length} characters; the limit is {LONGEST_WORD}"));
    }
    if super::reference::last(name).is_some() {
        return Some("it already names one of the last sessions".to_owned());
    }
    if name.starts_with('@') {
        return Some("the @ before a name is not part of it".to_owned());
    }
    if name.contains('#') {
        return Some("what follows a # picks one of the session's runs".to_owned());
    }
    let is_of_ids = |c: char| c.is_ascii_digit() || c == '-';
    name.chars().all(is_of_ids).then(|| "it looks like the beginning of an id".to_owned())
}

/// The start of a text, for use in a message.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_something_else_are_refused() {
        let named = |name: &str| Marks { name: Some(name.to_owned()), ..Marks::default() }.fault();
        let long = "x".repeat(101);
        for name in ["last", "last~1", "last~007", "@mine", "mine#htp", "20261122", "20261122-101500", "-", &long] {
            assert!(named(name).is_some(), "{name}");
        }
        for name in ["lasting", "last one", "before-quantisation", "2026-11-release", "a@b", "ж", &"x".repeat(100)] {
            assert_eq!(named(name), None, "{name}");
        }
    }

    #[test]
    fn tags_and_notes_have_an_end() {
        let tagged = |tags: Vec<String>| Marks { tags: tags.into_iter().collect(), ..Marks::default() }.fault();
        assert_eq!(tagged(vec!["x".repeat(100)]), None);
        assert!(tagged(vec!["x".repeat(101)]).is_some_and(|fault| fault.len() < 200));
        assert!(tagged((0..51).map(|number| number.to_string()).collect()).is_some());
        let noted = |length| Marks { note: Some("é".repeat(length)), ..Marks::default() }.fault();
        assert!(noted(10_000).is_none() && noted(10_001).is_some());
    }

    #[test]
    fn a_file_that_is_broken_is_no_file_without_marks() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Marks::read(dir.path(), "a").unwrap(), Marks::default());
        for text in ["{\"name\": \"x\"", "", "[1]", "{\"tags\": 5}"] {
            std::fs::write(dir.path().join("a.json"), text).unwrap();
            assert!(matches!(Marks::read(dir.path(), "a"), Err(HistoryError::Marks { .. })), "{text}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("nowhere", dir.path().join("b.json")).unwrap();
            assert!(Marks::read(dir.path(), "b").is_err());
        }
    }
}
