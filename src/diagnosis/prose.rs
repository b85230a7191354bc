//! Tells documents (pages, reviews, diffs, source files) from logs. The failures that a document describes did not happen;
//! those in lines pasted between a user's sentences did. A line with the form of a message always counts.

use super::evidence::Evidence;
use super::statements::{Level, level};

/// Lines examined; a longer text is a log.
const LINES: u64 = 400;
/// A text with fewer document lines is a note, in which every line counts.
const FEWEST: u32 = 4;
/// So is one with fewer lines of markup or code, however many sentences it has.
const FEWEST_MARKED: u32 = 2;
/// Percentage of document lines from which a text is a document.
const SHARE: u32 = 50;
/// Lines of a signal that are kept until the end of the text.
const WAITING: usize = 8;
/// Bytes of a line; longer ones are dumps and no part of a document.
const LONGEST: usize = 4096;
/// Words from which a line is a sentence rather than a message.
const SENTENCE_WORDS: usize = 9;
/// Percentage of plain words in a sentence.
const PLAIN_SHARE: usize = 75;
/// The same for an entry of a list, which may name options and codes.
const ADVICE_SHARE: usize = 60;
/// Chinese, Japanese or Korean characters from which a line is a sentence.
const WIDE_SENTENCE: usize = 12;

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Printed by a program, or not to be told.
    Message,
    /// A person's sentence.
    Sentence,
    /// Markup, source code or a diff.
    Marked,
}

/// A signal (indexes of cause and signal) and its line.
type Waiting = ((usize, usize), Evidence);

/// Signals of document lines, kept until it is known whether the text is a document.
#[derive(Debug, Clone, Default)]
pub struct Prose {
    lines: u32,
    sentences: u32,
    marked: u32,
    /// The text is longer than [`LINES`], or holds a chat model's answer or TAP's results.
    is_log: bool,
    headings: u32,
    /// Lines that begin or end a quoted block of Markdown.
    fences: Vec<u64>,
    waiting: Vec<Waiting>,
}

impl Prose {
    /// Counts a line.
    pub fn note(&mut self, number: u64, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        // A chat model's answer; what tests print.
        let is_printed = [&b"[BEGIN]"[..], b"TAP version ", b"not ok "].iter().any(|start| line.starts_with(start));
        self.is_log |= number > LINES || is_printed;
        // ```` ```text``` ```` on one line begins no block.
        if line.starts_with(b"```") && !line[3..].ends_with(b"```") {
            self.fences.push(number);
            return;
        }
        // What a page quotes does not make it one.
        if self.fences.len() % 2 == 1 {
            return;
        }
        self.headings += u32::from(is_heading(line));
        self.lines += 1;
        match form(line) {
            Form::Message => {}
            Form::Sentence => self.sentences += 1,
            Form::Marked => self.marked += 1,
        }
    }

    /// True while lines need to be counted.
    pub fn is_open(&self) -> bool {
        !self.is_log
    }

    /// Keeps a signal (indexes of cause and signal) if only the whole text decides whether its line counts.
    pub fn keeps(&mut self, place: (usize, usize), evidence: &Evidence, line: &[u8]) -> bool {
        if self.is_log || form(line.trim_ascii()) == Form::Message {
            return false;
        }
        if self.waiting.iter().filter(|(other, _)| *other == place).count() < WAITING {
            self.waiting.push((place, evidence.clone()));
        }
        true
    }

    /// Whether the text is a document, and the signals that waited for that: those that count, and those that do not. Of a
    /// document count only the lines of quoted blocks that are no code; of a page, what is neither markup nor code, and
    /// what its blocks quote.
    pub fn at_end(&mut self) -> (bool, Vec<Waiting>, Vec<Waiting>) {
        let of_document = self.sentences + self.marked;
        let is_document = !self.is_log
            && self.marked >= FEWEST_MARKED
            && of_document >= FEWEST
            && of_document * 100 >= self.lines * SHARE;
        let is_page = !self.is_log && self.headings > 0 && self.fences.len() >= 2;
        let before = |line: u64| self.fences.iter().filter(|fence| **fence < line).count();
        let is_quoted = |line: u64| before(line) % 2 == 1 && !self.fences.contains(&line);
        let is_aside = |evidence: &Evidence| {
            let marked = is_marked(evidence.text.as_bytes());
            let quoted = is_quoted(evidence.line);
            (is_document && (marked || !quoted)) || (is_page && marked && !quoted)
        };
        let (aside, counted) = std::mem::take(&mut self.waiting).into_iter().partition(|(_, line)| is_aside(line));
        (is_document, counted, aside)
    }
}

/// `## Title`. A shell's comment has one mark.
fn is_heading(line: &[u8]) -> bool {
    let marks = line.iter().take_while(|byte| **byte == b'#').count();
    (2..=6).contains(&marks) && line.get(marks) == Some(&b' ')
}

/// True for markup, source code and diffs.
pub fn is_marked(line: &[u8]) -> bool {
    form(line) == Form::Marked
}

fn form(line: &[u8]) -> Form {
    let Ok(line) = std::str::from_utf8(line) else { return Form::Message };
    if line.len() > LONGEST {
        return Form::Message;
    }
    // Code that quotes messages was not printed.
    if is_quoting(line) {
        return Form::Marked;
    }
    let text = unmarked(line);
    let is_title = is_heading(line.as_bytes()) && level(text.as_bytes()) == Level::Unsaid && !text.contains("0x");
    // Advice in a list may name a code.
    let is_advice =
        text.len() < line.len() && !text.starts_with(['[', '<', '{']) && reads_as_sentence(text, ADVICE_SHARE);
    if is_title || is_advice {
        return Form::Marked;
    }
    if is_message(text) {
        return Form::Message;
    }
    if is_markup(line, text) || is_code(line) {
        Form::Marked
    } else if is_sentence(line) {
        Form::Sentence
    } else {
        Form::Message
    }
}

/// A level, a time stamp, a code, an object of a JSON log.
fn is_message(text: &str) -> bool {
    level(text.as_bytes()) != Level::Unsaid
        || text.starts_with(|c: char| c.is_ascii_digit() || c == '{')
        || text.contains("0x")
        || text.contains(" E ")
}

/// The line without marks of lists, headings, quotes and bold text.
fn unmarked(line: &str) -> &str {
    let line = line.trim_start_matches(['#', '-', '*', '+', '•', '|', '>', ' ']);
    if is_item(line) {
        line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['.', ')', ' '])
    } else {
        line
    }
}

/// `1. Text`, `2) Text`.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// A heading, list entry, table row or diff header. Programs also print lists, but of plain words.
fn is_markup(line: &str, text: &str) -> bool {
    const STARTS: [&str; 10] = ["# ", "## ", "### ", "#### ", "**", "@@ ", "diff --git", "+++ ", "<!--", "```"];
    let is_entry = is_item(line) || ["- ", "* ", "+ ", "• "].iter().any(|start| line.starts_with(start));
    let is_row = line.starts_with('|') && line.ends_with('|') && line.matches('|').count() > 2;
    STARTS.iter().any(|start| line.starts_with(start))
        || is_row
        || is_entry && (text.contains('`') || text.contains("**") || text.ends_with(['.', ':']) || is_sentence(text))
}

/// Comments, conditions, assertions and strings of source code.
fn is_quoting(line: &str) -> bool {
    const STARTS: [&str; 9] = ["//", "/*", "* //", "if (", "} else if (", "assert ", "|| ", "&& ", "#define "];
    let line = line.trim_start_matches(['+', '-']).trim_start();
    let is_string = |value: &str| value.starts_with(['"', '\'']) && value.ends_with(['"', '\'']);
    // Pieces of text that are put together.
    let is_joined = line.starts_with('"') && line.contains("\" + ");
    let is_set = line.split_once(" = ").is_some_and(|(name, value)| is_name(name) && is_string(value));
    is_set || is_joined || STARTS.iter().any(|start| line.starts_with(start))
}

/// A name as source code spells it, maybe with a type before it.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ' '))
}

/// Other source code.
fn is_code(line: &str) -> bool {
    const STARTS: [&str; 8] = ["#include", "#if", "#endif", "return ", "def ", "class ", "import ", "typedef "];
    let line = line.trim_start_matches(['+', '-']).trim_start();
    let is_entry = line.ends_with(',') && line.split_once(" = ").is_some_and(|(name, _)| is_name(name));
    let ends =
        ["};", "},", "||", "&&", ");", ") {"].iter().any(|end| line.ends_with(end)) || line == "{" || line == "}";
    let is_broken_call = line.ends_with([',', '(']) && line.matches('(').count() > line.matches(')').count();
    ends || is_broken_call || is_entry || STARTS.iter().any(|start| line.starts_with(start))
}

/// A sentence written by a person, or a line of one: many words, most of them plain.
fn is_sentence(line: &str) -> bool {
    reads_as_sentence(line, PLAIN_SHARE)
}

fn reads_as_sentence(line: &str, plain_share: usize) -> bool {
    const ERRORS: [&str; 8] = ["error", "failed", "fail ", "unable", "cannot", "could not", "fatal", "exception"];
    let start: String = line.chars().take(16).collect::<String>().to_ascii_lowercase();
    // A quoted message makes it a report.
    if ERRORS.iter().any(|word| start.starts_with(word)) || line.contains(['"', '“', '「']) || line.contains(".so") {
        return false;
    }
    let wide = line.chars().filter(|c| *c as u32 >= 0x2e80).count();
    if wide >= WIDE_SENTENCE {
        return wide * 2 >= line.chars().filter(|c| !c.is_whitespace()).count();
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_plain = |word: &&&str| {
        let word = word.trim_matches(['.', ',', ';', ':', '(', ')', '\'', '!', '?', '’', '*', '—']);
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'' || c == '’')
    };
    let plain = words.iter().filter(is_plain).count();
    words.len() >= SENTENCE_WORDS && plain * 100 >= words.len() * plain_share
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
            "// QnnDsp <E> Failed to create the backend: 0x36b1",
            "log = \"QnnDsp <E> qnn_open failed, 0x80000406\"",
            "| error 1008 | versions differ |",
            "Since the backend does not support dynamic input shapes, we limit the maximum duration that the model can handle.",
            "1. Install the driver.",
            "### 4.2 GenieDialog_create failed, status=-1",
            "- Session errors with -U 1: If you opt into an unsigned PD and see 0x80000416, confirm your image or revert to the default -U 0.",
            "\"V/ort: \" + TAG + \"QnnDsp <E> could not create op: q::Softmax\",",
        ] {
            assert_ne!(form(line.as_bytes()), Form::Message, "{line}");
        }
        for line in [
            "[ERROR] QnnDsp <E> Stub lib id mismatch: expected (v2.1), detected (v2.2)",
            "| [ERROR] QnnDsp <E> Stub lib id mismatch: expected (v2.1), detected (v2.2) |",
            "1) [ERROR] Failed to create device: 14001;",
            "**[ERROR] QnnDsp <E> Failed to load skel**",
            "{\"level\":\"error\",\"msg\":\"Stub lib id mismatch: expected (v2.28), detected (v2.30)\"}",
            "{\"log\":\"Failed to create device: 14001\\n\",\"stream\":\"stderr\"},",
            "2026-01-02 [ERROR] {\"msg\":\"dlopen failed\"}",
            "Failed to create device: 14001",
            "Could not load C:\\qnn\\",
            "无法打开后端库 dlopen failed: library \"libQnnHtp.so\" not found 请检查环境变量是否正确",
            "It says \"Unable to load backend because it cannot be opened\" and then the whole app exits",
            "2025-09-02 10:01:22.123 [E:onnxruntime:, qnn_execution_provider.cc:1055] QNN SetupBackend failed",
            "ValueError: Tensor overrides are not in a list",
            "E/AndroidRuntime( 4711): java.lang.UnsatisfiedLinkError: dlopen failed",
            "ggml-hex: failed to open session 0 : error 0x80000406",
            "0.4ms [ ERROR ] <E> Failed to parse platform config: 14001",
        ] {
            assert_eq!(form(line.as_bytes()), Form::Message, "{line}");
        }
    }

    #[test]
    fn only_in_a_document_its_own_lines_do_not_count() {
        let shown = |text: &[&str], lines: usize| {
            let mut prose = Prose::default();
            let blank = std::iter::repeat_n("plain", lines.saturating_sub(text.len()));
            for (number, line) in (1..).zip(text.iter().copied().chain(blank)) {
                prose.note(number, line.as_bytes());
                let evidence = Evidence { line: number, text: line.to_owned() };
                prose.keeps((0, usize::try_from(number).unwrap()), &evidence, line.as_bytes());
            }
            let (_, counted, _) = prose.at_end();
            counted.len()
        };
        let page = ["# FAQ", "- The first.", "- The second of them.", "- The third of them."];
        assert_eq!(shown(&page, 4), 0);
        assert_eq!(shown(&page[2..], 2), 2, "a note");
        assert_eq!(shown(&page, 401), 4, "a log of more lines than a document has");
        let post = [
            "## Failed to run",
            "```",
            "Failed to create device",
            "- a name",
            "```",
            "- Fails with `1008`.",
            "text",
            "text",
        ];
        assert_eq!(shown(&post, 8), 0, "its lines of text");
        let post = ["## Title", "```", "- Fails with `1008`.", "```"];
        assert_eq!(shown(&post, 12), 1, "what a page quotes");
        let sentence = "When I run this model on my phone it stops after some seconds without result";
        assert_eq!(shown(&[sentence; 6], 6), 6, "a person's report");
    }
}
