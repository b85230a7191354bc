//! Model formats, recognised by content, never by file name.

use super::reading::identify_source;
use super::source::SourceFormat;
use crate::files::starts_context_binary;
use object::{Object, ObjectSegment, ObjectSymbol};
use qnnscope_core::models::ModelFormat;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file is not a usable model.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FormatError {
    #[error("cannot read the model {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} is a directory, not a model file")]
    Directory { path: PathBuf },
    #[error("{path} is a pipe or device, not a model file")]
    NotAFile { path: PathBuf },
    #[error("the path {path} is not UTF-8 text; rename the file")]
    PathNotText { path: PathBuf },
    #[error("{path} is empty (0 bytes)")]
    Empty { path: PathBuf },
    #[error(
        "{path} is not a model: it starts with {start}; expected a DLC, a model library (.so), a QNN context binary or an ONNX model"
    )]
    NotAModel { path: PathBuf, start: String },
    #[error(
        "{path} is {what}, which QNN runs only after conversion or compilation; if it is compiled, `qnnscope inspect \
         MODEL --extract DIR` extracts its context binaries, which run"
    )]
    NotConverted { path: PathBuf, what: String },
    #[error("{path} is a damaged or truncated DLC: {reason}")]
    DamagedDlc { path: PathBuf, reason: String },
    #[error("{path} is a zip archive but not a DLC: it has no `model` record (found: {found})")]
    NotADlc { path: PathBuf, found: String },
    #[error("{path} is a damaged or truncated shared library: {reason}")]
    DamagedLibrary { path: PathBuf, reason: String },
    #[error("{path} is a model library for {found}; it needs to be for {needed}")]
    WrongMachine { path: PathBuf, found: String, needed: String },
    #[error("{path} is a shared library without QnnModel_composeGraphs, so not a model library")]
    NotAModelLibrary { path: PathBuf },
    #[error(
        "{path} was built with QNN core API {major}.{minor}; model libraries before 2.14 (SDK 2.20) use another tensor \
         layout and cannot be run"
    )]
    LibraryTooOld { path: PathBuf, major: u32, minor: u32 },
}

/// Identifies the model file at `path`.
///
/// # Errors
/// See [`FormatError`]: unreadable, empty, not a model, damaged, or for another machine.
pub fn identify(path: &Path) -> Result<ModelFormat, FormatError> {
    identify_for(path, std::env::consts::ARCH)
}

/// Like [`identify`], for another machine: a model library must be built for `needed` (`aarch64`, `x86_64`).
pub fn identify_for(path: &Path, needed: &str) -> Result<ModelFormat, FormatError> {
    let io = |source| FormatError::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        return Err(FormatError::Directory { path: path.to_owned() });
    }
    if !metadata.is_file() {
        return Err(FormatError::NotAFile { path: path.to_owned() });
    }
    if path.to_str().is_none() {
        return Err(FormatError::PathNotText { path: path.to_owned() });
    }
    if metadata.len() == 0 {
        return Err(FormatError::Empty { path: path.to_owned() });
    }
    let mut start = [0u8; 64];
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut read = 0;
    while read < start.len() {
        match file.read(&mut start[read..]).map_err(io)? {
            0 => break,
            n => read += n,
        }
    }
    let start = &start[..read];
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return check_dlc(path);
    }
    if start.starts_with(b"\x7fELF") {
        return check_library(path, needed);
    }
    if starts_context_binary(start) {
        return Ok(ModelFormat::ContextBinary);
    }
    if identify_source(path) == Some(SourceFormat::Onnx) {
        return Ok(ModelFormat::Onnx);
    }
    match identify_source(path) {
        Some(SourceFormat::Onnx) => return Ok(ModelFormat::Onnx),
        Some(other) => return Err(FormatError::NotConverted { path: path.to_owned(), what: other.with_article() }),
        None => {}
    }
    Err(FormatError::NotAModel { path: path.to_owned(), start: describe_start(start) })
}

fn describe_start(start: &[u8]) -> String {
    if start.iter().take(16).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        let text: String = String::from_utf8_lossy(&start[..start.len().min(16)]).into_owned();
        return format!("the text {text:?}");
    }
    let hex: Vec<String> = start.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("the bytes {}", hex.join(" "))
}

/// Checks the central directory for the `model` record. Checksums are not read: converters leave them zero.
fn check_dlc(path: &Path) -> Result<ModelFormat, FormatError> {
    let io = |source| FormatError::Io { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(io)?;
    let archive = zip::ZipArchive::new(std::io::BufReader::new(file))
        .map_err(|e| FormatError::DamagedDlc { path: path.to_owned(), reason: e.to_string() })?;
    let mut names: Vec<String> =
        archive.file_names().filter_map(Result::ok).map(|name| crate::event::clean_text(&name)).collect();
    // Newer SDKs add further models as `model_1`; context binaries may be included, but a graph is what runs.
    if names.iter().any(|name| name == "model" || name.starts_with("model.") || name.starts_with("model_")) {
        return Ok(ModelFormat::Dlc);
    }
    names.sort();
    names.truncate(5);
    Err(FormatError::NotADlc { path: path.to_owned(), found: names.join(", ") })
}

/// Version of the SDK that made a DLC, from the DLC's metadata: `2.47.0.260601114230`.
pub fn dlc_sdk_version(path: &Path) -> Option<String> {
    const MAX_METADATA: u64 = 1 << 20;
    let file = std::fs::File::open(path).ok()?;
    let mut archive = zip::ZipArchive::new(std::io::BufReader::new(file)).ok()?;
    let index = (0..archive.len())
        .find(|&i| matches!(archive.name_for_index(i), Some(Ok(name)) if name.starts_with("dlc.metadata")))?;
    // Raw, because converters write records with a zero checksum, which a checked read would refuse.
    let record = archive.by_index_raw(index).ok()?;
    if record.compression() != zip::CompressionMethod::Stored {
        return None;
    }
    let metadata: serde_json::Value = serde_json::from_reader(record.take(MAX_METADATA)).ok()?;
    let steps = metadata.get("dlcGenerationInfo")?.as_array()?;
    let version = steps.iter().rev().find_map(|step| step.pointer("/converterCommand/converterVersion")?.as_str())?;
    Some(crate::event::clean_text(version))
}

/// Minor version of the oldest core API with the current tensor layout.
const OLDEST_LIBRARY_MINOR: u32 = 14;

/// Checks the machine, the symbol and the core API version of a model library.
fn check_library(path: &Path, needed: &str) -> Result<ModelFormat, FormatError> {
    let io = |source| FormatError::Io { path: path.to_owned(), source };
    let damaged = |reason: String| FormatError::DamagedLibrary { path: path.to_owned(), reason };
    let data = std::fs::read(path).map_err(io)?;
    let elf = object::File::parse(&*data).map_err(|e| damaged(e.to_string()))?;
    let found = (machine(elf.architecture()), elf.is_64());
    let needed = (needed, true);
    if found != needed {
        let bits = |(name, wide): (&str, bool)| format!("{name} ({} bit)", if wide { 64 } else { 32 });
        return Err(FormatError::WrongMachine { path: path.to_owned(), found: bits(found), needed: bits(needed) });
    }
    // The dynamic linker maps whole segments, so a truncated file would crash the process instead of failing
    // to open.
    let end = elf.segments().map(|s| s.file_range()).map(|(at, size)| at.saturating_add(size)).max().unwrap_or(0);
    if end > data.len() as u64 {
        return Err(damaged(format!("it should have at least {end} bytes but has {}", data.len())));
    }
    let mut composes = false;
    let mut version = None;
    for name in elf.dynamic_symbols().filter(|symbol| !symbol.is_undefined()).filter_map(|s| s.name().ok()) {
        composes |= name == "QnnModel_composeGraphs";
        version = version.or_else(|| built_version(name));
    }
    if !composes {
        return Err(FormatError::NotAModelLibrary { path: path.to_owned() });
    }
    match version {
        Some((major, minor)) if (major, minor) < (2, OLDEST_LIBRARY_MINOR) => {
            Err(FormatError::LibraryTooOld { path: path.to_owned(), major, minor })
        }
        _ => Ok(ModelFormat::ModelLibrary),
    }
}

/// The version in a C++ symbol that names `QnnInterface_ImplementationV<major>_<minor>_t`.
fn built_version(symbol: &str) -> Option<(u32, u32)> {
    let rest = symbol.split("QnnInterface_ImplementationV").nth(1)?;
    let (major, rest) = rest.split_once('_')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Rust's name for an ELF machine.
fn machine(architecture: object::Architecture) -> &'static str {
    match architecture {
        object::Architecture::X86_64 => "x86_64",
        object::Architecture::Aarch64 => "aarch64",
        object::Architecture::Arm => "arm",
        object::Architecture::I386 => "x86",
        object::Architecture::Hexagon => "hexagon",
        _ => "another machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identify_bytes(bytes: &[u8]) -> Result<ModelFormat, FormatError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        std::fs::write(&path, bytes).unwrap();
        identify(&path)
    }

    #[test]
    fn content_decides() {
        let dlc = include_bytes!("../../demo/qnnscope-demo-int8.dlc");
        assert_eq!(identify_bytes(dlc).unwrap(), ModelFormat::Dlc);
        assert!(matches!(identify_bytes(&dlc[..dlc.len() / 2]), Err(FormatError::DamagedDlc { .. })));
        assert!(matches!(identify_bytes(b""), Err(FormatError::Empty { .. })));
        assert!(matches!(identify_bytes(b"#!/bin/sh\necho hello\n"), Err(FormatError::NotAModel { .. })));
        assert!(matches!(identify_bytes(b"\x7fELF\x02\x01\x01 short"), Err(FormatError::DamagedLibrary { .. })));
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(identify(dir.path()), Err(FormatError::Directory { .. })));
        assert!(matches!(identify(&dir.path().join("none")), Err(FormatError::Io { .. })));
    }

    #[test]
    fn the_maker_of_a_dlc_is_told() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/qnnscope-demo-int8.dlc");
        assert_eq!(dlc_sdk_version(&path).as_deref(), Some("2.47.0.260601114230"));
        assert_eq!(dlc_sdk_version(Path::new(env!("CARGO_MANIFEST_DIR"))), None);
    }

    #[test]
    fn our_own_program_is_a_library_of_nobody() {
        let own = std::env::current_exe().unwrap();
        assert!(matches!(identify(&own), Err(FormatError::NotAModelLibrary { .. })));
    }

    #[test]
    fn another_machine_is_named() {
        let mut elf = vec![0u8; 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[16] = 3; // shared object
        elf[18] = 183; // aarch64
        elf[20] = 1;
        elf[52] = 64;
        elf[54] = 56;
        elf[58] = 64;
        let error = identify_bytes(&elf).unwrap_err().to_string();
        assert!(error.contains("aarch64") && error.contains(std::env::consts::ARCH), "{error}");
    }

    #[test]
    fn versions_in_symbols() {
        let symbol = "_ZN3qnn13wrapper_api8QnnModel10initializeERKPvRK34QnnInterface_ImplementationV2_18_tS4_";
        assert_eq!(built_version(symbol), Some((2, 18)));
        assert_eq!(built_version("QnnModel_composeGraphs"), None);
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(kind in 0usize..4, bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let head: &[u8] = [b"PK\x03\x04".as_slice(), b"\x7fELF\x02\x01\x01", b"\0\0\0\x02\0\0\0\x03", b""][kind];
            let _ = identify_bytes(&[head, &bytes].concat());
        }
    }
}
