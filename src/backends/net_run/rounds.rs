//! The rounds of a run: how many, how long, what each reports, and how one that breaks is handled.

use super::command::{Level, Round};
use super::console::{Asked, Heard};
use super::fold::{RoundPlan, RunFold};
use super::job::{Broken, NetRun, Setup};
use super::kept_log::KeptLog;
use super::memory::MemoryLook;
use super::messages::ToolMessage;
use super::pace::Pace;
use super::round::{self, Progress, RoundEnd, RoundError};
use crate::backends::ProfilingLevel;
use crate::backends::local::console_events;
use crate::backends::on_device::clock::WallClock;
use crate::backends::on_device::link::gone_advice;
use crate::backends::on_device::names::INPUT_LIST;
use crate::backends::on_device::tenants::Claim;
use crate::devices::DeviceError;
use crate::event::{
    Budget, Event, Failure, LogLevel, MemoryMark, MemorySample, Phase, RunStatus, RuntimeInfo, Stage, now_us,
};
use crate::probes::DeviceProbe;
use tokio::sync::watch;

/// Inferences with layer times before the clean rounds, so that a viewer sees the layers at once.
const LEAD: u64 = 5;
/// Thermal status at which figures become worthless and the device needs a rest (4 is critical).
const TOO_HOT: u32 = 4;

/// The rounds of a run.
pub struct Rounds<'a> {
    net: &'a NetRun<'a>,
    setup: &'a Setup,
    clock: WallClock,
    fold: RunFold,
    pace: Pace,
    number: u64,
    stages_told: bool,
    /// The log's steady clock and the device's wall clock at the same time, microseconds.
    header: Option<(u64, u64)>,
    /// Memory readings of the round's process.
    looks: Vec<(u64, MemoryLook)>,
    reached: Stage,
    probe: &'a mut Option<DeviceProbe>,
    claim: &'a mut Claim,
    /// Where the logs are kept.
    kept: Option<KeptLog>,
}

/// The rounds while one is running.
struct Listening<'a, 'b> {
    rounds: &'a mut Rounds<'b>,
    plan: RoundPlan,
}

impl round::Listener for Listening<'_, '_> {
    async fn take(&mut self, progress: Progress) {
        self.rounds.take(self.plan, progress).await;
    }
}

/// The outcome of a round.
enum After {
    Next,
    Stopped,
}

impl<'a> Rounds<'a> {
    /// A run without any rounds yet.
    pub fn new(
        net: &'a NetRun<'a>,
        setup: &'a Setup,
        claim: &'a mut Claim,
        clock: WallClock,
        pace: Pace,
        probe: &'a mut Option<DeviceProbe>,
    ) -> Self {
        Self {
            net,
            setup,
            clock,
            fold: RunFold::new(setup.prepared.graph.clone()),
            pace: pace.taught(),
            number: 0,
            stages_told: false,
            header: None,
            looks: Vec::new(),
            reached: Stage::Prepare,
            probe,
            claim,
            kept: None,
        }
    }
}

impl Rounds<'_> {
    /// Also keeps the logs of the rounds.
    pub fn keeping(mut self, kept: Option<KeptLog>) -> Self {
        self.kept = kept;
        self
    }

    /// What the rounds have shown about their length.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Runs all rounds.
    pub async fn all(&mut self, stop: &mut watch::Receiver<bool>) -> Result<RunStatus, Broken> {
        let task = self.net.task;
        let detailed = (task.profiling == ProfilingLevel::Detailed).then_some(task.profiling_budget);
        // A few inferences with layer times, then the clean ones, then the rest.
        let lead = detailed.map(|budget| match budget {
            Budget::Iterations(all) => Budget::Iterations(all.min(LEAD)),
            Budget::Seconds(_) | Budget::AtLeast { .. } => Budget::Iterations(LEAD),
        });
        let phases = [(Phase::Detailed, lead), (Phase::Clean, Some(task.budget)), (Phase::Detailed, detailed)];
        for (phase, budget) in phases {
            let Some(budget) = budget else { continue };
            match self.phase(phase, budget, stop).await? {
                After::Next => {}
                After::Stopped => {
                    self.tell_cost().await;
                    return Ok(RunStatus::Stopped);
                }
            }
        }
        self.tell_cost().await;
        self.save_outputs().await?;
        Ok(RunStatus::Ok)
    }

    async fn phase(&mut self, phase: Phase, budget: Budget, stop: &mut watch::Receiver<bool>) -> Result<After, Broken> {
        self.net.send(Event::PhaseStarted { phase, budget }).await;
        let mut budget = budget;
        let mut spent_us = 0.0;
        loop {
            budget = self.whole_if_slow(phase, budget).await;
            let done = self.fold.done(phase);
            let by_time = |seconds: f64| {
                let left_us = seconds * 1e6 - spent_us;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
                let inferences = self.pace.inference_us.map(|us| (left_us / us.max(1.0)).ceil() as u64);
                if left_us <= 0.0 { 0 } else { inferences.unwrap_or(LEAD).max(1) }
            };
            let left = match budget {
                Budget::Iterations(all) => all.saturating_sub(done),
                Budget::Seconds(seconds) => by_time(seconds),
                Budget::AtLeast { iterations, seconds } => iterations.saturating_sub(done).max(by_time(seconds)),
            };
            if left == 0 {
                return Ok(After::Next);
            }
            if *stop.borrow() {
                return Ok(After::Stopped);
            }
            // The first inference of a new process always differs from the others.
            let warmup = if self.number == 0 { self.net.task.warmup + 1 } else { self.net.task.warmup.clamp(1, 3) };
            let inferences = self.pace.next(left, warmup);
            match self.round(RoundPlan { phase, warmup }, inferences + warmup, stop).await {
                Ok(end) => {
                    let span_us = self.fold.round_span_us() as f64;
                    spent_us += span_us * inferences as f64 / (inferences + warmup) as f64;
                    self.check(&end, stop).await?;
                    self.pace.learn(self.fold.in_round(), span_us, end.wall_us as f64);
                    if end.stopped {
                        return Ok(After::Stopped);
                    }
                }
                Err(RoundError::Log(error)) => {
                    let message = format!("the profile log of qnn-net-run cannot be read: {error}");
                    return Err(self.broken("profile log", &message, None));
                }
                Err(RoundError::Keep(error)) => return Err(self.broken("profile log", &error.to_string(), None)),
                Err(RoundError::Device(error)) if error.is_link() => self.resume(&error, stop).await?,
                Err(RoundError::Device(error)) => return Err(error.into()),
            }
            self.watch_heat().await?;
        }
    }

    /// All clean inferences of the run instead of a share of them, if a round showed that loading takes long.
    async fn whole_if_slow(&self, phase: Phase, budget: Budget) -> Budget {
        let load_s = self.pace.reload_us.unwrap_or(0.0) / 1e6;
        let whole = self.net.task.budgets(load_s).0;
        if phase != Phase::Clean || whole == budget {
            return budget;
        }
        if let Some(text) = self.net.task.slow_load_text(load_s) {
            self.net.note(LogLevel::Warning, &text).await;
            self.net.send(Event::PhaseStarted { phase, budget: whole }).await;
            return whole;
        }
        budget
    }

    /// After a lost link, measurements stay, and the next round continues once the device is back.
    async fn resume(&mut self, error: &DeviceError, stop: &watch::Receiver<bool>) -> Result<(), Broken> {
        self.flush().await;
        if !self.net.link(&self.setup.facts).wait_for_return(error, Some(stop)).await {
            return Err(self.broken("adb", &error.to_string(), Some(gone_advice())));
        }
        if let Some(probe) = self.probe.as_mut() {
            probe.revive();
        }
        // A restarted device has a different clock, but still has its files.
        self.clock = WallClock::align(self.net.device).await?;
        let there = format!("[ -e {}/{INPUT_LIST} ]", self.setup.folder);
        if self.net.device.run(&there, "looking for the files of the run").await?.status != 0 {
            return Err(self.broken("adb", "the device came back without the files of the run", None));
        }
        self.claim.renew();
        Ok(())
    }

    async fn round(
        &mut self,
        plan: RoundPlan,
        inferences: u64,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<RoundEnd, RoundError> {
        let setup = self.setup;
        let task = self.net.task;
        let profile = setup.resolved.perf_profile.as_ref().map(|(_, name)| name.as_str());
        let round = Round {
            folder: &setup.folder,
            backend: task.backend,
            format: setup.prepared.model.format,
            number: self.number,
            inferences,
            level: if plan.phase == Phase::Detailed { Level::Detailed } else { Level::Basic },
            keep_outputs: u64::from(self.number == 0 && task.save_outputs.is_some()),
            configured: setup.configured,
            perf_profile: profile,
            log_level: task.log_level,
            root: setup.facts.root,
            vendor_libraries: self.net.options.vendor_libraries,
        };
        self.net.send(Event::RoundStarted { round: self.number }).await;
        self.number += 1;
        self.fold.begin_round();
        self.looks.clear();
        // A round that dies leaves an empty log and thus no position. If inferences were seen before, it was likely
        // executing.
        self.reached = if self.fold.all() > 0 { Stage::Execute } else { Stage::LibraryLoad };
        let graph = setup.prepared.graph.as_ref().map(|graph| graph.name.clone());
        let (device, limit) = (self.net.device, self.net.limits.stage_timeout);
        // The listener owns the rounds meanwhile.
        let mut kept = self.kept.take();
        let mut listening = Listening { rounds: self, plan };
        let end = round::run(device, &round, graph.as_deref(), limit, stop, kept.as_mut(), &mut listening).await;
        self.kept = kept;
        self.flush().await;
        if round.keep_outputs == 0 {
            // Logs of long runs would fill the device.
            let script = format!("rm -rf {}/{}", setup.folder, round.output());
            let _ = self.net.device.run(&script, "removing a log that was read").await;
        }
        end
    }

    async fn take(&mut self, plan: RoundPlan, progress: Progress) {
        match progress {
            Progress::Started(pid) => {
                if let Some(probe) = self.probe.as_ref() {
                    probe.watch(Some(pid));
                }
            }
            Progress::Line(line) => {
                // Every round loads again and prints the compiler's figures again; the first ones are reported.
                let told = if self.number == 1 { console_events(&line.text) } else { Vec::new() };
                for event in told.into_iter().filter(|event| matches!(event, Event::SubStageFinished(_))) {
                    self.net.send(event).await;
                }
                self.net.send(Event::Log(line)).await;
            }
            Progress::Memory(t_us, look) => {
                let first = self.number == 1 && self.looks.is_empty();
                self.looks.push((t_us, look));
                self.tell_memory(if first { MemoryMark::BeforeLoad } else { MemoryMark::Running }, t_us, look).await;
            }
            Progress::Told(told) => self.take_told(plan, told).await,
        }
    }

    async fn tell_memory(&self, mark: MemoryMark, t_us: u64, look: MemoryLook) {
        let MemoryLook { rss, peak: rss_peak, pss } = look;
        let sample = MemorySample { mark, rss, rss_peak, pss, inferences: self.fold.all() };
        self.net.source.send_at(t_us, Some(self.net.run), Event::Memory(sample)).await;
    }

    /// Memory with the model ready: the last reading before the first inference, which the log reports later.
    async fn tell_memory_loaded(&self, first_us: u64) {
        let before = self.looks.iter().rev().find(|(t_us, _)| *t_us <= first_us);
        // Not every reading includes the proportional set.
        let pss = self.looks.iter().rev().filter(|(t_us, _)| *t_us <= first_us).find_map(|(_, look)| look.pss);
        // Only the first reading is from before the load.
        if let Some((t_us, look)) = before.filter(|(t_us, _)| self.looks.first().is_some_and(|first| first.0 != *t_us))
        {
            self.tell_memory(MemoryMark::Loaded, *t_us, MemoryLook { pss, ..*look }).await;
        }
    }

    async fn take_told(&mut self, plan: RoundPlan, told: ToolMessage) {
        match told {
            ToolMessage::Header { steady_us, epoch_us, backend_version } => {
                if self.header.replace((steady_us, epoch_us)).is_none() {
                    let info = RuntimeInfo {
                        path: format!("{}/{}", self.setup.folder, self.net.task.backend.library()),
                        build_id: backend_version,
                        core_api: "not reported by qnn-net-run".to_owned(),
                        backend_api: "not reported by qnn-net-run".to_owned(),
                        provider: self.net.task.backend.library().to_owned(),
                    };
                    self.net.send(Event::RuntimeLoaded(info)).await;
                }
            }
            ToolMessage::Stage { stage, duration_us, parts } => {
                self.reached = self.reached.max(stage);
                // Later rounds load again; the first load is reported.
                if self.stages_told && self.number > 1 {
                    return;
                }
                self.net.send(Event::StageStarted { stage }).await;
                for part in parts {
                    self.net.send(Event::SubStageFinished(part)).await;
                }
                self.net.send(Event::StageFinished { stage, duration_us: duration_us as f64 }).await;
            }
            ToolMessage::Inference { start_us, .. } => {
                let host_us = self.host_us(start_us);
                if let ToolMessage::Inference { latency_us, .. } = &told
                    && self.fold.all() == 0
                {
                    self.stages_told = true;
                    self.tell_memory_loaded(host_us).await;
                    self.net.send(Event::StageStarted { stage: Stage::FirstInference }).await;
                    let duration_us = *latency_us as f64;
                    self.net.send(Event::StageFinished { stage: Stage::FirstInference, duration_us }).await;
                }
                self.reached = Stage::Execute;
                let mut events = Vec::new();
                self.fold.inference(plan, &told, host_us, &mut events);
                for event in events {
                    self.net.send(event).await;
                }
            }
        }
    }

    /// A log timestamp on the host's clock: the log's header ties its steady clock to the device's wall clock, and the
    /// alignment ties that to ours.
    fn host_us(&self, steady_us: u64) -> u64 {
        let Some((header_steady, header_epoch)) = self.header else { return now_us() };
        let epoch_us = (header_epoch + steady_us).saturating_sub(header_steady);
        self.clock.host_us(epoch_us)
    }

    async fn flush(&mut self) {
        let mut events = Vec::new();
        self.fold.flush(&mut events);
        for event in events {
            self.net.send(event).await;
        }
    }

    /// Whether a round went as it should.
    async fn check(&self, end: &RoundEnd, stop: &watch::Receiver<bool>) -> Result<(), Broken> {
        if let Some(reason) = &end.given_up {
            let message = format!("qnn-net-run was stopped in stage {}: {reason}", self.reached);
            return Err(self.broken_with("supervision", &message, None, &end.heard));
        }
        if end.stopped || *stop.borrow() && end.status > 128 {
            return Ok(());
        }
        if end.status != 0 {
            let prepared = &self.setup.prepared;
            let asked = Asked {
                backend: self.net.task.backend,
                arch: self.setup.facts.soc.hexagon_arch.as_deref(),
                graphs: &prepared.graphs,
            };
            let failure = end.heard.failure(end.status, self.reached, &asked);
            return Err(Broken::Failed(Box::new(failure)));
        }
        // A full disk leaves an empty log and exit status 0.
        if self.fold.in_round() == 0 {
            let free =
                self.net.device.run(&format!("df -k {}", self.setup.folder), "asking for its free space").await?;
            let free_bytes = crate::devices::free_bytes(&free.text());
            let message = format!(
                "qnn-net-run exited with status 0 but reported no inference: its profile log has {} bytes",
                end.log_bytes
            );
            return Err(match free_bytes {
                Some(free_bytes) if free_bytes < 1 << 20 => {
                    let free = crate::text::bytes_text(free_bytes as f64);
                    let message = format!("the device's storage is full ({free} free): {message}");
                    let hint =
                        "free space on the device; `qnnscope clean --device SERIAL` removes what qnnscope put there";
                    self.broken_with("storage", &message, Some(hint.to_owned()), &end.heard)
                }
                _ => self.broken_with("profile log", &message, None, &end.heard),
            });
        }
        if end.incomplete_bytes > 0 {
            let text = format!("the profile log ends with {} bytes of an incomplete chunk", end.incomplete_bytes);
            self.net.note(LogLevel::Warning, &text).await;
        }
        Ok(())
    }

    /// Between rounds: stops the run if the device is critically hot.
    async fn watch_heat(&self) -> Result<(), Broken> {
        if self.setup.facts.thermal_status.is_none() {
            return Ok(());
        }
        let Ok(output) = self.net.device.run("dumpsys thermalservice", "asking for its thermal status").await else {
            return Ok(());
        };
        match crate::devices::thermal_status(&output.text()) {
            Some(status) if status >= TOO_HOT => {
                let message =
                    format!("the device is too hot: thermal status {status}; the run was stopped to let it cool down");
                Err(self.broken(
                    "thermal",
                    &message,
                    Some("let it cool down, without its case, and run again".to_owned()),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The cost of the rounds, and the memory at their end.
    async fn tell_cost(&self) {
        if let Some((t_us, look)) = self.looks.last() {
            self.tell_memory(MemoryMark::End, *t_us, *look).await;
        }
        let (rounds, share) = self.pace.cost();
        let text = format!(
            "{rounds} rounds of qnn-net-run; {:.1} % of their time went to starting it and loading the model; no latency includes it",
            share * 100.0
        );
        self.net.note(LogLevel::Info, &text).await;
        let facts = crate::event::Metric { name: "rounds".to_owned(), unit: "count".to_owned(), value: rounds as f64 };
        let reload = crate::event::Metric {
            name: "reload share of rounds".to_owned(),
            unit: "%".to_owned(),
            value: share * 100.0,
        };
        let metrics = vec![facts, reload];
        let sample =
            crate::event::MetricSample { phase: Phase::Clean, inference: self.fold.done(Phase::Clean), metrics };
        self.net.send(Event::Metrics(sample)).await;
    }

    async fn save_outputs(&self) -> Result<(), Broken> {
        let Some(folder) = &self.net.task.save_outputs else { return Ok(()) };
        let remote = format!("{}/{}-0", self.setup.folder, super::command::OUTPUT);
        let files =
            crate::backends::on_device::outputs::fetch(self.net.device, &remote, folder, &self.net.task.guard())
                .await?;
        self.net.send(Event::OutputsSaved { files }).await;
        Ok(())
    }

    fn broken(&self, call: &str, message: &str, hint: Option<String>) -> Broken {
        self.broken_with(call, message, hint, &Heard::default())
    }

    fn broken_with(&self, call: &str, message: &str, hint: Option<String>, heard: &Heard) -> Broken {
        let mut failure = Failure { log_tail: heard.tail(), ..Failure::new(self.reached, call, message) };
        failure.hint = hint.or_else(|| crate::hints::for_failure(&failure));
        Broken::Failed(Box::new(failure))
    }
}
