//! Reads wheels: their names, the entries to keep, and unpacking those without trusting the archive.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::ZipArchive;
use zip::result::ZipError;

use super::platform::is_version;
use super::verify::modified_ns;
use super::{ManifestFile, Package, RuntimeError};
use crate::event::clean_text;
use crate::files::hex;

/// Far above the number of entries in any wheel of this package (35).
const MAX_ENTRIES: usize = 10_000;
/// The largest library so far is 106 MB.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// The wheels unpack to a quarter of a gigabyte.
const MAX_TOTAL_BYTES: u64 = 4 << 30;
/// A wheel's description is a few kilobytes.
const MAX_METADATA_BYTES: u64 = 1 << 20;
/// Bytes per read, per write, and per check of the stop flag.
const CHUNK_BYTES: usize = 1 << 20;

/// The parts of a wheel's file name that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelName {
    /// The whole file name.
    pub file: String,
    /// Version of the package.
    pub version: String,
    /// Platform tag, several joined by dots.
    pub platform: String,
}

impl WheelName {
    /// Parses a path's file name: `NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl`.
    pub fn parse(path: &Path) -> Result<Self, RuntimeError> {
        let parse = || {
            let file = path.file_name()?.to_str()?;
            let mut parts = file.strip_suffix(".whl")?.rsplitn(4, '-');
            let platform = parts.next()?;
            let (_abi, _python) = (parts.next()?, parts.next()?);
            let version = parts.next()?.split('-').nth(1)?;
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
            // Both become parts of a folder name.
            (is_version(version) && !platform.is_empty() && platform.bytes().all(plain)).then(|| Self {
                file: file.to_owned(),
                version: version.to_owned(),
                platform: platform.to_owned(),
            })
        };
        parse().ok_or_else(|| RuntimeError::NotAWheel { path: path.to_path_buf() })
    }

    /// Name of the folder this wheel is installed in.
    pub fn dir_name(&self) -> String {
        format!("{}-{}", self.version, self.platform)
    }
}

/// One entry to unpack.
#[derive(Debug)]
struct Kept {
    index: usize,
    /// Name in the flat runtime folder.
    name: String,
    bytes: u64,
}

/// An open wheel whose entries were checked and found safe.
#[derive(Debug)]
pub struct Wheel {
    path: PathBuf,
    package: Package,
    archive: ZipArchive<File>,
    kept: Vec<Kept>,
    /// The entries that identify the package; a valid wheel has one.
    descriptions: Vec<usize>,
}

impl Wheel {
    /// Opens a wheel and decides what to keep. Refuses archives with unsafe names, links or absurd sizes, even in
    /// entries that would not be kept: such a file was not made by the package's authors.
    pub fn open(path: &Path, file: File, package: Package) -> Result<Self, RuntimeError> {
        let damaged = |error: ZipError| zip_error(path, error);
        let refused = |entry: &str, reason: &str| RuntimeError::UnsafeEntry {
            wheel: path.to_path_buf(),
            entry: entry.to_owned(),
            reason: reason.to_owned(),
        };
        let archive = ZipArchive::new(file).map_err(damaged)?;
        if archive.len() > MAX_ENTRIES {
            return Err(refused("", "is beyond the entry limit"));
        }
        let mut files = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_data(index).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            if let Some(reason) = unsafe_name(&name).or_else(|| unsafe_mode(entry.unix_mode())) {
                return Err(refused(&name, reason));
            }
            if entry.size() > MAX_FILE_BYTES {
                return Err(refused(&name, "is larger than any library"));
            }
            if !entry.is_dir() {
                files.push((index, name, entry.size()));
            }
        }
        let home = files
            .iter()
            .find_map(|(_, name, _)| package.home(name))
            .ok_or_else(|| RuntimeError::NotTheWheel { wheel: path.to_path_buf(), package })?
            .to_owned();
        let descriptions = files.iter().filter(|(_, name, _)| is_description(name)).map(|(index, ..)| *index).collect();

        let mut kept = Vec::new();
        let mut names = BTreeSet::new();
        let mut total = 0_u64;
        for (index, name, bytes) in &files {
            let Some(flat) = package.flat_name(&home, name) else {
                continue;
            };
            if !names.insert(flat.to_owned()) {
                return Err(refused(name, "appears twice"));
            }
            total = total.saturating_add(*bytes);
            kept.push(Kept { index: *index, name: flat.to_owned(), bytes: *bytes });
        }
        if total > MAX_TOTAL_BYTES {
            return Err(refused(&home, "unpacks to more than any runtime"));
        }
        Ok(Self { path: path.to_path_buf(), package, archive, kept, descriptions })
    }

    /// Checks that the wheel's metadata matches its file name: this package, that version.
    pub fn check_package(&mut self, name: &WheelName) -> Result<(), RuntimeError> {
        let refused = |found: String| RuntimeError::OtherPackage { wheel: self.path.clone(), found };
        let [index] = self.descriptions[..] else {
            return Err(refused(format!("it has {} METADATA files instead of one", self.descriptions.len())));
        };
        let entry = self.archive.by_index(index).map_err(|error| zip_error(&self.path, error))?;
        let mut text = Vec::new();
        entry.take(MAX_METADATA_BYTES).read_to_end(&mut text).map_err(|source| RuntimeError::CorruptWheel {
            wheel: self.path.clone(),
            detail: format!("METADATA: {source}"),
        })?;
        let text = String::from_utf8_lossy(&text);
        let field = |field: &str| header(&text, field).map(clean_text).unwrap_or_default();
        let (package, version) = (field("Name"), field("Version"));
        if normalized(&package) != self.package.name() {
            return Err(refused(format!("it is the package {package:?}")));
        }
        if version != name.version {
            return Err(refused(format!("its name says version {}, its METADATA {version:?}", name.version)));
        }
        Ok(())
    }

    /// Size of what will be unpacked.
    pub fn unpacked_bytes(&self) -> u64 {
        self.kept.iter().map(|kept| kept.bytes).sum()
    }

    /// The licence of the libraries among the kept files.
    pub fn licence(&self) -> Option<String> {
        self.kept.iter().map(|kept| &kept.name).find(|name| *name == self.package.licence()).cloned()
    }

    /// The library found in every wheel of the package, by its name among the kept files.
    pub fn library(&self) -> Option<&str> {
        self.kept.iter().map(|kept| kept.name.as_str()).find(|name| self.package.is_library(name))
    }

    /// Unpacks the kept entries into `dir`, which must be empty, and waits until each is on disk. Sizes and CRCs are
    /// checked. `step` receives the bytes of each chunk and may stop the work with an error.
    pub fn unpack(
        &mut self,
        dir: &Path,
        step: &mut dyn FnMut(u64) -> Result<(), RuntimeError>,
    ) -> Result<Vec<ManifestFile>, RuntimeError> {
        let mut files = Vec::with_capacity(self.kept.len());
        for kept in &self.kept {
            let target = dir.join(&kept.name);
            let failed = |source| RuntimeError::file("unpack", &target, source);
            let mut entry = self.archive.by_index(kept.index).map_err(|error| zip_error(&self.path, error))?;
            let mut output = File::create_new(&target).map_err(failed)?;
            let copied = copy_entry(&mut entry, &mut output, kept.bytes, step);
            let sha256 = copied.map_err(|error| match error {
                CopyError::Read(source) => {
                    RuntimeError::CorruptWheel { wheel: self.path.clone(), detail: format!("{}: {source}", kept.name) }
                }
                CopyError::Write(source) => failed(source),
                CopyError::Stopped(reason) => reason,
            })?;
            output.sync_all().map_err(failed)?;
            let modified_ns = modified_ns(&output.metadata().map_err(failed)?);
            files.push(ManifestFile { name: kept.name.clone(), bytes: kept.bytes, sha256, modified_ns });
        }
        Ok(files)
    }
}

/// Which side of a copy failed: the remedy differs.
#[derive(Debug)]
enum CopyError {
    Read(io::Error),
    Write(io::Error),
    Stopped(RuntimeError),
}

/// Copies one entry, which must have exactly `bytes` bytes, and returns its SHA-256.
fn copy_entry(
    input: &mut dyn Read,
    output: &mut dyn Write,
    bytes: u64,
    step: &mut dyn FnMut(u64) -> Result<(), RuntimeError>,
) -> Result<String, CopyError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut copied = 0_u64;
    loop {
        let count = match input.read(&mut buffer) {
            // The archive checks its CRC when the end is read.
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        copied += count as u64;
        if copied > bytes {
            break;
        }
        output.write_all(&buffer[..count]).map_err(CopyError::Write)?;
        hash.update(&buffer[..count]);
        step(count as u64).map_err(CopyError::Stopped)?;
    }
    if copied != bytes {
        let detail = format!("it should have {bytes} bytes");
        return Err(CopyError::Read(io::Error::new(io::ErrorKind::InvalidData, detail)));
    }
    Ok(hex(&hash.finalize()))
}

/// SHA-256 of everything in `input`. `step` as in [`Wheel::unpack`].
pub fn sha256(
    input: &mut dyn Read,
    path: &Path,
    step: &mut dyn FnMut(u64) -> Result<(), RuntimeError>,
) -> Result<String, RuntimeError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(count) => {
                hash.update(&buffer[..count]);
                step(count as u64)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RuntimeError::file("read", path, error)),
        }
    }
}

fn zip_error(path: &Path, error: ZipError) -> RuntimeError {
    match error {
        // The file itself could not be read, as opposed to having invalid content.
        ZipError::Io(source) if source.raw_os_error().is_some() => RuntimeError::file("read", path, source),
        other => RuntimeError::CorruptWheel { wheel: path.to_path_buf(), detail: other.to_string() },
    }
}

/// Whether an entry is the package's description: `NAME-VERSION.dist-info/METADATA`.
fn is_description(entry: &str) -> bool {
    entry.strip_suffix("/METADATA").is_some_and(|folder| folder.ends_with(".dist-info") && !folder.contains('/'))
}

/// A field in the head of a description; the package's long text follows after an empty line.
fn header<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_once(':')).find(|(name, _)| *name == field).map(|(_, value)| value.trim())
}

/// A package's name, normalised as by package indexes: `Onnxruntime_QNN` is `onnxruntime-qnn`.
fn normalized(package: &str) -> String {
    let parts = package.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Why an entry's name is unfit for unpacking, if so.
fn unsafe_name(name: &str) -> Option<&'static str> {
    if name.starts_with('/') {
        Some("has an absolute path")
    } else if name.split('/').any(|part| part == "..") {
        Some("leads out of the folder")
    } else if name.contains(['\\', ':']) || name.chars().any(char::is_control) {
        Some("has characters that no library name has")
    } else {
        None
    }
}

/// Why an entry's Unix mode is unfit, if so: links and devices.
fn unsafe_mode(mode: Option<u32>) -> Option<&'static str> {
    const KIND: u32 = 0o170_000;
    match mode.map(|mode| mode & KIND) {
        // Zip files made on other systems carry no file type; 0o100000 is a file, 0o040000 a folder.
        None | Some(0 | 0o100_000 | 0o040_000) => None,
        Some(0o120_000) => Some("is a symbolic link"),
        Some(_) => Some("is neither a file nor a folder"),
    }
}

#[cfg(test)]
mod tests;
