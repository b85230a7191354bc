//! The writer thread: it drains what the program's threads left in the queues, so that none of them ever waits.

use super::connection::{Connection, Wrote};
use super::process::{MOST_GRAPHS, Tap};
use super::system;
use qnnscope_core::tap::TapMessage;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it wakes up.
const ROUND: Duration = Duration::from_millis(5);
/// Maximum bytes of queued messages.
const WAITING: usize = 3 << 20;
/// Executions in one message.
const BATCH: usize = 512;
/// How long a slow reader may delay the end of a process.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long to wait before each attempt to reopen a connection that the program closed.
const BEFORE_REOPENING: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(40)];

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Queue of messages and the connection they go to.
pub(super) struct Writer {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    connection: Mutex<Option<Connection>>,
    lost: AtomicU64,
    is_ending: AtomicBool,
    reopened: AtomicU64,
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(message: &TapMessage) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

impl Writer {
    pub fn new(connection: Connection) -> Self {
        Self {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            connection: Mutex::new(Some(connection)),
            lost: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            reopened: AtomicU64::new(0),
        }
    }

    /// Starts the thread. Without it (the system may refuse), messages wait for the next urgent one or the end.
    pub fn begin(tap: &'static Tap) {
        let thread = std::thread::Builder::new().name("qnnscope-tap".to_owned()).stack_size(256 * 1024);
        let begun = system::without_signals(|| thread.spawn(move || super::guard(|| tap.writer.work(tap))));
        drop(begun);
    }

    /// Queues a message for the writer; if too many wait, it is counted instead.
    pub fn say(&self, message: &TapMessage) {
        let line = line(message);
        let mut waiting = held(&self.waiting);
        if waiting.bytes + line.len() > WAITING {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line);
        drop(waiting);
        self.wake.notify_one();
    }

    /// The same, written at once if the reader accepts it: what follows may end the process.
    pub fn say_now(&self, message: &TapMessage) {
        self.say(message);
        if let Ok(mut connection) = self.connection.try_lock() {
            self.empty(&mut connection, Duration::ZERO);
        }
    }

    fn work(&self, tap: &Tap) {
        while !self.is_ending.load(Ordering::Acquire) {
            let waiting = held(&self.waiting);
            if waiting.lines.is_empty() {
                let _ = self.wake.wait_timeout(waiting, ROUND).unwrap_or_else(PoisonError::into_inner);
            } else {
                drop(waiting);
            }
            let gone = {
                let mut connection = held(&self.connection);
                self.gather(tap);
                self.empty(&mut connection, Duration::from_millis(50));
                self.pass_executions(tap, &mut connection, Duration::from_millis(50));
                connection.is_none()
            };
            if gone {
                // A program closing all descriptors takes a while, and would close the next one, too.
                let reopened = usize::try_from(self.reopened.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
                std::thread::sleep(BEFORE_REOPENING.get(reopened).copied().unwrap_or_default());
            }
            if gone && !self.reopen(tap) {
                // There is no reader: the program continues as if there were no tap.
                super::turn_off();
                return;
            }
        }
    }

    /// The program closed our descriptor, or the reader is gone. False if retrying is pointless.
    fn reopen(&self, tap: &Tap) -> bool {
        let mut place = held(&self.connection);
        if place.is_some() {
            return true;
        }
        if self.reopened.fetch_add(1, Ordering::Relaxed) >= BEFORE_REOPENING.len() as u64 {
            return false;
        }
        let Ok(mut connection) = Connection::open(&tap.settings.sink) else { return false };
        // Before everything queued: the reader must know whose it is.
        let again = line(&TapMessage::Again { t_ns: system::now_ns(), pid: std::process::id() });
        if connection.write(&again, Duration::from_millis(50)) != Wrote::All {
            // The program is still closing descriptors, and this was one attempt.
            return true;
        }
        *place = Some(connection);
        drop(place);
        self.say_now(&TapMessage::Note {
            t_ns: system::now_ns(),
            text: format!("process {} closed the tap's connection; it was opened again", std::process::id()),
        });
        true
    }

    /// Turns what the executing threads left into messages, except executions.
    fn gather(&self, tap: &Tap) {
        while let Some(mut arena) = tap.full_arenas.pop() {
            self.say(&TapMessage::Detail(Box::new(arena.detail())));
            arena.clear();
            let _ = tap.free_arenas.push(arena);
        }
        let graphs = tap.lost_graphs.swap(0, Ordering::Relaxed);
        if graphs > 0 {
            let reason = Some(format!(
                "more than {MOST_GRAPHS} were alive at once: their executions belong to an unknown graph"
            ));
            self.say(&TapMessage::Lost { what: "graphs".to_owned(), count: graphs, reason });
        }
        for (what, count) in
            [("executions", &tap.lost_executions), ("details", &tap.lost_details), ("messages", &self.lost)]
        {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                self.say(&TapMessage::Lost { what: what.to_owned(), count, reason: None });
            }
        }
    }

    /// Passes executions on. They leave the ring once the reader has them: if the process is killed before that, they
    /// are in its file.
    fn pass_executions(&self, tap: &Tap, connection: &mut Option<Connection>, patience: Duration) {
        let until = Instant::now() + patience;
        // The graphs of the executions are announced first.
        while held(&self.waiting).lines.is_empty() {
            let Some(open) = connection else { return };
            let batch = tap.executions.oldest(BATCH);
            let count = batch.len();
            if count == 0 {
                return;
            }
            match open.write(&line(&TapMessage::Executions(batch)), until.saturating_duration_since(Instant::now())) {
                Wrote::All => tap.executions.done(count),
                Wrote::Busy => return,
                Wrote::Gone => {
                    *connection = None;
                    return;
                }
            }
        }
    }

    /// Writes queued messages as far as the reader accepts them.
    fn empty(&self, connection: &mut Option<Connection>, patience: Duration) {
        let until = Instant::now() + patience;
        loop {
            let Some(open) = connection else { return };
            // Only the holder of the connection removes from the front.
            let Some(next) = held(&self.waiting).lines.pop_front() else { return };
            let wrote = open.write(&next, until.saturating_duration_since(Instant::now()));
            if wrote == Wrote::All {
                held(&self.waiting).bytes -= next.len();
                continue;
            }
            held(&self.waiting).lines.push_front(next);
            if wrote == Wrote::Gone {
                *connection = None;
            }
            return;
        }
    }

    /// Final messages of a process that ends normally.
    pub fn end(&self, tap: &Tap) {
        self.is_ending.store(true, Ordering::Release);
        let until = Instant::now() + LAST_WORDS;
        while Instant::now() < until {
            if let Ok(mut connection) = self.connection.try_lock() {
                let left = || until.saturating_duration_since(Instant::now());
                self.gather(tap);
                self.empty(&mut connection, left());
                self.pass_executions(tap, &mut connection, left());
                // The program closed the descriptor and ended before the thread noticed.
                if connection.is_none() {
                    drop(connection);
                    if self.reopen(tap) {
                        continue;
                    }
                    return;
                }
                self.gather(tap);
                self.say(&TapMessage::Bye { t_ns: system::now_ns() });
                self.empty(&mut connection, left());
                // Kept for the reader if it did not get everything.
                if let Some(ring) = tap.executions.path().filter(|_| tap.executions.oldest(1).is_empty()) {
                    let _ = std::fs::remove_file(ring);
                }
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
