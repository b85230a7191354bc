//! Matches ops between runs: by name, by name without numbers, then by position and type.

use serde::Serialize;
use std::collections::HashMap;

/// How an op was matched in another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// By its name, with or without the numbers that converters and backends add.
    Name,
    /// By its type and position between ops matched by name.
    Position,
    /// Matched in no other run.
    Alone,
}

/// What identifies an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    /// Name.
    pub name: &'a str,
    /// Type; rows without one are matched only by name.
    pub op_type: Option<&'a str>,
    /// Multiply-accumulates, if known.
    pub macs: Option<u64>,
}

/// Largest table for optimally aligning a gap; beyond it, the next op of the same type is used.
const TABLE_CELLS: usize = 1 << 20;
/// How far ahead to search for that next op.
const WINDOW: usize = 64;

/// The matching row for each of `ops`, in order. No row is used twice.
pub fn align(rows: &[Key<'_>], ops: &[Key<'_>]) -> Vec<Option<(usize, Matched)>> {
    let mut found: Vec<Option<(usize, Matched)>> = vec![None; ops.len()];
    let mut taken = vec![false; rows.len()];
    let whole = |name: &'_ str| name.len();
    let bare = |name: &'_ str| without_numbers(name).len();
    by_name(rows, ops, &mut found, &mut taken, whole);
    by_name(rows, ops, &mut found, &mut taken, bare);
    // Matched names in a different order cannot bound a gap.
    let mut anchors = rising(&found);
    anchors.push((ops.len(), rows.len()));
    let (mut op_from, mut row_from) = (0, 0);
    for (op_to, row_to) in anchors {
        let free_rows: Vec<usize> =
            (row_from..row_to).filter(|row| !taken[*row] && rows[*row].op_type.is_some()).collect();
        let free_ops: Vec<usize> =
            (op_from..op_to).filter(|op| found[*op].is_none() && ops[*op].op_type.is_some()).collect();
        for (row, op) in pairs(&free_rows, &free_ops, &|row, op| same_kind(&rows[row], &ops[op])) {
            taken[row] = true;
            found[op] = Some((row, Matched::Position));
        }
        (op_from, row_from) = ((op_to + 1).min(ops.len()), (row_to + 1).min(rows.len()));
    }
    found
}

/// The part of a name before `:OpId_7`, `_token_7`, `_7` and the like.
pub fn without_numbers(name: &str) -> &str {
    let name = name.split_once(":OpId_").map_or(name, |(name, _)| name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare = if bare.len() < name.len() { bare.strip_suffix(['_', ':', '.', '-']).unwrap_or(name) } else { name };
    let bare = bare.strip_suffix("_token").unwrap_or(bare);
    if bare.is_empty() { name } else { bare }
}

/// Pairs names that are unique on each side, after truncation by `cut`.
fn by_name(
    rows: &[Key<'_>],
    ops: &[Key<'_>],
    found: &mut [Option<(usize, Matched)>],
    taken: &mut [bool],
    cut: impl Fn(&str) -> usize,
) {
    let mut known: HashMap<&str, Option<usize>> = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate().filter(|(at, _)| !taken[*at]) {
        known.entry(&row.name[..cut(row.name)]).and_modify(|known| *known = None).or_insert(Some(at));
    }
    let mut times: HashMap<&str, u32> = HashMap::with_capacity(ops.len());
    for (_, op) in ops.iter().enumerate().filter(|(at, _)| found[*at].is_none()) {
        *times.entry(&op.name[..cut(op.name)]).or_default() += 1;
    }
    for (op, key) in ops.iter().enumerate() {
        let name = &key.name[..cut(key.name)];
        let Some(Some(row)) = known.get(name).copied() else { continue };
        let same_type = rows[row].op_type.is_none() == key.op_type.is_none();
        if found[op].is_none() && times.get(name) == Some(&1) && same_type {
            found[op] = Some((row, Matched::Name));
            taken[row] = true;
        }
    }
}

fn same_kind(a: &Key<'_>, b: &Key<'_>) -> bool {
    a.op_type == b.op_type && (a.macs.is_none() || b.macs.is_none() || a.macs == b.macs)
}

/// The longest sequence of matches increasing on both sides, as (op, row).
fn rising(found: &[Option<(usize, Matched)>]) -> Vec<(usize, usize)> {
    let matches: Vec<(usize, usize)> =
        found.iter().enumerate().filter_map(|(op, found)| found.map(|(row, _)| (op, row))).collect();
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(matches.len());
    for (at, (_, row)) in matches.iter().enumerate() {
        let place = tails.partition_point(|tail| matches[*tail].1 < *row);
        before.push(place.checked_sub(1).map(|place| tails[place]));
        if place == tails.len() {
            tails.push(at);
        } else {
            tails[place] = at;
        }
    }
    let mut chain = Vec::new();
    let mut next = tails.last().copied();
    while let Some(at) = next {
        chain.push(matches[at]);
        next = before[at];
    }
    chain.reverse();
    chain
}

/// The most pairs of the same kind, in order on both sides.
fn pairs(rows: &[usize], ops: &[usize], same: &dyn Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let head = rows.iter().zip(ops).take_while(|(row, op)| same(**row, **op)).count();
    let (rows_left, ops_left) = (&rows[head..], &ops[head..]);
    let tail = rows_left.iter().rev().zip(ops_left.iter().rev()).take_while(|(row, op)| same(**row, **op)).count();
    let mut paired: Vec<(usize, usize)> = rows.iter().copied().zip(ops.iter().copied()).take(head).collect();
    let (inner_rows, inner_ops) = (&rows_left[..rows_left.len() - tail], &ops_left[..ops_left.len() - tail]);
    if inner_rows.len().saturating_mul(inner_ops.len()) <= TABLE_CELLS {
        longest(inner_rows, inner_ops, same, &mut paired);
    } else {
        greedy(inner_rows, inner_ops, same, &mut paired);
    }
    paired.extend(
        rows_left[rows_left.len() - tail..].iter().copied().zip(ops_left[ops_left.len() - tail..].iter().copied()),
    );
    paired
}

/// Longest common subsequence.
fn longest(rows: &[usize], ops: &[usize], same: &dyn Fn(usize, usize) -> bool, out: &mut Vec<(usize, usize)>) {
    let width = ops.len() + 1;
    let mut best = vec![0u32; (rows.len() + 1) * width];
    for i in (0..rows.len()).rev() {
        for j in (0..ops.len()).rev() {
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let pair = if same(rows[i], ops[j]) { best[(i + 1) * width + j + 1] + 1 } else { 0 };
            best[i * width + j] = skip.max(pair);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < rows.len() && j < ops.len() {
        if same(rows[i], ops[j]) && best[i * width + j] == best[(i + 1) * width + j + 1] + 1 {
            out.push((rows[i], ops[j]));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
}

fn greedy(rows: &[usize], ops: &[usize], same: &dyn Fn(usize, usize) -> bool, out: &mut Vec<(usize, usize)>) {
    let mut from = 0;
    for op in ops {
        let ahead = rows[from..].iter().take(WINDOW).position(|row| same(*row, *op));
        if let Some(ahead) = ahead {
            out.push((rows[from + ahead], *op));
            from += ahead + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys<'a>(ops: &'a [(&'a str, &'a str)]) -> Vec<Key<'a>> {
        ops.iter().map(|(name, op_type)| Key { name, op_type: Some(op_type), macs: None }).collect()
    }

    fn rows_of(found: Vec<Option<(usize, Matched)>>) -> Vec<Option<usize>> {
        found.into_iter().map(|found| found.map(|found| found.0)).collect()
    }

    #[test]
    fn numbers_at_the_end_of_a_name_do_not_matter() {
        for (name, bare) in [
            ("stem_conv_token_2", "stem_conv"),
            ("block1/relu:OpId_17", "block1/relu"),
            ("Conv_12", "Conv"),
            ("block1", "block1"),
            ("12", "12"),
            ("_3", "_3"),
            ("conv", "conv"),
        ] {
            assert_eq!(without_numbers(name), bare, "{name}");
        }
    }

    #[test]
    fn renamed_ops_are_found_between_those_with_names() {
        let a = keys(&[("in", "Conv2d"), ("x1", "Relu"), ("x2", "Conv2d"), ("mid", "Add"), ("x3", "Relu")]);
        let b = keys(&[
            ("in", "Conv2d"),
            ("y9", "Quantize"),
            ("y1", "Relu"),
            ("y2", "Conv2d"),
            ("mid", "Add"),
            ("y3", "Relu"),
        ]);
        assert_eq!(rows_of(align(&a, &b)), [Some(0), None, Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(align(&a, &b)[2], Some((1, Matched::Position)));
        assert_eq!(align(&a, &b)[4], Some((3, Matched::Name)));
    }

    #[test]
    fn names_without_numbers_count_only_where_they_are_unique() {
        let a = keys(&[("conv_1", "Conv2d"), ("conv_2", "Conv2d"), ("pool_3", "Pool")]);
        let b = keys(&[("conv_7", "Conv2d"), ("pool_9", "Pool")]);
        let found = align(&a, &b);
        assert_eq!(found[1], Some((2, Matched::Name)));
        assert_eq!(found[0].map(|found| found.1), Some(Matched::Position));
    }

    #[test]
    fn other_work_is_another_op() {
        let a = [Key { name: "a", op_type: Some("Conv2d"), macs: Some(100) }];
        let b = [Key { name: "b", op_type: Some("Conv2d"), macs: Some(900) }];
        assert_eq!(align(&a, &b), [None]);
    }

    #[test]
    fn thousands_of_renamed_ops_in_one_gap_are_paired_in_order() {
        let names: Vec<String> = (0..5000).map(|i| format!("a{i}x")).collect();
        let others: Vec<String> = (0..4990).map(|i| format!("b{i}x")).collect();
        let types = ["Conv2d", "Relu", "Add"];
        let a: Vec<Key<'_>> =
            names.iter().enumerate().map(|(i, n)| Key { name: n, op_type: Some(types[i % 3]), macs: None }).collect();
        // The first and the last ten differ, so that neither end pairs on its own.
        let b: Vec<Key<'_>> = others
            .iter()
            .enumerate()
            .map(|(i, n)| Key { name: n, op_type: Some(types[(i + 1) % 3]), macs: None })
            .collect();
        let found = rows_of(align(&a, &b));
        assert!(found.iter().flatten().count() > 4900);
        assert!(found.iter().flatten().collect::<Vec<_>>().is_sorted());
    }

    proptest! {
        #[test]
        fn no_row_is_taken_twice_and_kinds_agree(
            a in prop::collection::vec((0u8..20, 0u8..4), 0..60),
            b in prop::collection::vec((0u8..20, 0u8..4), 0..60),
        ) {
            let text = |ops: &[(u8, u8)]| -> Vec<(String, String)> {
                ops.iter().map(|(name, kind)| (format!("op{name}"), format!("T{kind}"))).collect()
            };
            let (a, b) = (text(&a), text(&b));
            let key = |(name, kind): &'static (String, String)| Key { name, op_type: Some(kind), macs: None };
            let a: &'static [(String, String)] = a.leak();
            let b: &'static [(String, String)] = b.leak();
            let (rows, ops): (Vec<Key<'_>>, Vec<Key<'_>>) = (a.iter().map(key).collect(), b.iter().map(key).collect());
            let found = align(&rows, &ops);
            prop_assert_eq!(found.len(), ops.len());
            let mut taken: Vec<usize> = found.iter().flatten().map(|found| found.0).collect();
            taken.sort_unstable();
            let pairs = taken.len();
            taken.dedup();
            prop_assert_eq!(taken.len(), pairs);
            for (op, found) in ops.iter().zip(&found) {
                match found {
                    Some((row, Matched::Position)) => prop_assert_eq!(rows[*row].op_type, op.op_type),
                    Some((row, _)) => prop_assert_eq!(without_numbers(rows[*row].name), without_numbers(op.name)),
                    None => {}
                }
            }
        }

        #[test]
        fn a_graph_is_aligned_with_itself_and_with_parts_of_itself(
            kinds in prop::collection::vec(0u8..4, 1..80),
            left_out in prop::collection::vec(any::<bool>(), 80),
        ) {
            let text: &'static [(String, String)] =
                kinds.iter().enumerate().map(|(i, kind)| (format!("n{i}/op"), format!("T{kind}"))).collect::<Vec<_>>().leak();
            let rows: Vec<Key<'_>> =
                text.iter().map(|(name, kind)| Key { name, op_type: Some(kind), macs: None }).collect();
            let kept: Vec<usize> = (0..rows.len()).filter(|at| !left_out[*at]).collect();
            let part: Vec<Key<'_>> = kept.iter().map(|at| rows[*at]).collect();
            let expected: Vec<Option<(usize, Matched)>> = kept.iter().map(|at| Some((*at, Matched::Name))).collect();
            prop_assert_eq!(align(&rows, &part), expected);
        }
    }
}
