//! Folders of expected outputs: as written by `--save-outputs` and qnn-net-run, or the arrays of one
//! inference.

use crate::accuracy::{SavedOutputs, insert_array, saved};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Most files that are examined.
const MOST_FILES: usize = 2_000_000;

/// A folder of expected outputs that cannot be used.
#[derive(Debug, Error)]
pub enum ExpectedError {
    /// It cannot be read.
    #[error("cannot read the expected outputs in {path}: {source}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It contains no outputs.
    #[error(
        "{path} has no expected outputs: it needs Result_0, Result_1 and so on with NAME.npy or NAME.raw (float32) for each \
         output, as --save-outputs writes them, or these files themselves for a single inference"
    )]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// It contains too many files.
    #[error("{path} holds more than {MOST_FILES} files")]
    Many {
        /// The folder.
        path: PathBuf,
    },
}

/// The expected outputs of each inference.
///
/// # Errors
/// See [`ExpectedError`].
pub fn find(folder: &Path) -> Result<SavedOutputs, ExpectedError> {
    let io = |source| ExpectedError::Io { path: folder.to_owned(), source };
    let mut left = MOST_FILES;
    let mut in_folders: Vec<PathBuf> = Vec::new();
    let mut alone = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        left = left.checked_sub(1).ok_or_else(|| ExpectedError::Many { path: folder.to_owned() })?;
        let path = entry.path();
        let is_result = entry.file_name().to_string_lossy().starts_with("Result_");
        if path.is_dir() && is_result {
            for file in std::fs::read_dir(&path).map_err(io)? {
                left = left.checked_sub(1).ok_or_else(|| ExpectedError::Many { path: folder.to_owned() })?;
                in_folders.push(file.map_err(io)?.path());
            }
        } else {
            insert_array(&mut alone, path);
        }
    }
    let mut found = saved(in_folders.iter().map(PathBuf::as_path));
    if found.is_empty() {
        found = alone.into_iter().map(|(stem, path)| ((0, stem), path)).collect();
    }
    if found.is_empty() { Err(ExpectedError::Empty { path: folder.to_owned() }) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_inferences_come_before_files_of_one() {
        let dir = tempfile::tempdir().unwrap();
        assert!(find(dir.path()).unwrap_err().to_string().contains("has no expected outputs"));
        assert!(find(&dir.path().join("none")).unwrap_err().to_string().contains("cannot read"));
        for name in ["y.raw", "z.npy", "notes.txt"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let names = |found: SavedOutputs| found.into_keys().collect::<Vec<_>>();
        assert_eq!(names(find(dir.path()).unwrap()), [(0, "y".to_owned()), (0, "z".to_owned())]);
        for name in ["Result_0/y.raw", "Result_3/y.npy", "Result_3/log.txt", "other/y.npy"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        assert_eq!(names(find(dir.path()).unwrap()), [(0, "y".to_owned()), (3, "y".to_owned())]);
    }
}
