//! Several threads work on the batches of one log; their results are taken in log order.

use super::batch::{Batch, Batches, Checked};
use super::error::ProfileLogError;
use super::reader::ReadOutcome;
use std::io::Read;
use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// More threads do not help: reading and writing take time, too.
const MOST_WORKERS: usize = 4;

/// The threads that work on a log, and their buffers, which are reused for the next log.
#[derive(Debug)]
pub(super) struct Workers {
    count: usize,
    buffers: Mutex<Vec<Batch>>,
}

impl Workers {
    /// One per processor, up to the useful maximum.
    pub(super) fn new() -> Self {
        let count = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_WORKERS);
        Self { count, buffers: Mutex::default() }
    }

    /// Reads a source to its end. `work` processes batches on all threads at once; each call gets a buffer left by
    /// another one, and a turn, which grants access to `all` once everything before its batch is done. `work` returns
    /// `None` if its turn does not come.
    ///
    /// Memory is bounded: one batch and one buffer per thread.
    ///
    /// # Errors
    /// Errors of the log, the source and `work`.
    pub(super) fn in_order<R: Read + Send, T: Send, B: Default>(
        &self,
        source: R,
        all: T,
        work: impl Fn(&Batch, &mut B, &mut Turn<'_, T>) -> Option<Checked> + Sync,
    ) -> Result<ReadOutcome, ProfileLogError> {
        let reading = Mutex::new(Reading { batches: Batches::new(source), number: 0 });
        let order = Order { state: Mutex::new(State::new(all)), passed_on: Condvar::new() };
        let worker = || self.work(&reading, &order, &work);
        thread::scope(|scope| {
            for number in 1..self.count {
                // Fewer threads also work.
                let _ = thread::Builder::new().name(format!("log-{number}")).spawn_scoped(scope, worker);
            }
            worker();
        });
        let State { outcome, error, .. } = order.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(outcome), Err)
    }

    /// What one thread does.
    fn work<R: Read, T, B: Default>(
        &self,
        reading: &Mutex<Reading<R>>,
        order: &Order<T>,
        work: &impl Fn(&Batch, &mut B, &mut Turn<'_, T>) -> Option<Checked>,
    ) {
        let mut batch = lock(&self.buffers).pop().unwrap_or_default();
        let mut buffer = B::default();
        loop {
            let mut reading = lock(reading);
            let next = reading.batches.next(&mut batch);
            if matches!(next, Ok(false)) {
                break;
            }
            let mut turn = Turn { order, number: reading.number, held: None };
            reading.number += 1;
            // While a large batch exists, no other thread reads another one.
            let is_large = batch.is_large();
            let reading = is_large.then_some(reading);
            let checked = match next {
                Ok(_) => work(&batch, &mut buffer, &mut turn),
                Err(error) => Some(Checked { error: Some(ProfileLogError::Read(error)), ..Checked::default() }),
            };
            if checked.and_then(|checked| turn.end(checked)).is_none() {
                break;
            }
            if is_large {
                batch = Batch::default();
            }
            drop(reading);
        }
        lock(&self.buffers).push(batch);
    }
}

/// A lock poisoned by a panic is not used for long: the panic resumes once all threads have ended.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the log is read, and the number of the next batch.
struct Reading<R> {
    batches: Batches<R>,
    number: u64,
}

/// Whose turn it is.
struct Order<T> {
    state: Mutex<State<T>>,
    passed_on: Condvar,
}

struct State<T> {
    /// Number of the batch whose turn it is.
    number: u64,
    /// No more turns are granted.
    stopped: bool,
    outcome: ReadOutcome,
    error: Option<ProfileLogError>,
    all: T,
}

impl<T> State<T> {
    fn new(all: T) -> Self {
        Self { number: 0, stopped: false, outcome: ReadOutcome::default(), error: None, all }
    }
}

/// A batch's exclusive access to the shared state. Dropped early, it stops everything, so that nobody waits for a
/// thread that panicked.
pub(super) struct Turn<'a, T> {
    order: &'a Order<T>,
    number: u64,
    held: Option<MutexGuard<'a, State<T>>>,
}

impl<T> Turn<'_, T> {
    /// Waits until all earlier batches are done, and keeps the turn until this one is done. `None` if that will not
    /// happen.
    pub(super) fn wait(&mut self) -> Option<&mut T> {
        self.state().map(|state| &mut state.all)
    }

    fn state(&mut self) -> Option<&mut State<T>> {
        if self.held.is_none() {
            let state = lock(&self.order.state);
            let waits = |state: &mut State<T>| !state.stopped && state.number != self.number;
            let state = self.order.passed_on.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
            self.held = (!state.stopped).then_some(state);
        }
        self.held.as_deref_mut()
    }

    /// The batch is done and passes the turn on. `None` if there are no more turns.
    fn end(mut self, checked: Checked) -> Option<()> {
        let state = self.state()?;
        let outcome = &mut state.outcome;
        outcome.whole_bytes += checked.outcome.whole_bytes;
        outcome.incomplete_bytes += checked.outcome.incomplete_bytes;
        outcome.chunks += checked.outcome.chunks;
        outcome.messages += checked.outcome.messages;
        match checked.error {
            None => {
                state.number += 1;
                self.held = None;
                self.order.passed_on.notify_all();
                // From here on, dropping it has no effect.
                self.number = u64::MAX;
                return Some(());
            }
            Some(damage @ ProfileLogError::Damaged { .. }) => outcome.damage = Some(damage),
            Some(error) => state.error = Some(error),
        }
        None
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if self.number != u64::MAX {
            let mut state = self.held.take().unwrap_or_else(|| lock(&self.order.state));
            state.stopped = true;
            drop(state);
            self.order.passed_on.notify_all();
        }
    }
}
