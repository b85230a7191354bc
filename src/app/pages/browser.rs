//! Selection and scroll state of a page with a list.

use super::{Entry, JumpTarget, PageLayout, Section};
use crate::app::theme::Meaning;
use crate::app::widgets::{self, wrap, wrap_literal};
use crate::event::RunId;
use std::ops::Range;

/// Columns of the labels in a detail.
pub const LABEL: u16 = 8;

/// What is selected and scrolled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Browser {
    /// The section that has the focus.
    pub section: Section,
    /// Only that section is shown.
    pub zoomed: bool,
    /// First entry shown.
    pub list_top: usize,
    /// Selected paragraph of the detail.
    pub item: usize,
    /// First row of the detail shown.
    pub detail_top: usize,
    /// First log line shown; `None` follows the selection.
    pub log_top: Option<usize>,
    run: Option<RunId>,
    selected: Option<(String, usize)>,
    /// Rows of the paragraphs as last drawn.
    spans: Vec<Range<usize>>,
    heights: [usize; 3],
}

/// A row of the detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailRow {
    /// The paragraph.
    pub item: usize,
    /// Its label, in its first row.
    pub label: &'static str,
    /// The text.
    pub text: String,
    /// Its meaning.
    pub meaning: Meaning,
}

impl Browser {
    /// Position of the selected entry. If it is gone, the entry now at its position is selected.
    pub fn position(&self, entries: &[Entry]) -> usize {
        let Some((key, index)) = &self.selected else { return 0 };
        let known = entries.iter().position(|entry| entry.key == *key);
        known.unwrap_or_else(|| (*index).min(entries.len().saturating_sub(1)))
    }

    /// Selects an entry.
    pub fn select(&mut self, entries: &[Entry], index: usize) {
        let index = index.min(entries.len().saturating_sub(1));
        if entries.get(index).is_some_and(|_| index != self.position(entries)) {
            (self.item, self.detail_top, self.log_top) = (0, 0, None);
        }
        self.selected = entries.get(index).map(|entry| (entry.key.clone(), index));
    }

    /// Selects an entry of a run before the page is first drawn.
    pub fn show(&mut self, run: Option<RunId>, entries: &[Entry], index: usize) {
        if self.run != run {
            *self = Self { run, ..Self::default() };
        }
        self.select(entries, index);
    }

    /// Pins the selection to its entry, wherever that moves. Until the user acts, the first entry is
    /// selected, whichever it is.
    pub fn hold(&mut self, entries: &[Entry]) {
        self.select(entries, self.position(entries));
    }

    /// Selects another entry, regardless of the focus.
    pub fn step_entry(&mut self, entries: &[Entry], step: isize) {
        self.select(entries, self.position(entries).saturating_add_signed(step));
    }

    /// Moves within the focused section. `log_lines` is the length of the log.
    pub fn step(&mut self, entries: &[Entry], step: isize, log_lines: usize) {
        self.hold(entries);
        match self.section {
            Section::List => self.step_entry(entries, step),
            Section::Detail => self.step_item(step),
            Section::Log => {
                let top = self.log_top.unwrap_or(0).saturating_add_signed(step);
                self.log_top = Some(top.min(log_lines.saturating_sub(self.heights[2])));
            }
        }
    }

    /// Goes to another paragraph; one taller than its area is scrolled through first.
    fn step_item(&mut self, step: isize) {
        let Some(last) = self.spans.len().checked_sub(1) else { return };
        let height = self.heights[1];
        let span = self.spans[self.item.min(last)].clone();
        if step == 1 && span.end > self.detail_top + height {
            self.detail_top += 1;
        } else if step == -1 && span.start < self.detail_top {
            self.detail_top -= 1;
        } else {
            self.item = self.item.saturating_add_signed(step).min(last);
        }
        self.log_top = None;
    }

    /// Selects the paragraph at this row of its area.
    pub fn select_item_at(&mut self, row: usize) {
        let row = self.detail_top + row;
        if let Some(item) = self.spans.iter().position(|span| span.contains(&row)) {
            (self.item, self.log_top) = (item, None);
        }
    }

    /// Rows per page of the focused section.
    pub fn page_rows(&self) -> usize {
        match self.section {
            Section::List => self.heights[0],
            // Paragraphs are several rows high.
            Section::Detail => self.heights[1] / 3,
            Section::Log => self.heights[2],
        }
    }

    /// Moves the focus to the next or previous section.
    pub fn focus(&mut self, log: bool, forward: bool) {
        let all = [Section::List, Section::Detail, Section::Log];
        let count = if log { 3 } else { 2 };
        let at = all.iter().position(|section| *section == self.section).unwrap_or(0);
        self.section = all[(at + if forward { 1 } else { count - 1 }) % count];
    }

    /// Clamps everything to the existing content, before a frame. `log` holds the line numbers of the run's log.
    pub fn settle(&mut self, run: Option<RunId>, entries: &[Entry], layout: &PageLayout, log: &[u64]) {
        if self.run != run {
            *self = Self { run, zoomed: self.zoomed, ..Self::default() };
        }
        let position = self.position(entries);
        if self.selected.is_some() {
            self.select(entries, position);
        }
        let inside = |area| usize::from(layout.inside(area).height);
        self.heights = [inside(layout.list), inside(layout.detail), inside(layout.log)];
        keep_visible(&mut self.list_top, position..position + 1, entries.len(), self.heights[0]);
        let Some(entry) = entries.get(position) else {
            (self.spans, self.item, self.detail_top) = (Vec::new(), 0, 0);
            return;
        };
        self.item = self.item.min(entry.items.len().saturating_sub(1));
        let rows = detail_rows(entry, layout.inside(layout.detail).width);
        self.spans = (0..entry.items.len())
            .map(|item| {
                let start = rows.partition_point(|row| row.item < item);
                start..rows.partition_point(|row| row.item <= item)
            })
            .collect();
        let span = self.spans.get(self.item).cloned().unwrap_or(0..0);
        keep_visible(&mut self.detail_top, span, rows.len(), self.heights[1]);
        if let (Section::Log, None) = (self.section, self.log_top) {
            self.log_top = Some(self.log_start(entry, log));
        }
        let last = log.len().saturating_sub(self.heights[2]);
        self.log_top = self.log_top.map(|top| top.min(last));
    }

    /// First log line shown: the target of the selected paragraph, else the first line supporting the entry, with a few
    /// lines before it.
    pub fn log_start(&self, entry: &Entry, log: &[u64]) -> usize {
        const BEFORE: usize = 2;
        let last = log.len().saturating_sub(self.heights[2]);
        let at = |number: u64| log.binary_search(&number).ok();
        let line = |target: &Option<JumpTarget>| match target {
            Some(JumpTarget::LogLine(number)) => at(*number),
            _ => None,
        };
        let selected = entry.items.get(self.item).filter(|_| self.section != Section::List);
        let found = selected.and_then(|item| line(&item.target));
        let found = found.or_else(|| entry.items.iter().find_map(|item| line(&item.target)));
        self.log_top.unwrap_or_else(|| found.map_or(last, |index| index.saturating_sub(BEFORE))).min(last)
    }

    /// The selected paragraph of an entry.
    pub fn item<'a>(&self, entry: &'a Entry) -> Option<&'a super::Item> {
        entry.items.get(self.item)
    }
}

/// Scrolls so that `span` is visible, or part of it if too tall.
fn keep_visible(top: &mut usize, span: Range<usize>, rows: usize, height: usize) {
    let (first, last) = (span.end.saturating_sub(height), span.start);
    *top = (*top).clamp(first.min(last), first.max(last)).min(rows.saturating_sub(height));
}

/// The rows of an entry's detail at a given width.
pub fn detail_rows(entry: &Entry, columns: u16) -> Vec<DetailRow> {
    let room = columns.saturating_sub(LABEL + 3).max(8);
    let mut rows = Vec::new();
    for (index, item) in entry.items.iter().enumerate() {
        let mut label = item.label;
        let mut add = |text: String, meaning| {
            rows.push(DetailRow { item: index, label: std::mem::take(&mut label), text, meaning });
        };
        for text in wrap(&item.text, room) {
            add(text, item.meaning);
        }
        for line in item.literal.iter().flat_map(|text| text.lines()) {
            for text in wrap_literal(line, room) {
                add(text, Meaning::Key);
            }
        }
    }
    rows
}

/// Paragraphs broken into rows of a given width.
pub fn paragraph_rows(paragraphs: &[(String, Meaning)], columns: u16) -> Vec<(String, Meaning)> {
    let room = columns.saturating_sub(2);
    paragraphs
        .iter()
        .flat_map(|(text, meaning)| widgets::wrap(text, room).into_iter().map(|row| (row, *meaning)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Item, Sign};
    use super::*;
    use ratatui::layout::Rect;

    fn entry(key: &str, items: usize) -> Entry {
        let items = (0..items).map(|i| Item {
            target: (i % 2 == 1).then_some(JumpTarget::LogLine(10 * i as u64)),
            ..Item::new("seen", "word ".repeat(20))
        });
        Entry {
            key: key.to_owned(),
            sign: Sign::Note,
            tag: String::new(),
            title: key.to_owned(),
            note: (String::new(), Meaning::Muted),
            items: items.collect(),
        }
    }

    fn layout() -> PageLayout {
        let area = |y, height| Rect::new(0, y, 40, height);
        PageLayout { list: area(0, 4), detail: area(4, 6), log: area(10, 5), rules: true, ..PageLayout::default() }
    }

    #[test]
    fn the_selection_stays_with_its_entry() {
        let mut browser = Browser::default();
        let entries = vec![entry("a", 3), entry("b", 3), entry("c", 3)];
        browser.settle(None, &entries, &layout(), &[]);
        browser.step_entry(&entries, 1);
        let moved = vec![entry("new", 1), entry("a", 3), entry("b", 3)];
        browser.settle(None, &moved, &layout(), &[]);
        assert_eq!(browser.position(&moved), 2);
        // Gone: the entry in its place is selected, or nothing if none is left.
        browser.settle(None, &[entry("x", 1)], &layout(), &[]);
        assert_eq!(browser.position(&[entry("x", 1)]), 0);
        browser.settle(None, &[], &layout(), &[]);
        assert_eq!(browser.position(&[]), 0);
    }

    #[test]
    fn every_row_of_a_detail_can_be_reached() {
        let entries = vec![entry("a", 4)];
        let mut browser = Browser { section: Section::Detail, ..Browser::default() };
        let rows = detail_rows(&entries[0], 40).len();
        let mut seen = vec![false; rows];
        for _ in 0..40 {
            browser.settle(None, &entries, &layout(), &[]);
            seen[browser.detail_top..(browser.detail_top + 5).min(rows)].fill(true);
            browser.step(&entries, 1, 0);
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?}");
        for _ in 0..40 {
            browser.step(&entries, -1, 0);
            browser.settle(None, &entries, &layout(), &[]);
        }
        assert_eq!((browser.item, browser.detail_top), (0, 0));
    }

    #[test]
    fn the_log_begins_at_what_is_selected() {
        let entries = vec![entry("a", 4)];
        let log: Vec<u64> = (1..=50).collect();
        let mut browser = Browser::default();
        browser.settle(None, &entries, &layout(), &log);
        assert_eq!(browser.log_start(&entries[0], &log), 7, "the first evidence is line 10");
        browser.section = Section::Detail;
        browser.step(&entries, 3, log.len());
        assert_eq!(browser.log_start(&entries[0], &log), 27);
        browser.section = Section::Log;
        browser.settle(None, &entries, &layout(), &log);
        browser.step(&entries, isize::MAX / 2, log.len());
        assert_eq!(browser.log_start(&entries[0], &log), 46, "four rows of fifty lines");
    }
}
