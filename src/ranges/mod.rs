//! Ranges of a model's tensors over data: ends, percentiles, histograms, channels; encodings that would fit them, and how good
//! given ones are.

mod collect;
mod document;
mod histogram;
mod proposals;
mod weights;

pub use collect::{Collection, Ranges, TensorRange, collect};
pub use document::{RangesDocument, encodings_of, ranges_text};
pub use histogram::Histogram;
pub use proposals::{Method, Proposal, propose};
pub use weights::{Weights, weights};
