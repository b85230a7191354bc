//! Several threads work on the batches of one log; their results are taken in the order of the log.

use super::batch::{Batch, Batches, Checked};
use super::error::ProfileLogError;
use super::reader::Outcome;
use std::io::Read;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};

/// More threads do not help: reading and writing take their time, too.
const MOST_WORKERS: usize = 4;
/// So many results of a worker may wait.
const WAITING: usize = 2;

/// What a worker sends.
enum Sent<T> {
    Result(T),
    /// The batch is done.
    Done(Checked),
}

/// A worker's way to whoever takes its results. Results that were taken come back, so that their buffers are used again.
pub(super) struct Lane<T> {
    sent: SyncSender<Sent<T>>,
    taken: Receiver<T>,
}

impl<T: Default> Lane<T> {
    /// A result to be filled: one that was taken, as it was left, or a new one.
    pub(super) fn again(&self) -> T {
        self.taken.try_recv().unwrap_or_default()
    }

    /// Sends a result and waits for it to come back. `None` if nobody takes it any more.
    pub(super) fn lend(&self, result: T) -> Option<T> {
        self.send(result)?;
        self.taken.recv().ok()
    }

    /// Sends a result; waits if too many wait. `None` if nobody takes it any more.
    pub(super) fn send(&self, result: T) -> Option<()> {
        self.sent.send(Sent::Result(result)).ok()
    }
}

/// The other end of a lane.
struct End<T> {
    sent: Receiver<Sent<T>>,
    taken: Sender<T>,
}

/// Reads a source to its end. Batches are given to `work` on some threads at once, which sends results, and `None` if they
/// are no longer wanted; `take` gets the results on this thread, in the order of the log.
///
/// Memory is bounded: a worker waits until the results of the batches before its own were taken.
///
/// # Errors
/// The log's, the source's, those of `work` and `take`, and that of the system if there are no threads.
pub(super) fn in_order<R: Read + Send, T: Default + Send>(
    source: R,
    work: impl Fn(&mut Batch, &Lane<T>) -> Option<Checked> + Sync,
    mut take: impl FnMut(&mut T) -> Result<(), ProfileLogError>,
) -> Result<Outcome, ProfileLogError> {
    let batches = Mutex::new(Batches::new(source));
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_WORKERS);
    thread::scope(|scope| {
        let (turns, order) = channel();
        let mut ends = Vec::new();
        for number in 0..workers {
            match start(scope, number, turns.clone(), &batches, &work) {
                Ok(end) => ends.push(end),
                Err(error) if number == 0 => return Err(ProfileLogError::Threads(error)),
                // Fewer do as well.
                Err(_) => break,
            }
        }
        drop(turns);
        let mut outcome = Outcome::default();
        for number in order {
            let Some(End { sent, taken }) = ends.get(number) else { break };
            let checked = loop {
                match sent.recv() {
                    Ok(Sent::Result(mut result)) => {
                        take(&mut result)?;
                        // The worker may have ended.
                        let _ = taken.send(result);
                    }
                    Ok(Sent::Done(checked)) => break checked,
                    // It panicked, and so will the scope.
                    Err(_) => return Ok(outcome),
                }
            };
            outcome.whole_bytes += checked.outcome.whole_bytes;
            outcome.incomplete_bytes += checked.outcome.incomplete_bytes;
            outcome.chunks += checked.outcome.chunks;
            outcome.messages += checked.outcome.messages;
            match checked.error {
                None => {}
                Some(damage @ ProfileLogError::Damaged { .. }) => {
                    outcome.damage = Some(damage);
                    break;
                }
                Some(error) => return Err(error),
            }
        }
        // Dropping the ends of the lanes stops the workers.
        Ok(outcome)
    })
}

/// Starts a worker.
fn start<'scope, R: Read + Send, T: Default + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    number: usize,
    turns: Sender<usize>,
    batches: &'scope Mutex<Batches<R>>,
    work: &'scope (impl Fn(&mut Batch, &Lane<T>) -> Option<Checked> + Sync),
) -> std::io::Result<End<T>> {
    let (to_end, sent) = sync_channel(WAITING);
    let (taken, from_end) = channel();
    let lane = Lane { sent: to_end, taken: from_end };
    thread::Builder::new().name(format!("log-{number}")).spawn_scoped(scope, move || {
        let mut batch = Batch::default();
        loop {
            let mut reading = batches.lock().unwrap_or_else(PoisonError::into_inner);
            let next = reading.next(&mut batch);
            // Turns are given in the order of reading, so before anybody else can read.
            if matches!(next, Ok(false)) || turns.send(number).is_err() {
                return;
            }
            // While there is a large batch, nobody else reads another one.
            let is_large = batch.is_large();
            let reading = is_large.then_some(reading);
            let checked = match next {
                Ok(_) => work(&mut batch, &lane),
                Err(error) => Some(Checked { error: Some(ProfileLogError::Read(error)), ..Checked::default() }),
            };
            if checked.is_none_or(|checked| lane.sent.send(Sent::Done(checked)).is_err()) {
                return;
            }
            if is_large {
                batch = Batch::default();
            }
            drop(reading);
        }
    })?;
    Ok(End { sent, taken })
}
