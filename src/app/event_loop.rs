//! The loop of the terminal view: folds events, applies keys to the view, draws frames.

use super::action::{Action, Gesture, KeyAction};
use super::keys::Chord;
use super::parts::{Overlay, Wanted};
use super::picker::Listing;
use super::replay::{Library, Loaded, Played, Player, Recording};
use super::signals::{Signal, Signals};
use super::terminal::{self, Screen};
use super::theme::Theme;
use super::update::update;
use super::view::View;
use super::{AppError, AppOptions, Request, draw, open_view, reporting};
use crate::event::{Record, now_us};
use crate::store::Store;
use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind, MouseEvent, MouseEventKind};
use futures_core::Stream;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, MissedTickBehavior};

/// Time between frames triggered by events. Keys and resizes are drawn at once.
const FRAME: Duration = Duration::from_millis(33);
/// How often on-screen clocks advance during a run.
const TICK: Duration = Duration::from_millis(250);
/// Maximum number of records folded, and time spent folding them, before keys are handled.
const BATCH: (usize, Duration) = (4096, Duration::from_millis(8));

/// The terminal, the view and the store, turning events and keys into frames.
pub(super) struct App {
    /// The terminal.
    pub(super) screen: Screen,
    /// What it shows.
    pub(super) view: View,
    /// Everything folded so far.
    pub(super) store: Store,
    theme: Theme,
    requests: Sender<Request>,
    /// Some figures are not up to date yet.
    more: bool,
    /// Plays the recording, if any.
    pub(super) player: Option<Player>,
    /// Opens another recording.
    pub(super) library: Option<Library>,
    /// Results of files written in the background.
    told: Sender<String>,
}

/// The result of a loop iteration.
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
    /// Takes over the terminal and draws the first frame.
    pub(super) fn open(
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

    /// Draws a frame.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let Self { screen, view, store, theme, more, .. } = self;
        screen.draw(|frame| {
            // A recording has its own clock.
            let now = view.replay.as_ref().map_or_else(now_us, |replay| replay.at_us);
            *more = view.prepare(store, frame.area(), now);
            draw(frame, store, view, theme, now);
        })
    }

    /// Loops until the user leaves, a signal ends it, or (if requested) the events end.
    pub(super) async fn run(&mut self, events: &mut Receiver<Record>, exit_when_done: bool) -> Result<(), AppError> {
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

    /// Folds a record and those queued after it, within bounds.
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

    /// Advances the recording to the time to show.
    fn play(&mut self) -> Turn {
        let (Some(player), Some(replay)) = (&mut self.player, &mut self.view.replay) else { return Turn::Idle };
        match player.advance(replay, &mut self.store, std::time::Instant::now()) {
            Played::Nothing => Turn::Idle,
            Played::Moved | Played::Seeking => Turn::Changed,
        }
    }

    fn key(&mut self, event: Option<io::Result<TerminalEvent>>) -> io::Result<Turn> {
        // The terminal is gone: there is no more display or input.
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
            TerminalEvent::Mouse(mouse) => match gesture(mouse) {
                Some(gesture) => Action::Point(gesture, mouse.column, mouse.row),
                None => return Ok(Turn::Idle),
            },
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
        if let Err(error) = self.screen.take_mouse(self.view.mouse) {
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
            Err(TrySendError::Full(_)) => "busy with an earlier request; try again",
            Err(TrySendError::Closed(_)) => "the session has ended and takes no more requests",
        };
        self.view.asked = None;
        self.view.notice = Some(refused.to_owned());
        Turn::Urgent
    }

    /// Reads the chosen session on another thread.
    fn load_wanted(&mut self, opened: &Sender<Loaded>) {
        let Some((id, library)) = self.view.chosen.take().zip(self.library.as_ref()) else { return };
        let (load, opened) = (library.load.clone(), opened.clone());
        tokio::task::spawn_blocking(move || {
            // The UI may have ended meanwhile.
            let _ = opened.blocking_send(load(&id));
        });
    }

    /// Shows a session just read, replacing the previous one.
    fn show_loaded(&mut self, loaded: Loaded) -> Turn {
        match loaded {
            Ok((store, recording)) => {
                // Selections and findings belong to the previous session.
                let fresh = View::start(Vec::new(), Vec::new());
                let old = std::mem::replace(&mut self.view, fresh);
                (self.view.keymap, self.view.library, self.view.mouse) = (old.keymap, old.library, old.mouse);
                self.view.play(&recording);
                (self.store, self.player) = (store, Some(Player::new(recording)));
            }
            Err(reason) => self.view.notice = Some(reason),
        }
        Turn::Urgent
    }

    /// Reads the file picker's folder on another thread, since that may block.
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

/// Waits until the recording is due to continue.
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

/// Maps a mouse event to an action; all buttons act the same.
fn gesture(mouse: MouseEvent) -> Option<Gesture> {
    match mouse.kind {
        MouseEventKind::Down(_) => Some(Gesture::Click),
        MouseEventKind::ScrollDown => Some(Gesture::Wheel { down: true }),
        MouseEventKind::ScrollUp => Some(Gesture::Wheel { down: false }),
        _ => None,
    }
}
