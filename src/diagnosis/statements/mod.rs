//! What a line of a log states, whatever its wording: who speaks, about what, and what is said about it.
//!
//! `X not found`, `cannot find X` and `X does not exist` are one statement. The words are data (`lexicon/`);
//! rules of the catalogue match statements with `says`. A clause binds a predicate to the objects near it, so
//! that a line with two sentences makes two statements.

mod codes;
mod level;
mod lexicon;

pub use codes::{Decoded, decode, of_systems};
pub use level::{Level, level};
pub use lexicon::{Class, Classes, lexicon};

/// Farthest distance, in words, between a predicate and an object that belong together.
const REACH_WORDS: usize = 10;
/// Words of a line that are read; a longer line is a dump and not a sentence.
const MOST_WORDS: usize = 400;
/// Bytes of a line that are read.
const MOST_BYTES: usize = 4096;

/// One predicate and the objects near it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The predicate.
    pub said: Class,
    /// Its objects: all those of the clause that are near enough.
    pub of: Classes,
}

impl Statement {
    /// The statement in the lexicon's words: `missing: model, input`.
    pub fn shown(&self) -> String {
        let lexicon = lexicon();
        let of: Vec<&str> = self.of.iter().map(|class| lexicon.object_name(class)).collect();
        let said = lexicon.said_name(self.said);
        if of.is_empty() { said.to_owned() } else { format!("{said}: {}", of.join(", ")) }
    }
}

/// What one line states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statements {
    /// The severity that the line claims.
    pub level: Level,
    /// Who speaks, if the line says so.
    pub who: Classes,
    /// In the order of the line.
    pub list: Vec<Statement>,
    /// The line is source code or prose, not a message.
    is_text: bool,
}

/// A word of the lexicon found in a line.
#[derive(Debug, Clone, Copy)]
struct Found {
    class: Class,
    word: usize,
    clause: usize,
}

impl Statements {
    /// Reads a line.
    pub fn of(line: &[u8]) -> Self {
        let line = &line[..line.len().min(MOST_BYTES)];
        let level = level(line);
        let mut statements = Self { level, is_text: level == Level::Unsaid && is_text(line), ..Self::default() };
        let lexicon = lexicon();
        let places = Places::of(line);
        let found = |words: &[(Class, usize)]| -> Vec<Found> {
            words
                .iter()
                .filter_map(|&(class, at)| places.at(at).map(|(word, clause)| Found { class, word, clause }))
                .collect()
        };
        for (class, _) in lexicon.who(line) {
            statements.who.insert(class);
        }
        let said = found(&lexicon.said(line));
        if said.is_empty() {
            return statements;
        }
        let objects = found(&lexicon.objects(line));
        for predicate in said {
            let mut of = Classes::default();
            for object in &objects {
                if object.clause == predicate.clause && object.word.abs_diff(predicate.word) <= REACH_WORDS {
                    of.insert(object.class);
                }
            }
            let statement = Statement { said: predicate.class, of };
            if !statements.list.contains(&statement) {
                statements.list.push(statement);
            }
        }
        statements
    }

    /// True if the line states that something is wrong.
    pub fn is_failure(&self) -> bool {
        !self.is_text && !matches!(self.level, Level::Info | Level::Debug) && !self.list.is_empty()
    }
}

/// True for a line of source code or prose: logs contain both, and neither says what happened.
fn is_text(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let has = |part: &str| memchr::memmem::find(line, part.as_bytes()).is_some();
    let ends = |ends: &[&str]| ends.iter().any(|end| line.ends_with(end.as_bytes()));
    let starts = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start.as_bytes()));
    // A message may end with a list: `Unsupported nodes: { name: a }`.
    let lists = line.ends_with(b"}") && line.len() > 3 && !has(";") && !has("\":") && !has("=");
    let code = (ends(&[";", "{", "}", ")]", "||", "&&", "\\"]) && !lists)
        || has(">/dev/null")
        || has(" || ")
        || has(" && ")
        || has("\").");
    let document = starts(&["\"description\":", "\"title\":", "- `", "| `", "> "]);
    // The last line of a wrapped paragraph.
    let prose = line.first().is_some_and(u8::is_ascii_lowercase)
        && line.ends_with(b".")
        && !has(":")
        && !has(" '")
        && !has("\"")
        && !line.iter().any(u8::is_ascii_digit);
    // A command that a shell echoes, or a person typed: its options state nothing.
    let says_failure = [" not ", "fail", "cannot", "unable", "rror:", "denied"].iter().any(|word| has(word));
    let command = starts(&["$ ", "+ "]) && !says_failure;
    code || document || prose || command
}

/// Where words and clauses begin.
struct Places {
    /// Position of each word's first byte, with the number of its clause.
    words: Vec<(usize, usize)>,
}

impl Places {
    fn of(line: &[u8]) -> Self {
        let mut words = Vec::new();
        let (mut clause, mut in_word) = (0, false);
        for (at, byte) in line.iter().enumerate() {
            if byte.is_ascii_whitespace() {
                // `a; b` and `a. b` end a clause, the point in `1.2` or `libx.so.1` does not.
                let before = at.checked_sub(1).map(|at| line[at]);
                if in_word && matches!(before, Some(b';' | b'.' | b'!' | b'?')) {
                    clause += 1;
                }
                in_word = false;
            } else if !in_word {
                in_word = true;
                words.push((at, clause));
                if words.len() >= MOST_WORDS {
                    break;
                }
            }
        }
        Self { words }
    }

    /// Index of the word that contains `at`, and its clause.
    fn at(&self, at: usize) -> Option<(usize, usize)> {
        let index = self.words.partition_point(|word| word.0 <= at).checked_sub(1)?;
        self.words.get(index).map(|word| (index, word.1))
    }
}

#[cfg(test)]
mod tests;
