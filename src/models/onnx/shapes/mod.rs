//! Infers shapes that a model does not state: by ONNX's own rules, where they are unambiguous. Anything else
//! stays unknown.

mod fold;
mod layout;
mod rules;
mod window;

use self::fold::Folded;
use crate::models::source::{
    Constant, Dim, ElementType, Small, SourceError, SourceFile, SourceGraph, SourceNode, SourceValue,
};
use std::collections::HashMap;

/// Highest rank that is inferred; frameworks stop at 8 or 32.
const MOST_DIMENSIONS: usize = 64;

/// What is known about one output.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Known {
    pub dtype: Option<ElementType>,
    pub shape: Option<Vec<Dim>>,
}

impl Known {
    pub fn new(dtype: Option<ElementType>, shape: Option<Vec<Dim>>) -> Self {
        Self { dtype, shape }
    }
}

/// What rules may query.
pub(super) struct Scope<'a> {
    graph: &'a SourceGraph,
    constants: &'a HashMap<&'a str, &'a Constant>,
    /// Integers that nodes compute from shapes.
    folded: &'a HashMap<&'a str, Folded>,
}

impl Scope<'_> {
    fn input(node: &SourceNode, index: usize) -> Option<&str> {
        node.inputs.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// True if the node has this optional input.
    pub fn has(node: &SourceNode, index: usize) -> bool {
        Self::input(node, index).is_some()
    }

    /// Shape of an input.
    pub fn shape(&self, node: &SourceNode, index: usize) -> Option<Vec<Dim>> {
        let name = Self::input(node, index)?;
        if let Some(constant) = self.constants.get(name) {
            return Some(constant.shape.iter().map(|&dim| Dim::Known(dim)).collect());
        }
        self.graph.value(name)?.shape.clone()
    }

    /// Type of an input's elements.
    pub fn dtype(&self, node: &SourceNode, index: usize) -> Option<ElementType> {
        let name = Self::input(node, index)?;
        self.constants.get(name).map_or_else(|| self.graph.value(name)?.dtype, |constant| constant.dtype)
    }

    /// Values of an integer input that is constant or follows from shapes, as a list.
    pub fn ints(&self, node: &SourceNode, index: usize) -> Option<Vec<i64>> {
        self.folded(node, index).map(|folded| folded.values)
    }

    /// The same, with their shape.
    pub fn folded(&self, node: &SourceNode, index: usize) -> Option<Folded> {
        let name = Self::input(node, index)?;
        match self.constants.get(name) {
            Some(constant) => match &constant.small {
                Some(Small::Ints(values)) => Some(Folded { shape: constant.shape.clone(), values: values.clone() }),
                _ => None,
            },
            None => self.folded.get(name).cloned(),
        }
    }

    /// Values of a constant float input.
    pub fn floats(&self, node: &SourceNode, index: usize) -> Option<Vec<f32>> {
        match self.constants.get(Self::input(node, index)?)?.small.as_ref()? {
            Small::Floats(values) => Some(values.clone()),
            Small::Ints(_) => None,
        }
    }
}

/// Fills in what can be inferred about the graph's values.
pub fn infer(file: &SourceFile, graph: &mut SourceGraph) -> Result<(), SourceError> {
    let nodes = std::mem::take(&mut graph.nodes);
    let constants = std::mem::take(&mut graph.constants);
    let by_name: HashMap<&str, &Constant> = constants
        .iter()
        .filter(|constant| !constant.nested)
        .map(|constant| (constant.name.as_str(), constant))
        .collect();
    let mut folded = HashMap::new();
    let mut outcome = Ok(());
    // ONNX requires an order in which every value is written before it is read.
    for node in &nodes {
        let scope = Scope { graph, constants: &by_name, folded: &folded };
        let known = rules::outputs(&scope, node);
        let values = fold::values(&scope, node, &known);
        if let Some((name, values)) = node.outputs.first().zip(values) {
            folded.insert(name.as_str(), values);
        }
        outcome = outcome.and_then(|()| {
            node.outputs.iter().zip(known).try_for_each(|(output, known)| apply(file, graph.value_mut(output), known))
        });
    }
    graph.nodes = nodes;
    graph.constants = constants;
    outcome
}

/// Adds inferred information to what the file says; the file takes precedence.
fn apply(file: &SourceFile, value: Option<&mut SourceValue>, known: Known) -> Result<(), SourceError> {
    let Some(value) = value else { return Ok(()) };
    value.dtype = value.dtype.or(known.dtype);
    let Some(shape) = known.shape.filter(|shape| shape.len() <= MOST_DIMENSIONS) else { return Ok(()) };
    file.keep(shape.len() * size_of::<Dim>())?;
    match &mut value.shape {
        None => {
            value.inferred = true;
            value.shape = Some(shape);
        }
        Some(stated) if stated.len() == shape.len() => {
            for (dim, found) in stated.iter_mut().zip(shape) {
                if dim.known().is_none() && found.known().is_some() {
                    *dim = found;
                    value.inferred = true;
                }
            }
        }
        Some(_) => {}
    }
    Ok(())
}
