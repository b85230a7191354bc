//! The host's side of the loop.

mod align;
mod count;
mod start;

use super::line::{Line, parse};
use super::link::{Incoming, Link};
use super::plan::Split;
use super::state::{Reading, State};
use super::{Options, Rate, script};
use crate::devices::{Device, DeviceError, Root};
use crate::event::{Event, LogLevel, LogLine, LogSource, SamplerEnded};
use crate::probes::clock::{DeviceClock, HostClock};
use crate::probes::counter::Counter;
use crate::session::Source;
use align::Asking;
use count::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// So long nothing may come from a loop that ticks more often.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);
/// How often the device's clock is held against the host's.
const ALIGN_PERIOD: Duration = Duration::from_secs(10);
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

#[derive(Debug)]
pub struct Task {
    device: Device,
    /// The way to root, if there is one.
    way_to_root: Root,
    /// What the loop runs as.
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
    slow_stamp: Option<u64>,
    /// Processor time of the second stream so far, nanoseconds.
    slow_cpu_ns: u64,
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
            way_to_root: root,
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
            slow_cpu_ns: 0,
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
        let is_other_choice = early.iter().any(|command| matches!(command, Command::Choose(_)));
        for command in early {
            self.remember(command);
        }
        match started {
            Err(end) => return end,
            // What was timed are the files of the choice before.
            Ok(()) if is_other_choice => return End::Changed,
            Ok(()) => {}
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

    /// What the loop has to run as for these counters.
    fn root_for(&self, counters: &[Counter]) -> Root {
        if counters.iter().any(|counter| counter.needs_root) { self.way_to_root } else { Root::None }
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
        self.slow_cpu_ns = 0;
        let commands = script::slow(&self.state.sources, &self.split);
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
        let mut heard = Instant::now();
        loop {
            let silence = SILENCE_LIMIT.max(Duration::from_micros(self.period_us * 4));
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
                    Some(Ok(incoming)) => self.take_slow(incoming).await,
                    // Without it the main loop goes on.
                    Some(Err(_)) | None => {
                        *slow = None;
                        for gap in self.state.lose_slow() {
                            self.source.send(None, Event::CounterGap(gap)).await;
                        }
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
                self.root = self.root_for(&counters);
                let mut state = State::new(self.device.id(), counters);
                state.follow(&self.state);
                self.state = state;
                (self.costs_us, self.hanging, self.split) = (BTreeMap::new(), BTreeSet::new(), Split::default());
            }
            Command::Stop => {}
        }
    }

    async fn obey(&mut self, main: &mut Link, slow: &mut Option<Link>, command: Command) -> Result<(), End> {
        // Another user takes another shell.
        let is_other_user = matches!(&command, Command::Choose(counters) if self.root_for(counters) != self.root);
        if !self.waits || is_other_user {
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
        let paused = self.pause(main).await;
        let is_choice = matches!(command, Command::Choose(_));
        self.remember(command);
        paused?;
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

    async fn take_slow(&mut self, incoming: Incoming) {
        let reading = match incoming {
            Incoming::Line(line) => match parse(&line) {
                Some(Line::Tick { stamp, mut values, .. }) => {
                    let Some((source, content)) = values.next() else { return };
                    self.state.put(source, content);
                    self.slow_reading(source, self.clock.late_us(stamp))
                }
                Some(Line::Cost { cpu_ns }) => {
                    self.slow_cost(cpu_ns);
                    None
                }
                _ => None,
            },
            Incoming::TextStart(line) => {
                if let Some(Line::TextStart { stamp, .. }) = parse(&line) {
                    self.slow_stamp = Some(self.clock.late_us(stamp));
                }
                None
            }
            Incoming::Text(source, text) => {
                self.state.put(source, text.as_deref().map_err(|gap| *gap));
                self.slow_stamp.take().and_then(|device_us| self.slow_reading(source, device_us))
            }
        };
        if let Some(reading) = reading {
            self.give(reading).await;
        }
    }

    fn slow_reading(&mut self, source: usize, device_us: u64) -> Option<Reading> {
        let t_us = self.host_clock?.from_device_us(device_us);
        self.state.slow(source, device_us, t_us)
    }

    /// False when the session is over.
    async fn give(&mut self, reading: Reading) -> bool {
        for gap in reading.gaps {
            self.source.send(None, Event::CounterGap(gap)).await;
        }
        self.source.offer(None, Event::Counters(reading.sample))
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
