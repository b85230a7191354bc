//! Similarity of saved outputs: finds the files that runs name and compares them with a reference run's.

use crate::analysis::compare::{Accuracy, OutputValues, Side, accuracy, same_inputs};
use crate::truth::{MAX_OUTPUT_BYTES, located, read_values, saved};
use std::path::Path;

/// Maximum total size of a run's outputs, bytes.
const MAX_RUN_BYTES: u64 = 1 << 30;

/// A column's accuracy, or why there is none.
pub type Known = Result<Accuracy, String>;

/// Similarity of each run's outputs to those of `reference`; `None` for the reference itself.
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
        return Err("both name the same files: they are one run, or the later run overwrote the earlier one's outputs"
            .to_owned());
    }
    let reference = own.get_or_insert_with(|| read(base)).as_ref().map_err(Clone::clone)?;
    let mut accuracy = accuracy(reference, &read(side)?)?;
    accuracy.note = note;
    Ok(accuracy)
}

/// Reads the outputs of a run.
fn read(side: &Side) -> Result<Vec<OutputValues>, String> {
    let files = saved(side.outputs.iter().map(Path::new));
    if files.is_empty() {
        return Err("the names of its output files are not recognised".to_owned());
    }
    let origin = side.origin.rsplit_once('#').map_or(side.origin.as_str(), |(file, _)| file);
    let mut left = MAX_RUN_BYTES;
    let mut outputs = Vec::new();
    for ((inference, name), path) in files {
        let path = located(&path, Path::new(origin));
        let (shape, values, bytes) = read_values(&path, MAX_OUTPUT_BYTES.min(left))
            .map_err(|reason| format!("cannot read {}: {reason}", path.display()))?;
        left = left.saturating_sub(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "outputs are saved as float32")]
        let values = values.into_iter().map(|value| value as f32).collect();
        outputs.push(OutputValues { inference, name, shape, values });
    }
    Ok(outputs)
}
