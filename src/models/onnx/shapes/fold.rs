//! Shape arithmetic as exporters write it: Shape, Gather, Concat and Mul before a Reshape, and the
//! transposing of pads.

use super::layout::{axis, slice_places};
use super::{Known, Scope};
use crate::models::source::{AttributeValue, Dim, Small, SourceNode, product};

/// Longest list of integers that is evaluated.
const MOST_VALUES: usize = 64;

/// Integers that a node computes, with their shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    pub shape: Vec<u64>,
    pub values: Vec<i64>,
}

impl Folded {
    fn list(values: Vec<i64>) -> Self {
        Self { shape: vec![values.len() as u64], values }
    }

    /// The values, if they have rank 0 or 1.
    fn row(self) -> Option<Vec<i64>> {
        (self.shape.len() <= 1).then_some(self.values)
    }

    /// Rows and columns, if it has rank 2.
    fn sides(&self) -> Option<(usize, usize)> {
        let [rows, columns] = self.shape.as_slice() else { return None };
        Some((usize::try_from(*rows).ok()?, usize::try_from(*columns).ok()?))
    }
}

/// The integers that the node computes, if they follow from constants and known dimensions; `known` is what
/// is inferred for its outputs.
pub fn values(scope: &Scope<'_>, node: &SourceNode, known: &[Known]) -> Option<Folded> {
    if !node.domain.is_empty() {
        return None;
    }
    let of = |index: usize| scope.folded(node, index);
    let found = match node.op_type.as_str() {
        "Shape" => Folded::list(dimensions(scope, node)?),
        "Identity" => of(0)?,
        "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" => {
            let shape: Option<Vec<u64>> = known.first()?.shape.as_ref()?.iter().map(Dim::known).collect();
            Folded { shape: shape?, values: of(0)?.values }
        }
        // To other integers; a cast to real numbers ends the evaluation.
        "Cast" if matches!(node.int("to"), Some(6 | 7)) => of(0)?,
        "Concat" => {
            let mut all = Vec::new();
            for index in 0..node.inputs.len() {
                all.extend(of(index)?.row()?);
                if all.len() > MOST_VALUES {
                    return None;
                }
            }
            Folded::list(all)
        }
        "Gather" => gather(scope, node)?,
        "Slice" => slice(scope, node)?,
        "Transpose" => {
            let data = of(0)?;
            let (rows, columns) = data.sides()?;
            if node.attribute("perm").is_some() && node.ints("perm") != Some(&[1, 0]) {
                return None;
            }
            let turned = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
            let values = turned.map(|at| data.values.get(at).copied()).collect::<Option<_>>()?;
            Folded { shape: vec![columns as u64, rows as u64], values }
        }
        "ConstantOfShape" => {
            let Some(AttributeValue::Tensor(value)) = node.attribute("value") else { return None };
            let Some(Small::Ints(value)) = &value.small else { return None };
            let shape: Vec<u64> =
                of(0)?.row()?.into_iter().map(|size| u64::try_from(size).ok()).collect::<Option<_>>()?;
            let count = usize::try_from(product(&shape)?).ok().filter(|&count| count <= MOST_VALUES)?;
            Folded { values: vec![*value.first()?; count], shape }
        }
        "Add" => pairs(&of(0)?, &of(1)?, i64::checked_add)?,
        "Sub" => pairs(&of(0)?, &of(1)?, i64::checked_sub)?,
        "Mul" => pairs(&of(0)?, &of(1)?, i64::checked_mul)?,
        "Div" => pairs(&of(0)?, &of(1)?, i64::checked_div)?,
        _ => return None,
    };
    let fits = found.values.len() <= MOST_VALUES && product(&found.shape) == Some(found.values.len() as u64);
    fits.then_some(found)
}

/// The dimensions that a Shape node returns: all of them, or a range.
fn dimensions(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<i64>> {
    let whole = |dim: &Dim| i64::try_from(dim.known()?).ok();
    let shape = scope.shape(node, 0)?;
    let rank = i64::try_from(shape.len()).ok()?;
    let place = |name: &str, otherwise: i64| {
        let at = node.int(name).unwrap_or(otherwise);
        usize::try_from((if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank)).ok()
    };
    // Dimensions outside the requested range need not be known.
    shape.get(place("start", 0)?..place("end", rank)?)?.iter().map(whole).collect()
}

/// Elements of a vector, or rows of a matrix.
fn gather(scope: &Scope<'_>, node: &SourceNode) -> Option<Folded> {
    let (data, indices) = (scope.folded(node, 0)?, scope.folded(node, 1)?);
    if axis(node.int("axis").unwrap_or(0), data.shape.len())? != 0 {
        return None;
    }
    let width = width(&data)?;
    let count = i64::try_from(*data.shape.first()?).ok()?;
    let mut values = Vec::new();
    for &index in &indices.values {
        let place = usize::try_from(if index < 0 { index.checked_add(count)? } else { index }).ok()?;
        values
            .extend_from_slice(data.values.get(place.checked_mul(width)?..place.checked_add(1)?.checked_mul(width)?)?);
    }
    let shape = indices.shape.iter().chain(&data.shape[1..]).copied().collect();
    Some(Folded { shape, values })
}

/// Elements per row of a matrix; 1 for a vector.
fn width(data: &Folded) -> Option<usize> {
    if data.shape.len() == 1 { Some(1) } else { Some(data.sides()?.1) }
}

/// Elements of a vector, or rows of a matrix.
fn slice(scope: &Scope<'_>, node: &SourceNode) -> Option<Folded> {
    let data = scope.folded(node, 0)?;
    let one = |index: usize, otherwise: i64| {
        if !Scope::has(node, index) {
            return Some(otherwise);
        }
        let [value] = scope.ints(node, index)?.try_into().ok()?;
        Some(value)
    };
    let (start, end, along, step) = (one(1, 0)?, one(2, 0)?, one(3, 0)?, one(4, 1)?);
    let places = slice_places(i64::try_from(*data.shape.first()?).ok()?, start, end, step)?;
    if axis(along, data.shape.len())? != 0 {
        return None;
    }
    let width = width(&data)?;
    let mut values = Vec::new();
    for place in &places {
        values.extend_from_slice(data.values.get(place * width..(place + 1) * width)?);
    }
    let mut shape = data.shape;
    shape[0] = places.len() as u64;
    Some(Folded { shape, values })
}

/// Combines both element by element; a single value is broadcast.
fn pairs(a: &Folded, b: &Folded, apply: impl Fn(i64, i64) -> Option<i64>) -> Option<Folded> {
    let is_one = |folded: &Folded| folded.shape.len() <= 1 && folded.values.len() == 1;
    if a.shape != b.shape && !is_one(a) && !is_one(b) {
        return None;
    }
    // A single value takes the other's shape; for a scalar and a list of one, that is the list's.
    let takes_b = a.shape != b.shape && is_one(a) && (!is_one(b) || b.shape.len() > a.shape.len());
    let shape = if takes_b { &b.shape } else { &a.shape };
    let at =
        |folded: &Folded, index: usize| folded.values.get(if folded.values.len() == 1 { 0 } else { index }).copied();
    let count = a.values.len().max(b.values.len());
    let values = (0..count).map(|index| apply(at(a, index)?, at(b, index)?)).collect::<Option<_>>()?;
    Some(Folded { shape: shape.clone(), values })
}
