//! Accepts the connections of the tapped processes, with one reader each.

use super::feed::{Feed, read};
use super::listener::Listener;
use super::shared::{ServerEvent, Shared, is_alive};
use crate::backends::on_device::clock::WallClock;
use crate::event::{TapSeen, clean_text};
use crate::probes::process::ProcessMemory;
use crate::session::Source;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How often the memory of the processes is read.
const MEMORY: Duration = Duration::from_millis(250);
/// How long data that was sent before the program's end may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Listens to a program's processes.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server for processes of `device`. Events go to `source`, everything else it reports to the receiver.
    ///
    /// `runtime` has the QNN libraries for reading context binaries of programs whose own libraries are not
    /// available.
    pub fn new(device: &str, source: Source, runtime: Option<PathBuf>) -> (Self, mpsc::UnboundedReceiver<ServerEvent>) {
        let (shared, receiver) = Shared::new(device, source, runtime);
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Processes the messages of a device's process, with timestamps on the device's clock.
    pub fn feed(&self, clock: WallClock) -> Feed {
        Feed::new(self.shared.clone(), Some(clock))
    }

    /// Records the memory of a device's process.
    pub async fn remember(&self, pid: u32, memory: ProcessMemory) {
        let fold = self.shared.lock().get(&pid).cloned();
        if let Some(fold) = fold {
            self.shared.remember(&fold, memory).await;
        }
    }

    /// Serves until `over` is set, then briefly handles what still arrives.
    pub async fn serve(&self, listener: &Listener, mut over: watch::Receiver<bool>) {
        if let Some(folder) = listener.path().parent() {
            let _ = self.shared.folder.set(folder.to_owned());
        }
        let mut is_reachable = true;
        let mut readers = JoinSet::new();
        let mut tick = tokio::time::interval(MEMORY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut end = None;
        loop {
            let patience = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                connection = listener.accept() => match connection {
                    Ok(stream) => drop(readers.spawn(read(stream, self.shared.clone()))),
                    // Too many open files: existing connections continue, and accepting is retried.
                    Err(_) => tokio::time::sleep(MEMORY).await,
                },
                Some(_) = readers.join_next() => {}
                _ = tick.tick() => {
                    self.shared.look().await;
                    self.notice_removal(listener, &mut is_reachable).await;
                }
                () = patience => break,
                _ = over.wait_for(|over| *over), if end.is_none() => {
                    end = Some(tokio::time::Instant::now() + LAST_WORDS);
                }
            }
            // Waiting connections are accepted first, so no data is lost.
            if end.is_some() && readers.is_empty() {
                let waiting = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
                match waiting {
                    Ok(Ok(stream)) => drop(readers.spawn(read(stream, self.shared.clone()))),
                    _ => break,
                }
            }
        }
        readers.shutdown().await;
        self.notice_removal(listener, &mut is_reachable).await;
        self.notice_those_who_stay().await;
        self.end().await;
    }

    /// If nothing has used QNN, a surviving process of the program may still do so.
    async fn notice_those_who_stay(&self) {
        let loaded = self.shared.loaded().clone();
        let Some(pid) = loaded.into_iter().find(|pid| is_alive(*pid)) else { return };
        if !self.shared.is_used() {
            let reason = format!(
                "process {pid} outlives the program and had not used QNN when the program ended; use --listen for programs that go \
                 into the background"
            );
            self.shared.say(TapSeen::NotReached { reason }).await;
        }
    }

    /// Reports once that the socket is unreachable because its file was removed.
    async fn notice_removal(&self, listener: &Listener, is_reachable: &mut bool) {
        if !*is_reachable || listener.is_there() {
            return;
        }
        *is_reachable = false;
        let reason = format!(
            "the tap's socket {} was removed, by the program or by a cleaner of temporary files: later users of QNN are \
             not seen; keep that folder, or use --listen with a permanent path",
            clean_text(&listener.path().to_string_lossy())
        );
        self.shared.say(TapSeen::NotReached { reason }).await;
    }

    /// Reads the context binaries that processes load, as they come, while the program runs; never ends.
    /// Without this, they are read when the program has ended.
    pub async fn read_binaries(&self) {
        self.shared.binaries.read_as_they_come(&self.shared.source).await;
    }

    /// Ends the figures of processes that outlive the program, and reads the remaining context binaries.
    pub async fn end(&self) {
        let going: Vec<_> = self.shared.lock().drain().map(|(_, fold)| fold).collect();
        for fold in going {
            let mut out = Vec::new();
            fold.lock().unwrap_or_else(PoisonError::into_inner).end(&mut out);
            self.shared.send(out).await;
        }
        self.shared.binaries.finish(&self.shared.source).await;
    }
}
