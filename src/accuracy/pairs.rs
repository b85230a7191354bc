//! Pairs of tensors in two graphs.

use super::layout::Layout;
use crate::models::Tensor;
use serde::{Deserialize, Serialize};

/// How a pair was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The tensors have the same name.
    Name,
    /// The map file beside a converted model says so.
    Map,
    /// The ops that produce them have the same name.
    Op,
    /// They are the next ones with the same op type and shape.
    Order,
}

/// A tensor that an op produces, or an input of the graph.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The tensor.
    pub tensor: Tensor,
    /// Index of its op; `None` for an input of the graph.
    pub op: Option<usize>,
}

/// The same tensor in both graphs.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The reference's.
    pub reference: Slot,
    /// The test's, which an op produces.
    pub test: Slot,
    /// How the reference's elements are arranged in the test.
    pub layout: Layout,
    /// How they were found.
    pub how: How,
    /// Indices of the pairs that the test's op computes from, through ops without a pair; excludes inputs of
    /// the graph.
    pub sources: Vec<usize>,
}

impl Pair {
    /// Name of the test's tensor.
    pub fn name(&self) -> &str {
        &self.test.tensor.name
    }
}

/// All pairs, in the order of the test's ops, and the tensors without one.
#[derive(Debug, Clone, Default)]
pub struct Pairing {
    /// Pairs.
    pub pairs: Vec<Pair>,
    /// Names of the reference's tensors without a pair.
    pub reference_only: Vec<String>,
    /// Names of tensors of the test without a pair.
    pub test_only: Vec<String>,
}
