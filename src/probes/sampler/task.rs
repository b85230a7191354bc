//! The host's side of the loop.

use super::line::{Line, parse};
use super::link::{Incoming, Link};
use super::plan::Split;
use super::state::{Reading, State};
use super::{Options, Rate, script};
use crate::devices::{Device, DeviceError, Root};
use crate::event::{
    ClockAligned, ClockStepped, DeviceKind, Event, LogLevel, LogLine, LogSource, SamplerEnded, SamplerReport, now_us,
};
use crate::probes::clock::{DeviceClock, HostClock, Moment, RoundTrip, Stamp};
use crate::probes::counter::Counter;
use crate::session::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long the shell may take to start; `su` may have to ask the user first.
const START_LIMIT: Duration = Duration::from_secs(30);
/// A file that takes longer than this to be read once counts as hanging.
const READ_LIMIT: Duration = Duration::from_secs(3);
/// So long nothing may come from a loop that ticks more often.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);
/// How often the device's clock is held against the host's.
const ALIGN_PERIOD: Duration = Duration::from_secs(10);
/// Questions for the time at the start, and later.
const FIRST_QUESTIONS: u32 = 8;
const QUESTIONS: u32 = 4;
/// The files are timed again no sooner than after this.
const RETIME_AFTER: Duration = Duration::from_secs(15);
/// So many times in a row the loop is started again after it fell silent.
const MAX_SILENCES: u32 = 3;

/// What the sampler is told.
#[derive(Debug)]
pub enum Command {
    Rate(Rate),
    Watch(Option<u32>),
    Choose(Vec<Counter>),
    Stop,
}

/// How a life of the loop ended.
enum End {
    Stopped,
    /// To be started anew, because it did not answer.
    Silent,
    /// To be started anew with what has changed, because this shell takes no commands.
    Changed,
    Failed(String),
}

/// Counts since the last report.
#[derive(Debug, Default)]
struct Tally {
    ticks: u64,
    late: u64,
    missed: u64,
    since_us: Option<u64>,
    cpu_ns: Option<u64>,
}

/// A running exchange of questions for the time.
#[derive(Debug)]
struct Asking {
    left: u32,
    token: u64,
    asked_us: u64,
    trips: Vec<RoundTrip>,
    /// The loop waits for commands meanwhile.
    paused: bool,
}

#[derive(Debug)]
pub struct Task {
    device: Device,
    root: Root,
    source: Source,
    period_us: u64,
    pid: Option<u32>,
    suspended_us: Option<u64>,
    state: State,
    costs_us: BTreeMap<usize, u64>,
    hanging: BTreeSet<usize>,
    split: Split,
    clock: DeviceClock,
    host_clock: Option<HostClock>,
    clock_sender: watch::Sender<Option<HostClock>>,
    waits: bool,
    has_epoch: bool,
    asking: Option<Asking>,
    token: u64,
    tally: Tally,
    last_seq: Option<u64>,
    last_device_us: Option<u64>,
    retimed: Option<Instant>,
    wants_retiming: bool,
    slow_stamp: Option<Moment>,
}

impl Task {
    pub fn new(
        device: Device,
        root: Root,
        counters: Vec<Counter>,
        options: Options,
        source: Source,
        clock_sender: watch::Sender<Option<HostClock>>,
    ) -> Self {
        let needs_root = counters.iter().any(|counter| counter.needs_root);
        Self {
            state: State::new(device.id(), counters),
            root: if needs_root { root } else { Root::None },
            device,
            source,
            period_us: options.rate.period_us(),
            pid: options.pid,
            suspended_us: options.suspended_us,
            costs_us: BTreeMap::new(),
            hanging: BTreeSet::new(),
            split: Split::default(),
            clock: DeviceClock::new(),
            host_clock: None,
            clock_sender,
            waits: true,
            has_epoch: false,
            asking: None,
            token: 0,
            tally: Tally::default(),
            last_seq: None,
            last_device_us: None,
            retimed: None,
            wants_retiming: false,
            slow_stamp: None,
        }
    }

    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) -> SamplerEnded {
        let mut silences = 0;
        let reason = loop {
            let began = Instant::now();
            match self.life(&mut commands).await {
                End::Stopped => break None,
                End::Failed(reason) => break Some(reason),
                End::Changed => continue,
                End::Silent if began.elapsed() > SILENCE_LIMIT * 4 => silences = 1,
                End::Silent => silences += 1,
            }
            // Each file that hangs takes a life of its own to be found.
            if silences > MAX_SILENCES + u32::try_from(self.hanging.len()).unwrap_or(u32::MAX / 2) {
                break Some("the device does not answer".to_owned());
            }
        };
        SamplerEnded { device: self.device.id().to_owned(), reason }
    }

    /// One life of the loop: start, clock, timing, sampling.
    async fn life(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>) -> End {
        let mut main = Link::start(&self.device, self.root);
        (self.last_seq, self.last_device_us, self.asking) = (None, None, None);
        self.tally = Tally::default();
        let mut early = Vec::new();
        let started = async {
            self.greet(&mut main).await?;
            self.align_at_start(&mut main).await?;
            self.time(&mut main).await
        };
        let started = tokio::select! {
            started = started => started,
            () = until_stop(commands, &mut early) => Err(End::Stopped),
        };
        for command in early {
            self.remember(command);
        }
        if let Err(end) = started {
            return end;
        }
        let mut slow = self.go(&main).await;
        let end = self.sample(&mut main, &mut slow, commands).await;
        if matches!(end, End::Stopped) {
            let end_slow = async {
                if let Some(slow) = slow {
                    slow.end().await;
                }
            };
            tokio::join!(main.end(), end_slow);
        }
        end
    }

    /// The watched process for the loop. There is never a process 0; an empty word would make `/proc//stat`, which exists.
    fn pid_word(&self) -> String {
        self.pid.unwrap_or(0).to_string()
    }

    fn lost(&self, error: Option<DeviceError>) -> End {
        let action = "sampling its counters".to_owned();
        let error = error.unwrap_or_else(|| DeviceError::LinkLost { id: self.device.id().to_owned(), action });
        End::Failed(error.to_string())
    }

    /// The next line of the main stream while nothing else goes on.
    async fn line(&self, main: &mut Link, limit: Duration) -> Result<Option<Vec<u8>>, End> {
        loop {
            match tokio::time::timeout(limit, main.next()).await {
                Err(_) => return Ok(None),
                Ok(Some(Ok(Incoming::Line(line)))) => return Ok(Some(line)),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(self.lost(Some(error))),
                Ok(None) => return Err(self.lost(None)),
            }
        }
    }

    async fn greet(&mut self, main: &mut Link) -> Result<(), End> {
        let mut said = String::new();
        loop {
            let line = match self.line(main, START_LIMIT).await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(End::Failed("the device's shell does not start".to_owned())),
                // What `su` said is why there is no shell.
                Err(End::Failed(reason)) if !said.is_empty() => return Err(End::Failed(format!("{reason}: {said}"))),
                Err(end) => return Err(end),
            };
            if let Some(Line::Hello { waits, has_epoch }) = parse(&line) {
                (self.waits, self.has_epoch) = (waits, has_epoch);
                return Ok(());
            }
            said = crate::event::clean_text(String::from_utf8_lossy(&line).trim());
        }
    }

    async fn align_at_start(&mut self, main: &mut Link) -> Result<(), End> {
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
                return Err(End::Failed("the device's shell does not tell the time".to_owned()));
            };
            if let Some(Line::Pong { token, stamp }) = parse(&line) {
                self.answered(main, token, stamp).await;
            }
        }
        Ok(())
    }

    /// Times every file once. The one that takes too long is left out in the next life.
    async fn time(&mut self, main: &mut Link) -> Result<(), End> {
        self.token += 1;
        let token = self.token;
        main.send(&script::timing(&self.state.sources, &self.hanging, token));
        let mut reading = None;
        let mut before_us = 0;
        loop {
            let Some(line) = self.line(main, READ_LIMIT).await? else {
                let Some(source) = reading.filter(|source| self.hanging.insert(*source)) else {
                    return Err(End::Silent);
                };
                self.say_hanging(source).await;
                return Err(End::Silent);
            };
            match parse(&line) {
                Some(Line::Timing { source }) => reading = Some(source),
                Some(Line::Timed { source, us, uptime_us }) => {
                    before_us = uptime_us;
                    self.costs_us.extend(us.map(|us| (source, us)));
                }
                // The uptime is coarse, but all there is in a shell without a clock of the day.
                Some(Line::TimedUptime { source, uptime_us }) if !self.has_epoch => {
                    self.costs_us.insert(source, uptime_us.saturating_sub(before_us));
                }
                Some(Line::Done { token: done }) if done == token => break,
                _ => {}
            }
        }
        self.retimed = Some(Instant::now());
        Ok(())
    }

    async fn say_hanging(&self, source: usize) {
        let path = self.state.sources.files().get(source).map_or("", |file| &file.path);
        self.log(&format!("{path} does not answer on {}: it is left out", self.device.id())).await;
    }

    async fn log(&self, text: &str) {
        let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, text);
        self.source.send(None, Event::Log(line)).await;
    }

    /// Makes the loop sample: groups, declarations, and the second stream if it is needed.
    async fn go(&mut self, main: &Link) -> Option<Link> {
        let split = Split::new(&self.state.sources, &self.costs_us, &self.hanging, self.period_us);
        if split.moved != self.split.moved {
            for index in split.moved.iter().filter(|index| !self.split.moved.contains(index)) {
                let path = self.state.sources.files().get(*index).map_or("", |file| &file.path);
                let ms = self.costs_us.get(index).copied().unwrap_or(0) as f64 / 1000.0;
                let text =
                    format!("reading {path} on {} takes {ms:.0} ms: it is sampled apart, less often", self.device.id());
                self.log(&text).await;
            }
        }
        self.split = split;
        self.state.watch(self.pid);
        for set in self.state.arrange(&self.split, &self.hanging, self.period_us) {
            self.source.send(None, Event::CounterSetDeclared(set)).await;
        }
        let pid = self.pid_word();
        main.send(&format!("{}k={pid}\ngo\n", script::groups(&self.state.sources, &self.split, self.period_us)));
        self.last_device_us = None;
        if self.split.slow.is_empty() {
            return None;
        }
        let slow = Link::start(&self.device, self.root);
        let commands = script::slow(&self.state.sources, &self.split.slow, self.split.slow_period_us);
        slow.send(&format!("k={pid}\n{commands}"));
        Some(slow)
    }

    async fn sample(
        &mut self,
        main: &mut Link,
        slow: &mut Option<Link>,
        commands: &mut mpsc::UnboundedReceiver<Command>,
    ) -> End {
        let mut align = tokio::time::interval_at(Instant::now() + ALIGN_PERIOD, ALIGN_PERIOD);
        let silence = SILENCE_LIMIT.max(Duration::from_micros(self.period_us * 4));
        let mut heard = Instant::now();
        loop {
            let of_slow = async {
                match slow {
                    Some(slow) => slow.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                incoming = main.next() => match incoming {
                    Some(Ok(Incoming::Line(line))) => {
                        heard = Instant::now();
                        if !self.take(main, &line).await {
                            return End::Stopped;
                        }
                        if self.wants_retiming {
                            self.wants_retiming = false;
                            if let Err(end) = self.retime(main, slow).await {
                                return end;
                            }
                            heard = Instant::now();
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return self.lost(Some(error)),
                    None => return self.lost(None),
                },
                incoming = of_slow => match incoming {
                    Some(Ok(incoming)) => self.take_slow(main, incoming).await,
                    // Without it the main loop goes on; what it read has no more values, and that is said.
                    Some(Err(_)) | None => {
                        *slow = None;
                        self.log(&format!("the slow counters of {} are no longer sampled", self.device.id())).await;
                    }
                },
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => return End::Stopped,
                    Some(command) => match self.obey(main, slow, command).await {
                        Ok(()) => heard = Instant::now(),
                        Err(end) => return end,
                    },
                },
                _ = align.tick() => self.realign(main).await,
                () = tokio::time::sleep_until(heard + silence) => {
                    self.log(&format!("{} has been silent for {} s: starting again", self.device.id(), silence.as_secs())).await;
                    return End::Silent;
                }
            }
        }
    }

    async fn retime(&mut self, main: &mut Link, slow: &mut Option<Link>) -> Result<(), End> {
        self.pause(main).await?;
        self.time(main).await?;
        *slow = self.go(main).await;
        Ok(())
    }

    /// Makes the loop wait for commands, taking what it said before.
    async fn pause(&mut self, main: &mut Link) -> Result<(), End> {
        if !self.waits {
            return Err(End::Changed);
        }
        let is_paused = self.asking.take().is_some_and(|asking| asking.paused);
        self.token += 1;
        let token = self.token;
        let pause = if is_paused { "" } else { "M\n" };
        main.send(&format!("{pause}$P \"J${{S}}{token}\"\n"));
        loop {
            let Some(line) = self.line(main, SILENCE_LIMIT).await? else { return Err(End::Silent) };
            if matches!(parse(&line), Some(Line::Done { token: done }) if done == token) {
                return Ok(());
            }
            self.take(main, &line).await;
        }
    }

    /// Takes over what a command changes, so that the next start of the loop is right.
    fn remember(&mut self, command: Command) {
        match command {
            Command::Rate(rate) => self.period_us = rate.period_us(),
            Command::Watch(pid) => self.pid = pid,
            Command::Choose(counters) => {
                let mut state = State::new(self.device.id(), counters);
                state.follow(&self.state);
                self.state = state;
                (self.costs_us, self.hanging, self.split) = (BTreeMap::new(), BTreeSet::new(), Split::default());
            }
            Command::Stop => {}
        }
    }

    async fn obey(&mut self, main: &mut Link, slow: &mut Option<Link>, command: Command) -> Result<(), End> {
        if !self.waits {
            self.remember(command);
            return Err(End::Changed);
        }
        if let Command::Watch(pid) = command {
            self.remember(command);
            self.state.watch(pid);
            let set = format!("k={}\n", self.pid_word());
            main.send(&set);
            if let Some(slow) = slow {
                slow.send(&set);
            }
            return Ok(());
        }
        // Until the loop has stopped, its lines are of the counters before.
        self.pause(main).await?;
        let is_choice = matches!(command, Command::Choose(_));
        self.remember(command);
        if is_choice {
            self.time(main).await?;
        }
        *slow = self.go(main).await;
        Ok(())
    }

    /// Takes a line of the main stream; false when the session is over.
    async fn take(&mut self, main: &Link, line: &[u8]) -> bool {
        match parse(line) {
            Some(Line::Tick { seq, stamp, groups, values }) => {
                self.state.take(values);
                let device_us = self.moment(main, stamp).await.device_us;
                self.count(seq, device_us).await;
                let Some(host) = self.host_clock else { return true };
                for reading in self.state.tick(groups, device_us, host.from_device_us(device_us)) {
                    if !self.give(reading).await {
                        return false;
                    }
                }
            }
            Some(Line::Pong { token, stamp }) => self.answered(main, token, stamp).await,
            Some(Line::Cost { cpu_ns }) => self.report(cpu_ns).await,
            _ => {}
        }
        true
    }

    async fn take_slow(&mut self, main: &Link, incoming: Incoming) {
        let reading = match incoming {
            Incoming::Line(line) => match parse(&line) {
                Some(Line::Tick { stamp, mut values, .. }) => {
                    let Some((source, content)) = values.next() else { return };
                    self.state.put(source, content);
                    let moment = self.moment(main, stamp).await;
                    self.slow_reading(source, moment)
                }
                _ => None,
            },
            Incoming::TextStart(line) => {
                if let Some(Line::TextStart { stamp, .. }) = parse(&line) {
                    self.slow_stamp = Some(self.moment(main, stamp).await);
                }
                None
            }
            Incoming::Text(source, text) => {
                self.state.put(source, text.as_deref().map_err(|gap| *gap));
                self.slow_stamp.take().and_then(|moment| self.slow_reading(source, moment))
            }
        };
        if let Some(reading) = reading {
            self.give(reading).await;
        }
    }

    fn slow_reading(&mut self, source: usize, moment: Moment) -> Option<Reading> {
        let t_us = self.host_clock?.from_device_us(moment.device_us);
        self.state.slow(source, moment.device_us, t_us)
    }

    /// False when the session is over.
    async fn give(&mut self, reading: Reading) -> bool {
        for gap in reading.gaps {
            self.source.send(None, Event::CounterGap(gap)).await;
        }
        self.source.offer(None, Event::Counters(reading.sample))
    }

    async fn moment(&mut self, main: &Link, stamp: Stamp) -> Moment {
        let moment = self.clock.moment(stamp);
        if let Some(step_us) = moment.stepped_us {
            let stepped = ClockStepped { device: self.device.id().to_owned(), step_us };
            self.source.send(None, Event::ClockStepped(stepped)).await;
            // The uptime told the step to some 10 ms only; now the clocks are held against each other again.
            self.host_clock = self.host_clock.map(HostClock::blurred);
            if let Some((clock, _)) = self.own_clock() {
                self.clock = clock;
            } else {
                self.ask_again(main);
            }
        }
        moment
    }

    /// Counts a tick: whether lines were lost, and whether it came when it was planned.
    async fn count(&mut self, seq: u64, device_us: u64) {
        if let Some(lost) = self.last_seq.and_then(|last| seq.checked_sub(last + 1)).filter(|lost| *lost > 0) {
            let (source, reason) = (format!("counters of {}", self.device.id()), "lines did not arrive".to_owned());
            self.source.send(None, Event::Lost { source, reason, count: lost }).await;
        }
        self.last_seq = Some(seq);
        self.tally.ticks += 1;
        self.tally.since_us.get_or_insert(device_us);
        let interval = self.last_device_us.replace(device_us).map(|last| device_us.saturating_sub(last));
        // Uptimes alone are in steps of 10 ms: nothing can be said below.
        let resolution = if self.has_epoch { 0 } else { 10_000 };
        if let Some(interval) = interval.filter(|_| self.period_us > 0)
            && interval > self.period_us * 3 / 2 + resolution
        {
            self.tally.late += 1;
            self.tally.missed += (interval + self.period_us / 2) / self.period_us - 1;
        }
    }

    async fn report(&mut self, cpu_ns: Option<u64>) {
        let before = std::mem::take(&mut self.tally);
        self.tally.cpu_ns = cpu_ns;
        self.tally.since_us = self.last_device_us;
        let (Some(since), Some(now)) = (before.since_us, self.last_device_us) else { return };
        if before.ticks == 0 || now <= since {
            // The loop has only begun.
            self.tally = Tally { cpu_ns, ..before };
            return;
        }
        let used_us = cpu_ns.zip(before.cpu_ns).map(|(now, before)| now.saturating_sub(before) as f64 / 1000.0);
        let report = SamplerReport {
            device: self.device.id().to_owned(),
            ticks: before.ticks,
            late: before.late,
            missed: before.missed,
            rate_hz: before.ticks as f64 * 1e6 / (now - since) as f64,
            cpu_us_per_tick: used_us.map(|us| us / before.ticks as f64),
        };
        self.source.send(None, Event::SamplerReported(report)).await;
        let is_due = self.retimed.is_none_or(|when| when.elapsed() > RETIME_AFTER);
        self.wants_retiming |= before.late * 4 > before.ticks && is_due;
    }

    /// Begins to ask for the time, `count` times.
    fn ask(&mut self, main: &Link, count: u32, paused: bool) {
        self.asking = Some(Asking { left: count, token: 0, asked_us: 0, trips: Vec::new(), paused });
        self.ask_next(main);
    }

    fn ask_next(&mut self, main: &Link) {
        self.token += 1;
        if let Some(asking) = &mut self.asking {
            (asking.token, asking.asked_us) = (self.token, now_us());
            main.send(&format!("Q {}", self.token));
        }
    }

    async fn realign(&mut self, main: &Link) {
        match self.own_clock() {
            Some((_, host)) => self.aligned(host).await,
            None => self.ask_again(main),
        }
    }

    /// Asks while the loop runs.
    fn ask_again(&mut self, main: &Link) {
        if self.asking.is_some() {
            return;
        }
        // A loop that never waits only looks for commands now and then; while it takes commands it answers at once.
        let paused = self.period_us == 0 && self.waits;
        if paused {
            main.send("M");
        }
        self.ask(main, QUESTIONS, paused);
    }

    fn own_clock(&self) -> Option<(DeviceClock, HostClock)> {
        if self.device.kind() == DeviceKind::Local { own_clock(self.has_epoch) } else { None }
    }

    async fn answered(&mut self, main: &Link, token: u64, stamp: Stamp) {
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

    async fn aligned(&mut self, clock: HostClock) {
        self.host_clock = Some(clock);
        let _ = self.clock_sender.send(Some(clock));
        let (offset_us, uncertainty_us) = (clock.boot_offset_us(), clock.boot_uncertainty_us());
        let aligned = ClockAligned { device: self.device.id().to_owned(), offset_us, uncertainty_us };
        self.source.send(None, Event::ClockAligned(aligned)).await;
    }
}

/// Waits for the command to stop; those that come before the loop runs are kept.
async fn until_stop(commands: &mut mpsc::UnboundedReceiver<Command>, early: &mut Vec<Command>) {
    while let Some(command) = commands.recv().await {
        if matches!(command, Command::Stop) {
            return;
        }
        early.push(command);
    }
}

/// This machine's own clocks, which need no questions.
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

/// Elsewhere the shell is asked as on any device.
#[cfg(not(target_os = "linux"))]
fn own_clock(_has_epoch: bool) -> Option<(DeviceClock, HostClock)> {
    None
}
