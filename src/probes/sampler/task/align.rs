//! Aligns the device's clock with the host's, through queries over the loop's own shell.

use super::{End, Link, SILENCE_LIMIT, Task};
use crate::event::{ClockAligned, ClockStepped, DeviceKind, Event, now_us};
use crate::probes::clock::{DeviceClock, HostClock, Moment, RoundTrip, Stamp};
use crate::probes::sampler::line::{Line, parse};

/// Number of queries at the start, and of later ones.
const FIRST_QUESTIONS: u32 = 8;
const QUESTIONS: u32 = 4;

/// A series of time queries in progress.
#[derive(Debug)]
pub(super) struct Asking {
    left: u32,
    token: u64,
    asked_us: u64,
    trips: Vec<RoundTrip>,
    /// Whether the loop waits for commands meanwhile.
    pub(super) paused: bool,
}

impl Task {
    pub(super) async fn align_at_start(&mut self, main: &mut Link) -> Result<(), End> {
        if let Some((clock, host)) = self.own_clock() {
            self.clock = clock;
            self.aligned(host).await;
            return Ok(());
        }
        self.clock = DeviceClock::new();
        self.host_clock = None;
        self.ask(main, FIRST_QUESTIONS, false);
        while self.asking.is_some() {
            let Some(line) = self.line(main, SILENCE_LIMIT).await? else {
                return Err(End::Failed("the device's shell does not report the time".to_owned()));
            };
            if let Some(Line::Pong { token, stamp }) = parse(&line) {
                self.answered(main, token, stamp).await;
            }
        }
        Ok(())
    }

    pub(super) async fn moment(&mut self, main: &Link, stamp: Stamp) -> Moment {
        let moment = self.clock.moment(stamp);
        if let Some(step_us) = moment.stepped_us {
            let stepped = ClockStepped { device: self.device.id().to_owned(), step_us };
            self.source.send(None, Event::ClockStepped(stepped)).await;
            // The uptime showed the step only to about 10 ms, so the clocks are compared again.
            self.host_clock = self.host_clock.map(HostClock::blurred);
            if let Some((clock, _)) = self.own_clock() {
                self.clock = clock;
            } else {
                self.ask_again(main);
            }
        }
        moment
    }

    /// Starts `count` time queries.
    pub(super) fn ask(&mut self, main: &Link, count: u32, paused: bool) {
        self.asking = Some(Asking { left: count, token: 0, asked_us: 0, trips: Vec::new(), paused });
        self.ask_next(main);
    }

    pub(super) fn ask_next(&mut self, main: &Link) {
        self.token += 1;
        if let Some(asking) = &mut self.asking {
            (asking.token, asking.asked_us) = (self.token, now_us());
            main.send(&format!("Q {}", self.token));
        }
    }

    pub(super) async fn realign(&mut self, main: &Link) {
        match self.own_clock() {
            Some((_, host)) => self.aligned(host).await,
            None => self.ask_again(main),
        }
    }

    /// Queries while the loop runs.
    pub(super) fn ask_again(&mut self, main: &Link) {
        if self.asking.is_some() {
            return;
        }
        // A loop that never waits checks for commands only now and then; in command mode it answers at once.
        let paused = self.period_us == 0 && self.waits;
        if paused {
            main.send("M");
        }
        self.ask(main, QUESTIONS, paused);
    }

    pub(super) fn own_clock(&self) -> Option<(DeviceClock, HostClock)> {
        if self.device.kind() == DeviceKind::Local { own_clock(self.has_epoch) } else { None }
    }

    pub(super) async fn answered(&mut self, main: &Link, token: u64, stamp: Stamp) {
        let answered_us = now_us();
        let device_us = self.moment(main, stamp).await.device_us;
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.token == token) else { return };
        asking.trips.push(RoundTrip { asked_us: asking.asked_us, device_us, answered_us });
        asking.left = asking.left.saturating_sub(1);
        if asking.left > 0 {
            self.ask_next(main);
            return;
        }
        let Some(asking) = self.asking.take() else { return };
        if asking.paused {
            main.send("go");
        }
        let resolution_us = if self.has_epoch { 0 } else { 10_000 };
        let new = HostClock::from_round_trips(&asking.trips, &self.clock, resolution_us, self.suspended_us);
        if let Some(new) = new {
            let clock = self.host_clock.map_or(new, |old| old.or(new));
            self.aligned(clock).await;
        }
    }

    pub(super) async fn aligned(&mut self, clock: HostClock) {
        self.host_clock = Some(clock);
        let _ = self.clock_sender.send(Some(clock));
        let (offset_us, uncertainty_us) = (clock.boot_offset_us(), clock.boot_uncertainty_us());
        let aligned = ClockAligned { device: self.device.id().to_owned(), offset_us, uncertainty_us };
        self.source.send(None, Event::ClockAligned(aligned)).await;
    }
}

/// This machine's own clocks, which need no queries.
#[cfg(target_os = "linux")]
fn own_clock(has_epoch: bool) -> Option<(DeviceClock, HostClock)> {
    use rustix::time::{ClockId, clock_gettime};
    let read = |id| {
        let now = clock_gettime(id);
        now.tv_sec.checked_mul(1_000_000)?.checked_add(now.tv_nsec / 1000)
    };
    let (epoch, boot, monotonic) = (read(ClockId::Realtime)?, read(ClockId::Boottime)?, read(ClockId::Monotonic)?);
    let clock = if has_epoch { DeviceClock::with_offset(boot - epoch) } else { DeviceClock::new() };
    let suspended_us = u64::try_from(boot - monotonic).unwrap_or(0);
    Some((clock, HostClock::exact(monotonic - boot, suspended_us, now_us())))
}

/// On other systems the shell is queried as on any device.
#[cfg(not(target_os = "linux"))]
fn own_clock(_has_epoch: bool) -> Option<(DeviceClock, HostClock)> {
    None
}
