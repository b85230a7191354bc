//! Input files.

use super::InputError;
use crate::accuracy::file_names::plain;
use crate::accuracy::layout::Layout;
use crate::backends::qnn::runner::read_npy;
use crate::files::read_at_most;
use crate::models::Tensor;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Extensions of input files.
const ENDINGS: [&str; 3] = ["npy", "raw", "bin"];

/// The files per inference in a folder.
pub fn sets_in(folder: &Path, inputs: &[Tensor]) -> Result<Vec<Vec<PathBuf>>, InputError> {
    let listed = list(folder)?;
    let folders: Vec<&PathBuf> = listed.iter().filter(|path| path.is_dir()).collect();
    if let Some(set) = set_in(&listed, inputs) {
        return Ok(vec![set]);
    }
    let mut sets = Vec::new();
    for folder in folders {
        if let Some(set) = set_in(&list(folder)?, inputs) {
            sets.push(set);
        }
    }
    if sets.is_empty() && inputs.len() == 1 {
        sets = listed.into_iter().filter(|path| is_data(path)).map(|path| vec![path]).collect();
    }
    if sets.is_empty() {
        let names: Vec<String> = inputs.iter().map(|tensor| format!("{}.npy or .raw", tensor.name)).collect();
        let one = if inputs.len() == 1 { ", or any .npy and .raw files, one for each inference" } else { "" };
        let expected = format!("{}, or folders with these files{one}", names.join(", "));
        return Err(InputError::Empty { path: folder.to_owned(), expected });
    }
    Ok(sets)
}

/// The contents of a folder, with numbers in names sorted by value: `in2` before `in10`.
fn list(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let failed = |error: std::io::Error| InputError::File { path: folder.to_owned(), reason: error.to_string() };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort_by_cached_key(|path| numbered(&path.to_string_lossy()));
    Ok(paths)
}

/// A name with its numbers padded to the same width, so that they sort by value.
fn numbered(name: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in name.chars().chain(std::iter::once('\0')) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            let _ = write!(out, "{:0>20}", std::mem::take(&mut digits));
        }
        out.push(c);
    }
    out
}

fn is_data(path: &Path) -> bool {
    path.is_file()
        && path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// One file per input, if all of them are present.
fn set_in(paths: &[PathBuf], inputs: &[Tensor]) -> Option<Vec<PathBuf>> {
    let file = |tensor: &Tensor| {
        let plain = plain(&tensor.name);
        let stem = |path: &&PathBuf| path.file_stem().is_some_and(|stem| *stem == *tensor.name || *stem == *plain);
        paths.iter().filter(|path| is_data(path)).find(stem).cloned()
    };
    inputs.iter().map(file).collect()
}

/// Reads a .npy file of numbers, or raw float32.
pub fn read(path: &Path, tensor: &Tensor) -> Result<Vec<f64>, InputError> {
    let failed = |reason: String| InputError::File { path: path.to_owned(), reason };
    let expected = tensor.elements().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let limit = (expected as u64).saturating_mul(16).saturating_add(1 << 20);
    let bytes = read_at_most(path, limit).map_err(|error| failed(error.to_string()))?;
    let values: Vec<f64> = if bytes.starts_with(b"\x93NUMPY") {
        let (shape, values) = read_npy(&bytes).map_err(failed)?;
        let shape: Option<Vec<u32>> = shape.into_iter().map(|size| u32::try_from(size).ok()).collect();
        // An array records its shape: its channels may be on another axis than in the model.
        match shape.as_ref().and_then(|shape| Layout::between(shape, &tensor.shape)).zip(shape.as_ref()) {
            Some((layout, shape)) => layout.arranged(values, shape),
            None => values,
        }
    } else {
        bytes.chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect()
    };
    if values.len() != expected {
        return Err(InputError::Size {
            path: path.to_owned(),
            name: tensor.name.clone(),
            found: values.len(),
            expected,
            shape: tensor.shape_text(),
        });
    }
    Ok(values)
}
