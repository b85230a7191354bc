//! Recorded events in the live view: their own clock, and a player that folds them up to the clock's time.

use crate::event::Record;
use crate::history;
use crate::store::Store;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, channel};

/// Speeds selectable by key.
const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0];
/// Records read ahead.
const AHEAD: usize = 4096;
/// Time spent folding before keys get their turn.
const SLICE: Duration = Duration::from_millis(8);
/// A seek moves by the recording's length divided by this, but by at least a second.
const SEEK_PART: u64 = 20;
const SEEK_LEAST_US: u64 = 1_000_000;

/// Reads the recording from its start.
type Reread = Arc<dyn Fn() -> Box<dyn Iterator<Item = Record> + Send> + Send + Sync>;

/// An opened session: its entire contents, and how to play it; or why it cannot be opened.
pub type Loaded = Result<(Store, Recording), String>;

/// The kept sessions, and how to open one.
#[derive(Clone)]
pub struct Library {
    /// Newest first.
    pub sessions: Vec<history::Entry>,
    /// Reads one, by its id.
    pub load: Arc<dyn Fn(&str) -> Loaded + Send + Sync>,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// What is replayed.
#[derive(Clone)]
pub struct Recording {
    reread: Reread,
    /// First and last timestamp, host monotonic microseconds.
    span_us: (u64, u64),
    /// Whether it starts playing at once, and how fast.
    play: Option<f64>,
    /// What is missing from it.
    pub notice: Option<String>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("span_us", &self.span_us).field("play", &self.play).finish_non_exhaustive()
    }
}

impl Recording {
    /// A recording, with its first and last timestamp, that each call of `reread` reads from the start. With a speed it
    /// plays from the start; else it is shown entirely.
    pub fn new(
        reread: impl Fn() -> Box<dyn Iterator<Item = Record> + Send> + Send + Sync + 'static,
        span_us: (u64, u64),
        play: Option<f64>,
    ) -> Self {
        Self { reread: Arc::new(reread), span_us, play, notice: None }
    }

    /// True if it starts at the beginning.
    pub fn plays(&self) -> bool {
        self.play.is_some()
    }
}

/// Position of a replay, shown and changed by the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// First timestamp of the recording, host monotonic microseconds.
    pub start_us: u64,
    /// Last timestamp.
    pub end_us: u64,
    /// The shown time.
    pub at_us: u64,
    /// Recorded seconds per second.
    pub speed: f64,
    /// It is playing.
    pub playing: bool,
    /// A requested time not reached yet.
    pub wanted_us: Option<u64>,
}

impl Replay {
    /// Starts at the beginning of a recording, or at its end.
    pub fn of(recording: &Recording) -> Self {
        let (start_us, end_us) = recording.span_us;
        let at_us = if recording.plays() { start_us } else { end_us };
        let speed = recording.play.unwrap_or(1.0);
        Self { start_us, end_us, at_us, speed, playing: recording.plays(), wanted_us: None }
    }

    /// Plays or pauses; at the end it starts over.
    pub fn toggle(&mut self) {
        self.playing = !self.playing;
        if self.playing && self.target_us() >= self.end_us {
            self.wanted_us = Some(self.start_us);
        }
    }

    /// One speed faster or slower.
    pub fn step_speed(&mut self, faster: bool) {
        let next = if faster {
            SPEEDS.iter().find(|speed| **speed > self.speed + 1e-9)
        } else {
            SPEEDS.iter().rev().find(|speed| **speed < self.speed - 1e-9)
        };
        self.speed = next.copied().unwrap_or(self.speed);
    }

    /// Seeks forward or back by a part of the recording.
    pub fn step(&mut self, forward: bool) {
        let step_us = ((self.end_us - self.start_us) / SEEK_PART).max(SEEK_LEAST_US);
        let from_us = self.target_us();
        self.seek(if forward { from_us.saturating_add(step_us) } else { from_us.saturating_sub(step_us) });
    }

    /// Seeks to a time.
    pub fn seek(&mut self, t_us: u64) {
        self.wanted_us = Some(t_us.clamp(self.start_us, self.end_us));
    }

    fn target_us(&self) -> u64 {
        self.wanted_us.unwrap_or(self.at_us)
    }
}

/// Folds a recording up to the time of its [`Replay`].
#[derive(Debug)]
pub struct Player {
    recording: Recording,
    /// The records after the folded ones; `None` until the user seeks back from the end.
    records: Option<Receiver<Record>>,
    /// The first of them.
    next: Option<Record>,
    last: Option<Instant>,
}

/// The result of a player step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// Nothing changed.
    Nothing,
    /// A different time is shown.
    Moved,
    /// The requested time is not reached yet.
    Seeking,
}

impl Player {
    /// A player for a recording; it reads only on demand.
    pub fn new(recording: Recording) -> Self {
        let mut player = Self { recording, records: None, next: None, last: None };
        if player.recording.plays() {
            player.rewind();
        }
        player
    }

    /// Starts reading from the beginning, on its own thread, since files may block.
    fn rewind(&mut self) {
        let (sender, receiver) = channel(AHEAD);
        let reread = self.recording.reread.clone();
        tokio::task::spawn_blocking(move || {
            for record in reread() {
                // Nobody wants the rest.
                if sender.blocking_send(record).is_err() {
                    return;
                }
            }
        });
        (self.records, self.next) = (Some(receiver), None);
    }

    /// Advances the store to the time the replay should show now.
    pub fn advance(&mut self, replay: &mut Replay, store: &mut Store, now: Instant) -> Played {
        let elapsed = now.saturating_duration_since(self.last.replace(now).unwrap_or(now));
        if let Some(wanted_us) = replay.wanted_us {
            if wanted_us < replay.at_us {
                *store = Store::new();
                replay.at_us = replay.start_us;
                self.rewind();
            }
            let reached = self.fold(store, wanted_us);
            if !reached {
                // The intermediate position.
                replay.at_us = replay.at_us.max(store.now_us().min(wanted_us));
                return Played::Seeking;
            }
            (replay.at_us, replay.wanted_us) = (wanted_us, None);
            return Played::Moved;
        }
        if !replay.playing {
            return Played::Nothing;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturating is right"
        )]
        let step_us = (elapsed.as_secs_f64() * 1e6 * replay.speed) as u64;
        let due_us = replay.at_us.saturating_add(step_us).min(replay.end_us);
        // If folding cannot keep up, the clock waits.
        replay.at_us = if self.fold(store, due_us) { due_us } else { store.now_us().clamp(replay.at_us, due_us) };
        replay.playing = replay.at_us < replay.end_us;
        Played::Moved
    }

    /// Folds the records up to a given time; false if time ran out, or if they are not read yet.
    fn fold(&mut self, store: &mut Store, until_us: u64) -> bool {
        let Some(records) = &mut self.records else { return true };
        let begun = Instant::now();
        let mut count = 0u32;
        loop {
            let record = match self.next.take() {
                Some(record) => record,
                None => match records.try_recv() {
                    Ok(record) => record,
                    Err(TryRecvError::Empty) => return false,
                    Err(TryRecvError::Disconnected) => return true,
                },
            };
            if record.t_us > until_us {
                self.next = Some(record);
                return true;
            }
            store.apply(&record);
            count += 1;
            if count.is_multiple_of(16) && begun.elapsed() >= SLICE {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, LogLevel, LogLine, LogSource};

    /// One line per second for ten seconds.
    fn recording(play: Option<f64>) -> Recording {
        let line = |seq: u64| {
            let event = Event::Log(LogLine::new(LogLevel::Info, LogSource::Runner, "line"));
            Record { seq, t_us: 1_000_000 * (seq + 1), run: None, event }
        };
        Recording::new(move || Box::new((0..10).map(line)), (1_000_000, 10_000_000), play)
    }

    /// Runs the player until it has nothing more to do.
    async fn settle(player: &mut Player, replay: &mut Replay, store: &mut Store, at: Instant) {
        while player.advance(replay, store, at) == Played::Seeking {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_moment_shows_what_had_happened_by_then() {
        let recording = recording(None);
        let (mut replay, mut player) = (Replay::of(&recording), Player::new(recording));
        let (mut store, at) = (Store::new(), Instant::now());
        replay.seek(4_500_000);
        settle(&mut player, &mut replay, &mut store, at).await;
        assert_eq!((store.records(), replay.at_us), (4, 4_500_000));
        replay.seek(8_000_000);
        settle(&mut player, &mut replay, &mut store, at).await;
        assert_eq!(store.records(), 8);
        replay.step(false);
        settle(&mut player, &mut replay, &mut store, at).await;
        assert_eq!((store.records(), replay.at_us), (7, 7_000_000));
        replay.seek(u64::MAX);
        settle(&mut player, &mut replay, &mut store, at).await;
        assert_eq!((store.records(), replay.at_us), (10, 10_000_000));
    }

    #[tokio::test]
    async fn it_plays_at_its_speed_and_stops_at_the_end() {
        let recording = recording(Some(2.0));
        let (mut replay, mut player) = (Replay::of(&recording), Player::new(recording));
        let (mut store, mut at) = (Store::new(), Instant::now());
        player.advance(&mut replay, &mut store, at);
        let mut seen = Vec::new();
        for _ in 0..6 {
            at += Duration::from_secs(1);
            // The reader thread may take a while; the clock waits for it.
            let due = (replay.at_us + 2_000_000).min(replay.end_us);
            player.advance(&mut replay, &mut store, at);
            while replay.at_us < due {
                tokio::time::sleep(Duration::from_millis(1)).await;
                replay.wanted_us = Some(due);
                player.advance(&mut replay, &mut store, at);
            }
            seen.push((replay.at_us / 1_000_000, store.records()));
        }
        assert_eq!(seen, [(3, 3), (5, 5), (7, 7), (9, 9), (10, 10), (10, 10)]);
        assert!(!replay.playing);
        replay.toggle();
        assert_eq!((replay.playing, replay.wanted_us), (true, Some(1_000_000)), "again from the start");
    }

    #[test]
    fn speeds_have_a_slowest_and_a_fastest() {
        let mut replay = Replay::of(&recording(None));
        for (faster, expected) in [(true, 100.0), (false, 0.1)] {
            (0..20).for_each(|_| replay.step_speed(faster));
            assert!((replay.speed - expected).abs() < 1e-9);
        }
    }
}
