//! The state of the view: what is open, selected, sorted, filtered and scrolled. Numbers belong to the store.

use super::keymap::{KeyContext, Keymap};
use super::layout::{self, Layout, LayoutWishes};
use super::pages::{self, Browser, Comparing, Known, PageLayout, PageWishes};
use super::panes;
use super::parts::{Asked, Overlay, Page, Pane, Paused, Wanted};
use super::replay::{Recording, Replay};
use super::rows::Sort;
use super::shown::{Shown, Wishes};
use super::start::StartForm;
use super::symbols::{Symbols, UNICODE};
use super::{BackendAvailability, KeyAction, StartChoice};
use crate::backends::Backend;
use crate::event::{RunId, Stage};
use crate::history;
use crate::store::{Run, Store};
use ratatui::layout::Rect;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The view.
#[derive(Debug)]
pub struct View {
    /// What fills the screen.
    pub page: Page,
    /// What is open above, the topmost last.
    pub overlays: Vec<Overlay>,
    /// Pane with the focus.
    pub focus: Pane,
    /// Pane in the main place of a small screen.
    pub main: Pane,
    /// The focused pane is alone.
    pub zoomed: bool,
    /// The start screen.
    pub start: StartForm,
    /// Order of the layers.
    pub sort: Sort,
    /// Filter of the layers.
    pub filter: String,
    /// Selected row of the op table; `None` is the first one shown, whichever that is.
    pub selected: Option<u32>,
    /// The selection was made for the run that is shown next.
    pub keep_selection: bool,
    /// First layer shown.
    pub layers_top: usize,
    /// Log lines below the last one shown; 0 follows the end.
    pub log_back: usize,
    /// First line shown in the status, memory and host panes.
    pub scroll: [usize; 3],
    /// Run to show; `None` follows what goes on, and then the newest.
    pub run: Option<RunId>,
    /// Rows that were selected in the op tables of other runs: launches take turns, and so do their tables.
    selected_before: BTreeMap<RunId, u32>,
    /// The counter that is selected: device and id.
    pub counter: Option<(Option<String>, String)>,
    /// The moment that the user was sent to, host monotonic microseconds.
    pub moment: Option<u64>,
    /// What is selected on the pages with a list.
    pub browsers: [Browser; 6],
    /// What was found out about the shown run.
    pub known: Known,
    /// Runs side by side.
    pub comparing: Comparing,
    /// A run that the diagnosis was opened for; leaving it shows the newest run again.
    pub opened_for: Option<RunId>,
    /// Text on its way to the terminal's clipboard.
    pub copied: Option<String>,
    /// What is to be written beside the view, once.
    pub wanted: Option<Wanted>,
    /// Failed runs that were told.
    failures_told: usize,
    /// Set while the view is frozen.
    pub paused: Option<Paused>,
    /// What was asked and has not happened yet.
    pub asked: Option<Asked>,
    /// Something to tell, until the next key.
    pub notice: Option<String>,
    /// The kept sessions, where one of them can be opened.
    pub library: Option<Vec<history::Entry>>,
    /// The one that was asked for.
    pub chosen: Option<String>,
    /// Where the recording is that is shown instead of runs that go on.
    pub replay: Option<Replay>,
    /// The sources are closed: nothing will come any more.
    pub over: bool,
    /// The keys.
    pub keymap: Keymap,
    /// What the panes show.
    pub shown: Shown,
    /// Rows that a page of the focused list has.
    pub page_rows: usize,
}

impl View {
    /// The start screen.
    pub fn start(recent_models: Vec<PathBuf>, backends: Vec<BackendAvailability>) -> Self {
        Self {
            page: Page::Start,
            overlays: Vec::new(),
            focus: Pane::Layers,
            main: Pane::Layers,
            zoomed: false,
            start: StartForm::new(recent_models, backends),
            sort: Sort::default(),
            filter: String::new(),
            selected: None,
            keep_selection: false,
            layers_top: 0,
            log_back: 0,
            scroll: [0; 3],
            run: None,
            selected_before: BTreeMap::new(),
            counter: None,
            moment: None,
            browsers: Default::default(),
            known: Known::default(),
            comparing: Comparing::default(),
            opened_for: None,
            copied: None,
            wanted: None,
            failures_told: 0,
            paused: None,
            asked: None,
            notice: None,
            library: None,
            chosen: None,
            replay: None,
            over: false,
            keymap: Keymap::default(),
            shown: Shown::default(),
            page_rows: 1,
        }
    }

    /// The live view of runs that were asked for already.
    pub fn live(choice: &StartChoice, recent_models: Vec<PathBuf>, backends: Vec<BackendAvailability>) -> Self {
        let mut view = Self::start(recent_models, backends);
        view.start.device.clone_from(&choice.device);
        let model = crate::event::clean_text(&choice.model.to_string_lossy());
        view.start.choose_model(choice.model.clone());
        view.page = Page::Live;
        view.asked = Some(Asked::Run { what: starting(&model, &choice.backends), runs: 0 });
        view
    }

    /// Shows a recording.
    pub fn play(&mut self, recording: &Recording) {
        self.page = Page::Live;
        self.replay = Some(Replay::of(recording));
        self.notice = recording.notice.clone().or(self.notice.take());
        self.over = true;
    }

    /// The run that is shown: the chosen one, or the one whose launch goes on; where none does, the newest.
    pub fn run_of<'a>(&self, store: &'a Store) -> Option<&'a Run> {
        let chosen = self.run.and_then(|id| store.run(id));
        // A frozen view does not jump to a run that began later.
        let frozen = || self.paused.and(self.shown.run).and_then(|id| store.run(id));
        chosen.or_else(frozen).or_else(|| store.followed_run())
    }

    /// A run is going on.
    pub fn is_running(store: &Store) -> bool {
        store.runs().iter().any(|run| !run.is_ended())
    }

    /// Name of the screen that gets the keys.
    pub fn screen(&self) -> &'static str {
        match (self.overlays.last(), self.page) {
            (Some(Overlay::Help { .. }), _) => "help",
            (Some(Overlay::Picker(_)), _) => "picker",
            (Some(Overlay::Filter), _) => "filter",
            (Some(Overlay::Details { .. }), _) => "details",
            (Some(Overlay::Backends { .. }), _) => "backends",
            (None, page) => page.name(),
        }
    }

    /// What key rules are tested against.
    pub fn key_context(&self, store: &Store) -> KeyContext {
        let screen = self.screen();
        KeyContext {
            screen,
            pane: self.focus.name(),
            running: Self::is_running(store),
            paused: self.paused.is_some(),
            replay: self.replay.is_some(),
            text_input: matches!(screen, "picker" | "filter"),
        }
    }

    /// The layout at a size.
    pub fn layout(&self, store: &Store, area: Rect) -> Layout {
        let run = self.run_of(store);
        let failure_rows = match (self.shown.standing, run) {
            (Some(standing), Some(run)) if standing.failed => panes::failure_rows(run, area.width),
            _ => 0,
        };
        layout::live(
            area,
            LayoutWishes {
                main: self.main,
                zoomed: self.zoomed.then_some(self.focus),
                details: self.overlays.iter().any(|overlay| matches!(overlay, Overlay::Details { .. })),
                failure_rows,
                latency: self.shown.latency.count > 0,
                counters: run.is_some_and(|run| store.device_counters().sampler(&run.plan.device).is_some()),
            },
        )
    }

    /// Brings the view up to date before a frame of this size: takes what is new from the store unless paused, and keeps
    /// selections and scrolling within what there is. Returns true if another frame is needed though nothing happens.
    pub fn prepare(&mut self, store: &Store, area: Rect, now_us: u64) -> bool {
        match &self.asked {
            Some(Asked::Run { runs, .. }) if store.runs().len() > *runs => self.asked = None,
            Some(Asked::Stop(id)) if store.run(*id).is_none_or(Run::is_ended) => self.asked = None,
            _ => {}
        }
        self.tell_failures(store);
        let run = self.run_of(store).map(|run| run.id);
        if run != self.shown.run {
            (self.counter, self.moment) = (None, None);
            if !std::mem::take(&mut self.keep_selection) {
                let (left, row) = (self.shown.run, self.selected);
                self.selected_before.extend(left.zip(row));
                self.selected = run.and_then(|run| self.selected_before.get(&run).copied());
            }
            self.layers_top = 0;
            self.scroll = [0; 3];
        }
        let layout = self.layout(store, area);
        let parts = layout::latency_parts(layout.inside(layout.latency));
        let wishes = Wishes {
            run,
            frozen: self.paused.is_some(),
            sort: self.sort,
            filter: &self.filter,
            bins: usize::from(parts.histogram.width.max(8)),
        };
        let more = self.shown.refresh(store, wishes, now_us);
        self.known.refresh(store, self.run_of(store), self.paused.is_some(), now_us);
        self.settle_page(store, area);
        if self.page == Page::Compare {
            self.comparing.refresh(store, self.paused.is_some(), now_us);
            let layout = panes::compare_layout(self, store, area);
            self.comparing.settle(store, &layout);
        }
        // A failure may just have appeared and changed the layout.
        let layout = self.layout(store, area);
        let rows = panes::layer_rows(layout.inside(layout.layers));
        if self.focus == Pane::Layers || !layout.layers.is_empty() {
            self.keep_selection_visible(rows);
        }
        self.keep_scrolls_within(store, &layout, area);
        let focused = layout.inside(layout.area(self.focus));
        self.page_rows = match self.focus {
            Pane::Layers => rows.max(1),
            _ => usize::from(focused.height).max(1),
        };
        more
    }

    /// The layout of a page with a list; `None` for the others.
    pub fn page_layout(&self, store: &Store, area: Rect, symbols: &Symbols) -> Option<(PageLayout, pages::Content)> {
        let content = pages::content(self, store, symbols)?;
        let browser = &self.browsers[self.page.browser()?];
        let wishes = PageWishes {
            head_rows: pages::paragraph_rows(&content.head, area.width.saturating_sub(2)).len(),
            entries: content.entries.len(),
            log: content.log.then(|| self.run_of(store).map_or(0, |run| pages::log_of(store, run.id).count())),
            zoomed: browser.zoomed.then_some(browser.section),
        };
        Some((pages::layout(area, wishes), content))
    }

    fn settle_page(&mut self, store: &Store, area: Rect) {
        // The characters differ between the sets, the rows do not.
        let Some((layout, content)) = self.page_layout(store, area, &UNICODE) else { return };
        let run = self.run_of(store).map(|run| run.id);
        let log: Vec<u64> = match run {
            Some(run) if content.log => pages::log_of(store, run).map(|(number, _)| number).collect(),
            _ => Vec::new(),
        };
        if let Some(browser) = self.page.browser().and_then(|index| self.browsers.get_mut(index)) {
            browser.settle(run, &content.entries, &layout, &log);
        }
    }

    /// A run that failed opens its diagnosis, unless the user is at something else: then a line says how to get there.
    fn tell_failures(&mut self, store: &Store) {
        if self.paused.is_some() {
            return;
        }
        let failed = || store.runs().iter().filter(|run| run.is_ended() && run.failure.is_some());
        let (count, told) = (failed().count(), self.failures_told);
        self.failures_told = count;
        let Some(run) = failed().next_back().filter(|_| count > told) else { return };
        if self.page == Page::Live && self.overlays.is_empty() {
            self.page = Page::Diagnosis;
            self.run = Some(run.id);
            self.opened_for = Some(run.id);
        } else if self.shown.run != Some(run.id) || self.page != Page::Diagnosis {
            let context = KeyContext { screen: "live", text_input: false, ..self.key_context(store) };
            let reachable = self.keymap.reachable(&context);
            let key = reachable.iter().find(|(action, _)| *action == KeyAction::Diagnosis);
            let key = key.and_then(|(_, keys)| keys.first()).map(|key| format!("; `{key}` in the live view says why"));
            self.notice = Some(format!("the run on {} failed{}", run.plan.backend, key.unwrap_or_default()));
        }
    }

    /// Position of the selected layer in the order shown.
    pub fn position(&self) -> usize {
        let order = &self.shown.layers.order;
        self.selected.and_then(|row| order.iter().position(|known| *known == row)).unwrap_or(0)
    }

    /// The selected row of the op table.
    pub fn selected_row(&self) -> Option<usize> {
        self.shown.layers.order.get(self.position()).map(|row| *row as usize)
    }

    /// A text that is scrolled to its end goes back with the first key.
    fn keep_scrolls_within(&mut self, store: &Store, layout: &Layout, area: Rect) {
        let rows = |pane: Pane| usize::from(layout.inside(layout.area(pane)).height);
        let limits = [
            Stage::ALL.len().saturating_sub(1),
            panes::MEMORY_ROWS.saturating_sub(rows(Pane::Memory)),
            panes::counter_count(self, store).saturating_sub(rows(Pane::Host)),
        ];
        for (scroll, limit) in self.scroll.iter_mut().zip(limits) {
            *scroll = (*scroll).min(limit);
        }
        self.log_back = self.log_back.min(store.logs().len().saturating_sub(rows(Pane::Log)));
        let limit = match self.overlays.last() {
            Some(Overlay::Help { .. }) => panes::last_help_scroll(self, store, area),
            Some(Overlay::Details { .. }) => {
                let inner = layout.inside(layout.details);
                self.run_of(store).map_or(0, |run| panes::last_details_scroll(self, run, inner))
            }
            _ => return,
        };
        if let Some(Overlay::Help { scroll } | Overlay::Details { scroll }) = self.overlays.last_mut() {
            *scroll = (*scroll).min(limit);
        }
    }

    fn keep_selection_visible(&mut self, rows: usize) {
        let (len, position) = (self.shown.layers.order.len(), self.position());
        self.layers_top = self.layers_top.min(len.saturating_sub(rows));
        if position < self.layers_top {
            self.layers_top = position;
        } else if rows > 0 && position >= self.layers_top + rows {
            self.layers_top = position + 1 - rows;
        }
    }
}

/// Words for runs that were asked for.
pub(super) fn starting(model: &str, backends: &[Backend]) -> String {
    let names: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
    // A tapped program chooses its backends itself.
    let on = if names.is_empty() { String::new() } else { format!(" on {}", names.join(", then ")) };
    format!("starting {model}{on}")
}
