//! Known logs that share words with one that no rule answers: which kinds of failure read like it. A pointer for the
//! reader, never a cause: more than half of such answers hold the right kind. [`Row`] and [`Index`] are public for
//! measuring that.

use super::catalogue::{Cause, cause};
use super::pattern;
use aho_corasick::AhoCorasick;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::LazyLock;

/// Known logs, one a line: cause, address (empty if there is none), and the words that tell the log from others. A test
/// writes it from the kept logs.
const KNOWN: &str = include_str!("similar/known.tsv");

/// Lines with a word of failure that are kept from the start of a log, and from its end.
const FIRST: usize = 12;
const LAST: usize = 8;
/// Lines of a text that counts as a whole.
const FEW: usize = 4;
/// Lines kept from the end if none has such a word.
const QUIET: usize = 5;
/// Bytes of a line that are read.
const LINE_BYTES: usize = 400;
/// Digits of a number that may be a code.
const CODE_DIGITS: std::ops::RangeInclusive<usize> = 3..=5;
/// Bytes of the longest hexadecimal code: `0x80000406`.
const HEX_CODE: usize = 10;
/// Fewest words that a log and a kind of failure share.
const FEWEST: usize = 3;
/// The same, counting pairs with their words as one.
const FEWEST_SHOWN: usize = 2;
/// Kinds that are shown.
const MOST: usize = 3;
/// Words that are shown per kind.
const MOST_WORDS: usize = 6;
/// Least score: of the kept logs' kinds with less, one in ten is right, of those with more, two in five.
const LEAST_SCORE: f64 = 3.0;
/// Part of the best kind's score that a further one needs.
const BESIDE: f64 = 0.25;

/// Words of lines that may state a failure.
pub(super) const HOT: [&str; 44] = [
    "err",
    "fail",
    "exception",
    "cannot",
    "can't",
    "could not",
    "not found",
    "not support",
    "not allow",
    "unable",
    "invalid",
    "missing",
    "refus",
    "denied",
    "mismatch",
    "abort",
    "crash",
    "fatal",
    "assert",
    "must",
    "expected",
    "unsupported",
    "no such",
    "unknown",
    "require",
    "does not",
    "doesn't",
    "too large",
    "too small",
    "too many",
    "<e>",
    "signal",
    "killed",
    "traceback",
    "only support",
    "can be",
    "occur",
    "dynamic",
    "unmap",
    "timed out",
    "timeout",
    "please",
    "try ",
    "instead",
];

/// Words that every sentence has.
const EVERYWHERE: [&str; 68] = [
    "the", "an", "of", "to", "in", "is", "at", "on", "for", "and", "or", "by", "with", "line", "file", "from", "this",
    "that", "be", "as", "it", "self", "up", "after", "before", "was", "were", "are", "am", "has", "have", "had",
    "been", "will", "would", "can", "its", "than", "then", "when", "if", "but", "all", "any", "some", "so", "do",
    "did", "does", "you", "your", "we", "our", "my", "he", "they", "there", "here", "what", "which", "who", "how",
    "why", "one", "now", "just", "only", "also",
];

static HOT_WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| pattern::words(HOT));

/// Lines that may state a failure: the first ones and the last ones.
#[derive(Debug, Clone, Default)]
pub struct Words {
    first: Vec<Vec<u8>>,
    last: VecDeque<Vec<u8>>,
    quiet: VecDeque<Vec<u8>>,
    /// All lines so far, while they are few.
    few: Vec<Vec<u8>>,
    lines: usize,
}

impl Words {
    /// Takes a line.
    pub fn note(&mut self, line: &[u8]) {
        let line = &line[..line.len().min(LINE_BYTES)];
        if line.trim_ascii().is_empty() {
            return;
        }
        self.lines += 1;
        if self.few.len() < FEW {
            self.few.push(line.to_vec());
        }
        let is_hot = HOT_WORDS.as_ref().is_some_and(|words| words.is_match(line));
        if is_hot && self.first.len() < FIRST {
            self.first.push(line.to_vec());
            return;
        }
        let (lines, most) = if is_hot { (&mut self.last, LAST) } else { (&mut self.quiet, QUIET) };
        if lines.len() == most {
            lines.pop_front();
        }
        lines.push_back(line.to_vec());
    }

    /// The words of such lines.
    pub fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut words = Self::default();
        lines.for_each(|line| words.note(line.as_bytes()));
        words
    }

    /// The words of these lines, and pairs of neighbours (`fp16 support`).
    pub fn terms(&self) -> BTreeSet<String> {
        let mut terms = BTreeSet::new();
        let lines: Vec<&Vec<u8>> = if self.lines <= FEW {
            self.few.iter().collect()
        } else if self.first.is_empty() {
            self.quiet.iter().collect()
        } else {
            self.first.iter().chain(&self.last).collect()
        };
        for line in lines {
            add_terms(&String::from_utf8_lossy(line).to_ascii_lowercase(), &mut terms);
        }
        terms
    }
}

fn add_terms(line: &str, terms: &mut BTreeSet<String>) {
    let mut before: Option<&str> = None;
    for part in line.split_whitespace() {
        for word in last_of_path(part).split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if word.len() < 2 || EVERYWHERE.contains(&word) || !may_tell(word) {
                continue;
            }
            terms.insert(word.to_owned());
            if word.contains('_') {
                terms.extend(word.split('_').filter(|piece| piece.len() > 2).map(str::to_owned));
            }
            if let Some(before) = before
                && [before, word].iter().any(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
            {
                terms.insert(format!("{before} {word}"));
            }
            before = Some(word);
        }
    }
}

/// Whether a word or number may tell one kind of failure from another: sizes, times, dates and addresses do not.
fn may_tell(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_year = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
    let is_code = CODE_DIGITS.contains(&digits) && digits == word.len() && !is_year;
    let is_hex = word.starts_with("0x") && word.len() <= HEX_CODE;
    digits == 0 || is_code || is_hex || digits * 2 <= word.len() && !word.starts_with(|c: char| c.is_ascii_digit())
}

/// The last part of something with two or more separators of folders, whose other parts are a machine's own.
fn last_of_path(part: &str) -> &str {
    let separators = ['/', '\\'];
    if part.matches(separators).count() < 2 {
        return part;
    }
    part.trim_end_matches(separators).rsplit(separators).next().unwrap_or(part)
}

/// A kind of failure whose known logs share words with this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Similar {
    /// The kind.
    pub cause: &'static Cause,
    /// The words in common that say most.
    pub words: Vec<&'static str>,
    /// Address of the known log of this kind that shares most.
    pub source: Option<&'static str>,
}

/// A known log.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Id of its cause.
    pub cause: &'static str,
    /// Its address; empty if it has none.
    pub source: &'static str,
    terms: &'static str,
}

impl Row {
    fn terms(&self) -> impl Iterator<Item = &'static str> {
        self.terms.split(';')
    }
}

/// All known logs.
pub fn rows() -> impl Iterator<Item = Row> {
    KNOWN.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        Some(Row { cause: fields.next()?, source: fields.next()?, terms: fields.next()? })
    })
}

/// Counts of the words of known logs.
#[derive(Debug)]
pub struct Index {
    rows: Vec<Row>,
    /// Rows with a term.
    having: HashMap<&'static str, Vec<usize>>,
    /// Rows of a cause.
    sizes: HashMap<&'static str, usize>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::of(rows()));

impl Index {
    /// Counts the words of these logs.
    pub fn of(rows: impl Iterator<Item = Row>) -> Self {
        let rows: Vec<Row> = rows.collect();
        let mut having: HashMap<&'static str, Vec<usize>> = HashMap::new();
        let mut sizes: HashMap<&'static str, usize> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            *sizes.entry(row.cause).or_default() += 1;
            row.terms().for_each(|term| having.entry(term).or_default().push(at));
        }
        Self { rows, having, sizes }
    }

    /// The kinds that share most with these words, best first.
    #[expect(clippy::cast_precision_loss, reason = "a few thousand rows")]
    pub fn closest(&self, terms: &BTreeSet<String>) -> Vec<Similar> {
        let mut kinds: HashMap<&'static str, Shared> = HashMap::new();
        let mut nearness: HashMap<usize, f64> = HashMap::new();
        for term in terms {
            let Some((term, having)) = self.having.get_key_value(term.as_str()) else { continue };
            let rarity = (self.rows.len() as f64 / having.len() as f64).ln();
            let mut counts: HashMap<&'static str, usize> = HashMap::new();
            for &row in having {
                *counts.entry(self.rows[row].cause).or_default() += 1;
                *nearness.entry(row).or_default() += rarity;
            }
            for (cause, count) in counts {
                let part = count as f64 / having.len() as f64;
                // A kind with many logs has more words of every sort.
                let size = (self.sizes[cause] as f64 + 5.0).powf(0.25);
                let says = part * (1.0 + count as f64).ln() * rarity / size;
                let shared = kinds.entry(cause).or_default();
                shared.score += says;
                shared.words.push((says, term));
            }
        }
        let mut kinds: Vec<(&'static str, Shared)> =
            kinds.into_iter().filter(|(_, kind)| kind.words.len() >= FEWEST).collect();
        kinds.sort_by(|a, b| b.1.score.total_cmp(&a.1.score).then(a.0.cmp(b.0)));
        let best = kinds.first().map_or(0.0, |(_, shared)| shared.score);
        let close = kinds.into_iter().filter(|(_, shared)| shared.score >= LEAST_SCORE.max(best * BESIDE));
        let known = close.filter_map(|(id, shared)| Some((cause(id).filter(|cause| !cause.generic)?, shared)));
        let similar = known.map(|(cause, shared)| self.similar(cause, shared, &nearness));
        similar.filter(|similar| similar.words.len() >= FEWEST_SHOWN).take(MOST).collect()
    }

    fn similar(&self, cause: &'static Cause, mut shared: Shared, near: &HashMap<usize, f64>) -> Similar {
        shared.words.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let mut words: Vec<&'static str> = Vec::new();
        for (_, word) in shared.words {
            // A pair says what its words say.
            if words.len() < MOST_WORDS && !words.iter().any(|other| other.split(' ').any(|part| part == word)) {
                words.push(word);
            }
        }
        let is_told = |row: &Row| row.cause == cause.id && !row.source.is_empty();
        let told = near.iter().filter(|(row, _)| is_told(&self.rows[**row]));
        let best = told.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        Similar { cause, words, source: best.map(|(row, _)| self.rows[*row].source) }
    }
}

/// What a log shares with the known logs of a kind.
#[derive(Debug, Default)]
struct Shared {
    score: f64,
    /// Words, with what each adds to the score.
    words: Vec<(f64, &'static str)>,
}

/// The kinds of failure whose known logs share most with these words, best first.
pub(super) fn closest(terms: &BTreeSet<String>) -> Vec<Similar> {
    INDEX.closest(terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Diagnoser;

    fn terms(log: &[u8]) -> BTreeSet<String> {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(log);
        diagnoser.terms()
    }

    #[test]
    fn terms_are_words_codes_and_pairs_without_a_machines_folders() {
        let found = terms(b"E 12:00:01 Failed to load /home/ann/w/libQnnHtp.so: error 14001 (soc_model 123456789)\n");
        for term in ["failed", "libqnnhtp", "14001", "soc_model", "soc", "error 14001", "failed load"] {
            assert!(found.contains(term), "{term}: {found:?}");
        }
        assert!(
            !found.iter().any(|term| term.contains("ann") || term.contains("123456789") || term == "to"),
            "{found:?}"
        );
    }

    #[test]
    fn lines_without_a_word_of_failure_count_only_if_there_are_no_others() {
        let quiet = "loading model\nready\n".repeat(3);
        assert!(terms(quiet.as_bytes()).contains("loading"));
        assert!(!terms(format!("{quiet}error: x\n").as_bytes()).contains("loading"));
        assert!(terms(b"loading model\nerror: x\n").contains("loading"), "all that there is");
    }

    #[test]
    fn the_words_of_a_known_log_lead_to_its_kind() {
        let row = rows().find(|row| row.cause == "skel-not-found" && row.terms().count() > 10).unwrap();
        let terms: BTreeSet<String> = row.terms().map(str::to_owned).collect();
        let found = closest(&terms);
        assert_eq!(found[0].cause.id, "skel-not-found");
        assert!(found[0].words.len() >= FEWEST);
        assert!(closest(&BTreeSet::from(["zebra".to_owned()])).is_empty());
    }
}
