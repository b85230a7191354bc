//! The hub: the only place where runs get their ids, events get their numbers, and events are recorded.

use super::recorder::{RecordError, Recorder};
use super::run_ids::RunIds;
use super::tape::Tape;
use crate::event::{Event, LogLevel, LogLine, LogSource, Record, RunId, RunStatus, now_us};
use crate::store::Store;
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Capacity of the hub in events. A full hub slows down runners (their pipe fills up) and makes samplers drop
/// events, which are counted.
const CAPACITY: usize = 4096;

/// An event on its way to the hub.
#[derive(Debug)]
pub struct Incoming {
    /// Timestamp, host monotonic microseconds.
    pub t_us: u64,
    /// Run, if any.
    pub run: Option<RunId>,
    /// The event.
    pub event: Event,
}

/// Observes events before they reach the hub.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// Called with each event that passes.
    fn see(&self, event: &Event);
}

/// Decides which events of a source reach the hub.
pub trait Gate: std::fmt::Debug + Send + Sync {
    /// Called for each event; false keeps it from the hub and the tape.
    fn lets_pass(&self, event: &Event) -> bool;
}

/// Where sources put events. Clones feed the same hub.
#[derive(Debug, Clone)]
pub struct Source {
    sender: mpsc::Sender<Incoming>,
    dropped: Arc<AtomicU64>,
    runs: RunIds,
    observer: Option<Arc<dyn Observer>>,
    gate: Option<Arc<dyn Gate>>,
    tape: Option<Tape>,
}

impl Source {
    /// Adds an observer that sees everything sent through this source and its clones.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same source, with `gate` holding some events back.
    #[must_use]
    pub fn gated(&self, gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..self.clone() }
    }

    fn look(&self, event: &Event) {
        if let Some(observer) = &self.observer {
            observer.see(event);
        }
    }

    /// The id of a run about to begin in this session.
    pub fn new_run(&self) -> RunId {
        self.runs.next()
    }

    /// The allocator of the session's run ids, for code that begins runs but sends no events.
    pub fn run_ids(&self) -> RunIds {
        self.runs.clone()
    }

    /// Sends an event that must not be lost; waits while the hub is full.
    pub async fn send(&self, run: Option<RunId>, event: Event) {
        self.send_at(now_us(), run, event).await;
    }

    /// Like [`Source::send`], with the time at which it happened.
    pub async fn send_at(&self, t_us: u64, run: Option<RunId>, event: Event) {
        if self.gate.as_ref().is_some_and(|gate| !gate.lets_pass(&event)) {
            return;
        }
        self.look(&event);
        if let Some(tape) = &self.tape {
            tape.take(t_us, run, &event);
        }
        // Only fails if the hub is gone, that is, after the session.
        let _ = self.sender.send(Incoming { t_us, run, event }).await;
    }

    /// The same source with a tape that records whatever is sent with [`Source::send`].
    #[must_use]
    pub fn taped(&self, tape: Tape) -> Self {
        Self { tape: Some(tape), ..self.clone() }
    }

    /// The tape, if any.
    pub fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// Sends a sample that may be dropped if the hub is full; drops are counted and reported.
    pub fn offer(&self, run: Option<RunId>, event: Event) -> bool {
        self.look(&event);
        match self.sender.try_send(Incoming { t_us: now_us(), run, event }) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

/// Numbers and records events and passes them on.
#[derive(Debug)]
pub struct Hub {
    receiver: mpsc::Receiver<Incoming>,
    dropped: Arc<AtomicU64>,
    next_seq: u64,
    recorder: Option<Recorder>,
    /// The copy for the history. Losing it does not fail the session.
    history: Option<Recorder>,
    record_error: Option<RecordError>,
    pending: VecDeque<Incoming>,
    /// Runs that have begun but not ended.
    going: BTreeSet<RunId>,
}

impl Hub {
    /// A hub and its first source. With a recorder, every record is written before it is passed on.
    pub fn new(recorder: Option<Recorder>) -> (Self, Source) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let hub = Self {
            receiver,
            dropped: dropped.clone(),
            next_seq: 0,
            recorder,
            history: None,
            record_error: None,
            pending: VecDeque::new(),
            going: BTreeSet::new(),
        };
        (hub, Source { sender, dropped, runs: RunIds::default(), observer: None, gate: None, tape: None })
    }

    /// Also records for the history.
    pub fn keep(&mut self, history: Recorder) {
        self.history = Some(history);
    }

    /// The next record; `None` once every source is gone.
    pub async fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(incoming) = self.pending.pop_front() {
                return Some(self.take(incoming));
            }
            let due = [&self.recorder, &self.history].into_iter().flatten().filter_map(Recorder::flush_due).min();
            let flush = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                incoming = self.receiver.recv() => return Some(self.take(incoming?)),
                // Nothing is arriving, and earlier data is still unwritten.
                () = flush => self.flush(),
            }
        }
    }

    fn flush(&mut self) {
        let named = self.recorder.as_mut().map(Recorder::flush);
        self.note_recording(named);
        let kept = self.history.as_mut().map(Recorder::flush);
        self.note_history(kept);
    }

    /// Ends the session, for whatever reason: drains the queue, and reports unfinished runs as stopped. Only
    /// [`Hub::finish`] may follow these records.
    pub fn close(&mut self) -> Vec<Record> {
        self.receiver.close();
        let mut last = Vec::new();
        while let Some(incoming) = self.pending.pop_front().or_else(|| self.receiver.try_recv().ok()) {
            last.push(self.take(incoming));
        }
        for run in std::mem::take(&mut self.going) {
            let event = Event::RunFinished { status: RunStatus::Stopped };
            last.push(self.take(Incoming { t_us: now_us(), run: Some(run), event }));
        }
        last
    }

    /// Syncs the recording to disk. `store` is the fold of all records, if available, which makes a long
    /// session open at once. Returns the history's file, if any.
    pub fn finish(&mut self, store: Option<&Store>) -> Option<PathBuf> {
        let store = store.filter(|store| store.records() == self.next_seq);
        if let Some(Err(error)) = self.recorder.take().map(|mut recorder| recorder.finish(store)) {
            self.record_error = Some(error);
        }
        let mut history = self.history.take()?;
        // The file's contents are listed regardless.
        let _ = history.finish(store);
        Some(history.path().to_owned())
    }

    /// Numbers an event and records it.
    fn take(&mut self, incoming: Incoming) -> Record {
        let record = Record { seq: self.next_seq, t_us: incoming.t_us, run: incoming.run, event: incoming.event };
        self.next_seq += 1;
        match (&record.event, record.run) {
            (Event::RunStarted(_), Some(run)) => {
                self.going.insert(run);
            }
            (Event::RunFinished { .. }, Some(run)) => {
                self.going.remove(&run);
            }
            _ => {}
        }
        self.note_drops();
        let named = self.recorder.as_mut().map(|recorder| recorder.write(&record));
        self.note_recording(named);
        let kept = self.history.as_mut().map(|history| history.write(&record));
        self.note_history(kept);
        record
    }

    fn note_recording(&mut self, written: Option<Result<(), RecordError>>) {
        let Some(Err(error)) = written else { return };
        self.recorder = None;
        let text = format!("recording stopped: {error}");
        self.report(Event::Log(LogLine::new(LogLevel::Error, LogSource::Qnnscope, &text)));
        self.report(Event::Lost { source: "recorder".to_owned(), reason: error.to_string(), count: 1 });
        self.record_error = Some(error);
    }

    fn note_history(&mut self, written: Option<Result<(), RecordError>>) {
        let Some(Err(error)) = written else { return };
        self.history = None;
        let text = format!("the history keeps this session only up to here: {error}");
        self.report(Event::Log(LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &text)));
    }

    /// Why recording stopped, if so.
    pub fn record_error(&self) -> Option<&RecordError> {
        self.record_error.as_ref()
    }

    /// Like [`Hub::record_error`], but takes the error out.
    pub fn take_record_error(&mut self) -> Option<RecordError> {
        self.record_error.take()
    }

    fn note_drops(&mut self) {
        let count = self.dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            self.report(Event::Lost { source: "samplers".to_owned(), reason: "the hub was full".to_owned(), count });
        }
    }

    fn report(&mut self, event: Event) {
        self.pending.push_back(Incoming { t_us: now_us(), run: None, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Budget, RunPlan};
    use crate::session::SessionReader;

    fn plan() -> RunPlan {
        RunPlan {
            device: "local".to_owned(),
            backend: qnnscope_core::Backend::Cpu,
            model: "m".to_owned(),
            warmup: 0,
            budget: Budget::Iterations(1),
            profiling: qnnscope_core::ProfilingLevel::Off,
            profiling_budget: None,
            simulated: false,
            driver: crate::event::Driver::default(),
            energy_while_charging: false,
            mode: crate::event::Mode::default(),
            constraints: crate::event::Constraints::default(),
        }
    }

    #[tokio::test]
    async fn a_session_that_is_closed_has_the_end_of_every_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (mut hub, source) = Hub::new(Some(Recorder::create(&path).unwrap()));
        let header = crate::event::SessionStarted {
            schema: crate::event::SESSION_SCHEMA.to_owned(),
            tool_version: String::new(),
            epoch_us: 0,
            monotonic_us: 0,
            host: String::new(),
        };
        source.send(None, Event::SessionStarted(header)).await;
        for (run, ended) in [(0, true), (1, false)] {
            source.send(Some(RunId(run)), Event::RunStarted(Box::new(plan()))).await;
            if ended {
                source.send(Some(RunId(run)), Event::RunFinished { status: RunStatus::Ok }).await;
            }
        }
        assert_eq!(hub.next().await.unwrap().seq, 0);
        let last = hub.close();
        assert_eq!(last.last().unwrap().run, Some(RunId(1)));
        assert_eq!(last.last().unwrap().event, Event::RunFinished { status: RunStatus::Stopped });
        assert!(hub.close().is_empty());
        hub.finish(None);
        assert!(hub.record_error().is_none());
        let read: Vec<Record> = SessionReader::open(&path).unwrap().map(|record| record.unwrap()).collect();
        assert_eq!(read[1..], last[..]);
    }
}
