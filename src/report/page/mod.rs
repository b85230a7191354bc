//! A report's content before it becomes HTML or Markdown: sections of texts, tables and charts. A pure
//! function of what was recorded.

mod accuracy;
mod compared;
mod findings;
mod judged;
mod overview;
mod placement;
mod run;

use super::charts::Chart;
use super::comparison::{ComparisonOptions, ComparisonReport};
use super::mask::Mask;
use super::source::Recorded;
use crate::accuracy::AccuracyDocument;
use crate::analysis::Severity;
use crate::analysis::compare::{Side, pool_rounds};
use crate::store::Store;

/// A recording, and what is missing from it.
#[derive(Debug)]
pub struct Part<'a> {
    /// Its file; empty for the live session.
    pub shown: &'a str,
    /// Its contents.
    pub store: &'a Store,
    /// What is missing from it.
    pub notes: &'a [String],
}

/// The input of a report.
#[derive(Debug)]
pub struct Material<'a> {
    /// Sessions in the order they were named.
    pub parts: Vec<Part<'a>>,
    /// The files behind them, for what the store does not keep; empty for the live session.
    pub files: &'a [Recorded],
    /// The comparison of their runs, if there are several.
    pub comparison: Option<ComparisonReport>,
    /// Comparisons of models layer by layer, with their files.
    pub accuracy: &'a [(String, AccuracyDocument)],
    /// Removes private data.
    pub mask: Mask,
}

impl<'a> Material<'a> {
    /// From files.
    pub fn of_files(files: &'a [Recorded], redact: bool) -> Self {
        let part = |file: &'a Recorded| Part { shown: &file.shown, store: &file.store, notes: &file.notes };
        Self::new(files.iter().map(part).collect(), files, redact)
    }

    /// From a session that is still running.
    pub fn of_live(store: &'a Store, redact: bool) -> Self {
        Self::new(vec![Part { shown: "", store, notes: &[] }], &[], redact)
    }

    fn new(parts: Vec<Part<'a>>, files: &'a [Recorded], redact: bool) -> Self {
        let mask = if redact { Mask::of(parts.iter().map(|part| part.store)) } else { Mask::none() };
        let sides = pool_rounds(&sides(&parts));
        let comparison = (sides.len() > 1).then(|| ComparisonReport::new(sides, &ComparisonOptions::default()));
        Self { parts, files, comparison, accuracy: &[], mask }
    }

    /// Adds comparisons of models, layer by layer.
    #[must_use]
    pub fn with_accuracy(mut self, documents: &'a [(String, AccuracyDocument)]) -> Self {
        self.accuracy = documents;
        if self.mask.is_active() {
            for (_, document) in documents {
                self.mask.learn_accuracy(document);
            }
        }
        self
    }

    /// Runs of all sessions, each with its session, numbered from 1.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &'a Store, &'a crate::store::Run)> + '_ {
        let all = self.parts.iter().flat_map(|part| part.store.runs().iter().map(move |run| (part.store, run)));
        (1..).zip(all).map(|(number, (store, run))| (number, store, run))
    }
}

fn sides(parts: &[Part<'_>]) -> Vec<Side> {
    let mut sides = Vec::new();
    for part in parts {
        let runs = part.store.runs();
        for (number, run) in (1..).zip(runs) {
            let mut side = Side::of_ended(part.store, run);
            side.origin = if runs.len() > 1 { format!("{}#{number}", part.shown) } else { part.shown.to_owned() };
            sides.push(side);
        }
    }
    sides
}

/// A complete report.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// What it is about, in one line.
    pub subtitle: String,
    /// Its contents.
    pub sections: Vec<Section>,
}

/// A part with a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// True for a subsection of the section before it.
    pub is_sub: bool,
    /// Its contents.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A paragraph that must not be overlooked.
    Warning(String),
    /// Names with their values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Findings, most important first.
    Findings(Vec<ReportedFinding>),
    /// Lines as they were printed.
    Lines(Vec<String>),
    /// A picture.
    Chart(Chart),
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Headings, and whether a column holds figures.
    pub columns: Vec<(String, bool)>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
    /// Number of rows that a short report shows.
    pub brief_rows: usize,
    /// True for a long table, which a page may collapse.
    pub is_long: bool,
}

/// A finding in words.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedFinding {
    /// How much it matters.
    pub severity: Severity,
    /// One sentence.
    pub title: String,
    /// The evidence.
    pub evidence: Vec<String>,
    /// What to do, and why.
    pub advice: Option<(String, String)>,
    /// Possible saving.
    pub gain: Option<String>,
    /// Ready to copy.
    pub snippets: Vec<String>,
}

impl Table {
    /// An empty table; a heading that starts with `#` marks a column of figures.
    pub fn new(columns: &[&str], brief_rows: usize) -> Self {
        let column = |name: &&str| match name.strip_prefix('#') {
            Some(name) => (name.to_owned(), true),
            None => ((*name).to_owned(), false),
        };
        Self { columns: columns.iter().map(column).collect(), rows: Vec::new(), brief_rows, is_long: false }
    }
}

impl Page {
    /// The page of all the material.
    pub fn of(material: &Material<'_>) -> Self {
        // Comparisons of models alone have no runs to summarise.
        let mut sections = if material.parts.is_empty() { Vec::new() } else { overview::sections(material) };
        sections.extend(compared::sections(material));
        let several = material.runs().count() > 1;
        for (number, store, run) in material.runs() {
            sections.extend(run::sections(number, several, store, run, &material.mask));
        }
        for (file, document) in material.accuracy {
            let shown = (material.accuracy.len() > 1).then_some(file.as_str());
            sections.extend(accuracy::sections(document, shown, &material.mask));
        }
        let mut page = Self { title: overview::title(material), subtitle: overview::subtitle(material), sections };
        if material.mask.is_active() {
            page.map(&|text| material.mask.text(text).into_owned());
        }
        page
    }

    /// Applies `change` to every text.
    fn map(&mut self, change: &dyn Fn(&str) -> String) {
        let to = |text: &mut String| *text = change(text);
        to(&mut self.title);
        to(&mut self.subtitle);
        for section in &mut self.sections {
            to(&mut section.title);
            for block in &mut section.blocks {
                match block {
                    Block::Text(text) | Block::Warning(text) => to(text),
                    Block::Facts(facts) => facts.iter_mut().for_each(|(_, value)| to(value)),
                    Block::Table(table) => table.rows.iter_mut().flatten().for_each(to),
                    Block::Lines(lines) => lines.iter_mut().for_each(to),
                    Block::Chart(chart) => chart.map(change),
                    Block::Findings(findings) => {
                        for told in findings {
                            to(&mut told.title);
                            told.evidence.iter_mut().chain(&mut told.snippets).for_each(to);
                            if let Some((action, why)) = &mut told.advice {
                                to(action);
                                to(why);
                            }
                        }
                    }
                }
            }
        }
    }
}
