//! Tensors of the source of a conversion.

use crate::models::Tensor;
use std::collections::HashMap;

/// A tensor of the source for one input.
#[derive(Debug, Clone)]
pub struct Known {
    /// What it is.
    pub tensor: Tensor,
    /// Its numbers, as they are stored: whole numbers of a quantised tensor.
    pub values: Vec<f64>,
}

/// The tensors of the source, by the names that the result has for them; one map for each input.
pub type Computed = Vec<HashMap<String, Known>>;
