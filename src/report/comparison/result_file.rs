//! Result documents as files.

use super::LoadError;
use crate::analysis::compare::Side;
use crate::event::clean_text;
use crate::files::{Seekable, open_regular, read_at_most};
use crate::text::clean_json;
use std::io::Read;
use std::path::Path;

/// Maximum size of a result document, bytes.
const MAX_DOCUMENT_BYTES: u64 = 512 << 20;
/// Bytes at the start that show whether a file can be one.
const HEAD_BYTES: u64 = 4096;

/// A file of any kind that can be read more than once.
pub fn seekable(path: &Path) -> Result<Seekable, LoadError> {
    Seekable::new(path).map_err(|source| LoadError::Io { path: clean_text(&path.to_string_lossy()), source })
}

/// A result document.
#[derive(Debug)]
pub struct DocumentFile {
    value: serde_json::Value,
    pub(super) sides: Vec<Side>,
}

impl DocumentFile {
    /// The whole document, free of control characters.
    pub fn value(&self) -> &serde_json::Value {
        &self.value
    }

    /// Its runs.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }
}

/// The start of a file.
fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_regular(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Reads a result document.
///
/// # Errors
/// The file cannot be read or is in another format.
pub fn read_document(file: &Seekable) -> Result<DocumentFile, LoadError> {
    let shown = clean_text(&file.named().to_string_lossy());
    let io = |source| LoadError::Io { path: shown.clone(), source };
    // A file of another kind, however large, is recognised from its start.
    let mut bytes = head(file.path()).map_err(io)?;
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        bytes = read_at_most(file.path(), MAX_DOCUMENT_BYTES).map_err(io)?;
    }
    let wrong = |reason| LoadError::Document { path: shown.clone(), reason };
    let sides = super::file::sides(&bytes).map_err(wrong)?;
    let value = serde_json::from_slice(&clean_json(&bytes)).map_err(|error| wrong(format!("is no JSON: {error}")))?;
    Ok(DocumentFile { value, sides })
}
