//! The terminal UI. One loop takes keys, events and ticks in this order, folds what came, and draws at most once per
//! frame. It never waits for a device, a file or a child: it asks, shows "asked", and the answer is an event.

mod action;
mod format;
mod keymap;
mod keys;
mod layout;
mod looking;
mod movement;
mod pages;
mod panes;
mod parts;
mod picker;
mod replay;
mod reporting;
mod rows;
mod shown;
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
pub use pages::{Browser, Comparing, Known, Part, Section};
pub use parts::{Asked, Overlay, Page, Pane, Paused, Wanted};
pub use picker::{Entry, EntryKind, Listing, Picker};
pub use replay::{Library, Loaded, Recording, Replay};
pub use rows::{Column, Sort};
pub use terminal::{ColorChoice, ColorDepth};
pub use theme::{Meaning, SHIPPED as SHIPPED_THEMES, Theme, ThemeError};
pub use update::update;
pub use view::View;

use crate::backends::Backend;
use crate::event::{Record, now_us};
use crate::store::Store;
use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use futures_core::Stream;
use replay::{Played, Player};
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use terminal::Screen;
use thiserror::Error;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, MissedTickBehavior};

/// What the UI is started with.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Theme by name; without one it is chosen for the terminal.
    pub theme: Option<String>,
    /// Colours.
    pub color: ColorChoice,
    /// Draw with ASCII only.
    pub ascii: bool,
    /// Runs that were asked for already; without them the start screen opens.
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
    /// The kept sessions, where another one can be opened.
    pub library: Option<Library>,
}

/// What runs were asked for.
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

/// What the UI asks for. The answer comes as events.
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
    /// Stop what runs; its figures stay.
    Stop,
    /// Run the current model on the current backend again.
    Restart,
    /// Run the current model on this backend.
    Switch(Backend),
    /// Stop everything; the UI has ended.
    Quit,
}

/// Why the UI could not start or go on.
#[derive(Debug, Error)]
pub enum AppError {
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}; the live view needs a terminal on standard output")]
    Terminal(#[source] io::Error),
    /// The key file has a fault.
    #[error(transparent)]
    Keymap(#[from] KeymapError),
    /// The theme cannot be used.
    #[error(transparent)]
    Theme(#[from] ThemeError),
    /// Signals cannot be handled.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
}

/// Time between frames that events ask for. Keys and resizes are drawn at once.
const FRAME: Duration = Duration::from_millis(33);
/// Clocks on the screen move this often while a run goes on.
const TICK: Duration = Duration::from_millis(250);
/// Records folded, and time spent on that, before keys get their turn.
const BATCH: (usize, Duration) = (4096, Duration::from_millis(8));
/// How long the last request may wait for room.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// Draws the screen. What it shows was prepared by [`View::prepare`].
pub fn draw(frame: &mut ratatui::Frame<'_>, store: &Store, view: &View, theme: &Theme, now_us: u64) {
    let area = frame.area();
    panes::draw(frame.buffer_mut(), area, store, view, theme, now_us);
}

/// Runs the UI until the user leaves, a signal ends it, or (if asked for) the events end. The store comes back with
/// everything that was folded into it; what comes later is still in `events`.
///
/// # Errors
/// The terminal cannot be used, or the theme or the key file has a fault; the terminal is given back in every case.
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
    // The other side may be gone already, then there is nobody left to tell.
    let _ = requests.send_timeout(Request::Quit, LAST_REQUEST).await;
    result.map(|()| store)
}

/// Runs the UI on a recording until the user leaves or a signal ends it; without one the user chooses among the kept sessions.
/// Shown first is everything in the store of the recording, or nothing yet.
///
/// # Errors
/// As [`run`].
pub async fn replay(options: AppOptions, first: Option<(Store, Recording)>) -> Result<(), AppError> {
    // Nothing comes but from the player, and nobody takes requests.
    let (_, mut events) = channel(1);
    let (requests, _) = channel(1);
    let (store, recording) = first.map_or_else(Default::default, |(store, recording)| (store, Some(recording)));
    let mut app = App::open(&options, store, requests, recording)?;
    app.view.library = options.library.as_ref().map(|library| library.sessions.clone());
    if app.player.is_none() {
        app.view.page = Page::Sessions;
        app.view.over = true;
        app.draw().map_err(AppError::Terminal)?;
    }
    app.library = options.library;
    app.run(&mut events, false).await
}

/// The view of these options with its theme; without what is asked of a terminal.
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

struct App {
    screen: Screen,
    view: View,
    store: Store,
    theme: Theme,
    requests: Sender<Request>,
    /// A part of the figures is still to be brought up to date.
    more: bool,
    /// Plays the recording, where there is one.
    player: Option<Player>,
    /// Opens another one.
    library: Option<Library>,
    /// What came of files that are written beside the loop.
    told: Sender<String>,
}

/// What a turn of the loop came to.
enum Turn {
    /// Nothing changed.
    Idle,
    /// Draw with the next frame.
    Changed,
    /// Draw at once.
    Urgent,
    /// Leave.
    Quit,
}

impl App {
    /// Takes the terminal and draws for the first time.
    fn open(
        options: &AppOptions,
        store: Store,
        requests: Sender<Request>,
        recording: Option<Recording>,
    ) -> Result<Self, AppError> {
        let (mut view, theme) = open_view(options)?;
        if let Some(recording) = &recording {
            view.play(recording);
        }
        let screen = Screen::take().map_err(AppError::Terminal)?;
        let player = recording.map(Player::new);
        // Replaced when the loop begins.
        let (told, _) = channel(1);
        let mut app = Self { screen, view, store, theme, requests, more: false, player, library: None, told };
        app.draw().map_err(AppError::Terminal)?;
        Ok(app)
    }

    fn draw(&mut self) -> io::Result<()> {
        let Self { screen, view, store, theme, more, .. } = self;
        screen.draw(|frame| {
            // A recording has a clock of its own.
            let now = view.replay.as_ref().map_or_else(now_us, |replay| replay.at_us);
            *more = view.prepare(store, frame.area(), now);
            draw(frame, store, view, theme, now);
        })
    }

    async fn run(&mut self, events: &mut Receiver<Record>, exit_when_done: bool) -> Result<(), AppError> {
        let mut keys = EventStream::new();
        let mut signals = Signals::new().map_err(AppError::Signals)?;
        let (listed, mut listings) = channel::<Listing>(4);
        let (opened, mut loads) = channel::<Loaded>(1);
        let (told, mut notices) = channel::<String>(4);
        self.told = told;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut drawn = Instant::now();
        let mut dirty = false;
        loop {
            let running = View::is_running(&self.store) && self.view.paused.is_none();
            let turn = tokio::select! {
                biased;
                signal = signals.next() => self.signal(signal).map_err(AppError::Terminal)?,
                key = next(&mut keys) => self.key(key).map_err(AppError::Terminal)?,
                Some(listing) = listings.recv() => {
                    update(&mut self.view, &self.store, Action::Listed(listing));
                    Turn::Urgent
                }
                Some(loaded) = loads.recv() => self.show_loaded(loaded),
                Some(notice) = notices.recv() => {
                    update(&mut self.view, &self.store, Action::Notice(notice));
                    Turn::Urgent
                }
                () = tokio::time::sleep_until(drawn + FRAME), if dirty => Turn::Changed,
                record = events.recv(), if !self.view.over => self.fold(record, events, exit_when_done),
                () = pulse(&self.view), if self.player.is_some() => self.play(),
                _ = tick.tick(), if running => Turn::Changed,
            };
            self.read_wanted(&listed);
            self.load_wanted(&opened);
            match turn {
                Turn::Idle => {}
                Turn::Changed => dirty = true,
                Turn::Urgent => {
                    dirty = true;
                    drawn = Instant::now().checked_sub(FRAME).unwrap_or(drawn);
                }
                Turn::Quit => return Ok(()),
            }
            if dirty && drawn.elapsed() >= FRAME {
                self.draw().map_err(AppError::Terminal)?;
                drawn = Instant::now();
                dirty = self.more;
            }
        }
    }

    /// Folds a record and all that wait behind it, within bounds.
    fn fold(&mut self, first: Option<Record>, events: &mut Receiver<Record>, exit_when_done: bool) -> Turn {
        let begun = Instant::now();
        let mut next = first;
        let mut count = 0;
        while let Some(record) = next {
            self.store.apply(&record);
            count += 1;
            if count >= BATCH.0 || (count % 16 == 0 && begun.elapsed() >= BATCH.1) {
                return Turn::Changed;
            }
            next = match events.try_recv() {
                Ok(record) => Some(record),
                Err(TryRecvError::Empty) => return Turn::Changed,
                Err(TryRecvError::Disconnected) => None,
            };
        }
        self.view.over = true;
        if exit_when_done { Turn::Quit } else { Turn::Changed }
    }

    /// Brings the recording to the moment that is to be shown.
    fn play(&mut self) -> Turn {
        let (Some(player), Some(replay)) = (&mut self.player, &mut self.view.replay) else { return Turn::Idle };
        match player.advance(replay, &mut self.store, std::time::Instant::now()) {
            Played::Nothing => Turn::Idle,
            Played::Moved | Played::Seeking => Turn::Changed,
        }
    }

    fn key(&mut self, event: Option<io::Result<TerminalEvent>>) -> io::Result<Turn> {
        // The terminal is gone: nobody can see or press anything any more.
        let Some(Ok(event)) = event else { return Ok(Turn::Quit) };
        let action = match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
                let chord = Chord::from_event(&key);
                let context = self.view.key_context(&self.store);
                match (chord.text().filter(|_| context.text_input), self.view.keymap.action(chord, &context)) {
                    (Some(c), _) => Action::Type(c),
                    (None, Some(KeyAction::Suspend)) => {
                        self.screen.suspend()?;
                        return Ok(Turn::Urgent);
                    }
                    (None, Some(KeyAction::Redraw)) => {
                        self.screen.clear()?;
                        return Ok(Turn::Urgent);
                    }
                    (None, Some(action)) => Action::Key(action),
                    (None, None) => return Ok(Turn::Idle),
                }
            }
            TerminalEvent::Paste(text) => Action::Paste(text),
            TerminalEvent::Resize(..) => return Ok(Turn::Urgent),
            _ => return Ok(Turn::Idle),
        };
        Ok(self.act(action))
    }

    fn signal(&mut self, signal: Signal) -> io::Result<Turn> {
        match signal {
            Signal::Interrupt => Ok(self.act(KeyAction::Interrupt.into())),
            Signal::End => Ok(Turn::Quit),
            Signal::Suspend => {
                self.screen.suspend()?;
                Ok(Turn::Urgent)
            }
        }
    }

    fn act(&mut self, action: Action) -> Turn {
        let asked = update(&mut self.view, &self.store, action);
        if let Some(text) = self.view.copied.take()
            && let Err(error) = terminal::copy(&text)
        {
            self.view.notice = Some(format!("cannot write to the terminal: {error}"));
        }
        if let Some(Wanted::Report) = self.view.wanted.take() {
            self.view.notice = reporting::write(&self.store, &self.told);
        }
        let Some(request) = asked else { return Turn::Urgent };
        if request == Request::Quit {
            return Turn::Quit;
        }
        let refused = match self.requests.try_send(request) {
            Ok(()) => return Turn::Urgent,
            Err(TrySendError::Full(_)) => "busy with what was asked before; try again",
            Err(TrySendError::Closed(_)) => "nothing takes requests any more: the session has ended",
        };
        self.view.asked = None;
        self.view.notice = Some(refused.to_owned());
        Turn::Urgent
    }

    /// Has the session read that was chosen, on another thread.
    fn load_wanted(&mut self, opened: &Sender<Loaded>) {
        let Some((id, library)) = self.view.chosen.take().zip(self.library.as_ref()) else { return };
        let (load, opened) = (library.load.clone(), opened.clone());
        tokio::task::spawn_blocking(move || {
            // The UI may have ended meanwhile.
            let _ = opened.blocking_send(load(&id));
        });
    }

    /// Shows a session that was read, in the place of the one before.
    fn show_loaded(&mut self, loaded: Loaded) -> Turn {
        match loaded {
            Ok((store, recording)) => {
                // What was selected and found out is of the session before.
                let fresh = View::start(Vec::new(), Vec::new());
                let old = std::mem::replace(&mut self.view, fresh);
                (self.view.keymap, self.view.library) = (old.keymap, old.library);
                self.view.play(&recording);
                (self.store, self.player) = (store, Some(Player::new(recording)));
            }
            Err(reason) => self.view.notice = Some(reason),
        }
        Turn::Urgent
    }

    /// Has the folder read that the file picker wants to see, on another thread: it may block.
    fn read_wanted(&mut self, listed: &Sender<Listing>) {
        let wanted = self.view.overlays.iter_mut().find_map(|overlay| match overlay {
            Overlay::Picker(picker) => picker.take_wanted(),
            _ => None,
        });
        if let Some(dir) = wanted {
            let listed = listed.clone();
            tokio::task::spawn_blocking(move || {
                // The UI may have ended meanwhile.
                let _ = listed.blocking_send(Listing::read(&dir));
            });
        }
    }
}

/// Waits until the recording is to go on.
async fn pulse(view: &View) {
    match &view.replay {
        // Other tasks, signals and keys get their turn.
        Some(replay) if replay.wanted_us.is_some() => tokio::time::sleep(Duration::from_millis(1)).await,
        Some(replay) if replay.playing => tokio::time::sleep(FRAME).await,
        _ => std::future::pending().await,
    }
}

async fn next(keys: &mut EventStream) -> Option<io::Result<TerminalEvent>> {
    std::future::poll_fn(|context| Pin::new(&mut *keys).poll_next(context)).await
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Interrupt,
    End,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no job control"))]
    Suspend,
}

#[cfg(unix)]
struct Signals {
    streams: Vec<(tokio::signal::unix::Signal, Signal)>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // The number that job control sends; tokio has no name for it.
        let suspend = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        let streams = vec![
            (signal(SignalKind::interrupt())?, Signal::Interrupt),
            (signal(SignalKind::terminate())?, Signal::End),
            (signal(SignalKind::hangup())?, Signal::End),
            (signal(suspend)?, Signal::Suspend),
        ];
        Ok(Self { streams })
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (stream, meaning) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*meaning);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
