//! Names of a model's tensors, and finding the one a name was meant to be.

use crate::accuracy::base_name;
use crate::models::{Graph, Tensor, TensorKind};
use std::collections::{HashMap, HashSet};

/// A model's names of tensors and ops.
#[derive(Debug, Clone, Default)]
pub struct Names {
    tensors: HashMap<String, Tensor>,
    /// Names without what composers put behind them, to the name in the model.
    bases: HashMap<String, String>,
    /// Ops to what they make.
    ops: HashMap<String, String>,
}

/// Names further apart than this share of their length are not similar.
const ALIKE: f64 = 0.4;
/// Longest name compared letter by letter.
const LONGEST: usize = 256;

impl Names {
    /// The names of these graphs.
    pub fn of(graphs: &[Graph]) -> Self {
        let mut names = Self::default();
        for graph in graphs {
            let of_ops = graph.ops.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
            for tensor in graph.inputs.iter().chain(&graph.outputs).chain(of_ops) {
                if tensor.kind != TensorKind::Null && !tensor.name.is_empty() {
                    names.bases.entry(base_name(&tensor.name).to_owned()).or_insert_with(|| tensor.name.clone());
                    names.tensors.entry(tensor.name.clone()).or_insert_with(|| tensor.clone());
                }
            }
            for op in &graph.ops {
                if let Some(output) = op.outputs.first() {
                    names.ops.entry(op.name.clone()).or_insert_with(|| output.name.clone());
                }
            }
        }
        names
    }

    /// The tensor of this name, or of this name with an ending that quantised models have.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name).or_else(|| self.tensors.get(self.bases.get(name)?))
    }

    /// What an op of this name makes.
    pub fn made_by(&self, op: &str) -> Option<&str> {
        self.ops.get(op).map(String::as_str)
    }

    /// The name that is most like this one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let stripped = name.split([':', ';']).next().unwrap_or(name);
        if let Some(tensor) = self.tensor(stripped) {
            return Some(&tensor.name);
        }
        let wanted: Vec<char> = name.to_lowercase().chars().take(LONGEST).collect();
        let rows = self.bases.iter().map(|(base, full)| (distance(&wanted, base), base, full));
        let (steps, base, full) = rows.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)))?;
        let longest = wanted.len().max(base.chars().count());
        (steps as f64 <= longest as f64 * ALIKE).then_some(full)
    }

    /// Names of all tensors.
    pub fn all(&self) -> HashSet<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }
}

/// Letters to change, remove or insert to turn one into the other.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().take(LONGEST).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_letters() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&letters("kitten"), "sitting"), 3);
        assert_eq!(distance(&letters(""), "abc"), 3);
        assert_eq!(distance(&letters("conv"), "CONV"), 0);
    }
}
