//! The part of FlexBuffers that custom operators need: one map of numbers and strings. Anything else is
//! skipped, since third-party operators may store anything in theirs.

use std::collections::BTreeMap;

/// A value of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A string.
    Text(String),
}

/// Numbers of the value kinds.
const INT: u8 = 1;
const UINT: u8 = 2;
const KEY: u8 = 4;
const STRING: u8 = 5;
const INDIRECT_INT: u8 = 6;
const INDIRECT_UINT: u8 = 7;
const MAP: u8 = 9;
/// Most entries that are read.
const MOST_ENTRIES: usize = 256;

/// The entries of the map at the end of `bytes`; `None` if they contain something else.
pub fn map(bytes: &[u8]) -> Option<BTreeMap<String, Value>> {
    let [.., kind, width] = bytes else { return None };
    if kind >> 2 != MAP {
        return None;
    }
    let root = bytes.len().checked_sub(2)?.checked_sub(usize::from(*width))?;
    let at = root.checked_sub(number(bytes, root, usize::from(*width))?)?;
    let width = 1usize << (kind & 3);
    let count = number(bytes, at.checked_sub(width)?, width)?;
    let key_width = number(bytes, at.checked_sub(2 * width)?, width)?;
    let keys_from = at.checked_sub(3 * width)?;
    let keys = keys_from.checked_sub(number(bytes, keys_from, width)?)?;
    let types = at.checked_add(count.checked_mul(width)?)?;
    let mut entries = BTreeMap::new();
    for index in 0..count.min(MOST_ENTRIES) {
        let key = keys.checked_add(index.checked_mul(key_width)?)?;
        let key = text(bytes, key.checked_sub(number(bytes, key, key_width)?)?)?;
        let kind = *bytes.get(types.checked_add(index)?)?;
        if let Some(value) = value(bytes, at + index * width, width, kind) {
            entries.insert(key, value);
        }
    }
    Some(entries)
}

fn value(bytes: &[u8], at: usize, width: usize, kind: u8) -> Option<Value> {
    let follow = || at.checked_sub(number(bytes, at, width)?);
    let inner = 1usize << (kind & 3);
    match kind >> 2 {
        INT | UINT => wide(bytes, at, width).map(Value::Number),
        INDIRECT_INT | INDIRECT_UINT => wide(bytes, follow()?, inner).map(Value::Number),
        KEY => text(bytes, follow()?).map(Value::Text),
        STRING => {
            let from = follow()?;
            let len = number(bytes, from.checked_sub(inner)?, inner)?;
            let text = bytes.get(from..from.checked_add(len)?)?;
            Some(Value::Text(crate::event::clean_text(&String::from_utf8_lossy(text))))
        }
        _ => None,
    }
}

/// A number of 1, 2, 4 or 8 bytes.
fn wide(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(width)?)?;
    matches!(width, 1 | 2 | 4 | 8).then(|| part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    usize::try_from(wide(bytes, at, width)?).ok()
}

/// A null-terminated string.
fn text(bytes: &[u8], at: usize) -> Option<String> {
    let rest = bytes.get(at..)?;
    let len = rest.iter().position(|&byte| byte == 0)?;
    Some(crate::event::clean_text(&String::from_utf8_lossy(&rest[..len])))
}
