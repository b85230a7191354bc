//! Arithmetic on shapes, as exporters write it: Shape, Gather, Concat and Mul before a Reshape.

use super::Scope;
use crate::models::source::{Dim, SourceNode};

/// Longest list of integers that is followed.
const MOST_VALUES: usize = 64;

/// The integers that the node writes, if they follow from constants and known dimensions.
pub fn values(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<i64>> {
    if !node.domain.is_empty() {
        return None;
    }
    let of = |index: usize| scope.ints(node, index);
    let found = match node.op_type.as_str() {
        "Shape" => {
            let dims: Option<Vec<i64>> = scope.shape(node, 0)?.iter().map(whole).collect();
            let dims = dims?;
            let place = |name: &str, otherwise: usize| {
                let at = node.int(name).unwrap_or(i64::try_from(otherwise).ok()?);
                let at = if at < 0 { at + i64::try_from(dims.len()).ok()? } else { at };
                Some(usize::try_from(at.max(0)).ok()?.min(dims.len()))
            };
            dims.get(place("start", 0)?..place("end", dims.len())?)?.to_vec()
        }
        "Identity" | "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" => of(0)?,
        // To other integers; a real number is none any more.
        "Cast" if matches!(node.int("to"), Some(6 | 7)) => of(0)?,
        "Concat" => {
            let mut all = Vec::new();
            for index in 0..node.inputs.len() {
                all.extend(of(index)?);
                if all.len() > MOST_VALUES {
                    return None;
                }
            }
            all
        }
        "Gather" => {
            let data = of(0)?;
            let one = |&index: &i64| {
                let index = if index < 0 { index + i64::try_from(data.len()).ok()? } else { index };
                data.get(usize::try_from(index).ok()?).copied()
            };
            of(1)?.iter().map(one).collect::<Option<_>>()?
        }
        "Slice" => {
            let data = of(0)?;
            let len = i64::try_from(data.len()).ok()?;
            let (starts, ends) = (of(1)?, of(2)?);
            let step = if Scope::has(node, 4) { of(4)?.first().copied()? } else { 1 };
            if starts.len() != 1 || ends.len() != 1 || step != 1 {
                return None;
            }
            let clamp =
                |at: i64| usize::try_from((if at < 0 { at.saturating_add(len) } else { at }).clamp(0, len)).ok();
            data.get(clamp(starts[0])?..clamp(ends[0])?)?.to_vec()
        }
        "Add" => pairs(of(0)?, of(1)?, i64::checked_add)?,
        "Sub" => pairs(of(0)?, of(1)?, i64::checked_sub)?,
        "Mul" => pairs(of(0)?, of(1)?, i64::checked_mul)?,
        "Div" => pairs(of(0)?, of(1)?, i64::checked_div)?,
        _ => return None,
    };
    (found.len() <= MOST_VALUES).then_some(found)
}

fn whole(dim: &Dim) -> Option<i64> {
    i64::try_from(dim.known()?).ok()
}

/// Both lists, element by element; one value stands for all.
fn pairs(a: Vec<i64>, b: Vec<i64>, apply: impl Fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    let len = if a.len() == 1 { b.len() } else { a.len() };
    let at = |list: &[i64], index: usize| list.get(if list.len() == 1 { 0 } else { index }).copied();
    if a.len() != len && a.len() != 1 || b.len() != len && b.len() != 1 {
        return None;
    }
    (0..len).map(|index| apply(at(&a, index)?, at(&b, index)?)).collect()
}
