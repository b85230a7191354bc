//! Remedies for refused ops: data, matched on the reason and the offending tensor.

use super::reason::{Kind, Reason};
use crate::backends::Backend;
use crate::models::{Op, Tensor};
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remedy {
    kind: Option<Kind>,
    #[serde(default)]
    dtype: Vec<String>,
    #[serde(default)]
    backends: Vec<Backend>,
    #[serde(default)]
    ops: Vec<String>,
    says: Option<String>,
    least_rank: Option<usize>,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    remedy: Vec<Remedy>,
}

// A test reads the file, so a mistake in it cannot ship.
static REMEDIES: LazyLock<Vec<Remedy>> =
    LazyLock::new(|| toml::from_str(include_str!("remedies.toml")).map(|file: File| file.remedy).unwrap_or_default());

impl Remedy {
    fn fits(&self, backend: Backend, op: &Op, reason: &Reason, tensor: Option<&Tensor>) -> bool {
        let dtype = || tensor.is_some_and(|tensor| self.dtype.contains(&tensor.dtype.name()));
        let rank = |least: usize| tensor.is_some_and(|tensor| tensor.shape.len() >= least);
        self.kind.is_none_or(|kind| kind == reason.kind)
            && (self.dtype.is_empty() || dtype())
            && (self.backends.is_empty() || self.backends.contains(&backend))
            && (self.ops.is_empty() || self.ops.contains(&op.op_type))
            && self.says.as_ref().is_none_or(|word| reason.text.contains(word))
            && self.least_rank.is_none_or(rank)
    }
}

/// How to fix a refused op.
pub fn remedy(backend: Backend, op: &Op, reason: &Reason) -> Option<String> {
    let tensor = reason.tensor.and_then(|place| op.inputs.iter().chain(&op.outputs).nth(place));
    let found = REMEDIES.iter().find(|remedy| remedy.fits(backend, op, reason, tensor))?;
    let (name, dtype, rank) = tensor.map_or_else(
        || ("the tensor".to_owned(), "of this type".to_owned(), String::new()),
        |tensor| (tensor.name.clone(), tensor.dtype.name(), tensor.shape.len().to_string()),
    );
    let text = found.text.replace("{op}", &op.op_type).replace("{dtype}", &dtype).replace("{rank}", &rank);
    // Last, because a name may contain braces.
    Some(text.replace("{tensor}", &name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_ends_with_a_row_for_all() {
        let file: File = toml::from_str(include_str!("remedies.toml")).unwrap();
        assert!(file.remedy.len() > 15);
        let last = file.remedy.last().unwrap();
        assert!(last.kind.is_none() && last.dtype.is_empty() && last.ops.is_empty() && last.backends.is_empty());
        for remedy in &file.remedy {
            let rest =
                ["{tensor}", "{dtype}", "{rank}", "{op}"].iter().fold(remedy.text.clone(), |t, p| t.replace(p, ""));
            assert!(!rest.contains(['{', '}']), "{}", remedy.text);
        }
    }
}
