//! Label files: one class per line.

use crate::files::read_text_at_most;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest label file, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Most labels; inferences are counted in 32 bits.
const MOST: usize = 10_000_000;

/// Labels that cannot be used.
#[derive(Debug, Error)]
pub enum LabelsError {
    /// The file cannot be read.
    #[error("cannot read the labels in {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line that does not contain a class.
    #[error(
        "{path}, line {line}: `{text}` is not a class; each line holds one class number, from 0, in the order of the inputs"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line number, from 1.
        line: usize,
        /// Its text.
        text: String,
    },
    /// The file is empty.
    #[error("{path} has no labels; each line holds one class number, from 0, in the order of the inputs")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file contains too many labels.
    #[error("{path} holds more than {MOST} labels")]
    Many {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the classes from a file, one per line. Skips empty lines and those that start with `#`.
///
/// # Errors
/// See [`LabelsError`].
pub fn read_labels(path: &Path) -> Result<Vec<usize>, LabelsError> {
    let text =
        read_text_at_most(path, MAX_BYTES).map_err(|source| LabelsError::Io { path: path.to_owned(), source })?;
    parse(&text, path)
}

/// The same for a text; `path` is for messages.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<usize>, LabelsError> {
    let mut labels = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let label = line.parse::<u32>().map_err(|_| LabelsError::Line {
            path: path.to_owned(),
            line: number,
            text: crate::event::clean_text(&line.chars().take(60).collect::<String>()),
        })?;
        if labels.len() == MOST {
            return Err(LabelsError::Many { path: path.to_owned() });
        }
        labels.push(label as usize);
    }
    if labels.is_empty() { Err(LabelsError::Empty { path: path.to_owned() }) } else { Ok(labels) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_in_each_line() {
        let path = Path::new("l.txt");
        assert_eq!(parse("# val\n3\r\n\n 0 \n999", path).unwrap(), [3, 0, 999]);
        let error = |text: &str| parse(text, path).unwrap_err().to_string();
        assert!(error("1\n-2").contains("l.txt, line 2: `-2` is not a class"), "{}", error("1\n-2"));
        assert!(error("a.png 3").contains("`a.png 3`"));
        assert!(error("1.0").contains("line 1"));
        assert!(error("4294967296").contains("not a class"));
        assert!(error("# nothing\n").contains("has no labels"));
    }
}
