//! Accuracy layer by layer: two models on the same inputs with every tensor read, which tensors differ, and where that
//! starts.
//!
//! Models run in runner children, one for each side; their tensors come through a folder for temporary files, one inference at
//! a time, so that memory does not grow with the number of inputs. Nothing here is ever timed: a backend cannot fuse ops
//! across tensors it must hand out.

mod axes;
mod cause;
mod compare;
mod document;
mod inputs;
mod kept;
mod kinds;
mod layout;
mod metrics;
mod outputs;
mod own;
mod pairing;
mod passes;
mod record;
mod runner;
mod spread;
mod text;
mod values;
mod verdict;

pub use cause::Cause;
pub use compare::{AccuracyError, AccuracyOutcome, Comparison, Progress, compare};
pub use document::{ACCURACY_SCHEMA, AccuracyDocument, LayerDocument, PairDocument, Role, SideDocument};
pub use inputs::{InputError, Inputs};
pub use kept::Kept;
pub use layout::Layout;
pub use metrics::{ChannelFigures, Sums, TensorFigures};
pub use outputs::{MAX_OUTPUT_BYTES, SavedOutputs, insert_array, located, read_values, saved};
pub use pairing::{How, Pair, Pairing, base_name, can_be_read, is_real, pair};
pub use record::{DOCUMENT, Record, document_of};
pub use runner::{Opened, Side, SideError, SidePlace};
pub use spread::{DiffGrid, Spread};
pub use text::accuracy_text;
pub use values::{EncodedRange, encoded_range, real_values, store_values, stored_bits};
pub use verdict::fitting;
