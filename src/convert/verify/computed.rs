//! Tensors of a conversion's source.

use crate::models::Tensor;
use std::collections::HashMap;

/// A tensor of the source, for one input.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its description.
    pub tensor: Tensor,
    /// Its values as stored: integers for a quantised tensor.
    pub values: Vec<f64>,
}

/// Tensors of the source under the names that the result uses for them; one map per input.
pub type Computed = Vec<HashMap<String, Known>>;
