//! How two sets of encodings differ.

use super::{Encoding, Encodings, Finding};
use std::collections::HashMap;

/// Scales further apart than this share differ.
const TOLERANCE: f64 = 1e-4;
/// Slices that are told by number.
const MOST: usize = 4;

/// How B differs from A. Values count, not how a format writes them.
pub fn diff(a: &Encodings, b: &Encodings) -> Vec<Finding> {
    let by_name = |side: &Encodings| -> HashMap<String, usize> {
        side.tensors.iter().enumerate().map(|(at, encoding)| (encoding.name.clone(), at)).collect()
    };
    let theirs = by_name(b);
    let ours = by_name(a);
    let mut findings = Vec::new();
    // Only AIMET 2.0.0 and models list biases: their absence elsewhere is not a difference.
    let alone = |id, encoding: &Encoding, message: String| match encoding.bits {
        32 if a.format != b.format => Finding::info(id, &encoding.name, message, ""),
        _ => Finding::error(id, &encoding.name, message, ""),
    };
    for one in &a.tensors {
        match theirs.get(&one.name) {
            None => findings.push(alone("only-in-a", one, format!("only in A: {}", told(one)))),
            Some(&at) => findings.extend(pair(one, &b.tensors[at])),
        }
    }
    for other in b.tensors.iter().filter(|other| !ours.contains_key(&other.name)) {
        findings.push(alone("only-in-b", other, format!("only in B: {}", told(other))));
    }
    findings
}

fn told(encoding: &Encoding) -> String {
    if encoding.is_float {
        return format!("float, {} bits", encoding.bits);
    }
    let first = encoding.slices.first().and_then(|slice| encoding.ends(slice));
    let range = first.map_or_else(String::new, |(min, max)| format!(", {min:.6}..{max:.6}"));
    let slices =
        if encoding.slices.len() > 1 { format!(", {} channels", encoding.slices.len()) } else { String::new() };
    format!("{} bits{range}{slices}", encoding.bits)
}

fn pair(a: &Encoding, b: &Encoding) -> Vec<Finding> {
    let differs = |what: String| vec![Finding::error("differs", &a.name, what, "")];
    if (a.bits, a.is_float) != (b.bits, b.is_float) {
        return differs(format!("A has {}, B has {}", told(a), told(b)));
    }
    if a.slices.len() != b.slices.len() {
        return differs(format!("A has {} channels, B has {}", a.slices.len(), b.slices.len()));
    }
    let rows = (0..a.slices.len()).map(|at| (at, a.resolved(&a.slices[at]), b.resolved(&b.slices[at])));
    let same = |one: Option<(f64, f64)>, other: Option<(f64, f64)>| match (one, other) {
        (Some((scale, offset)), Some((other_scale, other_offset))) => {
            (scale - other_scale).abs() <= TOLERANCE * scale.abs().max(other_scale.abs())
                && (offset - other_offset).abs() < 0.5
        }
        (one, other) => one == other,
    };
    let apart: Vec<_> = rows.filter(|(_, one, other)| !same(*one, *other)).collect();
    if apart.is_empty() {
        return Vec::new();
    }
    let value = |slice: Option<(f64, f64)>| {
        slice.map_or_else(|| "nothing usable".to_owned(), |(scale, offset)| format!("scale {scale:.8} offset {offset}"))
    };
    let told: Vec<String> = apart
        .iter()
        .take(MOST)
        .map(|(at, one, other)| {
            let which = if a.slices.len() > 1 { format!("channel {at}: ") } else { String::new() };
            format!("{which}A {}, B {}", value(*one), value(*other))
        })
        .collect();
    let more = if apart.len() > MOST { format!("; and {} more channels", apart.len() - MOST) } else { String::new() };
    differs(format!("{}{more}", told.join("; ")))
}
