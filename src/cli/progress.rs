//! Progress of runs on stderr.

use super::say;
use crate::diagnosis::Fault;
use crate::event::{Budget, CheckOutcome, CoolDown, Event, LogLevel, LogSource, Phase, Record, RunId, SettingOutcome};
use crate::report::cool_down_text;
use crate::run::RunRequest;
use crate::text::file_name;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Maximum number of launches that get separate lines.
const LINES: u32 = 10;

/// A bar per device on a terminal, otherwise a line per long stage.
pub struct Progress {
    bars: Option<MultiProgress>,
    lanes: Vec<Lane>,
}

impl Progress {
    /// Progress of these runs.
    pub fn new(requests: &[RunRequest]) -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        let mut progress = Self { bars, lanes: Vec::new() };
        let several = requests.iter().any(|request| request.plan.device != requests[0].plan.device);
        for request in requests {
            let device = request.plan.device.as_str();
            if progress.lanes.iter().any(|lane| lane.device == device) {
                continue;
            }
            let bar = progress.bars.as_ref().map(|bars| {
                let bar = bars.add(ProgressBar::new_spinner());
                bar.enable_steady_tick(Duration::from_millis(120));
                bar
            });
            let there = if several { format!(" on {device}") } else { String::new() };
            progress.lanes.push(Lane::new(device, bar, there));
        }
        progress
    }

    /// Reports a record.
    pub fn show(&mut self, record: &Record) {
        let of_run = |lane: &Lane| lane.runs.iter().any(|(run, ..)| Some(*run) == record.run);
        let at = match &record.event {
            Event::RunStarted(plan) => self.lanes.iter().position(|lane| lane.device == plan.device),
            _ => self.lanes.iter().position(of_run),
        };
        // Messages that belong to no run go above all bars.
        if let Some(lane) = self.lanes.get_mut(at.unwrap_or(0)) {
            lane.show(record);
        }
    }

    /// Removes the bars.
    pub fn finish(&self) {
        self.lanes.iter().for_each(Lane::finish);
    }
}

/// Progress of the runs on one device.
struct Lane {
    device: String,
    bar: Option<ProgressBar>,
    /// The device's name for use in lines, if there are several.
    there: String,
    backend: String,
    /// Backends and models by run, since launches of several runs alternate.
    runs: Vec<(RunId, &'static str, String)>,
    /// The current launch, if there are several.
    launch: String,
    pausing: bool,
}

impl Lane {
    fn new(device: &str, bar: Option<ProgressBar>, there: String) -> Self {
        let (backend, launch) = (String::new(), String::new());
        Self { device: device.to_owned(), bar, there, backend, runs: Vec::new(), launch, pausing: false }
    }

    fn show(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted(plan) => {
                self.backend = format!("{}{}", plan.backend, self.there);
                self.runs.extend(record.run.map(|run| (run, plan.backend.name(), file_name(&plan.model).to_owned())));
                let simulated = if plan.simulated { " (simulated)" } else { "" };
                let rate = plan.mode.rate_hz.map_or_else(String::new, |rate| format!(" at {rate}/s"));
                let round = plan
                    .mode
                    .repeat
                    .map_or_else(String::new, |place| format!(", round {} of {}", place.index + 1, place.of));
                self.line(&format!("{}{simulated}{rate}{round}: {}", self.backend, plan.model));
            }
            Event::LaunchStarted { index, of, reason } => {
                if let Some((_, backend, model)) = self.runs.iter().find(|(run, ..)| Some(*run) == record.run) {
                    let several = self.runs.iter().any(|(_, other, name)| other == backend && name != model);
                    let of = if several { format!(" {model}") } else { String::new() };
                    self.backend = format!("{backend}{of}{}", self.there);
                }
                self.launch = if *of > 1 { format!(" {}/{of}", index + 1) } else { String::new() };
                let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                // If there are many, the bar says enough.
                if (2..=LINES).contains(of) {
                    self.line(&format!("{}: launch {} of {of}{why}", self.backend, index + 1));
                }
            }
            Event::FilesSent(sent) => {
                if let Some(bar) = &self.bar {
                    let text = format!("sending {} ({} of {})", sent.name, sent.file, sent.files);
                    if bar.length() != Some(sent.total_bytes) {
                        self.step(&text, Some(sent.total_bytes));
                    }
                    bar.set_message(text);
                    bar.set_position(sent.done_bytes);
                }
            }
            Event::CoolingDown(pause) => {
                let text = cool_down_text(pause);
                match &self.bar {
                    Some(bar) if pause.end.is_none() => bar.set_message(format!("{}: {text}", self.backend)),
                    _ => self.pause(pause, &text),
                }
            }
            Event::StageStarted { stage } => self.step(&format!("{}{}: {stage}", self.backend, self.launch), None),
            Event::PhaseStarted { phase, budget } if *phase != Phase::First => {
                let total = match budget {
                    Budget::Iterations(iterations) => Some(*iterations),
                    // A time is more useful than a count that may be exceeded.
                    Budget::Seconds(_) | Budget::AtLeast { .. } => None,
                };
                self.step(&format!("{}{}: {} phase", self.backend, self.launch, phase.name()), total);
            }
            Event::Inferences(batch) => {
                if let Some(bar) = &self.bar {
                    bar.set_position(batch.first_index + batch.latency_ns.len() as u64);
                }
            }
            Event::SettingApplied(setting) => match &setting.outcome {
                SettingOutcome::Applied => {}
                SettingOutcome::NoEffect(reason) | SettingOutcome::Refused(reason) => {
                    self.line(&format!("{}: {} {}: {reason}", self.backend, setting.key, setting.value));
                }
            },
            Event::Log(line)
                if line.level <= LogLevel::Warning
                    && matches!(line.source, LogSource::Qnnscope | LogSource::Runner) =>
            {
                self.line(&format!("{}: {}", line.level.short(), line.text));
            }
            Event::Failed(failure) => {
                let asked = failure.refusal.as_deref().is_some_and(|refusal| refusal.verdict.is_some());
                let fault = Fault::of(failure).or_else(|| Fault::suspected(failure));
                let said = match fault {
                    // The validator's verdict arrives after the failure itself was reported.
                    Some(fault) if asked => format!("checked afterwards: the backend refuses {}", fault.sentence()),
                    Some(fault) => format!("failed in stage {} at {}", failure.stage, fault.sentence()),
                    None => format!("failed in stage {}: {}", failure.stage, failure.message),
                };
                self.line(&format!("{}{}: {said}", self.backend, self.launch));
                if let Some(hint) = &failure.hint {
                    self.line(&format!("  next: {hint}"));
                }
            }
            Event::CheckFinished(result) if result.outcome == CheckOutcome::Confirms => {
                self.line(&format!("  confirmed: {}: {}", result.cause, result.detail));
            }
            _ => {}
        }
    }

    /// Without a bar, only the start and the end of a pause get a line.
    fn pause(&mut self, pause: &CoolDown, text: &str) {
        if pause.end.is_some() || !std::mem::replace(&mut self.pausing, true) {
            self.line(&format!("{}: {text}", self.backend));
        }
        self.pausing &= pause.end.is_none();
    }

    fn step(&self, text: &str, total: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        let template = if total.is_some() { "{spinner} {msg} {bar:30} {pos}/{len} {eta}" } else { "{spinner} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_position(0);
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_message(text.to_owned());
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
