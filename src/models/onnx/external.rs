//! Tensor data stored beside the model: checks that it exists and is long enough.

use crate::models::source::{Constant, ExternalFile, SourceError, SourceFile, SourceGraph, Storage, beside};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Checks every externally stored tensor.
pub fn check(file: &SourceFile, graph: &SourceGraph) -> Result<Vec<ExternalFile>, SourceError> {
    // Each file is checked once: large models store thousands of tensors in one.
    let mut files: BTreeMap<&str, (ExternalFile, Result<PathBuf, String>)> = BTreeMap::new();
    for constant in &graph.constants {
        let Storage::External { file: name, offset, len } = &constant.storage else { continue };
        let entry = files.entry(name).or_insert_with(|| {
            let (found, bytes) = match beside(file.path(), name) {
                Ok((path, bytes)) => (Ok(path), bytes),
                Err(reason) => (Err(reason), 0),
            };
            (ExternalFile { file: name.clone(), bytes, tensors: 0, tensor_bytes: 0 }, found)
        });
        entry.0.tensors += 1;
        if let Err(reason) = &entry.1 {
            let reason = reason.clone();
            return Err(refused(file, graph, constant, name, reason));
        }
        let needed = constant.bytes.or(*len).unwrap_or(0);
        if let (Some(said), Some(needed)) = (len, constant.bytes)
            && *said != needed
        {
            let path = file.path().to_owned();
            return Err(SourceError::WrongSize { path, tensor: constant.name.clone(), stored: *said, needed });
        }
        let end = offset.saturating_add(needed);
        if end > entry.0.bytes {
            let reason = format!(
                "which is too short: the tensor is {needed} bytes at byte {offset}, and the file ends at byte {}",
                entry.0.bytes
            );
            return Err(refused(file, graph, constant, name, reason));
        }
        entry.0.tensor_bytes = entry.0.tensor_bytes.saturating_add(needed);
    }
    Ok(files.into_values().map(|(external, _)| external).collect())
}

fn refused(file: &SourceFile, graph: &SourceGraph, constant: &Constant, name: &str, reason: String) -> SourceError {
    let same = |other: &&Constant| matches!(&other.storage, Storage::External { file, .. } if file == name);
    let others = match graph.constants.iter().filter(same).count() - 1 {
        0 => String::new(),
        1 => " (as does 1 more tensor)".to_owned(),
        more => format!(" (as do {more} more tensors)"),
    };
    SourceError::External {
        path: file.path().to_owned(),
        tensor: constant.name.clone(),
        file: name.to_owned(),
        reason,
        others,
    }
}
