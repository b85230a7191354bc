//! Compares outputs with ground truth: class labels, or expected outputs. A run writes the outputs of each
//! input set once, outside of all measurements; they are read back and judged after its launch.

mod expected;
mod figures;
mod judge;
mod labels;

pub use crate::accuracy::{MAX_OUTPUT_BYTES, SavedOutputs, insert_array, located, read_values, saved};
pub use expected::ExpectedError;
pub use judge::{Truth, TruthError};
pub use labels::{LabelsError, read_labels};
