//! The words of the lexicon, compiled.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Deserialize;
use std::sync::LazyLock;

/// Index of a class in its table of the lexicon.
pub type Class = u8;

/// Classes of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes(u128);

impl Classes {
    /// Adds a class.
    pub fn insert(&mut self, class: Class) {
        self.0 |= 1_u128 << (class % 128);
    }

    /// True if the two have a class in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the class is among them.
    pub fn has(self, class: Class) -> bool {
        self.0 >> (class % 128) & 1 == 1
    }

    /// True if it contains no class.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The classes, in order.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        (0..128).filter(move |class| self.0 >> class & 1 == 1)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    words: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    said: Vec<Row>,
    object: Vec<Row>,
    who: Vec<Row>,
}

/// One table: its words, each with the class it belongs to.
#[derive(Debug, Default)]
struct Table {
    names: Vec<String>,
    words: Vec<(String, Class)>,
    finder: Option<AhoCorasick>,
    /// Parts of names such as `input_list` count as well.
    in_names: bool,
}

impl Table {
    fn new(rows: Vec<Row>, in_names: bool) -> Self {
        let mut table = Self { in_names, ..Self::default() };
        for (row, class) in rows.into_iter().zip(0_u8..128) {
            table.words.extend(row.words.into_iter().map(|word| (word.to_ascii_lowercase(), class)));
            table.names.push(row.name);
        }
        // A word may belong to several classes, but the automaton contains it once.
        table.words.sort();
        table.words.dedup();
        let mut texts: Vec<&str> = table.words.iter().map(|word| word.0.as_str()).collect();
        texts.dedup();
        table.finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::DFA))
            .build(texts)
            .ok();
        table
    }

    /// The words in a line, each with its position.
    fn find(&self, line: &[u8]) -> Vec<(Class, usize)> {
        self.find_all(line, |_, _| {})
    }

    /// The same; also calls `met` with the start and end of each word.
    fn find_all(&self, line: &[u8], mut met: impl FnMut(usize, usize)) -> Vec<(Class, usize)> {
        let mut found = Vec::new();
        let Some(finder) = &self.finder else { return found };
        let mut from = 0;
        while let Some(hit) = finder.find(aho_corasick::Input::new(line).range(from..)) {
            if !self.is_border(line, hit.start(), hit.end()) {
                // A shorter word may begin one byte later.
                from = hit.start() + 1;
                continue;
            }
            from = hit.end();
            met(hit.start(), hit.end());
            let text = String::from_utf8_lossy(&line[hit.range()]).to_ascii_lowercase();
            let first = self.words.partition_point(|word| word.0 < text);
            for word in self.words[first..].iter().take_while(|word| word.0 == text) {
                found.push((word.1, hit.start()));
            }
        }
        found
    }

    /// True if the match is not part of a longer word. A file extension (`.dlc`) always follows a name.
    fn is_border(&self, line: &[u8], start: usize, end: usize) -> bool {
        let is_part = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_' && !self.in_names);
        let before = start.checked_sub(1).and_then(|at| line.get(at));
        (line[start] == b'.' || !is_part(before)) && !is_part(line.get(end))
    }

    fn class(&self, name: &str) -> Option<Class> {
        let place = self.names.iter().position(|known| known == name)?;
        u8::try_from(place).ok()
    }
}

/// The three tables.
#[derive(Debug)]
pub struct Lexicon {
    said: Table,
    object: Table,
    who: Table,
}

/// Both files, concatenated.
const FILES: &str = concat!(include_str!("lexicon/said.toml"), "\n", include_str!("lexicon/objects.toml"));

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    // A file that does not parse is a bug that the tests catch.
    let tables: Tables = toml::from_str(FILES).unwrap_or_default();
    // `error_handling.cpp` and `ENCODING_UNDEFINED` contain no predicate.
    Lexicon {
        said: Table::new(tables.said, false),
        object: Table::new(tables.object, true),
        who: Table::new(tables.who, true),
    }
});

/// The lexicon.
pub fn lexicon() -> &'static Lexicon {
    &LEXICON
}

impl Lexicon {
    /// Predicates in a line.
    pub fn said(&self, line: &[u8]) -> Vec<(Class, usize)> {
        self.said.find(line)
    }

    /// Objects in a line, without parts of a tool's name (`qnn-onnx-converter`).
    pub fn objects(&self, line: &[u8]) -> Vec<(Class, usize)> {
        let mut names: Vec<(usize, usize)> = Vec::new();
        self.who.find_all(line, |start, end| {
            if line[start..end].contains(&b'-') {
                names.push((start, end));
            }
        });
        let mut objects = self.object.find(line);
        objects.retain(|(_, at)| !names.iter().any(|(start, end)| (start..end).contains(&at)));
        objects
    }

    /// Speakers named in a line.
    pub fn who(&self, line: &[u8]) -> Vec<(Class, usize)> {
        self.who.find(line)
    }

    /// Class of a predicate.
    pub fn said_class(&self, name: &str) -> Option<Class> {
        self.said.class(name)
    }

    /// Class of an object.
    pub fn object_class(&self, name: &str) -> Option<Class> {
        self.object.class(name)
    }

    /// Class of a speaker.
    pub fn who_class(&self, name: &str) -> Option<Class> {
        self.who.class(name)
    }

    /// Names of all predicate classes.
    pub fn said_names(&self) -> impl Iterator<Item = &str> {
        self.said.names.iter().map(String::as_str)
    }

    /// Name of a predicate class.
    pub fn said_name(&self, class: Class) -> &str {
        self.said.names.get(usize::from(class)).map_or("", String::as_str)
    }

    /// Name of an object class.
    pub fn object_name(&self, class: Class) -> &str {
        self.object.names.get(usize::from(class)).map_or("", String::as_str)
    }

    /// Name of a speaker class.
    pub fn who_name(&self, class: Class) -> &str {
        self.who.names.get(usize::from(class)).map_or("", String::as_str)
    }

    /// The words for any of these predicate classes.
    pub fn words_of(&self, said: Classes) -> impl Iterator<Item = &str> {
        let words = self.said.words.iter();
        words.filter(move |word| said.has(word.1)).map(|word| word.0.as_str())
    }
}
