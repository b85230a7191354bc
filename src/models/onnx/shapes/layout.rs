//! Shapes of nodes that move, split and join elements without computing on them.

use super::Scope;
use super::window::known;
use crate::models::source::{Dim, SourceNode};

/// Resolves an axis that may count from the end.
pub fn axis(value: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let axis = if value < 0 { value.checked_add(rank)? } else { value };
    (0..rank).contains(&axis).then(|| usize::try_from(axis).ok())?
}

/// Axes from an attribute, or from an input in newer versions of the operator.
pub fn axes(scope: &Scope<'_>, node: &SourceNode, input: usize) -> Option<Vec<i64>> {
    node.ints("axes").map(<[i64]>::to_vec).or_else(|| scope.ints(node, input))
}

/// Shape of two values that are broadcast against each other; `None` if they are incompatible.
pub fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let rank = a.len().max(b.len());
    let one = Dim::Known(1);
    let at = |shape: &'_ [Dim], index: usize| {
        (index + shape.len()).checked_sub(rank).map_or_else(|| one.clone(), |index| shape[index].clone())
    };
    (0..rank)
        .map(|index| {
            Some(match (at(a, index), at(b, index)) {
                (Dim::Known(1), other) | (other, Dim::Known(1)) => other,
                (Dim::Known(x), Dim::Known(y)) => (x == y).then_some(Dim::Known(x))?,
                // An unknown dimension is 1 or the same.
                (Dim::Known(x), _) | (_, Dim::Known(x)) => Dim::Known(x),
                (x, y) if x == y => x,
                _ => Dim::Unknown,
            })
        })
        .collect()
}

pub fn transpose(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    if node.attribute("perm").is_none() {
        return Some(input.into_iter().rev().collect());
    }
    let order = node.ints("perm")?;
    if order.len() != input.len() {
        return None;
    }
    order.iter().map(|&from| input.get(usize::try_from(from).ok()?).cloned()).collect()
}

pub fn reshape(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let target = node.ints("shape").map(<[i64]>::to_vec).or_else(|| scope.ints(node, 1))?;
    let input = scope.shape(node, 0);
    let keeps_zero = node.int("allowzero").unwrap_or(0) == 0;
    let mut shape = Vec::new();
    let mut open = None;
    for (index, &size) in target.iter().enumerate() {
        shape.push(match size {
            0 if keeps_zero => input.as_ref()?.get(index)?.clone(),
            -1 => {
                open = Some(index);
                Dim::Unknown
            }
            size => Dim::Known(u64::try_from(size).ok()?),
        });
    }
    if let Some(index) = open
        && let Some(elements) = input.as_ref().and_then(|input| product(&known(input)?))
    {
        let others: Option<Vec<u64>> =
            shape.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, dim)| dim.known()).collect();
        let others = others.and_then(|others| product(&others));
        if let Some(others) = others.filter(|&others| others > 0 && elements % others == 0) {
            shape[index] = Dim::Known(elements / others);
        }
    }
    Some(shape)
}

pub fn flatten(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    let at = node.int("axis").unwrap_or(1);
    // For Flatten, the axis may equal the rank.
    let at = usize::try_from(if at < 0 { at + i64::try_from(input.len()).ok()? } else { at }).ok()?;
    let part = |dims: &[Dim]| match dims {
        [one] => one.clone(),
        dims => known(dims).and_then(|dims| product(&dims)).map_or(Dim::Unknown, Dim::Known),
    };
    Some(vec![part(input.get(..at)?), part(&input[at..])])
}

pub fn squeeze(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    if node.attribute("axes").is_none() && !Scope::has(node, 1) {
        // It has to be known which dimensions are 1.
        known(&input)?;
        return Some(input.into_iter().filter(|dim| *dim != Dim::Known(1)).collect());
    }
    let dropped: Option<Vec<usize>> = axes(scope, node, 1)?.into_iter().map(|value| axis(value, input.len())).collect();
    let dropped = dropped?;
    Some(input.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at)).map(|(_, dim)| dim).collect())
}

pub fn unsqueeze(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    let added = axes(scope, node, 1)?;
    let rank = input.len() + added.len();
    let added: Option<Vec<usize>> = added.into_iter().map(|value| axis(value, rank)).collect();
    let added = added?;
    let mut rest = input.into_iter();
    (0..rank).map(|at| if added.contains(&at) { Some(Dim::Known(1)) } else { rest.next() }).collect()
}

pub fn concat(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let mut shape = scope.shape(node, 0)?;
    let at = axis(node.int("axis")?, shape.len())?;
    for index in 1..node.inputs.len() {
        let other = scope.shape(node, index).filter(|other| other.len() == shape.len())?;
        shape[at] = match (shape[at].known(), other[at].known()) {
            (Some(a), Some(b)) => Dim::Known(a.checked_add(b)?),
            _ => Dim::Unknown,
        };
        for (dim, other) in shape.iter_mut().zip(other).enumerate().filter(|(i, _)| *i != at).map(|(_, pair)| pair) {
            if dim.known().is_none() && other.known().is_some() {
                *dim = other;
            }
        }
    }
    Some(shape)
}

pub fn split(scope: &Scope<'_>, node: &SourceNode) -> Vec<Option<Vec<Dim>>> {
    let shapes = || {
        let input = scope.shape(node, 0)?;
        let at = axis(node.int("axis").unwrap_or(0), input.len())?;
        let sizes = node.ints("split").map(<[i64]>::to_vec).or_else(|| scope.ints(node, 1));
        let parts = node.outputs.len() as u64;
        let even = if node.attribute("split").is_none() && !Scope::has(node, 1) { input[at].known() } else { None };
        let one = |index: usize| {
            let size = match (&sizes, even) {
                (Some(sizes), _) => u64::try_from(*sizes.get(index)?).map_or(Dim::Unknown, Dim::Known),
                (None, Some(size)) if parts > 0 && size % parts == 0 => Dim::Known(size / parts),
                // An uneven split has a shorter last part, but only in newer versions.
                (None, _) => Dim::Unknown,
            };
            let mut shape = input.clone();
            shape[at] = size;
            Some(shape)
        };
        Some((0..node.outputs.len()).map(one).collect::<Vec<_>>())
    };
    shapes().unwrap_or_default()
}

pub fn slice(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let mut shape = scope.shape(node, 0)?;
    let list = |name: &str, input: usize| node.ints(name).map(<[i64]>::to_vec).or_else(|| scope.ints(node, input));
    let (starts, ends) = (list("starts", 1)?, list("ends", 2)?);
    let axes = if node.attribute("axes").is_some() || Scope::has(node, 3) {
        list("axes", 3)?
    } else {
        (0..i64::try_from(starts.len()).ok()?).collect()
    };
    let steps = if Scope::has(node, 4) { scope.ints(node, 4)? } else { vec![1; starts.len()] };
    for (index, &value) in axes.iter().enumerate() {
        let at = axis(value, shape.len())?;
        let (&start, &end, &step) = (starts.get(index)?, ends.get(index)?, steps.get(index)?);
        let Some(size) = shape[at].known().and_then(|size| i64::try_from(size).ok()) else {
            shape[at] = Dim::Unknown;
            continue;
        };
        let count = slice_count(size, start, end, step)?;
        shape[at] = Dim::Known(count);
    }
    Some(shape)
}

/// Number of elements in a slice of `size` elements; `None` for a step of 0.
fn slice_count(size: i64, start: i64, end: i64, step: i64) -> Option<u64> {
    let from_end = |value: i64| if value < 0 { value.saturating_add(size) } else { value };
    let distance = match step {
        1.. => from_end(end).clamp(0, size) - from_end(start).clamp(0, size),
        0 => return None,
        _ => from_end(start).clamp(-1, size - 1) - from_end(end).clamp(-1, size - 1),
    };
    Some(distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
}

/// Indices of those elements.
pub fn slice_places(size: i64, start: i64, end: i64, step: i64) -> Option<Vec<usize>> {
    let count = i64::try_from(slice_count(size, start, end, step)?).ok()?;
    let from_end = |value: i64| if value < 0 { value.saturating_add(size) } else { value };
    let first = if step > 0 { from_end(start).clamp(0, size) } else { from_end(start).clamp(-1, size - 1) };
    (0..count).map(|index| usize::try_from(first.checked_add(index.checked_mul(step)?)?).ok()).collect()
}

pub fn gather(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let (input, indices) = (scope.shape(node, 0)?, scope.shape(node, 1)?);
    let at = axis(node.int("axis").unwrap_or(0), input.len())?;
    Some([&input[..at], &indices, &input[at + 1..]].concat())
}

pub fn expand(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let target: Option<Vec<Dim>> =
        scope.ints(node, 1)?.iter().map(|&size| u64::try_from(size).ok().map(Dim::Known)).collect();
    broadcast(&scope.shape(node, 0)?, &target?)
}

pub fn tile(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let (input, times) = (scope.shape(node, 0)?, scope.ints(node, 1)?);
    if times.len() != input.len() {
        return None;
    }
    let one = |(dim, &times): (&Dim, &i64)| match (dim.known(), u64::try_from(times).ok()?) {
        (_, 1) => Some(dim.clone()),
        (Some(size), times) => size.checked_mul(times).map(Dim::Known),
        (None, _) => Some(Dim::Unknown),
    };
    input.iter().zip(&times).map(one).collect()
}

pub fn pad(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    if Scope::has(node, 3) {
        return None;
    }
    let pads = node.ints("pads").map(<[i64]>::to_vec).or_else(|| scope.ints(node, 1))?;
    if pads.len() != 2 * input.len() {
        return None;
    }
    let one = |(at, dim): (usize, &Dim)| {
        let more = pads[at].checked_add(pads[at + input.len()])?;
        Some(match dim.known() {
            Some(size) => Dim::Known(size.checked_add_signed(more)?),
            None if more == 0 => dim.clone(),
            None => Dim::Unknown,
        })
    };
    input.iter().enumerate().map(one).collect()
}

/// DepthToSpace and SpaceToDepth.
pub fn blocks(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = known(&scope.shape(node, 0)?)?;
    let size = u64::try_from(node.int("blocksize")?).ok().filter(|&size| size > 0)?;
    let [n, c, h, w] = input.try_into().ok()?;
    let area = size.checked_mul(size)?;
    let shape = if node.op_type == "DepthToSpace" {
        [n, c / area, h.checked_mul(size)?, w.checked_mul(size)?]
    } else {
        [n, c.checked_mul(area)?, h / size, w / size]
    };
    Some(shape.map(Dim::Known).to_vec())
}

fn product(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))
}
