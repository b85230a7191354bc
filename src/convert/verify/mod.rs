//! Runs source and result on the same inputs, and compares their outputs.
//!
//! DLCs are compared tensor by tensor, so that each partition of a split model gets what the source computes
//! for its inputs. A model compiled for a SoC cannot be opened that way and runs as a whole.

mod computed;
mod runs;
mod sides;
mod tflite;

pub use runs::verify;
pub use sides::{Reference, verify_files};
pub use tflite::TfliteReference;

use crate::accuracy::Inputs;
use crate::analysis::compare::Accuracy;
use crate::backends::Backend;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The result of a comparison, or why there is none.
pub type Verified = Result<Accuracy, String>;

/// A file that was compared with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The file.
    pub file: PathBuf,
    /// The backend that ran it.
    pub backend: Backend,
    /// Number of inputs that both were run on.
    pub inputs: usize,
    /// The result.
    pub verified: Verified,
    /// HTP's numbers for its ops, by name, as far as the profile reports them.
    pub htp_ops: BTreeMap<String, u64>,
}

/// The inputs for `--verify-inputs`: a number, a folder or a list; `usual` random ones if not given.
///
/// # Errors
/// The text is none of these.
pub fn inputs_of(text: Option<&str>, seed: u64, usual: usize) -> Result<Inputs, String> {
    let Some(text) = text else { return Ok(Inputs::Random { count: usual, seed }) };
    let path = PathBuf::from(text);
    match text.parse::<usize>() {
        Ok(count) if (1..=10_000).contains(&count) => Ok(Inputs::Random { count, seed }),
        _ if path.is_dir() => Ok(Inputs::Folder(path)),
        _ if path.is_file() => Ok(Inputs::List(path)),
        _ => Err(format!("`{text}` is neither a number from 1 to 10000, nor a folder of inputs, nor an input list")),
    }
}
