//! Pairs of tensors of two graphs.

use super::layout::Layout;
use crate::models::Tensor;
use serde::{Deserialize, Serialize};

/// How a pair was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The tensors have one name.
    Name,
    /// The map beside a converted model says so.
    Map,
    /// The ops that make them have one name.
    Op,
    /// They are the next ones of one op type and shape.
    Order,
}

/// A tensor that an op makes, or an input of the graph.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The tensor.
    pub tensor: Tensor,
    /// Position of its op; `None` for an input of the graph.
    pub op: Option<usize>,
}

/// Two tensors that are the same one.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The reference's.
    pub reference: Slot,
    /// The test's, which an op makes.
    pub test: Slot,
    /// How the elements of the reference stand in the test.
    pub layout: Layout,
    /// How they were found.
    pub how: How,
    /// Positions of the pairs that the test's op computes from, through ops without a pair; inputs of the graph are none.
    pub sources: Vec<usize>,
}

impl Pair {
    /// Name of the test's tensor.
    pub fn name(&self) -> &str {
        &self.test.tensor.name
    }
}

/// All pairs, in the order of the test's ops, and what has no pair.
#[derive(Debug, Clone, Default)]
pub struct Pairing {
    /// Pairs.
    pub pairs: Vec<Pair>,
    /// Names of tensors of the reference that no tensor of the test is.
    pub reference_only: Vec<String>,
    /// Names of tensors of the test without a pair.
    pub test_only: Vec<String>,
}
