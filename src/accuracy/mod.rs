//! Accuracy layer by layer: runs two models on the same inputs, reads every tensor, and shows which tensors
//! differ and where that starts.
//!
//! Models run in runner children, one per side; their tensors pass through a temporary folder one inference
//! at a time, so memory does not grow with the number of inputs. Nothing here is ever timed: a backend cannot
//! fuse ops across tensors that it must hand out.

mod axes;
mod cause;
mod compare;
mod comparison;
mod document;
mod error;
mod file_names;
mod fit;
mod inputs;
mod kept;
mod kinds;
mod layer;
mod layout;
mod metrics;
mod outputs;
mod own;
mod pairing;
mod pairs;
mod passes;
mod record;
mod role;
mod runner;
mod side;
mod spread;
mod text;
mod values;
mod verdict;

pub use cause::Cause;
pub use compare::compare;
pub use comparison::{AccuracyOutcome, Comparison, Progress};
pub use document::{ACCURACY_SCHEMA, AccuracyDocument, LayerDocument, PairDocument, SideDocument};
pub use error::AccuracyError;
pub use fit::fitting;
pub use inputs::{InputError, Inputs};
pub use kept::Kept;
pub use layout::Layout;
pub use metrics::{ChannelFigures, Sums, TensorFigures};
pub use outputs::{MAX_OUTPUT_BYTES, SavedOutputs, insert_array, located, read_values, saved};
pub use pairing::{base_name, can_be_read, is_real, pair};
pub use pairs::{How, Pair, Pairing};
pub use record::{DOCUMENT, Record, document_of};
pub use role::Role;
pub use runner::Opened;
pub use side::{Side, SideError, SidePlace};
pub use spread::{DiffGrid, Spread};
pub use text::accuracy_text;
pub use values::{EncodedRange, encoded_range, real_values, store_values, stored_bits};
