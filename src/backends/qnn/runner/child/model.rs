//! Reading the model file and opening the libraries of a runtime.

use super::failed::Failed;
use crate::backends::Backend;
use crate::backends::qnn::api::{Library, QnnError, SystemLibrary, VersionPolicy};
use crate::event::{ModelInfo, Stage, clean_text};
use crate::models::{FormatError, ModelFormat, identify};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

/// Reads and identifies the model; context binaries come back with their bytes.
pub fn identify_model(path: &Path) -> Result<(ModelInfo, Vec<u8>), Failed> {
    let format = identify(path)?;
    let io = |source| Failed::from(FormatError::Io { path: path.to_owned(), source });
    let bytes = if format == ModelFormat::ContextBinary { std::fs::read(path).map_err(io)? } else { Vec::new() };
    let mut hasher = Sha256::new();
    let length = if bytes.is_empty() {
        hash_file(path, &mut hasher).map_err(io)?
    } else {
        hasher.update(&bytes);
        bytes.len() as u64
    };
    let mut sha256 = String::with_capacity(64);
    for byte in hasher.finalize() {
        let _ = write!(sha256, "{byte:02x}");
    }
    let path = clean_text(&path.to_string_lossy());
    Ok((ModelInfo { path, format, sha256, bytes: length, context_binary: None }, bytes))
}

/// Feeds a file to the hasher; returns its length.
fn hash_file(path: &Path, hasher: &mut Sha256) -> std::io::Result<u64> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let mut length = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(length),
            read => {
                hasher.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
}

/// Opens a backend library of a runtime folder.
pub fn open_library(dir: &Path, backend: Backend, policy: VersionPolicy) -> Result<Rc<Library>, Failed> {
    let path = dir.join(backend.library());
    if !path.exists() {
        let message = format!("this runtime has no {} backend: {} is not there", backend, path.display());
        return Err(Failed::missing(Stage::LibraryLoad, "dlopen", message));
    }
    Library::open(&path, policy).map_err(|e| {
        let missing = matches!(e, QnnError::UnknownVersion { .. } | QnnError::Open { .. });
        {
            let failed = Failed::qnn(Stage::LibraryLoad, e);
            if missing { failed.into_missing() } else { failed }
        }
    })
}

/// Opens the system library of a runtime folder.
pub fn open_system(dir: &Path) -> Result<Rc<SystemLibrary>, Failed> {
    let path = dir.join("libQnnSystem.so");
    if !path.exists() {
        let message = format!("this runtime has no system library: {} is not there", path.display());
        return Err(Failed::missing(Stage::LibraryLoad, "dlopen", message));
    }
    SystemLibrary::open(&path).map_err(|e| Failed::qnn(Stage::LibraryLoad, e).into_missing())
}
