//! Reads the model file and opens the libraries of a runtime.

use super::failed::Failed;
use crate::backends::Backend;
use crate::backends::qnn::api::{Library, QnnError, SystemLibrary, VersionPolicy};
use crate::event::{ModelInfo, RuntimeInfo, Stage, clean_text};
use crate::facts::read_elf;
use crate::files::sha256_hex;
use crate::models::{FormatError, ModelFormat, identify};
use crate::text::bytes_text;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;

/// Reads and identifies the model; context binaries come back with their bytes.
pub fn identify_model(path: &Path) -> Result<(ModelInfo, Vec<u8>), Failed> {
    let format = identify(path)?;
    let io = |source| Failed::from(FormatError::Io { path: path.to_owned(), source });
    let bytes = if format == ModelFormat::ContextBinary { std::fs::read(path).map_err(io)? } else { Vec::new() };
    let (sha256, length) = match bytes.as_slice() {
        [] => sha256_hex(File::open(path).map_err(io)?),
        bytes => sha256_hex(bytes),
    }
    .map_err(io)?;
    let path = clean_text(&path.to_string_lossy());
    Ok((ModelInfo { path, format, sha256, bytes: length, context_binary: None }, bytes))
}

/// A backend library's self-description.
pub fn runtime_info(library: &Library) -> RuntimeInfo {
    RuntimeInfo {
        path: library.path().display().to_string(),
        build_id: library.table().build_id(),
        core_api: library.table().core_api(),
        backend_api: library.table().backend_api(),
        provider: library.table().provider_name(),
    }
}

/// Opens a backend library of a runtime folder.
pub fn open_library(dir: &Path, backend: Backend, policy: VersionPolicy) -> Result<Rc<Library>, Failed> {
    let path = dir.join(backend.library());
    if !path.exists() {
        let message = format!("this runtime has no {} backend: {} is missing", backend, path.display());
        return Err(Failed::missing(Stage::LibraryLoad, "dlopen", message));
    }
    check_whole(&path)?;
    Library::open(&path, policy).map_err(|e| {
        let missing = matches!(e, QnnError::UnknownVersion { .. } | QnnError::Open { .. });
        let failed = Failed::qnn(Stage::LibraryLoad, e);
        if missing { failed.into_missing() } else { failed }
    })
}

/// Refuses a truncated library: the loader maps what its headers promise, and the process dies of SIGBUS when
/// it touches the missing part.
pub fn check_whole(path: &Path) -> Result<(), Failed> {
    let promised = read_elf(path).ok().flatten().and_then(|facts| facts.needs_bytes);
    let length = std::fs::metadata(path).map(|metadata| metadata.len()).ok();
    let Some((promised, length)) = promised.zip(length).filter(|(promised, length)| length < promised) else {
        return Ok(());
    };
    let message = format!(
        "{} is truncated: it has {}, and its headers declare {}; copy or install it again",
        path.display(),
        bytes_text(length as f64),
        bytes_text(promised as f64)
    );
    Err(Failed::missing(Stage::LibraryLoad, "dlopen", message))
}

/// Opens the system library of a runtime folder.
pub fn open_system(dir: &Path) -> Result<Rc<SystemLibrary>, Failed> {
    let path = dir.join("libQnnSystem.so");
    if !path.exists() {
        let message = format!("this runtime has no system library: {} is missing", path.display());
        return Err(Failed::missing(Stage::LibraryLoad, "dlopen", message));
    }
    check_whole(&path)?;
    SystemLibrary::open(&path).map_err(|e| Failed::qnn(Stage::LibraryLoad, e).into_missing())
}
