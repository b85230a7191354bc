//! What the reader of closing words learns from: the kept logs, and the ends of others.

use crate::logs::{Known, read, sets};
use qnnscope::diagnosis::Diagnoser;
use qnnscope::diagnosis::learned::NONE;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A log to learn from.
#[derive(Debug, Clone)]
pub struct Example {
    pub words: BTreeMap<String, u32>,
    /// Its cause, or [`NONE`].
    pub cause: String,
}

impl Example {
    pub fn of(known: &Known) -> Self {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(known.log.as_bytes());
        let is_none = known.none_is_right || known.right.is_empty();
        let cause = if is_none { NONE.to_owned() } else { known.right[0].clone() };
        Self { words: diagnoser.closing_words(), cause }
    }
}

/// Failures whose logs are those of good runs, word for word.
const UNTOLD: [&str; 3] = ["disk-full-exit-0.log", "input-missing-cpu-verbose.log", "input-too-small-cpu-verbose.log"];

/// All logs that are learned from.
pub fn known() -> Vec<Known> {
    let known = sets().into_iter().flat_map(|(_, logs)| logs).chain(read());
    known.filter(|known| !UNTOLD.contains(&known.name.as_str())).collect()
}

/// Tells whether weights are of these examples.
pub fn digest(examples: &[Example]) -> String {
    let mut hash = Sha256::new();
    for example in examples {
        hash.update(&example.cause);
        for (word, count) in &example.words {
            hash.update(format!("\t{word} {count}"));
        }
        hash.update("\n");
    }
    let start = hash.finalize().first_chunk().copied().map_or(0, u64::from_be_bytes);
    format!("# {} logs, {start:016x}", examples.len())
}
