//! The terminal UI. One loop handles keys, events and ticks in this order, folds the events, and draws at most once per
//! frame. It never waits for a device, a file or a child: it sends a request, shows "asked", and the answer is an
//! event.

mod action;
mod event_loop;
mod format;
mod geometry;
mod keymap;
mod keys;
mod layout;
mod looking;
mod movement;
mod pages;
mod panes;
mod parts;
mod picker;
mod pointing;
mod replay;
mod reporting;
mod rows;
mod shown;
mod signals;
mod spelling;
mod start;
mod symbols;
mod terminal;
mod theme;
mod update;
mod view;
mod widgets;

pub use action::{Action, KeyAction};
pub use keymap::{KeyContext, Keymap, KeymapError, default_path as default_keymap_path};
pub use keys::Chord;
pub use pages::{Browser, Comparing, Known, Part, Section, accuracy_entries};
pub use parts::{Asked, Overlay, Page, Pane, Paused, Wanted};
pub use picker::{Entry, EntryKind, Listing, Picker};
pub use replay::{Library, Loaded, Recording, Replay};
pub use rows::{Column, Sort};
pub use terminal::{ColorChoice, ColorDepth};
pub use theme::{Meaning, SHIPPED as SHIPPED_THEMES, Theme, ThemeError};
pub use update::update;
pub use view::View;

use crate::accuracy::AccuracyDocument;
use crate::backends::Backend;
use crate::event::Record;
use crate::store::Store;
use event_loop::App;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Start options of the UI.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Theme by name; by default chosen for the terminal.
    pub theme: Option<String>,
    /// Colours.
    pub color: ColorChoice,
    /// Draw with ASCII only.
    pub ascii: bool,
    /// Runs already requested; without any the start screen opens.
    pub start: Option<StartChoice>,
    /// Models to offer, newest first.
    pub recent_models: Vec<PathBuf>,
    /// Leave when the events end.
    pub exit_when_done: bool,
    /// Which backends can be used here.
    pub backends: Vec<BackendAvailability>,
    /// The user's key file.
    pub keymap_file: Option<PathBuf>,
    /// The user's themes.
    pub themes_dir: Option<PathBuf>,
    /// The kept sessions, if another one can be opened.
    pub library: Option<Library>,
    /// A comparison of two models, shown instead of runs.
    pub accuracy: Option<Arc<AccuracyDocument>>,
}

/// What runs were requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartChoice {
    /// Device id.
    pub device: String,
    /// Model file.
    pub model: PathBuf,
    /// Backends in order.
    pub backends: Vec<Backend>,
}

/// A backend and whether it can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendAvailability {
    /// Which backend.
    pub backend: Backend,
    /// The reason why it cannot be used.
    pub available: Result<(), String>,
}

/// A request from the UI. The answer comes as events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a model on each of these backends.
    Start {
        /// Device id.
        device: String,
        /// Model file.
        model: PathBuf,
        /// Backends in order.
        backends: Vec<Backend>,
    },
    /// Stop the run on this device (on all if not given); its figures stay.
    Stop(Option<String>),
    /// Repeat the runs last requested on this device.
    Restart(String),
    /// Run this device's last model there on this backend.
    Switch {
        /// Device id.
        device: String,
        /// Backend.
        backend: Backend,
    },
    /// Stop everything; the UI has ended.
    Quit,
}

/// Why the UI could not start or continue.
#[derive(Debug, Error)]
pub enum AppError {
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}; the live view needs a terminal on standard output")]
    Terminal(#[source] io::Error),
    /// The key file is invalid.
    #[error(transparent)]
    Keymap(#[from] KeymapError),
    /// The theme cannot be used.
    #[error(transparent)]
    Theme(#[from] ThemeError),
    /// Signals cannot be handled.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
}

/// How long the last request may wait for queue space.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// Draws the screen as prepared by [`View::prepare`].
pub fn draw(frame: &mut ratatui::Frame<'_>, store: &Store, view: &View, theme: &Theme, now_us: u64) {
    let area = frame.area();
    panes::draw(frame.buffer_mut(), area, store, view, theme, now_us);
}

/// Runs the UI until the user leaves, a signal ends it, or (if requested) the events end. Returns the store with
/// everything folded into it; later events are still in `events`.
///
/// # Errors
/// The terminal cannot be used, or the theme or the key file is invalid; the terminal is restored in every case.
pub async fn run(
    options: AppOptions,
    store: Store,
    events: &mut Receiver<Record>,
    requests: Sender<Request>,
) -> Result<Store, AppError> {
    let mut app = App::open(&options, store, requests.clone(), None)?;
    let result = app.run(events, options.exit_when_done).await;
    let App { screen, store, .. } = app;
    drop(screen);
    // The receiver may already be gone; then there is nobody to notify.
    let _ = requests.send_timeout(Request::Quit, LAST_REQUEST).await;
    result.map(|()| store)
}

/// Runs the UI on a recording until the user leaves or a signal ends it; without a recording, the user
/// chooses from the kept sessions. Initially shows everything in the recording's store, or nothing yet.
///
/// # Errors
/// As [`run`].
pub async fn replay(options: AppOptions, first: Option<(Store, Recording)>) -> Result<(), AppError> {
    // Only the player sends events, and nobody handles requests.
    let (_, mut events) = channel(1);
    let (requests, _) = channel(1);
    let (store, recording) = first.map_or_else(Default::default, |(store, recording)| (store, Some(recording)));
    let mut app = App::open(&options, store, requests, recording)?;
    app.view.library = options.library.as_ref().map(|library| library.sessions.clone());
    if app.player.is_none() {
        app.view.accuracy.clone_from(&options.accuracy);
        app.view.page = if options.accuracy.is_some() { Page::Accuracy } else { Page::Sessions };
        app.view.over = true;
        app.draw().map_err(AppError::Terminal)?;
    }
    app.library = options.library;
    app.run(&mut events, false).await
}

/// The view for these options with its theme, without querying a terminal.
fn open_view(options: &AppOptions) -> Result<(View, Theme), AppError> {
    let variable = |name: &str| std::env::var(name).ok();
    let depth = ColorDepth::detect(options.color, variable);
    let light = terminal::light_background(variable);
    let name = options.theme.clone().unwrap_or_else(|| Theme::default_name(depth, light).to_owned());
    let ascii = options.ascii || variable("TERM").is_some_and(|term| term == "dumb");
    let (theme, warnings) = Theme::load(&name, depth, ascii, options.themes_dir.as_deref())?;
    let mut view = match &options.start {
        Some(choice) => View::live(choice, options.recent_models.clone(), options.backends.clone()),
        None => View::start(options.recent_models.clone(), options.backends.clone()),
    };
    view.keymap = Keymap::load(options.keymap_file.as_deref())?;
    view.notice = warnings.into_iter().next();
    Ok((view, theme))
}
