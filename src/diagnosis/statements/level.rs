//! The severity that a line claims.

use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::LazyLock;

/// Bytes at the start of a line that are searched for its level.
const HEAD: usize = 160;

/// The level of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `[DEBUG]`, `<V>` and the like.
    Debug,
    /// `[INFO]` and the like.
    Info,
    /// The line does not say.
    #[default]
    Unsaid,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

const MARKS: [(&str, Level); 64] = [
    ("<e>", Level::Error),
    ("<f>", Level::Error),
    ("[error]", Level::Error),
    ("[ error ]", Level::Error),
    ("[  error ]", Level::Error),
    ("[error:", Level::Error),
    ("[fatal]", Level::Error),
    ("[e:", Level::Error),
    ("[f:", Level::Error),
    ("[l1]", Level::Error),
    ("error:", Level::Error),
    ("error :", Level::Error),
    ("::error", Level::Error),
    (" e qnn", Level::Error),
    (" - error - ", Level::Error),
    ("fatal:", Level::Error),
    ("level=error", Level::Error),
    ("[err]", Level::Error),
    ("[e]", Level::Error),
    ("(e)", Level::Error),
    ("<w>", Level::Warning),
    ("[warning]", Level::Warning),
    ("[ warning ]", Level::Warning),
    ("[warn]", Level::Warning),
    ("[ warn ]", Level::Warning),
    ("[w:", Level::Warning),
    ("[l2]", Level::Warning),
    ("warning:", Level::Warning),
    (" - warning - ", Level::Warning),
    ("warn:", Level::Warning),
    ("userwarning", Level::Warning),
    ("futurewarning", Level::Warning),
    ("deprecationwarning", Level::Warning),
    ("[w]", Level::Warning),
    (" wrn ", Level::Warning),
    ("[qnn e]", Level::Error),
    ("[qnn w]", Level::Warning),
    ("[qnn i]", Level::Info),
    ("[qnn d]", Level::Debug),
    ("[qnn v]", Level::Debug),
    (" inf ", Level::Info),
    (" dbg ", Level::Debug),
    ("<i>", Level::Info),
    ("[info]", Level::Info),
    ("[ info ]", Level::Info),
    ("[  info ]", Level::Info),
    ("[i:", Level::Info),
    ("info:", Level::Info),
    (" - info - ", Level::Info),
    ("[i]", Level::Info),
    ("level=info", Level::Info),
    ("[l3]", Level::Info),
    ("<v>", Level::Debug),
    ("<d>", Level::Debug),
    ("[verbose]", Level::Debug),
    ("[ verbose ]", Level::Debug),
    ("[debug]", Level::Debug),
    ("[ debug ]", Level::Debug),
    ("[v:", Level::Debug),
    ("[d:", Level::Debug),
    ("debug:", Level::Debug),
    (" - debug - ", Level::Debug),
    ("[l4]", Level::Debug),
    ("[d]", Level::Debug),
];

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let marks = MARKS.iter().map(|mark| mark.0);
    AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(marks).ok()
});

/// The level of a line. The last of several marks in brackets counts, since tools put their own before a
/// library's message; next comes the level of Android's log; then words.
pub fn level(line: &[u8]) -> Level {
    let head = &line[..line.len().min(HEAD)];
    // `INFO tool: ...`, the start of many programs' lines.
    if head.starts_with(b"INFO ") || head.starts_with(b"DEBUG ") {
        return Level::Info;
    }
    let marks = FINDER.iter().flat_map(|finder| finder.find_overlapping_iter(head));
    let (mut mark, mut word) = (None, None);
    for (text, level, at) in marks.map(|found| {
        let (text, level) = MARKS[found.pattern().as_usize()];
        (text, level, found.start())
    }) {
        // A level of three letters stands after the time; elsewhere ` inf ` is a number.
        if text.starts_with(' ') && text.len() == 5 && !head[..at].last().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        if text.starts_with(['<', '[', '(']) {
            mark = Some(level);
        } else {
            word = word.or(Some(level));
        }
    }
    let word = word.or_else(|| named(head));
    // `[info] Error: ...`: the mark of an editor or a launcher before the program's own message.
    match (mark, word) {
        (Some(Level::Info | Level::Debug), Some(Level::Error)) if said_right_after(head) => Level::Error,
        _ => mark.or_else(|| logcat(head)).or(word).unwrap_or_default(),
    }
}

/// `{"level": "info", ...}`, `2026-11-25T23:36:41 | WARN could not ...`, `... agent[28]: <warn> ...`, `... hub[27]: <4> ...`.
fn named(head: &[u8]) -> Option<Level> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let of = |word: &[u8]| match word.to_ascii_lowercase().as_slice() {
        b"fatal" | b"critical" | b"crit" | b"severe" | b"err" | b"error" | b"emerg" | b"alert" | b"3" | b"2" | b"1" => {
            Some(Level::Error)
        }
        b"warn" | b"warning" | b"4" => Some(Level::Warning),
        b"info" | b"notice" | b"success" | b"5" | b"6" => Some(Level::Info),
        b"debug" | b"trace" | b"verbose" | b"7" => Some(Level::Debug),
        _ => None,
    };
    if head.trim_ascii_start().starts_with(b"{") {
        const KEYS: [&[u8]; 6] =
            [b"\"level\"", b"\"lvl\"", b"\"sev\"", b"\"severity\"", b"\"levelname\"", b"\"loglevel\""];
        let after = KEYS.iter().find_map(|key| memchr::memmem::find(head, key).map(|at| &head[at + key.len()..]))?;
        let value = after.split(|byte| !is_word(byte)).find(|word| !word.is_empty())?;
        // Services pass on everything that a program prints as an error.
        return of(value).filter(|level| value[0].is_ascii_alphabetic() && *level != Level::Error);
    }
    // A mark between angles, which follows the name of a service.
    let angle = memchr::memmem::find(head, b"]: <").and_then(|at| head[at + 4..].split(|byte| *byte == b'>').next());
    if let Some(level) = angle.and_then(of) {
        return Some(level);
    }
    // A word in capitals after the time.
    let words = head.split(|byte| !is_word(byte)).filter(|word| !word.is_empty()).take(10);
    let is_time = head.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'[');
    let is_level = |word: &&[u8]| word.len() > 3 && word.iter().all(u8::is_ascii_uppercase);
    is_time.then(|| words.filter(is_level).find_map(of)).flatten()
}

/// True if the text after the last info or debug mark begins with "error:".
fn said_right_after(head: &[u8]) -> bool {
    const MARKS: [&[u8]; 4] = [b"[info]", b"[INFO]", b"[debug]", b"[DEBUG]"];
    let after = MARKS.iter().filter_map(|mark| memchr::memmem::rfind(head, mark).map(|at| at + mark.len())).max();
    after.is_some_and(|at| head[at..].trim_ascii_start().to_ascii_lowercase().starts_with(b"error:"))
}

/// `08-04 13:56:51.508  4711  4712 E Tag: text`, and `E/Tag( 4711): text`.
fn logcat(head: &[u8]) -> Option<Level> {
    let of = |letter: u8| match letter {
        b'E' | b'F' => Some(Level::Error),
        b'W' => Some(Level::Warning),
        b'I' => Some(Level::Info),
        b'V' | b'D' => Some(Level::Debug),
        _ => None,
    };
    if let [letter, b'/', ..] = head {
        return of(*letter);
    }
    let is_stamp = |word: &[u8]| word.first().is_some_and(u8::is_ascii_digit) && word.contains(&b'-');
    let words: Vec<&[u8]> = head.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    // The last stamp counts: a log may contain lines of another log.
    let date = words.iter().rposition(|word| is_stamp(word))?;
    let letter = words.iter().skip(date + 1).take(4).find(|word| word.len() == 1)?;
    of(letter[0])
}
