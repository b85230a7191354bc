//! Output files of runs: `Result_<inference>/<output>.npy` and `.raw`.

use crate::backends::qnn::runner::read_npy;
use crate::files::read_at_most;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest output file accepted.
pub const MAX_OUTPUT_BYTES: u64 = 256 << 20;

/// A file per inference and output.
pub type SavedOutputs = BTreeMap<(u32, String), PathBuf>;

/// Adds an array's file under its name without extension: a `.npy` file, which includes its shape, replaces a
/// `.raw` one. Other files are ignored.
pub fn insert_array(files: &mut BTreeMap<String, PathBuf>, path: PathBuf) {
    let Some((stem, is_npy)) = array(&path) else { return };
    if is_npy || !files.contains_key(&stem) {
        files.insert(stem, path);
    }
}

/// The name of an array's file without extension, and whether it is a `.npy` file.
fn array(path: &Path) -> Option<(String, bool)> {
    let ending = path.extension()?;
    let is_npy = ending == "npy";
    (is_npy || ending == "raw").then(|| Some((path.file_stem()?.to_string_lossy().into_owned(), is_npy)))?
}

/// The outputs among a run's files: for each tensor the `.npy` file, which includes its shape, otherwise the
/// `.raw` file.
pub fn saved<'f>(files: impl IntoIterator<Item = &'f Path>) -> SavedOutputs {
    let mut outputs = SavedOutputs::new();
    for path in files {
        let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let inference = folder.and_then(|folder| folder.strip_prefix("Result_")?.parse().ok());
        let (Some((stem, is_npy)), Some(inference)) = (array(path), inference) else { continue };
        if is_npy || !outputs.contains_key(&(inference, stem.clone())) {
            outputs.insert((inference, stem), path.to_owned());
        }
    }
    outputs
}

/// Paths are as given to the run: relative to the working directory, or to the file that names them.
pub fn located(path: &Path, beside: &Path) -> PathBuf {
    if path.is_absolute() || path.exists() {
        return path.to_owned();
    }
    let beside = beside.parent().map(|folder| folder.join(path));
    beside.filter(|beside| beside.exists()).unwrap_or_else(|| path.to_owned())
}

/// Dimensions if the file has them, values, and size of the file in bytes.
pub type Array = (Option<Vec<u64>>, Vec<f64>, u64);

/// The array in a `.npy` file of any plain type, or in a raw float32 file.
///
/// # Errors
/// The file cannot be read, is larger than `limit`, or is neither.
pub fn read_values(path: &Path, limit: u64) -> Result<Array, String> {
    let bytes = read_at_most(path, limit).map_err(|error| error.to_string())?;
    let length = bytes.len() as u64;
    if bytes.starts_with(b"\x93NUMPY") {
        let (shape, values) = read_npy(&bytes)?;
        return Ok((Some(shape), values, length));
    }
    if !bytes.len().is_multiple_of(4) {
        return Err("its length is not a multiple of 4, so it is not float32".to_owned());
    }
    let values = bytes.chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])));
    Ok((None, values.collect(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_with_a_shape_come_before_raw_ones() {
        let files = ["o/Result_1/y.raw", "o/Result_1/y.npy", "o/Result_0/y.raw", "o/y.raw", "o/Result_x/y.raw"];
        let found = saved(files.iter().map(Path::new));
        let names: Vec<(u32, &str)> =
            found.iter().map(|((inference, _), path)| (*inference, path.to_str().unwrap())).collect();
        assert_eq!(names, [(0, "o/Result_0/y.raw"), (1, "o/Result_1/y.npy")]);
    }
}
