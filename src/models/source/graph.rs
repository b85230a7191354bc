//! Graphs as their authors wrote them: nodes that name the values they read and write.

use super::{ElementType, Span};
use serde::Serialize;
use std::collections::HashMap;

/// One dimension of a shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Dim {
    /// A fixed number of elements.
    Known(u64),
    /// Chosen when the model is loaded or run; has this name.
    Named(String),
    /// Unknown before the model runs.
    Unknown,
}

impl Dim {
    /// The size, if it is fixed.
    pub fn known(&self) -> Option<u64> {
        if let Self::Known(number) = self { Some(*number) } else { None }
    }
}

/// `1x3x224x224`, `Nx3`, `?`, `scalar`; `unknown` if the rank is unknown.
pub fn shape_text(shape: Option<&[Dim]>) -> String {
    let one = |dim: &Dim| match dim {
        Dim::Known(number) => number.to_string(),
        Dim::Named(name) => name.clone(),
        Dim::Unknown => "?".to_owned(),
    };
    match shape {
        None => "unknown".to_owned(),
        Some([]) => "scalar".to_owned(),
        Some(dims) => dims.iter().map(one).collect::<Vec<_>>().join("x"),
    }
}

/// How a tensor's integers map to real numbers, if the tensor itself says so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantized {
    /// Number of scales: 1, or one per slice along the axis.
    pub scales: u64,
    /// The scale, if there is only one.
    pub scale: Option<f64>,
    /// The zero point, if there is only one.
    pub zero_point: Option<i64>,
    /// The axis, if there are several scales.
    pub axis: Option<i64>,
}

/// A value that a node writes or the application supplies, without its data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceValue {
    /// Name without control characters.
    pub name: String,
    /// Type of its elements, if known.
    pub dtype: Option<ElementType>,
    /// Shape; `None` if not even its rank is known.
    pub shape: Option<Vec<Dim>>,
    /// True if the shape is not in the file but was inferred.
    pub inferred: bool,
    /// Quantisation, if the tensor itself contains it (TFLite).
    pub quantization: Option<Quantized>,
}

impl SourceValue {
    /// A value known only by name.
    pub fn named(name: String) -> Self {
        Self { name, dtype: None, shape: None, inferred: false, quantization: None }
    }

    /// Number of elements, if all dimensions are known.
    pub fn elements(&self) -> Option<u64> {
        self.shape.as_ref()?.iter().try_fold(1u64, |product, dim| product.checked_mul(dim.known()?))
    }

    /// All dimensions, if they are known.
    pub fn dims(&self) -> Option<Vec<u64>> {
        self.shape.as_ref()?.iter().map(Dim::known).collect()
    }
}

/// Where a constant's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In the model file.
    Inside(Span),
    /// In another file, named relative to the model's folder.
    External {
        /// The file as named by the model.
        file: String,
        /// Position of the first byte.
        offset: u64,
        /// Number of bytes, if the model states it.
        len: Option<u64>,
    },
    /// In many small pieces, or absent.
    Scattered,
}

/// Values of a small constant, from which shapes and axes are computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Small {
    /// Integers.
    Ints(Vec<i64>),
    /// Real numbers.
    Floats(Vec<f32>),
}

/// A constant: weights, biases, tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Name without control characters.
    pub name: String,
    /// Type of its elements.
    pub dtype: Option<ElementType>,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Size of its data, in bytes; `None` if its type and shape do not determine it.
    pub bytes: Option<u64>,
    /// Location of its data.
    pub storage: Storage,
    /// Its values, if there are few.
    pub small: Option<Small>,
    /// Quantisation, if the tensor itself contains it (TFLite).
    pub quantization: Option<Quantized>,
    /// True if it belongs to a graph inside a node.
    pub nested: bool,
}

impl Constant {
    /// Number of elements.
    pub fn elements(&self) -> Option<u64> {
        product(&self.shape)
    }
}

/// Value of an attribute; lists keep only their first values.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f32),
    /// Text or bytes: their range, and the text if it is short.
    Bytes(Span, Option<String>),
    /// Integers: their number, and the first ones.
    Ints(u64, Vec<i64>),
    /// Real numbers, likewise.
    Floats(u64, Vec<f32>),
    /// Texts, likewise.
    Texts(u64, Vec<String>),
    /// A tensor: its description without the data.
    Tensor(Box<Constant>),
    /// A graph: the number of its nodes.
    Graph(u64),
    /// Something else.
    Other,
}

/// A named attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Name.
    pub name: String,
    /// Value.
    pub value: AttributeValue,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SourceNode {
    /// Position in the file, from 0.
    pub index: usize,
    /// Name; may be empty in ONNX.
    pub name: String,
    /// Op type: `Conv`, `CONV_2D`, `aten::add.out`.
    pub op_type: String,
    /// Domain of the op type; empty for the format's own.
    pub domain: String,
    /// Names of the values and constants it reads; empty for an absent optional one.
    pub inputs: Vec<String>,
    /// Names of the values it writes.
    pub outputs: Vec<String>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
    /// Multiply-accumulates per execution; `None` if they are not derived or a shape is unknown.
    pub macs: Option<u64>,
}

impl SourceNode {
    /// The attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        if let Some(AttributeValue::Int(value)) = self.attribute(name) { Some(*value) } else { None }
    }

    /// A list of integers, if all of them were kept.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attribute(name) {
            Some(AttributeValue::Ints(count, values)) if *count == values.len() as u64 => Some(values),
            _ => None,
        }
    }

    /// A text attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        if let Some(AttributeValue::Bytes(_, Some(text))) = self.attribute(name) { Some(text) } else { None }
    }

    /// Its name, or an identifying label if it has none: `Conv #3`.
    pub fn label(&self) -> String {
        Self::label_of(&self.name, &self.op_type, self.index)
    }

    /// The label of a node with this name, operator and position.
    pub fn label_of(name: &str, op_type: &str, index: usize) -> String {
        if name.is_empty() { format!("{op_type} #{index}") } else { name.to_owned() }
    }
}

/// A graph inside a node: a branch or a loop's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subgraph {
    /// The node.
    pub node: String,
    /// Its attribute, such as `then_branch`.
    pub attribute: String,
    /// Number of nodes, without those of graphs nested deeper.
    pub nodes: u64,
}

/// Shapes of a graph's values and constants by name.
#[derive(Debug)]
pub struct ShapeIndex<'a> {
    graph: &'a SourceGraph,
    constants: HashMap<&'a str, &'a [u64]>,
}

/// Sets the multiply-accumulates of every node for which `of` returns them.
pub fn count_macs(graph: &mut SourceGraph, of: impl Fn(&SourceNode, &ShapeIndex<'_>) -> Option<u64>) {
    let shapes = ShapeIndex::new(graph);
    let counts: Vec<Option<u64>> = graph.nodes.iter().map(|node| of(node, &shapes)).collect();
    for (node, macs) in graph.nodes.iter_mut().zip(counts) {
        node.macs = macs;
    }
}

impl<'a> ShapeIndex<'a> {
    /// The index of this graph, without the contents of its nodes.
    pub fn new(graph: &'a SourceGraph) -> Self {
        let constants = graph.constants.iter().filter(|constant| !constant.nested);
        Self { graph, constants: constants.map(|one| (one.name.as_str(), one.shape.as_slice())).collect() }
    }

    /// All dimensions, if they are known.
    pub fn dims(&self, name: &str) -> Option<Vec<u64>> {
        self.constants.get(name).map(|shape| shape.to_vec()).or_else(|| self.graph.value(name)?.dims())
    }

    /// The same for a node's input.
    pub fn input(&self, node: &SourceNode, index: usize) -> Option<Vec<u64>> {
        self.dims(node.inputs.get(index)?)
    }

    /// Number of elements in a node's first output.
    pub fn output_elements(&self, node: &SourceNode) -> Option<u64> {
        product(&self.dims(node.outputs.first()?)?)
    }
}

/// Product of dimensions; `None` on overflow.
pub fn product(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))
}

/// A graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SourceGraph {
    /// Name.
    pub name: String,
    /// Names of the inputs that the application supplies, in order.
    pub inputs: Vec<String>,
    /// Names of the outputs, in order.
    pub outputs: Vec<String>,
    /// Nodes in file order.
    pub nodes: Vec<SourceNode>,
    /// Constants, including those of graphs inside nodes.
    pub constants: Vec<Constant>,
    /// Graphs inside nodes.
    pub subgraphs: Vec<Subgraph>,
    values: Vec<SourceValue>,
    by_name: HashMap<String, usize>,
}

impl SourceGraph {
    /// An empty graph.
    pub fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// All values that are not constants, in the order of their first occurrence.
    pub fn values(&self) -> &[SourceValue] {
        &self.values
    }

    /// The value with this name.
    pub fn value(&self, name: &str) -> Option<&SourceValue> {
        self.by_name.get(name).map(|&at| &self.values[at])
    }

    /// Adds information about a value; existing information takes precedence.
    pub fn declare(&mut self, value: SourceValue) {
        if value.name.is_empty() {
            return;
        }
        if let Some(&at) = self.by_name.get(&value.name) {
            let known = &mut self.values[at];
            known.dtype = known.dtype.or(value.dtype);
            known.quantization = known.quantization.take().or(value.quantization);
            if known.shape.is_none() && value.shape.is_some() {
                known.shape = value.shape;
                known.inferred = value.inferred;
            }
        } else {
            self.by_name.insert(value.name.clone(), self.values.len());
            self.values.push(value);
        }
    }

    /// Mutable access to the value with this name.
    pub fn value_mut(&mut self, name: &str) -> Option<&mut SourceValue> {
        self.by_name.get(name).map(|&at| &mut self.values[at])
    }

    /// Replaces named dimensions with numbers.
    pub fn fix(&mut self, dimensions: &[(String, u64)]) {
        for dim in self.values.iter_mut().filter_map(|value| value.shape.as_mut()).flatten() {
            if let Dim::Named(name) = dim
                && let Some((_, number)) = dimensions.iter().find(|(known, _)| known == name)
            {
                *dim = Dim::Known(*number);
            }
        }
    }

    /// Multiply-accumulates of all nodes whose count is known.
    pub fn macs(&self) -> u64 {
        self.nodes.iter().filter_map(|node| node.macs).fold(0, u64::saturating_add)
    }

    /// Number of elements in all constants.
    pub fn parameters(&self) -> u64 {
        self.constants.iter().filter_map(Constant::elements).fold(0, u64::saturating_add)
    }

    /// Size of all constants, in bytes.
    pub fn parameter_bytes(&self) -> u64 {
        self.constants.iter().filter_map(|constant| constant.bytes).fold(0, u64::saturating_add)
    }
}
