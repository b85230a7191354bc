//! Shapes of convolution, pooling and resizing.

use super::Scope;
use crate::models::source::{Dim, SourceNode};

/// Shape after a window slides over the input. `window` contains its size per axis; `channels` replaces the
/// second dimension.
pub fn slide(scope: &Scope<'_>, node: &SourceNode, window: &[u64], channels: Option<Dim>) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    if input.len() != window.len() + 2 {
        return None;
    }
    let axes = window.len();
    let (strides, dilations) = (per_axis(node, "strides", axes)?, per_axis(node, "dilations", axes)?);
    let pads = padding(node, axes)?;
    let mut shape = vec![input[0].clone(), channels.unwrap_or_else(|| input[1].clone())];
    for axis in 0..axes {
        let dim = input[axis + 2].known().map_or(Some(Dim::Unknown), |size| {
            if pads == Pads::Same {
                return Some(Dim::Known(size.div_ceil(strides[axis])));
            }
            let (begin, end) = pads.at(axis, axes);
            let covered = dilations[axis].checked_mul(window[axis].checked_sub(1)?)?.checked_add(1)?;
            let padded = size.checked_add(begin)?.checked_add(end)?;
            let steps = padded.checked_sub(covered)?;
            let floor = steps / strides[axis] + 1;
            if node.int("ceil_mode").unwrap_or(0) == 0 {
                return Some(Dim::Known(floor));
            }
            let ceiling = steps.div_ceil(strides[axis]) + 1;
            // Some versions drop a last window that starts in the padding, others do not.
            let begins_inside = (ceiling - 1).checked_mul(strides[axis])? < size.checked_add(begin)?;
            Some(if begins_inside { Dim::Known(ceiling) } else { Dim::Unknown })
        })?;
        shape.push(dim);
    }
    Some(shape)
}

/// Shape after a transposed convolution with weights `[in, out per group, window...]`.
pub fn spread(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let (input, weights) = (scope.shape(node, 0)?, known(&scope.shape(node, 1)?)?);
    let axes = weights.len().checked_sub(2)?;
    if input.len() != weights.len() {
        return None;
    }
    let groups = u64::try_from(node.int("group").unwrap_or(1)).ok()?;
    let mut shape = vec![input[0].clone(), Dim::Known(weights[1].checked_mul(groups)?)];
    if let Some(stated) = node.ints("output_shape").filter(|stated| stated.len() >= axes) {
        let spatial = &stated[stated.len() - axes..];
        shape.extend(spatial.iter().map(|&size| u64::try_from(size).map_or(Dim::Unknown, Dim::Known)));
        return Some(shape);
    }
    let (strides, dilations) = (per_axis(node, "strides", axes)?, per_axis(node, "dilations", axes)?);
    let more = node.ints("output_padding").unwrap_or(&[]);
    let pads = padding(node, axes)?;
    for axis in 0..axes {
        let dim = input[axis + 2].known().map_or(Some(Dim::Unknown), |size| {
            if pads == Pads::Same {
                return Some(Dim::Known(size.checked_mul(strides[axis])?));
            }
            let (begin, end) = pads.at(axis, axes);
            let window = dilations[axis].checked_mul(weights[axis + 2].checked_sub(1)?)?.checked_add(1)?;
            let more = u64::try_from(more.get(axis).copied().unwrap_or(0)).ok()?;
            let grown = strides[axis].checked_mul(size.checked_sub(1)?)?.checked_add(window)?.checked_add(more)?;
            Some(Dim::Known(grown.checked_sub(begin)?.checked_sub(end)?))
        })?;
        shape.push(dim);
    }
    Some(shape)
}

/// Shape of Resize and Upsample.
pub fn resize(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    if node.ints("axes").is_some() || node.text("keep_aspect_ratio_policy").is_some_and(|policy| policy != "stretch") {
        return None;
    }
    if let Some(sizes) = scope.ints(node, 3).filter(|sizes| sizes.len() == input.len()) {
        return sizes.iter().map(|&size| u64::try_from(size).ok().map(Dim::Known)).collect();
    }
    // Version 10 and Upsample have no region input in between.
    let scales = if node.inputs.len() == 2 { scope.floats(node, 1) } else { scope.floats(node, 2) };
    let scales = scales.filter(|scales| scales.len() == input.len())?;
    let one = |(dim, &scale): (&Dim, &f32)| {
        let Some(size) = dim.known() else {
            // Exporters write exactly 1 for axes that stay the same.
            return if scale.to_bits() == 1f32.to_bits() { dim.clone() } else { Dim::Unknown };
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating is right")]
        let (wide, narrow) = ((size as f64 * f64::from(scale)) as u64, (size as f32 * scale) as u64);
        // Runtimes differ in rounding.
        if wide == narrow { Dim::Known(wide) } else { Dim::Unknown }
    };
    Some(input.iter().zip(&scales).map(one).collect())
}

/// Window of a pooling op.
pub fn kernel(node: &SourceNode) -> Option<Vec<u64>> {
    node.ints("kernel_shape")?.iter().map(|&size| u64::try_from(size).ok()).collect()
}

/// All dimensions, if they are known.
pub fn known(shape: &[Dim]) -> Option<Vec<u64>> {
    shape.iter().map(Dim::known).collect()
}

/// Positive values of an attribute, one per axis; ones if it is absent.
fn per_axis(node: &SourceNode, name: &str, axes: usize) -> Option<Vec<u64>> {
    if node.attribute(name).is_none() {
        return Some(vec![1; axes]);
    }
    let values: Option<Vec<u64>> =
        node.ints(name)?.iter().map(|&value| u64::try_from(value).ok().filter(|&value| value > 0)).collect();
    values.filter(|values| values.len() == axes)
}

#[derive(PartialEq)]
enum Pads {
    /// Padding that keeps the size, divided by the stride.
    Same,
    /// All starts, then all ends.
    Of(Vec<u64>),
}

impl Pads {
    fn at(&self, axis: usize, count: usize) -> (u64, u64) {
        match self {
            Self::Same => (0, 0),
            Self::Of(pads) => (pads[axis], pads[axis + count]),
        }
    }
}

fn padding(node: &SourceNode, axes: usize) -> Option<Pads> {
    match node.text("auto_pad") {
        Some("SAME_UPPER" | "SAME_LOWER") => return Some(Pads::Same),
        Some("VALID") => return Some(Pads::Of(vec![0; 2 * axes])),
        _ => {}
    }
    if node.attribute("pads").is_none() {
        return Some(Pads::Of(vec![0; 2 * axes]));
    }
    let pads: Option<Vec<u64>> = node.ints("pads")?.iter().map(|&pad| u64::try_from(pad).ok()).collect();
    pads.filter(|pads| pads.len() == 2 * axes).map(Pads::Of)
}
