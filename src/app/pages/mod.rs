//! The pages beside the live view: a list of results, and the detail of the selected entry. Their content comes from
//! pure functions of the store; selection and scrolling are handled here.

mod accuracy;
mod browser;
mod compare;
mod diagnosis;
mod findings;
mod known;
mod layout;
mod modes;
mod outliers;
mod placement;
mod program;
mod sessions;
mod table;

pub use browser::{Browser, LABEL, detail_rows, paragraph_rows};
pub use compare::{CompareLayout, Comparing, Part, Total};
pub use diagnosis::what_failed;
pub use findings::Counts;
pub use known::{Known, log_of};
pub use layout::{PageLayout, PageWishes, Section, layout};
pub use modes::Modes;
pub use program::printed;
pub use table::{ListPage, PAGES, content, opened_by};

use super::symbols::Symbols;
use super::theme::Meaning;
use crate::accuracy::AccuracyDocument;
use crate::analysis::EvidencePlace;

/// What a page shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// The paragraphs above the list.
    pub head: Vec<(String, Meaning)>,
    /// The entries to choose from.
    pub entries: Vec<Entry>,
    /// Shown instead of an empty list.
    pub empty: String,
    /// The run's log is shown below.
    pub log: bool,
}

/// A list entry with everything in its detail.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Identity that survives rebuilding the list.
    pub key: String,
    /// How much it matters.
    pub sign: Sign,
    /// A short word or figure before the title.
    pub tag: String,
    /// One line.
    pub title: String,
    /// A short word or figure at the end, and its meaning.
    pub note: (String, Meaning),
    /// The detail.
    pub items: Vec<Item>,
}

/// How much an entry matters; shown by a symbol and a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Must be fixed, or is certain.
    Problem,
    /// Could be better.
    Warning,
    /// Likely, but not confirmed.
    Open,
    /// Good to know.
    Note,
    /// Does not hold.
    Refuted,
}

/// A paragraph of the detail.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its label, one word; empty for continuations.
    pub label: &'static str,
    /// The text.
    pub text: String,
    /// Its meaning.
    pub meaning: Meaning,
    /// A command or part of a file below the text, shown verbatim.
    pub literal: Option<String>,
    /// Where it can be seen.
    pub target: Option<JumpTarget>,
}

/// Where something can be seen.
#[derive(Debug, Clone, PartialEq)]
pub enum JumpTarget {
    /// A place in the live view.
    Place(EvidencePlace),
    /// A log line, numbered from 1 at the start of the session.
    LogLine(u64),
}

impl Item {
    /// A plain-text paragraph.
    pub fn new(label: &'static str, text: impl Into<String>) -> Self {
        Self { label, text: text.into(), meaning: Meaning::Text, literal: None, target: None }
    }

    /// The same with another meaning.
    pub fn meaning(self, meaning: Meaning) -> Self {
        Self { meaning, ..self }
    }

    /// The text to copy: the command, if any.
    pub fn copied(&self) -> &str {
        self.literal.as_deref().unwrap_or(&self.text)
    }
}

impl Entry {
    /// The text to copy while the list has the focus: the first command of the fix, else the fix, else the title.
    pub fn copied(&self) -> &str {
        let main = |label: &str| self.items.iter().find(|item| item.label == label);
        let ready = self.items.iter().find(|item| item.label == SNIPPET && item.literal.is_some());
        ready.or_else(|| main(FIX)).map_or(&self.title, Item::copied)
    }
}

/// Label of what to do.
const FIX: &str = "fix";
/// Label of what is ready to copy.
const SNIPPET: &str = "copy";

impl Content {
    /// The same with its sentences in this symbol set. Text that is copied or shown verbatim stays unchanged.
    fn in_symbols(mut self, symbols: &Symbols) -> Self {
        let change = |text: &mut String| *text = symbols.sentence(std::mem::take(text));
        self.head.iter_mut().for_each(|(text, _)| change(text));
        change(&mut self.empty);
        for entry in &mut self.entries {
            change(&mut entry.title);
            change(&mut entry.note.0);
            entry.items.iter_mut().for_each(|item| change(&mut item.text));
        }
        self
    }
}

/// Number of entries on the page of a model comparison, each built in full.
pub fn accuracy_entries(document: &AccuracyDocument) -> usize {
    accuracy::content(Some(document), &super::symbols::UNICODE).entries.len()
}
