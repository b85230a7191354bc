//! Tells documents (pages, reviews, diffs, source files) from logs. The failures that a document describes did not happen;
//! those in lines pasted between a user's sentences did.

use super::evidence::Evidence;
use super::statements::{Level, level};

/// Lines examined; a longer text is a log.
const LINES: u64 = 400;
/// A text with fewer document lines is a note, in which every line counts.
const FEWEST: u32 = 4;
/// Percentage of document lines from which a text is a document.
const SHARE: u32 = 50;
/// Signals of document lines that are kept until the end of the text.
const WAITING: usize = 256;
/// Words from which a line is a sentence rather than a message.
const SENTENCE_WORDS: usize = 9;
/// Percentage of plain words in a sentence.
const PLAIN_SHARE: usize = 75;
/// Chinese, Japanese or Korean characters from which a line is a sentence.
const WIDE_SENTENCE: usize = 12;

/// Signals of document lines, kept until it is known whether the text is a document.
#[derive(Debug, Clone, Default)]
pub struct Prose {
    lines: u32,
    of_document: u32,
    waiting: Vec<((usize, usize), Evidence)>,
}

impl Prose {
    /// Counts a line.
    pub fn note(&mut self, number: u64, line: &[u8]) {
        let line = line.trim_ascii();
        if number <= LINES && !line.is_empty() {
            self.lines += 1;
            self.of_document += u32::from(is_of_document(line));
        }
    }

    /// True if the line with this number is examined.
    pub fn is_reading(number: u64) -> bool {
        number <= LINES
    }

    /// Keeps a signal (indexes of cause and signal) if only the whole text decides whether its line counts.
    pub fn keeps(&mut self, place: (usize, usize), evidence: &Evidence, line: &[u8]) -> bool {
        if evidence.line > LINES || self.waiting.len() >= WAITING || !is_of_document(line.trim_ascii()) {
            return false;
        }
        if !self.waiting.iter().any(|(other, _)| *other == place) {
            self.waiting.push((place, evidence.clone()));
        }
        true
    }

    /// The signals that count after all.
    pub fn at_end(&mut self) -> Vec<((usize, usize), Evidence)> {
        let is_document = self.of_document >= FEWEST && self.of_document * 100 >= self.lines * SHARE;
        let waiting = std::mem::take(&mut self.waiting);
        if is_document { Vec::new() } else { waiting }
    }
}

/// True for a line of a page, of source code or of a diff that does not look like a message.
fn is_of_document(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    if is_markup(line) || is_code(line) {
        return true;
    }
    let is_message = level(line.as_bytes()) != Level::Unsaid || line.starts_with(|c: char| c.is_ascii_digit());
    !is_message && is_sentence(line)
}

/// `1. Text`, `2) Text`.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with(". ") || rest.starts_with(") ")
}

/// A heading, list entry, table row or diff header.
fn is_markup(line: &str) -> bool {
    const STARTS: [&str; 12] =
        ["# ", "## ", "### ", "#### ", "| ", "**", "@@ ", "diff --git", "--- ", "+++ ", "<!--", "```"];
    STARTS.iter().any(|start| line.starts_with(start))
        || is_item(line)
        || line.starts_with('|') && line.ends_with('|')
        || is_entry(line)
}

/// `- A sentence.`: programs also print lists, but of plain words.
fn is_entry(line: &str) -> bool {
    let Some(rest) = ["- ", "* ", "+ ", "• "].iter().find_map(|start| line.strip_prefix(start)) else { return false };
    rest.contains('`') || rest.contains("**") || rest.ends_with(['.', ';', ':']) || is_sentence(rest)
}

/// Source code, whatever messages it names.
fn is_code(line: &str) -> bool {
    const STARTS: [&str; 16] = [
        "//", "/*", "*/", "#include", "#if", "#endif", "#define", "if (", "return ", "def ", "class ", "import ",
        "assert ", "|| ", "&& ", "typedef ",
    ];
    let line = line.trim_start_matches(['+', '-']).trim_start();
    let is_named = |rest: &str| rest.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ' '));
    let is_set = line.split_once(" = ").is_some_and(|(name, value)| {
        is_named(name) && (line.ends_with(',') || value.starts_with(['"', '\'']) && value.ends_with(['"', '\'']))
    });
    let ends = [";", "{", "}", "};", "},", "||", "&&", ");", "\\"].iter().any(|end| line.ends_with(end));
    // A message may end with what it lists.
    let is_list = line.ends_with('}') && line.contains(": {");
    let open = line.matches('(').count().cmp(&line.matches(')').count());
    let is_broken_call = line.ends_with([',', '(']) && open.is_gt();
    ends && !is_list || is_broken_call || is_set || STARTS.iter().any(|start| line.starts_with(start))
}

/// A sentence written by a person, or a line of one: many words, most of them plain.
fn is_sentence(line: &str) -> bool {
    const ERRORS: [&str; 8] = ["error", "failed", "fail ", "unable", "cannot", "could not", "fatal", "exception"];
    let start = line.get(..16).unwrap_or(line).to_ascii_lowercase();
    if ERRORS.iter().any(|word| start.starts_with(word)) || line.contains("0x") {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_plain = |word: &&&str| {
        let word = word.trim_matches(['.', ',', ';', ':', '(', ')', '"', '\'', '!', '?', '’', '*', '—']);
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'' || c == '’')
    };
    let plain = words.iter().filter(is_plain).count();
    let is_wide = line.chars().filter(|c| *c as u32 >= 0x2e80).count() >= WIDE_SENTENCE;
    is_wide || words.len() >= SENTENCE_WORDS && plain * 100 >= words.len() * PLAIN_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_documents_are_told_from_messages() {
        for line in [
            "## Known issues",
            "- Cleans up the resources if an error occurs.",
            "+    if (size > 2147483648u) {",
            "// Create the backend.",
            "| error 1008 | versions differ |",
            "Since the backend does not support dynamic input shapes, we limit the maximum duration that the model can handle.",
            "1. Install the driver.",
        ] {
            assert!(is_of_document(line.as_bytes()), "{line}");
        }
        for line in [
            "[ERROR] QnnDsp <E> Stub lib id mismatch: expected (v2.1), detected (v2.2)",
            "Failed to create device: 14001",
            "2025-09-02 10:01:22.123 [E:onnxruntime:, qnn_execution_provider.cc:1055] QNN SetupBackend failed",
            "ValueError: Tensor overrides are not in a list",
            "E/AndroidRuntime( 4711): java.lang.UnsatisfiedLinkError: dlopen failed",
            "ggml-hex: failed to open session 0 : error 0x80000406",
            "0.4ms [ ERROR ] <E> Failed to parse platform config: 14001",
        ] {
            assert!(!is_of_document(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn only_in_a_document_its_own_lines_do_not_count() {
        let shown = |text: &[&str]| {
            let mut prose = Prose::default();
            for (number, line) in (1..).zip(text) {
                prose.note(number, line.as_bytes());
                let evidence = Evidence { line: number, text: (*line).to_owned() };
                prose.keeps((0, usize::try_from(number).unwrap()), &evidence, line.as_bytes());
            }
            prose.at_end().len()
        };
        let page = ["# FAQ", "- The first.", "- The second of them.", "- The third of them."];
        assert_eq!(shown(&page), 0);
        assert_eq!(shown(&page[2..]), 2);
    }
}
