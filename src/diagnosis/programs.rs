//! What public programs around QNN (exporters, quantizers, frameworks, clients) print when something fails, read from their
//! sources, and which cause each message means. A table and not rules of the catalogue: there are thousands of messages,
//! each from one place of one program, and no two share a form.

use super::catalogue::{Certainty, causes};
use super::pattern;
use super::statements::{Level, level};
use aho_corasick::AhoCorasick;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

mod traceback;

pub use traceback::Tail;

/// Per program: the name that its modules have, and its messages, one a line: cause, certainty, text with `{}` for values.
const MESSAGES: [(&str, &str); 28] = [
    ("ai_edge_litert", include_str!("programs/messages/ai_edge_litert.tsv")),
    ("ai_edge_quantizer", include_str!("programs/messages/ai_edge_quantizer.tsv")),
    ("ai_edge_torch", include_str!("programs/messages/ai_edge_torch.tsv")),
    ("aimet_onnx", include_str!("programs/messages/aimet_onnx.tsv")),
    ("aimet_torch", include_str!("programs/messages/aimet_torch.tsv")),
    ("executorch", include_str!("programs/messages/executorch.tsv")),
    ("huggingface_hub", include_str!("programs/messages/huggingface_hub.tsv")),
    ("litert_torch", include_str!("programs/messages/litert_torch.tsv")),
    ("mnn", include_str!("programs/messages/mnn.tsv")),
    ("olive", include_str!("programs/messages/olive.tsv")),
    ("onnx", include_str!("programs/messages/onnx.tsv")),
    ("onnx2tf", include_str!("programs/messages/onnx2tf.tsv")),
    ("onnx_graphsurgeon", include_str!("programs/messages/onnx_graphsurgeon.tsv")),
    ("onnxconverter_common", include_str!("programs/messages/onnxconverter_common.tsv")),
    ("onnxruntime", include_str!("programs/messages/onnxruntime.tsv")),
    ("onnxruntime_genai", include_str!("programs/messages/onnxruntime_genai.tsv")),
    ("onnxscript", include_str!("programs/messages/onnxscript.tsv")),
    ("onnxsim", include_str!("programs/messages/onnxsim.tsv")),
    ("onnxslim", include_str!("programs/messages/onnxslim.tsv")),
    ("optimum", include_str!("programs/messages/optimum.tsv")),
    ("paddle2onnx", include_str!("programs/messages/paddle2onnx.tsv")),
    ("qai_hub", include_str!("programs/messages/qai_hub.tsv")),
    ("qai_hub_models", include_str!("programs/messages/qai_hub_models.tsv")),
    ("tensorflow", include_str!("programs/messages/tensorflow.tsv")),
    ("tf2onnx", include_str!("programs/messages/tf2onnx.tsv")),
    ("torch", include_str!("programs/messages/torch.tsv")),
    ("torchao", include_str!("programs/messages/torchao.tsv")),
    ("transformers", include_str!("programs/messages/transformers.tsv")),
];
/// One source file a line: its path, and the cause and certainty of an exception that it raises without a known message.
const MODULES: &str = include_str!("programs/modules.tsv");

/// Letters in the fixed parts of a message from which it is found anywhere in a line; a shorter one has to begin the text.
const LONG: usize = 24;
/// Bytes of a line that are searched.
const LINE_BYTES: usize = 2048;
/// Bytes of the shortest word by which messages are looked up.
const WORD: usize = 3;
/// What comes before the text of a message: `ValueError: `, `[ERROR] `, `- ERROR - `.
const BEFORE: [&[u8]; 5] = [b": ", b"] ", b"- ", b"> ", b"| "];

/// Cause of an exception that a program did not foresee.
const CRASHED: &str = "converter-crashed";
/// Programs that run models as well as they prepare them, and those whose models are of every kind.
const RUN_MODELS: [&str; 5] = ["torch", "transformers", "huggingface_hub", "tensorflow", "ai_edge_litert"];

/// How a line of source code begins that holds a message.
const SOURCE: [&[u8]; 5] = [b"raise ", b"assert ", b"print(", b"logger.", b"return "];

/// A message that a program can print.
#[derive(Debug)]
struct Message {
    /// Its fixed parts, in order, in lower case.
    parts: Vec<String>,
    /// It begins with a value.
    begins_open: bool,
    /// Letters in the fixed parts.
    letters: usize,
    program: usize,
    /// The program has to be named in the log: the words are anybody's.
    is_common: bool,
    meaning: Meaning,
}

/// What a message means: a cause (by its index) and how sure that is.
pub type Meaning = (usize, Certainty);

/// A message found in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    pub meaning: Meaning,
    /// The program that has to be named in the log, if one has.
    pub needs: Option<usize>,
    /// Where the message begins in the line.
    pub at: usize,
}

/// All messages and modules.
#[derive(Debug)]
struct Table {
    messages: Vec<Message>,
    /// Indices of messages by the rarest of their words.
    by_word: HashMap<String, Vec<usize>>,
    names: Option<AhoCorasick>,
    modules: HashMap<&'static str, Meaning>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// The columns of a table's lines.
fn rows(text: &'static str) -> impl Iterator<Item = [&'static str; 3]> {
    text.lines().filter_map(|line| line.split('\t').collect::<Vec<_>>().try_into().ok())
}

/// Words as messages are looked up by.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.len() >= WORD)
}

impl Table {
    fn read() -> Self {
        let places: HashMap<&str, usize> = causes().iter().enumerate().map(|(at, cause)| (&*cause.id, at)).collect();
        let meaning = |cause: &str, certainty: &str| Some((*places.get(cause)?, Certainty::named(certainty)?));
        let mut messages = Vec::new();
        for (program, (_, texts)) in MESSAGES.iter().enumerate() {
            for [cause, certainty, text] in rows(texts) {
                let (certainty, is_common) =
                    certainty.strip_suffix('*').map_or((certainty, false), |plain| (plain, true));
                if let Some(meaning) = meaning(cause, certainty) {
                    messages.push(Message::read(text, program, is_common, meaning));
                }
            }
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for word in messages.iter().flat_map(|message| message.words().into_iter()) {
            *counts.entry(word).or_default() += 1;
        }
        let mut by_word: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            let rarest = message.words().into_iter().min_by_key(|word| (counts[word], usize::MAX - word.len(), *word));
            if let Some(word) = rarest {
                by_word.entry(word.to_owned()).or_default().push(index);
            }
        }
        let modules = rows(MODULES).filter_map(|[path, cause, certainty]| Some((path, meaning(cause, certainty)?)));
        let modules = modules.collect();
        Self { names: pattern::words(MESSAGES.iter().map(|(name, _)| name)), by_word, modules, messages }
    }
}

impl Message {
    fn read(text: &str, program: usize, is_common: bool, meaning: Meaning) -> Self {
        let text = text.to_ascii_lowercase();
        let parts: Vec<String> = text.split("{}").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let letters = parts.iter().flat_map(|part| part.bytes()).filter(u8::is_ascii_alphabetic).count();
        Self { begins_open: text.starts_with("{}"), parts, letters, program, is_common, meaning }
    }

    /// The words that a line with this message has, whatever its values: those that no value touches.
    fn words(&self) -> BTreeSet<&str> {
        let last = self.parts.len() - 1;
        let whole = self.parts.iter().enumerate().flat_map(|(at, part)| {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            // A value may continue the first or last word of a part.
            let from = if at > 0 || self.begins_open { part.find(|c| !is_word(c)).unwrap_or(part.len()) } else { 0 };
            let to = if at < last { part.rfind(|c| !is_word(c)).unwrap_or(0) } else { part.len() };
            words(part.get(from..to).unwrap_or_default())
        });
        whole.collect()
    }

    /// Where the message begins in a line in lower case, if the line has it.
    fn find(&self, line: &[u8]) -> Option<usize> {
        let first = self.parts.first()?.as_bytes();
        memchr::memmem::find_iter(line, first).find(|&start| {
            let before = &line[..start];
            let begins = start == 0 || BEFORE.iter().any(|mark| before.ends_with(mark));
            let is_free = self.begins_open || begins || before.last().is_none_or(|c| !c.is_ascii_alphanumeric());
            if !is_free || self.letters < LONG && !self.begins_open && !begins {
                return false;
            }
            let mut at = start + first.len();
            self.parts[1..].iter().all(|part| {
                let found = memchr::memmem::find(&line[at..], part.as_bytes());
                at += found.map_or(0, |found| found + part.len());
                found.is_some()
            })
        })
    }
}

/// The message that a line holds: of several the one with most words of its own. Lines that only inform or warn have none.
pub fn said(line: &[u8]) -> Option<Said> {
    // A traceback quotes the statement that raises before it says what was raised.
    let is_source = SOURCE.iter().any(|word| line.trim_ascii_start().starts_with(word));
    if is_source || matches!(level(line), Level::Info | Level::Debug | Level::Warning) {
        return None;
    }
    let line = line[..line.len().min(LINE_BYTES)].to_ascii_lowercase();
    let text = String::from_utf8_lossy(&line);
    let table = &*TABLE;
    let candidates: BTreeSet<usize> =
        words(&text).filter_map(|word| table.by_word.get(word)).flatten().copied().collect();
    let found = candidates.into_iter().map(|index| &table.messages[index]);
    let found = found.filter_map(|message| Some((message, message.find(&line)?)));
    found.max_by_key(|(message, _)| (message.letters, !message.is_common)).map(|(message, at)| Said {
        meaning: message.meaning,
        needs: message.is_common.then_some(message.program),
        at,
    })
}

/// The programs that a text names, as bits.
pub fn named(text: &[u8]) -> u64 {
    let is_word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
    let found = TABLE.names.iter().flat_map(|names| names.find_overlapping_iter(text)).filter(|found| {
        let (before, after) = (&text[..found.start()], &text[found.end()..]);
        !before.last().is_some_and(is_word) && !after.first().is_some_and(is_word)
    });
    found.fold(0, |bits, found| bits | 1 << found.pattern().as_usize())
}

/// What an exception means that comes from this source file, by the end of its path.
fn module(path: &str) -> Option<Meaning> {
    let path = path.replace('\\', "/");
    let mut starts = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
    starts.find_map(|start| TABLE.modules.get(&path[start..])).copied()
}

/// What an exception means that a program did not foresee, if this source file is one of a program's.
fn unforeseen(path: &str) -> Option<Meaning> {
    let path = path.replace('\\', "/");
    let (_, inside) = path.rsplit_once("-packages/")?;
    let (folder, _) = inside.split_once('/')?;
    let is_known = MESSAGES.iter().any(|(program, _)| *program == folder)
        && !RUN_MODELS.contains(&folder)
        && !inside.starts_with("onnxruntime/capi/");
    let crashed = causes().iter().position(|cause| cause.id == CRASHED)?;
    is_known.then_some((crashed, Certainty::Hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The message as a program prints it, in an exception.
    fn printed(text: &str) -> String {
        format!("ValueError: {}", text.replace("{}", "blk_4"))
    }

    #[test]
    fn every_row_names_a_cause_and_has_words_of_its_own() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (program, texts) in MESSAGES {
            assert_eq!(texts.lines().count(), rows(texts).count(), "{program}: a row without three columns");
            for [cause, certainty, text] in rows(texts) {
                assert!(causes().iter().any(|known| known.id == cause), "{program}: {cause}");
                assert!(Certainty::named(certainty.trim_end_matches('*')).is_some(), "{program}: {certainty}");
                let message = Message::read(text, 0, false, (0, Certainty::Sure));
                assert!(message.letters >= 10 && !message.words().is_empty(), "{program}: {text}");
                assert_eq!(seen.insert(text.to_ascii_lowercase(), program), None, "{program}: {text} stands twice");
            }
        }
        assert_eq!(MODULES.lines().count(), rows(MODULES).count(), "a module without three columns");
        for [path, cause, certainty] in rows(MODULES) {
            assert!(causes().iter().any(|known| known.id == cause), "{path}: {cause}");
            assert!(Certainty::named(certainty).is_some(), "{path}: {certainty}");
        }
        assert!(MESSAGES.len() <= 64, "`named` has a bit for each program");
    }

    #[test]
    fn every_message_is_found_in_the_line_that_prints_it() {
        let mut wrong = Vec::new();
        for (program, texts) in MESSAGES {
            for [cause, _, text] in rows(texts) {
                let found = said(printed(text).as_bytes()).map(|said| &*causes()[said.meaning.0].id);
                if found != Some(cause) {
                    wrong.push(format!("{program}: {text}: {found:?} and not {cause}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} messages\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn a_message_is_none_where_it_only_informs_or_stands_in_source_code() {
        let line = printed("Edge program manager is not set.");
        assert!(said(line.as_bytes()).is_some());
        for other in [
            "[INFO] edge program manager is not set.",
            "WARNING: Edge program manager is not set.",
            "    raise ValueError(\"Edge program manager is not set.\")",
            "ValueError: Edge program is not set.",
        ] {
            assert_eq!(said(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_program_is_named_by_its_modules_and_not_by_part_of_another_word() {
        let bit = |program| 1 << MESSAGES.iter().position(|(name, _)| *name == program).unwrap();
        assert_eq!(named(b"File \"/v/lib/site-packages/aimet_onnx/quantsim.py\", line 3"), bit("aimet_onnx"));
        assert_eq!(named(b"onnxruntime.capi"), bit("onnxruntime"), "and not onnx");
        assert_eq!(named(b"pytorch, monnx and onnx_model"), 0);
    }

    #[test]
    fn modules_are_found_by_the_end_of_a_path_of_any_system() {
        let (path, _) = TABLE.modules.iter().next().unwrap();
        assert!(module(&format!("/v/lib/python3.10/site-packages/{path}")).is_some());
        assert!(module(&format!("C:\\v\\Lib\\site-packages\\{}", path.replace('/', "\\"))).is_some());
        assert_eq!(module("/home/u/export.py"), None);
        assert!(unforeseen("/v/lib/site-packages/onnxruntime/tools/symbolic_shape_infer.py").is_some());
        for other in [
            "/v/lib/site-packages/torch/nn/functional.py",
            "/v/lib/site-packages/numpy/x.py",
            "/home/u/onnxruntime/x.py",
        ] {
            assert_eq!(unforeseen(other), None, "{other}");
        }
    }
}
