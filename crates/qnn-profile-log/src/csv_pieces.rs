//! Row fragments shared by the summary and the inferences of the table.

use super::kinds::Unit;
use super::output::{self, Piece};

/// The fields between value and name: unit, source, level.
#[inline]
pub(super) fn middle(unit: Unit, is_below: bool) -> &'static Piece {
    const fn both(root: &[u8], below: &[u8]) -> [Piece; 2] {
        [Piece::new(root), Piece::new(below)]
    }
    static US: [Piece; 2] = both(b",US,BACKEND,ROOT,", b",US,BACKEND,SUB-EVENT,");
    static BYTES: [Piece; 2] = both(b",BYTES,BACKEND,ROOT,", b",BYTES,BACKEND,SUB-EVENT,");
    static CYCLES: [Piece; 2] = both(b",CYCLES,BACKEND,ROOT,", b",CYCLES,BACKEND,SUB-EVENT,");
    static COUNT: [Piece; 2] = both(b",COUNT,BACKEND,ROOT,", b",COUNT,BACKEND,SUB-EVENT,");
    static NONE: [Piece; 2] = both(b",NONE,BACKEND,ROOT,", b",NONE,BACKEND,SUB-EVENT,");
    // The viewer treats an unknown unit as microseconds.
    let pieces = match unit {
        Unit::Microseconds | Unit::Object | Unit::Other(_) => &US,
        Unit::Bytes => &BYTES,
        Unit::Cycles => &CYCLES,
        Unit::Count => &COUNT,
        Unit::NoUnit => &NONE,
    };
    &pieces[usize::from(is_below)]
}

pub(super) fn graph_name(out: &mut Vec<u8>, number: usize, name: &[u8]) {
    out.extend_from_slice(b"Graph ");
    output::integer(out, number);
    out.extend_from_slice(b": ");
    output::name(out, name);
    out.push(b'\n');
}
