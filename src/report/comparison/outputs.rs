//! Likeness of saved outputs: finds the files that runs name, and holds them against a reference run's.

use crate::analysis::compare::{Accuracy, OutputValues, Side, accuracy, same_inputs};
use crate::files::read_at_most;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest output file that is read.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;
/// Largest sum of all outputs of a run.
const MAX_RUN_BYTES: u64 = 1 << 30;

/// What is known of a column's accuracy: a figure, or why there is none.
pub type Known = Result<Accuracy, String>;

/// Likeness of each run's outputs to those of the run `reference`; the reference itself is `None`.
pub fn accuracies(sides: &[Side], reference: usize) -> Vec<Option<Known>> {
    let base = &sides[reference];
    let mut own: Option<Result<Vec<OutputValues>, String>> = None;
    sides
        .iter()
        .enumerate()
        .map(|(column, side)| {
            if column == reference || (side.outputs.is_empty() && base.outputs.is_empty()) {
                return None;
            }
            Some(one(base, side, &mut own))
        })
        .collect()
}

fn one(base: &Side, side: &Side, own: &mut Option<Result<Vec<OutputValues>, String>>) -> Known {
    for (side, which) in [(base, "the reference"), (side, "it")] {
        if side.outputs.is_empty() {
            return Err(format!("{which} saved no outputs (--save-outputs DIR)"));
        }
    }
    let note = same_inputs(base, side)?;
    if side.outputs.iter().any(|file| base.outputs.contains(file)) && base.origin != side.origin {
        return Err(
            "both name the same files: they are one run, or the later one wrote over the outputs of the earlier one"
                .to_owned(),
        );
    }
    let reference = own.get_or_insert_with(|| read(base)).as_ref().map_err(Clone::clone)?;
    let mut accuracy = accuracy(reference, &read(side)?)?;
    accuracy.note = note;
    Ok(accuracy)
}

/// Reads the outputs of a run: of each tensor the `.npy` file, which tells its shape, else the `.raw` file.
fn read(side: &Side) -> Result<Vec<OutputValues>, String> {
    let mut files: BTreeMap<(u32, String), PathBuf> = BTreeMap::new();
    for file in &side.outputs {
        let path = Path::new(file);
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let inference = folder.and_then(|folder| folder.strip_prefix("Result_")?.parse().ok());
        let (Some(stem), Some(inference)) = (stem, inference) else { continue };
        let is_npy = path.extension().is_some_and(|extension| extension == "npy");
        if is_npy || !files.contains_key(&(inference, stem.clone())) {
            files.insert((inference, stem), path.to_owned());
        }
    }
    if files.is_empty() {
        return Err("the names of its output files are not understood".to_owned());
    }
    let mut left = MAX_RUN_BYTES;
    let mut outputs = Vec::new();
    for ((inference, name), path) in files {
        let path = located(&path, &side.origin);
        let cannot = |reason: &dyn std::fmt::Display| format!("cannot read {}: {reason}", path.display());
        let bytes = read_at_most(&path, MAX_OUTPUT_BYTES.min(left)).map_err(|error| cannot(&error))?;
        left = left.saturating_sub(bytes.len() as u64);
        let (shape, values) = values(&bytes).map_err(|error| cannot(&error))?;
        outputs.push(OutputValues { inference, name, shape, values });
    }
    Ok(outputs)
}

/// Paths are as they were given to the run: from the working directory, or beside the file that names them.
fn located(path: &Path, origin: &str) -> PathBuf {
    if path.is_absolute() || path.exists() {
        return path.to_owned();
    }
    let file = origin.rsplit_once('#').map_or(origin, |(file, _)| file);
    let beside = Path::new(file).parent().map(|folder| folder.join(path));
    beside.filter(|beside| beside.exists()).unwrap_or_else(|| path.to_owned())
}

fn values(bytes: &[u8]) -> Result<(Option<Vec<u64>>, Vec<f32>), String> {
    if bytes.starts_with(b"\x93NUMPY") {
        let file = npyz::NpyFile::new(bytes).map_err(|error| error.to_string())?;
        let shape = file.shape().to_vec();
        return Ok((Some(shape), file.into_vec::<f32>().map_err(|error| error.to_string())?));
    }
    if !bytes.len().is_multiple_of(4) {
        return Err("its length is no multiple of 4, so it holds no float32".to_owned());
    }
    let values = bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    Ok((None, values.collect()))
}
