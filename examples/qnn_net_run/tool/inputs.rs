//! The input list as the tool reads it: the number of inferences, and what is wrong with its files.

use super::console::Console;
use super::ending::{Ending, SIGFPE};
use qnnscope::models::Tensor;
use std::path::Path;

/// The files of each line, without their `name:=`.
pub fn read(path: &Path) -> std::io::Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '%']));
    let file = |cell: &str| cell.split_once(":=").map_or(cell, |(_, file)| file).to_owned();
    Ok(lines.map(|line| line.split_whitespace().map(file).collect()).collect())
}

/// Prints what the tool prints about unusable inputs; returns how it then ends.
pub fn explain(lines: &[Vec<String>], inputs: &[Tensor], native: bool, message: &str, console: &Console) -> Ending {
    for files in lines {
        if files.len() != inputs.len() {
            let (expected, received) = (inputs.len(), files.len());
            console.error(&format!(
                "Incorrect amount of Input files for graphIdx: 0. Expected: {expected}, received: {received}"
            ));
            console.error("Error in populating input tensors for graphIdx: 0");
            return Ending::ExecutionFailure;
        }
        for (index, (file, tensor)) in files.iter().zip(inputs).enumerate() {
            let own = if native { tensor.bytes() } else { tensor.elements().map(|count| count * 4) };
            match std::fs::metadata(file) {
                Err(_) => {
                    console.error(&format!("Failed to open input file: {file}"));
                    let name = &tensor.name;
                    console.error(&format!("populateInputTensorFromFiles failed for input {name} with index {index}"));
                    console.error("Error in populating input tensors for graphIdx: 0");
                    return Ending::ExecutionFailure;
                }
                // The real tool divides by the number of complete batches in the file, which is 0.
                Ok(found) if own.is_some_and(|own| found.len() < own) => return Ending::Crashed(SIGFPE),
                Ok(_) => {}
            }
        }
    }
    console.error(message);
    console.error("Error in populating input tensors for graphIdx: 0");
    Ending::ExecutionFailure
}
