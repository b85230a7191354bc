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

    let screen = Screen::take().map_err(AppError::Terminal)?;
    let (told, notices) = channel::<String>(4);
    let mut app = App { screen, view, store, theme, requests: requests.clone(), more: false, told };
    app.draw().map_err(AppError::Terminal)?;
    let result = app.run(events, notices, options.exit_when_done).await;
    let App { screen, store, .. } = app;
    drop(screen);
    // The other side may be gone already, then there is nobody left to tell.
    let _ = requests.send_timeout(Request::Quit, LAST_REQUEST).await;
    result.map(|()| store)
}

struct App {
    screen: Screen,
    view: View,
    store: Store,
    theme: Theme,
    requests: Sender<Request>,
    /// A part of the figures is still to be brought up to date.
    more: bool,
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
    fn draw(&mut self) -> io::Result<()> {
        let Self { screen, view, store, theme, more, .. } = self;
        screen.draw(|frame| {
            let now = now_us();
            *more = view.prepare(store, frame.area(), now);
            draw(frame, store, view, theme, now);
        })
    }

    async fn run(
        &mut self,
        events: &mut Receiver<Record>,
        mut notices: Receiver<String>,
        exit_when_done: bool,
    ) -> Result<(), AppError> {
        let mut keys = EventStream::new();
        let mut signals = Signals::new().map_err(AppError::Signals)?;
        let (listed, mut listings) = channel::<Listing>(4);
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
                Some(notice) = notices.recv() => {
                    update(&mut self.view, &self.store, Action::Notice(notice));
                    Turn::Urgent
                }
                () = tokio::time::sleep_until(drawn + FRAME), if dirty => Turn::Changed,
                record = events.recv(), if !self.view.over => self.fold(record, events, exit_when_done),
                _ = tick.tick(), if running => Turn::Changed,
            };
            self.read_wanted(&listed);
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
