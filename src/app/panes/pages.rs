//! The pages with a list: head, list, detail, and the run's log on pages that have it.

use super::{Context, log};
use crate::app::pages::{self, Browser, Content, Entry, JumpTarget, LABEL, ListPage, PageLayout, Section, Sign};
use crate::app::parts::Page;
use crate::app::theme::Meaning;
use crate::app::widgets::{self, fit_end, put, put_right, scroll_marks, width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Columns of the notes at the end of the list's rows.
const NOTE: u16 = 20;

/// Draws the open page.
pub fn draw(buf: &mut Buffer, layout: &PageLayout, said: &Content, context: &Context<'_>) {
    let Some((browser, list)) = context.view.browser().zip(context.view.page.list()) else { return };
    let page = Drawn { layout, said, context, browser, list };
    page.head(buf);
    page.list(buf);
    let entry = said.entries.get(browser.position(&said.entries));
    page.detail(buf, entry);
    page.log(buf, entry);
}

struct Drawn<'a> {
    layout: &'a PageLayout,
    said: &'a Content,
    context: &'a Context<'a>,
    browser: &'a Browser,
    list: &'static ListPage,
}

impl Drawn<'_> {
    /// A section's frame; the first visible section also names the page and the run.
    fn frame(&self, buf: &mut Buffer, area: Rect, section: Option<Section>, more: &[(String, Style)]) -> Rect {
        let context = self.context;
        let (title, muted) = (context.style(Meaning::Title), context.style(Meaning::Muted));
        let mut pieces: Vec<(String, Style)> = Vec::new();
        let first = [self.layout.head, self.layout.list, self.layout.detail, self.layout.log];
        if first.into_iter().find(|area| !area.is_empty()) == Some(area) {
            pieces.push((context.view.page.name().to_owned(), title));
            pieces.extend(super::run_title(context));
        }
        if let Some(name) = section.map(|section| self.name(section)) {
            pieces.push((name.to_owned(), title));
        }
        pieces.extend(more.iter().cloned());
        let dot = format!(" {} ", context.symbols().dot);
        let mut line: Vec<(&str, Style)> = Vec::new();
        for (text, style) in &pieces {
            if !line.is_empty() {
                line.push((&dot, muted));
            }
            line.push((text, *style));
        }
        let focused = section == Some(self.browser.section) && context.view.overlays.is_empty();
        widgets::pane(buf, area, &line, focused, self.layout.rules, context.theme)
    }

    fn name(&self, section: Section) -> &'static str {
        match section {
            Section::List => self.list.title,
            Section::Detail => "detail",
            Section::Log => self.list.log_title,
        }
    }

    fn head(&self, buf: &mut Buffer) {
        if self.layout.head.is_empty() {
            return;
        }
        let inner = self.frame(buf, self.layout.head, None, &[]);
        let rows = pages::paragraph_rows(&self.said.head, inner.width);
        for (y, (text, meaning)) in (0..inner.height).zip(&rows) {
            put(buf, inner, 1, y, text, self.context.style(*meaning));
        }
    }

    fn list(&self, buf: &mut Buffer) {
        if self.layout.list.is_empty() {
            return;
        }
        let (context, entries) = (self.context, &self.said.entries);
        let position = self.browser.position(entries);
        let counted = format!("{} of {}", position + 1, entries.len());
        let more = if entries.is_empty() { vec![] } else { vec![(counted, context.style(Meaning::Muted))] };
        let inner = self.frame(buf, self.layout.list, Some(Section::List), &more);
        if entries.is_empty() {
            context.empty(buf, inner, &self.said.empty);
            return;
        }
        let height = usize::from(inner.height);
        let top = self.browser.list_top.min(entries.len().saturating_sub(height));
        let tags = entries.iter().map(|entry| width(&entry.tag)).max().unwrap_or(0).min(10);
        for (y, (index, entry)) in (0..inner.height).zip(entries.iter().enumerate().skip(top)) {
            self.row(buf, inner, y, entry, tags, index == position);
        }
        if !self.layout.rules {
            scroll_marks(buf, inner, top, entries.len().saturating_sub(top + height), context.theme);
        }
    }

    fn row(&self, buf: &mut Buffer, inner: Rect, y: u16, entry: &Entry, tags: u16, selected: bool) {
        let context = self.context;
        let symbols = context.symbols();
        let style = |meaning: Meaning| if selected { Style::default() } else { context.style(meaning) };
        if selected {
            self.band(buf, inner, y, self.browser.section == Section::List);
            put(buf, inner, 0, y, symbols.marker, Style::default());
        }
        let (sign, meaning) = sign(entry.sign, symbols);
        put(buf, inner, 2, y, sign, style(meaning));
        put_right(buf, inner, 5 + tags, tags, y, &entry.tag, style(Meaning::Muted), symbols.ellipsis);
        let start = if tags == 0 { 5 } else { 7 + tags };
        let mut room = inner.width.saturating_sub(start + 1);
        let note = width(&entry.note.0).min(NOTE);
        if note > 0 && room > note + 16 {
            put_right(buf, inner, inner.width - 1, note, y, &entry.note.0, style(entry.note.1), symbols.ellipsis);
            room -= note + 2;
        }
        put(buf, inner, start, y, &fit_end(&entry.title, room, symbols.ellipsis), style(Meaning::Text));
    }

    /// Highlights the selection; if the focus is elsewhere only the marker shows it.
    fn band(&self, buf: &mut Buffer, inner: Rect, y: u16, focused: bool) {
        let band = Rect { y: inner.y + y, height: 1, ..inner };
        buf.set_style(band, self.context.style(if focused { Meaning::Selection } else { Meaning::Title }));
    }

    fn detail(&self, buf: &mut Buffer, entry: Option<&Entry>) {
        if self.layout.detail.is_empty() {
            return;
        }
        let context = self.context;
        let inner = self.frame(buf, self.layout.detail, Some(Section::Detail), &[]);
        let Some(entry) = entry else { return };
        let rows = pages::detail_rows(entry, inner.width);
        let height = usize::from(inner.height);
        let top = self.browser.detail_top.min(rows.len().saturating_sub(height));
        let focused = self.browser.section == Section::Detail;
        for (y, (index, row)) in (0..inner.height).zip(rows.iter().enumerate().skip(top)) {
            let selected = focused && row.item == self.browser.item;
            let style = |meaning: Meaning| if selected { Style::default() } else { context.style(meaning) };
            if selected {
                self.band(buf, inner, y, true);
            }
            // The first row of each paragraph, so that markers are distinguishable from text.
            if index == 0 || rows[index - 1].item != row.item {
                let item = &entry.items[row.item];
                let sign = if selected { context.symbols().marker } else { " " };
                put(buf, inner, 0, y, sign, style(Meaning::Text));
                if item.target.is_some() {
                    let arrow = context.symbols().arrow;
                    put_right(buf, inner, inner.width, 2, y, arrow, style(Meaning::Key), "");
                }
            }
            put(buf, inner, 1, y, row.label, style(Meaning::Muted));
            put(buf, inner, 1 + LABEL, y, &row.text, style(row.meaning));
        }
        if !self.layout.rules {
            scroll_marks(buf, inner, top, rows.len().saturating_sub(top + height), context.theme);
        }
    }

    fn log(&self, buf: &mut Buffer, entry: Option<&Entry>) {
        let (area, context) = (self.layout.log, self.context);
        if area.is_empty() {
            return;
        }
        let is_program = context.view.page == Page::Program;
        let lines: Vec<_> = match context.run {
            _ if is_program => pages::printed(context.store).collect(),
            Some(run) => pages::log_of(context.store, run.id).collect(),
            None => return,
        };
        let numbers: Vec<u64> = lines.iter().map(|(number, _)| *number).collect();
        let is_evidence = |number: u64| {
            let mut items = entry.iter().flat_map(|entry| &entry.items);
            items.any(|item| item.target == Some(JumpTarget::LogLine(number)))
        };
        let found = numbers.iter().filter(|number| is_evidence(**number)).count();
        let muted = context.style(Meaning::Muted);
        let mut more = vec![(super::status::plural(lines.len() as u64, "line"), muted)];
        if found > 0 {
            more.push((format!("{found} marked {}", context.symbols().marker), context.style(Meaning::Accent)));
        }
        let inner = self.frame(buf, area, Some(Section::Log), &more);
        if lines.is_empty() {
            let empty = if is_program {
                "the program printed nothing yet, or its lines are only in the session file"
            } else {
                "this run logged nothing, or its lines are only in the session file"
            };
            context.empty(buf, inner, empty);
            return;
        }
        let height = usize::from(inner.height);
        let last = lines.len().saturating_sub(height);
        // Program output is followed, as in a terminal.
        let top =
            if is_program { last } else { entry.map_or(0, |entry| self.browser.log_start(entry, &numbers)).min(last) };
        for (y, (number, line)) in (0..inner.height).zip(lines.iter().skip(top)) {
            log::marked_row(buf, inner, context, y, line, is_evidence(*number));
        }
        if !self.layout.rules {
            scroll_marks(buf, inner, top, lines.len().saturating_sub(top + height), context.theme);
        }
    }
}

fn sign(sign: Sign, symbols: &crate::app::symbols::Symbols) -> (&'static str, Meaning) {
    match sign {
        Sign::Problem => (symbols.failed, Meaning::Alert),
        Sign::Warning => ("!", Meaning::Warn),
        Sign::Open => ("?", Meaning::Warn),
        Sign::Note => ("i", Meaning::Muted),
        Sign::Refuted => (symbols.missing, Meaning::Muted),
    }
}
