//! Source and result on the same inputs: how far the outputs are apart.
//!
//! DLCs are compared tensor by tensor, so that each partition of a split model gets what the source computes for its inputs. What is
//! compiled for a SoC cannot be opened that way, and is run as it is.

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

/// What a comparison came to, or why there is none.
pub type Verified = Result<Accuracy, String>;

/// A file that was compared with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// It.
    pub file: PathBuf,
    /// What computed the result.
    pub backend: Backend,
    /// Inputs that both were given.
    pub inputs: usize,
    /// What came of it.
    pub verified: Verified,
    /// HTP's numbers of its ops by their names, as far as its profile told them.
    pub htp_ops: BTreeMap<String, u64>,
}

/// The inputs of `--verify-inputs`: a number, a folder or a list; so many random ones if nothing is said.
///
/// # Errors
/// What is neither.
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
