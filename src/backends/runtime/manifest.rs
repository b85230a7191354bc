//! `runtime.json`: the last file an install writes, with facts about the others.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::RuntimeError;

/// The name of the manifest in a runtime's folder.
pub const MANIFEST_FILE: &str = "runtime.json";

/// The schema this version writes and reads.
pub const MANIFEST_SCHEMA: &str = "qnnscope.runtime/1";

/// A manifest is a few kilobytes; anything much larger is not one.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// What was installed, and from which wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeManifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// File name of the wheel.
    pub wheel: String,
    /// Version of the wheel.
    pub version: String,
    /// Platform tag of the wheel.
    pub platform: String,
    /// SHA-256 of the wheel, in hex.
    pub sha256: String,
    /// Whether qnnscope knew that checksum; otherwise the user consented. False in manifests of older versions.
    #[serde(default)]
    pub pinned: bool,
    /// Every file beside the manifest.
    pub files: Vec<ManifestFile>,
    /// The file with the libraries' licence.
    pub licence: Option<String>,
}

/// One installed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Its name in the runtime's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, in hex; empty if the manifest has none.
    #[serde(default)]
    pub sha256: String,
    /// When it was written, nanoseconds since 1970-01-01 UTC; manifests of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<u64>,
}

impl RuntimeManifest {
    /// The manifest in `dir`; `None` if there is none this version understands.
    pub fn read(dir: &Path) -> Option<Self> {
        let mut text = String::new();
        File::open(dir.join(MANIFEST_FILE)).ok()?.take(MAX_MANIFEST_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok().filter(|manifest: &Self| manifest.schema == MANIFEST_SCHEMA)
    }

    /// True if `dir` has an unreadable manifest: truncated, emptied, overwritten. One of a newer version is not
    /// damaged.
    pub fn is_damaged(dir: &Path) -> bool {
        let Ok(file) = File::open(dir.join(MANIFEST_FILE)) else { return false };
        let document: Result<serde_json::Value, _> = serde_json::from_reader(file.take(MAX_MANIFEST_BYTES));
        let schema = document.ok().and_then(|document| document.get("schema")?.as_str().map(str::to_owned));
        Self::read(dir).is_none() && schema.is_none_or(|schema| schema == MANIFEST_SCHEMA)
    }

    /// Writes the manifest into `dir` and waits until it is on disk.
    pub(super) fn write(&self, dir: &Path) -> Result<(), RuntimeError> {
        let path = dir.join(MANIFEST_FILE);
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            let mut file = File::create_new(&path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(|source| RuntimeError::file("write the manifest", &path, source))
    }

    /// The files missing from `dir`, or with a different size than when installed.
    ///
    /// Compares sizes only, to tell whether a runtime is whole. Whether it is still the same is for
    /// `changed_files` to say.
    pub fn damaged_files(&self, dir: &Path) -> Vec<String> {
        self.files
            .iter()
            .filter(|file| {
                let plain = Path::new(&file.name).file_name() == Some(file.name.as_ref());
                !plain
                    || fs::metadata(dir.join(&file.name))
                        .map_or(true, |found| !found.is_file() || found.len() != file.bytes)
            })
            .map(|file| file.name.clone())
            .collect()
    }

    /// Total size of all files.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(names: &[&str]) -> RuntimeManifest {
        RuntimeManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            wheel: "w.whl".to_owned(),
            version: "2.3.0".to_owned(),
            platform: "linux_x86_64".to_owned(),
            sha256: "00".to_owned(),
            pinned: false,
            files: names
                .iter()
                .map(|name| ManifestFile {
                    name: (*name).to_owned(),
                    bytes: 3,
                    sha256: "00".to_owned(),
                    modified_ns: None,
                })
                .collect(),
            licence: None,
        }
    }

    #[test]
    fn reads_what_it_wrote_and_finds_damage() {
        let dir = tempfile::tempdir().expect("temp dir");
        let written = manifest(&["whole.so", "short.so", "missing.so", "../escape.so"]);
        written.write(dir.path()).expect("written");
        fs::write(dir.path().join("whole.so"), "abc").expect("write");
        fs::write(dir.path().join("short.so"), "ab").expect("write");
        let read = RuntimeManifest::read(dir.path()).expect("readable");
        assert_eq!(read, written);
        assert_eq!(read.damaged_files(dir.path()), ["short.so", "missing.so", "../escape.so"]);
    }

    #[test]
    fn a_manifest_of_an_older_version_is_read() {
        let dir = tempfile::tempdir().expect("temp dir");
        let text = r#"{"schema":"qnnscope.runtime/1","wheel":"w.whl","version":"2.3.0","platform":"linux_x86_64",
            "sha256":"00","files":[{"name":"a.so","bytes":3}],"licence":null}"#;
        fs::write(dir.path().join(MANIFEST_FILE), text).expect("write");
        let read = RuntimeManifest::read(dir.path()).expect("readable");
        assert!(!read.pinned);
        assert_eq!((read.files[0].sha256.as_str(), read.files[0].modified_ns), ("", None));
    }

    #[test]
    fn another_schema_or_a_cut_file_is_no_manifest() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join(MANIFEST_FILE);
        assert_eq!(RuntimeManifest::read(dir.path()), None);
        let mut other = manifest(&[]);
        other.schema = "qnnscope.runtime/2".to_owned();
        fs::write(&path, serde_json::to_string(&other).expect("json")).expect("write");
        assert_eq!(RuntimeManifest::read(dir.path()), None);
        fs::write(&path, "{\"schema\":\"qnnscope.run").expect("write");
        assert_eq!(RuntimeManifest::read(dir.path()), None);
    }
}
