//! Compares installed files with their manifest: what was replaced, truncated, removed or added since the install.
//!
//! This catches accidents, partial updates and swapped libraries. Anyone who can write to the folder can also
//! write a matching manifest, so it does not defend against that.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::manifest::{MANIFEST_FILE, ManifestFile, RuntimeManifest};
use crate::files::sha256_hex;

/// How thoroughly files are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Sizes and times; content only if the time differs. Costs less than a millisecond.
    Quick,
    /// The content of every file.
    Full,
}

/// What happened to a file since the install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is not there.
    Missing,
    /// Its size or content differs.
    Changed,
    /// It cannot be read, so its state is unknown.
    Unreadable,
    /// A library that was not installed, but that the loader would find.
    Added,
}

/// A file that differs from its installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its name in the runtime's folder.
    pub name: String,
    /// What happened.
    pub kind: ChangeKind,
    /// In words: sizes, checksums, the system's error.
    pub detail: String,
}

impl fmt::Display for ChangedFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.name, self.detail)
    }
}

/// The files of `dir` that differ from its manifest; empty if all is well. Files whose manifest has no checksum
/// are compared by size.
pub fn changed_files(dir: &Path, manifest: &RuntimeManifest, depth: Depth) -> Vec<ChangedFile> {
    let mut changed: Vec<ChangedFile> = manifest.files.iter().filter_map(|file| change(dir, file, depth)).collect();
    changed.extend(added(dir, manifest));
    changed
}

/// The same for a folder that may lack a manifest, such as an SDK's: then nothing is known about it.
pub fn changed_in(dir: &Path, depth: Depth) -> Vec<ChangedFile> {
    RuntimeManifest::read(dir)
        .map_or_else(|| damaged(dir).into_iter().collect(), |manifest| changed_files(dir, &manifest, depth))
}

/// The manifest itself, if no longer readable.
pub fn damaged(dir: &Path) -> Option<ChangedFile> {
    let detail = "cannot be read, so what was installed is unknown".to_owned();
    let row = || ChangedFile { name: MANIFEST_FILE.to_owned(), kind: ChangeKind::Changed, detail };
    RuntimeManifest::is_damaged(dir).then(row)
}

fn change(dir: &Path, file: &ManifestFile, depth: Depth) -> Option<ChangedFile> {
    let is = |kind, detail: String| Some(ChangedFile { name: file.name.clone(), kind, detail });
    if Path::new(&file.name).file_name() != Some(file.name.as_ref()) {
        return is(ChangeKind::Missing, "its name in the manifest leads out of the folder".to_owned());
    }
    let path = dir.join(&file.name);
    let meta = match fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return is(ChangeKind::Missing, "missing".to_owned());
        }
        Err(error) => return is(ChangeKind::Unreadable, error.to_string()),
    };
    if !meta.is_file() {
        return is(ChangeKind::Changed, "no longer a file".to_owned());
    }
    if meta.len() != file.bytes {
        return is(ChangeKind::Changed, format!("{} bytes instead of {}", meta.len(), file.bytes));
    }
    let untouched = match file.modified_ns {
        Some(then) => modified_ns(&meta) == Some(then),
        // Manifests of older versions have no times. Hashing everything at every start would cost more than it is
        // worth.
        None => true,
    };
    if file.sha256.is_empty() || (depth == Depth::Quick && untouched) {
        return None;
    }
    match File::open(&path).and_then(sha256_hex) {
        Ok((sum, _)) if sum == file.sha256 => None,
        Ok((sum, _)) => is(ChangeKind::Changed, format!("SHA-256 {}... instead of {}...", &sum[..12], short(file))),
        Err(error) => is(ChangeKind::Unreadable, error.to_string()),
    }
}

fn short(file: &ManifestFile) -> &str {
    file.sha256.get(..12).unwrap_or(&file.sha256)
}

/// Additional shared libraries. The folder comes first on the loader's path, so the loader would pick them
/// up.
fn added(dir: &Path, manifest: &RuntimeManifest) -> Vec<ChangedFile> {
    let known: BTreeSet<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != MANIFEST_FILE && !known.contains(name.as_str()) && is_shared(name))
        .collect();
    names.sort();
    let row = |name| ChangedFile { name, kind: ChangeKind::Added, detail: "was not installed".to_owned() };
    names.into_iter().map(row).collect()
}

fn is_shared(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "so") || name.contains(".so.")
}

/// When a file was last written, nanoseconds since 1970-01-01 UTC; `None` before that.
pub fn modified_ns(meta: &fs::Metadata) -> Option<u64> {
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::MANIFEST_SCHEMA;
    use super::*;
    use std::time::{Duration, SystemTime};

    /// A folder with `libQnnA.so` in it, and its manifest.
    fn installed() -> (tempfile::TempDir, RuntimeManifest) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libQnnA.so");
        fs::write(&path, "abc").unwrap();
        let (sha256, bytes) = sha256_hex(&b"abc"[..]).unwrap();
        let modified_ns = modified_ns(&fs::metadata(&path).unwrap());
        let manifest = RuntimeManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            wheel: "w.whl".to_owned(),
            version: "2.3.0".to_owned(),
            platform: "linux_x86_64".to_owned(),
            sha256: "00".to_owned(),
            pinned: false,
            files: vec![ManifestFile { name: "libQnnA.so".to_owned(), bytes, sha256, modified_ns }],
            licence: None,
        };
        (dir, manifest)
    }

    fn kinds(dir: &tempfile::TempDir, manifest: &RuntimeManifest, depth: Depth) -> Vec<ChangeKind> {
        changed_files(dir.path(), manifest, depth).into_iter().map(|file| file.kind).collect()
    }

    /// Writes the file and sets its time.
    fn write(dir: &tempfile::TempDir, content: &str, modified: SystemTime) {
        let path = dir.path().join("libQnnA.so");
        fs::write(&path, content).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }

    #[test]
    fn a_damaged_manifest_is_a_change_and_none_at_all_is_not() {
        let (dir, manifest) = installed();
        let file = dir.path().join(MANIFEST_FILE);
        assert!(changed_in(dir.path(), Depth::Quick).is_empty(), "a folder of the user's");
        for text in ["", "{", "[]", r#"{"schema":5}"#] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(changed_in(dir.path(), Depth::Quick).len(), 1, "{text}");
        }
        std::fs::write(&file, r#"{"schema":"qnnscope.runtime/99"}"#).unwrap();
        assert!(changed_in(dir.path(), Depth::Quick).is_empty(), "a newer version's");
        std::fs::write(&file, serde_json::to_vec(&manifest).unwrap()).unwrap();
        assert!(RuntimeManifest::read(dir.path()).is_some() && !RuntimeManifest::is_damaged(dir.path()));
    }

    #[test]
    fn a_swapped_library_of_the_same_size_is_found_by_its_time_and_hash() {
        let (dir, manifest) = installed();
        assert!(kinds(&dir, &manifest, Depth::Full).is_empty());
        let installed_at = fs::metadata(dir.path().join("libQnnA.so")).unwrap().modified().unwrap();

        write(&dir, "xyz", installed_at + Duration::from_secs(1));
        assert_eq!(kinds(&dir, &manifest, Depth::Quick), [ChangeKind::Changed]);
        // If the time was also reset, only the content shows it.
        write(&dir, "xyz", installed_at);
        assert!(kinds(&dir, &manifest, Depth::Quick).is_empty());
        assert_eq!(kinds(&dir, &manifest, Depth::Full), [ChangeKind::Changed]);
        // A copy of the folder has different times and the same content.
        write(&dir, "abc", installed_at + Duration::from_secs(1));
        assert!(kinds(&dir, &manifest, Depth::Quick).is_empty());

        write(&dir, "ab", installed_at);
        let changed = changed_files(dir.path(), &manifest, Depth::Quick);
        assert_eq!(changed[0].to_string(), "libQnnA.so (2 bytes instead of 3)");
        fs::remove_file(dir.path().join("libQnnA.so")).unwrap();
        assert_eq!(kinds(&dir, &manifest, Depth::Quick), [ChangeKind::Missing]);
    }

    #[test]
    fn a_library_that_was_put_beside_the_others_is_found() {
        let (dir, manifest) = installed();
        for name in ["libc++.so.1", "notes.txt", MANIFEST_FILE] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let changed = changed_files(dir.path(), &manifest, Depth::Quick);
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert_eq!((changed[0].name.as_str(), &changed[0].kind), ("libc++.so.1", &ChangeKind::Added));
    }

    #[test]
    fn manifests_without_times_or_sums_are_compared_by_what_they_have() {
        let (dir, mut manifest) = installed();
        manifest.files[0].modified_ns = None;
        fs::write(dir.path().join("libQnnA.so"), "xyz").unwrap();
        assert!(kinds(&dir, &manifest, Depth::Quick).is_empty());
        assert_eq!(kinds(&dir, &manifest, Depth::Full), [ChangeKind::Changed]);
        manifest.files[0].sha256 = String::new();
        assert!(kinds(&dir, &manifest, Depth::Full).is_empty());
    }
}
