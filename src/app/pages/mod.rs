//! The pages beside the live view: a list of what was found out, and the detail of the selected entry. What they say is
//! made by pure functions of the store; what is selected and scrolled is here.

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
    /// What there is to choose from.
    pub entries: Vec<Entry>,
    /// Said instead of a list without entries.
    pub empty: String,
    /// The page has the log of the run below.
    pub log: bool,
}

/// An entry of the list with everything that its detail says.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What stays the same when the list is rebuilt.
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

/// How much an entry matters; said by a sign and a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Cannot stay so, or is certain.
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
    /// What it is, in a word; empty for more of the same.
    pub label: &'static str,
    /// The words.
    pub text: String,
    /// Their meaning.
    pub meaning: Meaning,
    /// A command or a part of a file below the words, shown as it is.
    pub literal: Option<String>,
    /// Where it can be seen.
    pub target: Option<JumpTarget>,
}

/// Where something can be seen.
#[derive(Debug, Clone, PartialEq)]
pub enum JumpTarget {
    /// A place in the live view.
    Place(EvidencePlace),
    /// A line of the log, counted from the begin of the session, from 1.
    LogLine(u64),
}

impl Item {
    /// A paragraph of plain words.
    pub fn new(label: &'static str, text: impl Into<String>) -> Self {
        Self { label, text: text.into(), meaning: Meaning::Text, literal: None, target: None }
    }

    /// The same with another meaning.
    pub fn meaning(self, meaning: Meaning) -> Self {
        Self { meaning, ..self }
    }

    /// What is copied: the command where there is one.
    pub fn copied(&self) -> &str {
        self.literal.as_deref().unwrap_or(&self.text)
    }
}

impl Entry {
    /// What is copied while the list has the focus: the first command of what to do, else what to do, else the title.
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
    /// The same with its sentences in these characters. What is copied and shown as it is stays.
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

/// Entries of the page of a comparison of two models, each made in full.
pub fn accuracy_entries(document: &AccuracyDocument) -> usize {
    accuracy::content(Some(document), &super::symbols::UNICODE).entries.len()
}
