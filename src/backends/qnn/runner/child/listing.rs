//! Checks that a model lists the inputs and outputs its graphs have. Backends compose and finalize a graph with a wrong
//! list, but refuse to execute it with a message that names no tensor.

use crate::backends::Backend;
use crate::backends::qnn::api::{ComposedGraph, OwnedTensor, Recording};
use crate::models::{Graph, Tensor, TensorKind};
use std::collections::HashSet;
use std::fmt::Write;

/// Maximum number of tensors named.
const NAMED: usize = 3;

/// What is wrong with the lists of `composed`: one sentence for each graph and kind. `recording` holds what the graphs were
/// made with.
pub fn problems(backend: Backend, composed: &[ComposedGraph], recording: &Recording) -> Vec<String> {
    let mut found = Vec::new();
    for entry in composed {
        let Some(made) = recording.graphs.iter().find(|graph| graph.name == entry.name) else { continue };
        let listed = |tensors: &[OwnedTensor]| -> HashSet<String> {
            tensors.iter().map(|tensor| tensor.info().name.clone()).collect()
        };
        found.extend(unlisted(made, "inputs", &made.inputs, &listed(&entry.inputs)));
        found.extend(unlisted(made, "outputs", &made.outputs, &listed(&entry.outputs)));
        found.extend(unread(backend, made));
    }
    found
}

fn unlisted(graph: &Graph, what: &str, made: &[Tensor], listed: &HashSet<String>) -> Option<String> {
    let missing: Vec<&str> =
        made.iter().map(|tensor| tensor.name.as_str()).filter(|name| !listed.contains(*name)).collect();
    if missing.is_empty() {
        return None;
    }
    Some(format!(
        "graph `{}`: the model lists {} of its graph's {} {what}, without {}",
        graph.name,
        made.len() - missing.len(),
        made.len(),
        names(&missing)
    ))
}

/// Inputs that no op reads. The CPU backend does not count them and then complains about too many inputs; the
/// others do not mind.
fn unread(backend: Backend, graph: &Graph) -> Option<String> {
    if backend != Backend::Cpu || graph.ops.is_empty() {
        return None;
    }
    let read: HashSet<&str> = graph.ops.iter().flat_map(|op| &op.inputs).map(|tensor| tensor.name.as_str()).collect();
    let is_idle = |tensor: &&Tensor| tensor.kind == TensorKind::Input && !read.contains(tensor.name.as_str());
    let idle: Vec<&str> = graph.inputs.iter().filter(is_idle).map(|tensor| tensor.name.as_str()).collect();
    (!idle.is_empty())
        .then(|| format!("graph `{}`: no op reads {} of its graph's inputs: {}", graph.name, idle.len(), names(&idle)))
}

fn names(all: &[&str]) -> String {
    let mut text = all.iter().take(NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if all.len() > NAMED {
        let _ = write!(text, " and {} more", all.len() - NAMED);
    }
    text
}
