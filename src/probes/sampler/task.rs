//! The host's side of the loop.

mod align;
mod count;
mod retry;
mod slow;
mod start;

use super::line::{Line, parse};
use super::link::{Incoming, Link};
use super::plan::Split;
use super::state::{Reading, State};
use super::{Options, Rate, script};
use crate::devices::{Device, DeviceError, Root};
use crate::event::{Event, LogLevel, LogLine, LogSource};
use crate::probes::clock::{DeviceClock, HostClock};
use crate::probes::counter::Counter;
use crate::session::Source;
use align::Asking;
use count::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Maximum silence of a loop that is supposed to tick more often than that.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// How often the device's clock is compared with the host's.
const ALIGN_PERIOD: Duration = Duration::from_secs(10);

/// Commands to the sampler.
#[derive(Debug)]
pub enum Command {
    Rate(Rate),
    Watch(Option<u32>),
    Choose(Vec<Counter>),
    /// The device is back: retry without waiting.
    Retry,
    Stop,
}

/// How an instance of the loop ended.
enum End {
    Stopped,
    /// Restart, because it did not answer.
    Silent,
    /// Restart with the changes, because this shell takes no commands.
    Changed,
    /// The link broke.
    Lost(String),
    Failed(String),
}

/// Whether the loop announces what it reads, because it fell silent for an unknown reason; and what it is
/// reading.
#[derive(Debug, Clone, Copy)]
enum Marks {
    Off,
    On(Option<usize>),
}

impl Marks {
    fn are_on(self) -> bool {
        matches!(self, Self::On(_))
    }

    fn reading(self) -> Option<usize> {
        if let Self::On(reading) = self { reading } else { None }
    }

    fn begin(&mut self, source: usize) {
        if let Self::On(reading) = self {
            *reading = Some(source);
        }
    }

    fn read(&mut self) {
        if let Self::On(reading) = self {
            *reading = None;
        }
    }
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
    options: Options,
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
    /// CPU time of the second stream so far, nanoseconds.
    slow_cpu_ns: u64,
    /// What the second stream is reading.
    slow_reading: Option<usize>,
    /// When the second stream last sent something.
    slow_heard: Instant,
    /// When to restart the second stream.
    slow_due: Option<Instant>,
    marks: Marks,
    /// The reported reason for the lack of samples.
    interrupted: Option<String>,
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
            options,
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
            slow_reading: None,
            slow_heard: Instant::now(),
            slow_due: None,
            marks: Marks::Off,
            interrupted: None,
        }
    }

    /// One instance of the loop: start, clock, timing, sampling.
    async fn life(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>) -> End {
        let mut main = Link::start(&self.device, self.root);
        (self.last_seq, self.last_device_us, self.asking) = (None, None, None);
        self.marks.read();
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
            Err(End::Silent) => {
                tokio::spawn(main.kill());
                return End::Silent;
            }
            Err(end) => return end,
            // The timing was for the previous choice of files.
            Ok(()) if is_other_choice => return End::Changed,
            Ok(()) => {}
        }
        let mut slow = self.go(&main).await;
        let end = self.sample(&mut main, &mut slow, commands).await;
        match end {
            End::Stopped => {
                let end_slow = async {
                    if let Some(slow) = slow {
                        slow.end().await;
                    }
                };
                tokio::join!(main.end(), end_slow);
            }
            // A shell that hangs on a file does not notice that the receiver is gone.
            End::Silent => drop(tokio::spawn(main.kill())),
            _ => {}
        }
        end
    }

    /// The privileges the loop needs for these counters.
    fn root_for(&self, counters: &[Counter]) -> Root {
        if counters.iter().any(|counter| counter.needs_root) { self.way_to_root } else { Root::None }
    }

    /// The watched process for the loop. Process 0 never exists; an empty word would yield `/proc//stat`, which does.
    fn pid_word(&self) -> String {
        self.pid.unwrap_or(0).to_string()
    }

    fn lost(&self, error: Option<DeviceError>) -> End {
        let action = "sampling its counters".to_owned();
        let error = error.unwrap_or_else(|| DeviceError::LinkLost { id: self.device.id().to_owned(), action });
        End::Lost(error.to_string())
    }

    async fn log(&self, text: &str) {
        let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, text);
        self.source.send(None, Event::Log(line)).await;
    }

    /// Starts sampling in the loop: groups, declarations, and the second stream if needed.
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
        (self.interrupted, self.slow_due, self.slow_reading) = (None, None, None);
        self.state.watch(self.pid);
        for set in self.state.arrange(&self.split, &self.hanging, self.period_us) {
            self.source.send(None, Event::CounterSetDeclared(set)).await;
        }
        let pid = self.pid_word();
        let groups = script::groups(&self.state.sources, &self.split, self.period_us, self.marks.are_on());
        main.send(&format!("{groups}k={pid}\ngo\n"));
        self.last_device_us = None;
        if self.split.slow.is_empty() {
            return None;
        }
        let slow = Link::start(&self.device, self.root);
        (self.slow_cpu_ns, self.slow_heard) = (0, Instant::now());
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
            let slow_due = self.slow_due.or_else(|| slow.is_some().then(|| self.slow_heard + self.slow_silence()));
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
                    // Without the second stream, the main loop continues.
                    Some(Err(_)) | None => self.lose_slow(slow).await,
                },
                () = until(slow_due) => match self.restart_slow(main, slow).await {
                    Ok(()) => heard = Instant::now(),
                    Err(end) => return end,
                },
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => return End::Stopped,
                    // Neither gets an answer, so they do not show whether the loop is running.
                    Some(command @ (Command::Watch(_) | Command::Retry)) => {
                        if let Err(end) = self.obey(main, slow, command).await {
                            return end;
                        }
                    }
                    Some(command) => match self.obey(main, slow, command).await {
                        Ok(()) => heard = Instant::now(),
                        Err(end) => return end,
                    },
                },
                _ = align.tick() => self.realign(main).await,
                () = tokio::time::sleep_until(heard + silence) => {
                    if let Some(source) = self.marks.reading().filter(|source| self.hanging.insert(*source)) {
                        self.say_hanging(source).await;
                    }
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

    /// Makes the loop wait for commands, processing its earlier output.
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

    /// Stores a command's changes, so that the next start of the loop is correct.
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
            Command::Retry | Command::Stop => {}
        }
    }

    async fn obey(&mut self, main: &mut Link, slow: &mut Option<Link>, command: Command) -> Result<(), End> {
        if matches!(command, Command::Retry) {
            return Ok(());
        }
        // A different user needs a different shell.
        let is_other_user = matches!(&command, Command::Choose(counters) if self.root_for(counters) != self.root);
        if !self.waits || is_other_user {
            self.remember(command);
            return Err(End::Changed);
        }
        if let Command::Watch(pid) = command {
            self.remember(command);
            self.state.watch(pid);
            // Twice: a shell that times out in the middle of a line may lose the part already read (busybox).
            let set = format!("k={0}\nk={0}\n", self.pid_word());
            main.send(&set);
            if let Some(slow) = slow {
                slow.send(&set);
            }
            return Ok(());
        }
        // Until the loop has stopped, its lines are for the previous counters.
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

    /// Processes a line of the main stream; false once the session is over.
    async fn take(&mut self, main: &Link, line: &[u8]) -> bool {
        match parse(line) {
            Some(Line::Tick { seq, stamp, groups, values }) => {
                self.marks.read();
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
            Some(Line::Timing { source }) => self.marks.begin(source),
            _ => {}
        }
        true
    }

    /// False when the session is over.
    async fn give(&mut self, reading: Reading) -> bool {
        for gap in reading.gaps {
            self.source.send(None, Event::CounterGap(gap)).await;
        }
        self.source.offer(None, Event::Counters(reading.sample))
    }
}

/// Waits for the stop command; commands arriving before the loop runs are kept.
async fn until_stop(commands: &mut mpsc::UnboundedReceiver<Command>, early: &mut Vec<Command>) {
    while let Some(command) = commands.recv().await {
        if matches!(command, Command::Stop) {
            return;
        }
        early.push(command);
    }
}

/// Waits until a given time, or forever without one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
