//! The state of the view: what is open, selected, sorted, filtered and scrolled. Figures belong to the store.

use super::keymap::{KeyContext, Keymap};
use super::pages::{Browser, Comparing, Known};
use super::parts::{Asked, Overlay, Page, Pane, Paused, Wanted};
use super::replay::{Recording, Replay};
use super::rows::Sort;
use super::shown::Shown;
use super::start::StartForm;
use super::{BackendAvailability, KeyAction, StartChoice};
use crate::accuracy::AccuracyDocument;
use crate::backends::Backend;
use crate::event::RunId;
use crate::history;
use crate::store::{Run, Store};
use ratatui::layout::Rect;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The view.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct View {
    /// What fills the screen.
    pub page: Page,
    /// Open popups, the topmost last.
    pub overlays: Vec<Overlay>,
    /// Pane with the focus.
    pub focus: Pane,
    /// Pane in the main area of a small screen.
    pub main: Pane,
    /// The focused pane is shown alone.
    pub zoomed: bool,
    /// The start screen.
    pub start: StartForm,
    /// Order of the layers.
    pub sort: Sort,
    /// Filter of the layers.
    pub filter: String,
    /// Selected row of the op table; `None` is the first one shown, whichever that is.
    pub selected: Option<u32>,
    /// The selection was made for the run shown next.
    pub keep_selection: bool,
    /// First layer shown.
    pub layers_top: usize,
    /// Log lines below the last one shown; 0 follows the end.
    pub log_back: usize,
    /// First line shown in the status, memory and host panes.
    pub scroll: [usize; 3],
    /// Run to show; `None` follows the active run, then the newest.
    pub run: Option<RunId>,
    /// Selected rows in other runs' op tables: launches alternate, and so do their tables.
    pub(super) selected_before: BTreeMap<RunId, u32>,
    /// The selected counter: device and id.
    pub counter: Option<(Option<String>, String)>,
    /// The time the user jumped to, host monotonic microseconds.
    pub moment: Option<u64>,
    /// Selection on the pages with a list, by page.
    pub browsers: [Browser; Page::COUNT],
    /// Results about the shown run.
    pub known: Known,
    /// Runs side by side.
    pub comparing: Comparing,
    /// The run the diagnosis was opened for; leaving it shows the newest run again.
    pub opened_for: Option<RunId>,
    /// Text for the terminal's clipboard.
    pub copied: Option<String>,
    /// Pending one-time work besides the view.
    pub wanted: Option<Wanted>,
    /// Failed runs already reported.
    failures_told: usize,
    /// Set while the view is frozen.
    pub paused: Option<Paused>,
    /// The pending request.
    pub asked: Option<Asked>,
    /// A message shown until the next key.
    pub notice: Option<String>,
    /// Two models layer by layer, shown instead of runs.
    pub accuracy: Option<Arc<AccuracyDocument>>,
    /// The kept sessions, if one can be opened.
    pub library: Option<Vec<history::Entry>>,
    /// The requested one.
    pub chosen: Option<String>,
    /// Position of the recording shown instead of live runs.
    pub replay: Option<Replay>,
    /// The sources are closed: no more events will arrive.
    pub over: bool,
    /// The keys.
    pub keymap: Keymap,
    /// What the panes show.
    pub shown: Shown,
    /// Rows per page of the focused list.
    pub page_rows: usize,
    /// The screen as last drawn.
    pub(super) area: Rect,
    /// True while the terminal reports the mouse instead of selecting text with it.
    pub mouse: bool,
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
            accuracy: None,
            library: None,
            chosen: None,
            replay: None,
            over: false,
            keymap: Keymap::default(),
            shown: Shown::default(),
            page_rows: 1,
            area: Rect::default(),
            mouse: true,
        }
    }

    /// The live view of runs already requested.
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

    /// The shown run: the chosen one, or the one with an active launch; otherwise the newest.
    pub fn run_of<'a>(&self, store: &'a Store) -> Option<&'a Run> {
        let chosen = self.run.and_then(|id| store.run(id));
        // A frozen view does not jump to a run that started later.
        let frozen = || self.paused.and(self.shown.run).and_then(|id| store.run(id));
        chosen.or_else(frozen).or_else(|| store.followed_run())
    }

    /// Shows a run from now on; the active run, then the newest, is followed again.
    pub(super) fn show_run(&mut self, store: &Store, run: RunId) {
        let followed = store.followed_run().is_some_and(|followed| followed.id == run);
        self.run = (!followed || self.paused.is_some()).then_some(run);
    }

    /// True while a run is in progress.
    pub fn is_running(store: &Store) -> bool {
        store.runs().iter().any(|run| !run.is_ended())
    }

    /// Name of the screen receiving keys.
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

    /// The context for key rules.
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

    /// Selection on the open page; `None` on pages without a list.
    pub fn browser(&self) -> Option<&Browser> {
        self.page.list().map(|_| &self.browsers[self.page as usize])
    }

    /// The same, mutable.
    pub fn browser_mut(&mut self) -> Option<&mut Browser> {
        self.page.list().map(|_| &mut self.browsers[self.page as usize])
    }

    /// A failed run opens its diagnosis, unless the user is busy elsewhere: then a line shows how to get there.
    pub(super) fn tell_failures(&mut self, store: &Store) {
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

    /// Position of the selected layer in display order.
    pub fn position(&self) -> usize {
        let order = &self.shown.layers.order;
        self.selected.and_then(|row| order.iter().position(|known| *known == row)).unwrap_or(0)
    }

    /// The selected row of the op table.
    pub fn selected_row(&self) -> Option<usize> {
        self.shown.layers.order.get(self.position()).map(|row| *row as usize)
    }
}

/// Description of requested runs.
pub(super) fn starting(model: &str, backends: &[Backend]) -> String {
    let names: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
    // A tapped program chooses its backends itself.
    let on = if names.is_empty() { String::new() } else { format!(" on {}", names.join(", then ")) };
    format!("starting {model}{on}")
}
