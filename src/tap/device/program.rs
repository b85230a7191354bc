//! A tapped program on a device, from its start to its last data.

use super::DeviceTapError;
use super::app::App;
use super::follow::{Follower, Listing};
use super::prepare::DeviceTap;
use super::script::{self, STATUS, STDERR, STDOUT, TapPlace};
use super::tellers::{PIECE, Tellers};
use crate::backends::on_device::link::Link;
use crate::devices::{Device, DeviceError};
use crate::event::clean_text;
use crate::tap::program::Ended;
use crate::tap::server::Server;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

/// How often the files are checked while nothing grows.
const ROUND: Duration = Duration::from_millis(150);
/// Time within which the tap must have been loaded.
const LOADS_WITHIN: Duration = Duration::from_millis(900);
/// Time within which the program must have its pid; otherwise its start was lost with the link.
const STARTS_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of start attempts; only one counts.
const MOST_STARTS: u32 = 5;
/// Checks of a vanished program without a status before giving up: the status may arrive a moment later.
const MOST_GONE: u32 = 5;
/// How long data sent before the program's end may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Time spent trying to clean up on a lost device.
const TIDY_LIMIT: Duration = Duration::from_secs(15);

/// Destination of the program's output.
pub type Pipe = Box<dyn AsyncWrite + Send + Unpin>;

impl DeviceTap {
    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Why the tap cannot get into the program, if known.
    pub fn barrier(&self) -> Option<String> {
        let reason = self.found.barrier.as_ref()?;
        Some(format!("{} {reason}", clean_text(&self.found.file)))
    }

    /// Runs the program to its end. Signals arrive through `orders`; `unreached` is called if the tap is loaded into no
    /// process.
    pub async fn run(
        &mut self,
        server: &Server,
        outputs: [Pipe; 2],
        mut orders: mpsc::UnboundedReceiver<i32>,
        unreached: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Ended, DeviceTapError> {
        let signals = Signals::default();
        let (give_up, is_over) = watch::channel(false);
        let (device, place, app) = (self.device.clone(), self.place.clone(), self.app.clone());
        let pass = async {
            while let Some(number) = orders.recv().await {
                if signals.is_lost.load(Ordering::Relaxed) {
                    // The user does not want to wait for the device.
                    let _ = give_up.send(true);
                }
                signals.pass(&device, signal(&place, app.as_ref(), number)).await;
            }
            std::future::pending::<()>().await;
        };
        let mut course = Course { tellers: Tellers::new(server, self.clock), outputs, printed: [0; 2] };
        let result = tokio::select! {
            result = self.follow(&mut course, &signals, is_over, unreached) => result,
            () = pass => Err(self.gone()),
        };
        course.tellers.end().await;
        for output in &mut course.outputs {
            // The reader may be gone by now.
            let _ = output.flush().await;
        }
        result
    }

    /// Cleans up on the device, if reachable.
    pub async fn remove(self) {
        let Self { device, claim, probe, app, .. } = self;
        let removed = tokio::time::timeout(TIDY_LIMIT, async {
            if let Some(probe) = probe {
                probe.stop().await;
            }
            let _ = device.revive().await;
            if let Some(app) = app {
                app.remove(&device).await;
            }
            claim.remove().await
        });
        let _ = removed.await;
    }

    async fn follow(
        &mut self,
        course: &mut Course<'_>,
        signals: &Signals,
        given_up: watch::Receiver<bool>,
        unreached: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Ended, DeviceTapError> {
        let (device, place) = (self.device.clone(), self.place.clone());
        let mut follower = Follower::new(&device, &place);
        let mut launch = device.stream(&self.start);
        let (mut launched, mut starts) = (Instant::now(), 1);
        let (mut running_since, mut over_since, mut is_watched) = (None, None, false);
        let (mut gone, mut is_told) = (0, self.is_swapped || self.found.barrier.is_some());
        loop {
            let (listing, grew) = match course.round(&mut follower).await {
                Ok(round) => round,
                Err(error) => {
                    self.come_back(error, signals, &given_up).await?;
                    follower.restart();
                    (launched, gone) = (Instant::now(), 0);
                    continue;
                }
            };
            // A signal that failed for a reason other than the link is not retried.
            signals.pass_owed(&device).await;
            let now = Instant::now();
            if let Some(pid) = listing.pid {
                running_since.get_or_insert(now);
                if !std::mem::replace(&mut is_watched, true)
                    && let Some(probe) = &self.probe
                {
                    probe.watch(Some(pid));
                }
            } else if launched.elapsed() > STARTS_WITHIN {
                if starts >= MOST_STARTS {
                    let (program, device) = (clean_text(&self.found.path), device.id().to_owned());
                    return Err(DeviceTapError::NotStarted { program, device });
                }
                launch = device.stream(&self.start);
                (launched, starts) = (now, starts + 1);
            }
            let is_over = listing.files.contains_key(STATUS);
            if !is_told && !is_over && running_since.is_some_and(|since| since.elapsed() > LOADS_WITHIN) {
                is_told = true;
                if !course.tellers.any() {
                    unreached(NOT_LOADED);
                }
            }
            if is_over {
                let since = *over_since.get_or_insert(now);
                // The program's output is fetched completely, however long that takes.
                let is_printed = course.is_printed(&listing);
                if is_printed && !grew && (course.tellers.pids().is_empty() || since.elapsed() > LAST_WORDS) {
                    drop(launch);
                    return self.ended(&mut follower).await;
                }
            } else if listing.pid.is_some() && !listing.is_alive {
                gone += 1;
                if gone > MOST_GONE && !grew {
                    // The shell does not see how an app ends.
                    let unknown = Ended { status: None, signal: None };
                    return if self.app.is_some() { Ok(unknown) } else { Err(self.gone()) };
                }
            }
            if !grew {
                tokio::time::sleep(ROUND).await;
            }
        }
    }

    /// How the program ended, according to the device.
    async fn ended(&self, follower: &mut Follower<'_>) -> Result<Ended, DeviceTapError> {
        let text = loop {
            let asked = async {
                let listing = follower.list([]).await?;
                let size = listing.files.get(STATUS).copied().unwrap_or(0).min(64);
                follower.want(&[(STATUS.to_owned(), 0, size)]);
                follower.part(usize::try_from(size).unwrap_or(0)).await
            };
            match asked.await {
                Ok(text) => break text,
                Err(error) => {
                    let signals = Signals::default();
                    self.wait(&error, &signals, None).await?;
                    follower.restart();
                }
            }
        };
        Ok(script::ended(&text))
    }

    /// Waits for a device whose link was lost.
    async fn come_back(
        &mut self,
        error: DeviceError,
        signals: &Signals,
        given_up: &watch::Receiver<bool>,
    ) -> Result<(), DeviceTapError> {
        self.wait(&error, signals, Some(given_up)).await?;
        self.claim.renew();
        if let Some(probe) = &mut self.probe {
            probe.revive();
        }
        signals.pass_owed(&self.device).await;
        Ok(())
    }

    async fn wait(
        &self,
        error: &DeviceError,
        signals: &Signals,
        given_up: Option<&watch::Receiver<bool>>,
    ) -> Result<(), DeviceTapError> {
        let lost = || {
            let action = match error {
                DeviceError::LinkLost { action, .. } => action.clone(),
                other => other.to_string(),
            };
            DeviceTapError::Device(DeviceError::LinkLost { id: self.device.id().to_owned(), action })
        };
        if !error.is_link() && !matches!(error, DeviceError::TimedOut { .. } | DeviceError::Refused { .. }) {
            return Err(lost());
        }
        signals.is_lost.store(true, Ordering::Relaxed);
        let link = Link { device: &self.device, model: self.model.as_deref(), source: &self.source, run: None };
        let is_back = link.wait_for_return(error, given_up).await;
        signals.is_lost.store(false, Ordering::Relaxed);
        if is_back { Ok(()) } else { Err(lost()) }
    }

    fn gone(&self) -> DeviceTapError {
        DeviceTapError::Gone { program: clean_text(&self.found.path), device: self.device.id().to_owned() }
    }
}

/// Why nothing is seen of a program that runs.
const NOT_LOADED: &str = "no process of the program loaded the tap within a second: the program is hardened, its library folder keeps the \
                          tap out (--swap DIR), or the tap library does not fit the device (the loader's messages are on stderr)";

/// Signals on their way to the program.
#[derive(Debug, Default)]
struct Signals {
    is_lost: AtomicBool,
    /// Those that were lost with the link.
    owed: Mutex<Vec<String>>,
}

impl Signals {
    fn owed(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.owed.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn pass(&self, device: &Device, script: String) {
        if device.run(&script, "sending it a signal").await.is_err() {
            self.owed().push(script);
        }
    }

    async fn pass_owed(&self, device: &Device) {
        let owed = std::mem::take(&mut *self.owed());
        for script in owed {
            self.pass(device, script).await;
        }
    }
}

/// Maps a signal for what runs there: the shell cannot signal an app, but can stop it.
fn signal(place: &TapPlace, app: Option<&App>, number: i32) -> String {
    app.map_or_else(|| place.signal(number), App::end)
}

/// How far the program's output has been read.
struct Course<'s> {
    tellers: Tellers<'s>,
    outputs: [Pipe; 2],
    printed: [u64; 2],
}

impl Course<'_> {
    /// Checks everything once; returns whether anything grew.
    async fn round(&mut self, follower: &mut Follower<'_>) -> Result<(Listing, bool), DeviceError> {
        let listing = follower.list(self.tellers.pids()).await?;
        let mut grew = false;
        for (index, name) in [STDOUT, STDERR].into_iter().enumerate() {
            let size = listing.files.get(name).copied().unwrap_or(0);
            let count = size.saturating_sub(self.printed[index]).min(PIECE);
            if count > 0 {
                follower.want(&[(name.to_owned(), self.printed[index], count)]);
                let bytes = follower.part(usize::try_from(count).unwrap_or(0)).await?;
                self.printed[index] += bytes.len() as u64;
                // The reader may be gone; the program continues anyway.
                let _ = self.outputs[index].write_all(&bytes).await;
                let _ = self.outputs[index].flush().await;
                grew = true;
            }
        }
        grew |= self.tellers.take(follower, &listing).await?;
        self.tellers.settle(follower, &listing).await?;
        Ok((listing, grew))
    }

    fn is_printed(&self, listing: &Listing) -> bool {
        let size = |name: &str| listing.files.get(name).copied().unwrap_or(0);
        self.printed[0] >= size(STDOUT) && self.printed[1] >= size(STDERR)
    }
}
