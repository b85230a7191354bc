//! Runs without the live view: progress on stderr, the report on stdout.

use super::options::OutputOptions;
use super::{BAD_INPUT, CliError, FAILED, INTERRUPTED, MISSING, OK, say, setup};
use crate::backends::local::Limits;
use crate::diagnosis::Fault;
use crate::event::{Budget, CheckOutcome, CoolDown, Event, LogLevel, LogSource, Phase, Record, RunId, SettingOutcome};
use crate::probes::HostProbe;
use crate::report::{ResultDocument, cool_down_text, text_report};
use crate::run::{Conductor, RunRequest};
use crate::session::RecordError;
use crate::store::{Run, Store};
use crate::text::{Printable, file_name};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::sync::watch;

/// Launches up to which each has its own line.
const LINES: u32 = 10;

/// Makes the runs and prints what came out.
pub fn run(requests: &[RunRequest], limits: Limits, output: &OutputOptions) -> Result<u8, CliError> {
    setup::block_on(session(requests, limits, output))?
}

async fn session(requests: &[RunRequest], limits: Limits, output: &OutputOptions) -> Result<u8, CliError> {
    let Measured { store, interrupted, record_error } = Box::pin(measure(requests, limits, output, None)).await?;
    let printed = if output.json { print_json(&ResultDocument::new(&store)) } else { print(&text_report(&store)) };
    if let Some(error) = record_error {
        say(CliError::from(error).render().trim_end());
        return printed.and(Ok(FAILED));
    }
    printed?;
    Ok(if interrupted { INTERRUPTED } else { exit_status(&store) })
}

/// What came of runs.
pub struct Measured {
    /// Their figures.
    pub store: Store,
    /// True if the user ended them.
    pub interrupted: bool,
    /// Why recording stopped, if it did.
    pub record_error: Option<RecordError>,
}

/// Makes the runs with progress on stderr; a signal ends them, and so does the end of the time `limit`.
pub async fn measure(
    requests: &[RunRequest],
    limits: Limits,
    output: &OutputOptions,
    limit: Option<Duration>,
) -> Result<Measured, CliError> {
    let (mut hub, source) = setup::open_session(output).await?;
    let (stop, stopped) = watch::channel(false);
    let mut store = Store::new();
    let mut progress = Progress::new();
    let probe = HostProbe::start(source.clone());
    let runs = async {
        let mut conductor = Conductor::new(source, limits);
        conductor.run_all(requests, &stopped).await;
        conductor.finish().await;
        // Joins the sampler's thread, and with it goes the last source: the hub then ends.
        drop(probe);
    };
    let fold = async {
        while let Some(record) = hub.next().await {
            progress.show(&record);
            store.apply(&record);
        }
    };
    let asked = Cell::new(false);
    let alarm = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
        let _ = stop.send(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(runs, fold) } => {}
        () = interrupts(&stop, &asked) => {}
        () = alarm => {}
    }
    progress.finish();
    for record in hub.close() {
        store.apply(&record);
    }
    setup::close_session(&mut hub, Some(&store));
    Ok(Measured { store, interrupted: asked.get(), record_error: hub.take_record_error() })
}

/// Prints to stdout; a reader that went away is no error.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(text.as_bytes())
}

/// The same of bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    check_output().map_err(|source| CliError::Io { action: "write to stdout".to_owned(), source })?;
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::Io { action: "write to stdout".to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Fails where there is no standard output: what is printed goes nowhere then, and no write says so.
pub fn check_output() -> std::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if qnnscope_qnn::streams::output_was_closed() {
        return Err(std::io::Error::other("it is closed"));
    }
    Ok(())
}

/// Prints a document to stdout.
pub fn print_json(document: &impl Serialize) -> Result<(), CliError> {
    let mut json = Vec::new();
    let mut out = serde_json::Serializer::with_formatter(&mut json, Printable(PrettyFormatter::new()));
    document
        .serialize(&mut out)
        .map_err(|error| CliError::Io { action: "write the document".to_owned(), source: error.into() })?;
    json.push(b'\n');
    print_bytes(&json)
}

/// One JSON document on one line, with its end.
pub fn one_line(document: &impl Serialize) -> Result<Vec<u8>, CliError> {
    let mut json = Vec::new();
    let mut out = serde_json::Serializer::with_formatter(&mut json, Printable::default());
    document
        .serialize(&mut out)
        .map_err(|error| CliError::Io { action: "write the document".to_owned(), source: error.into() })?;
    json.push(b'\n');
    Ok(json)
}

/// The first signal asks the run to stop, with its figures kept; the second one ends at once.
async fn interrupts(stop: &watch::Sender<bool>, asked: &Cell<bool>) {
    caught(setup::termination()).await;
    asked.set(true);
    say("stopping; press Ctrl-C again to stop at once");
    let _ = stop.send(true);
    caught(setup::insistence()).await;
}

/// Waits for a signal. Without handlers signals end the process as usual; the runner notices and ends itself.
async fn caught(signal: impl Future<Output = std::io::Result<()>>) {
    if signal.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// 0 if every run is ok and all that it was to write is written; else 1 if one failed, 2 if only bad input, 3 if only something missing was the reason.
pub fn exit_status(store: &Store) -> u8 {
    let reasons: Vec<u8> = store.runs().iter().filter_map(run_status).collect();
    match reasons.as_slice() {
        [] => OK,
        reasons if reasons.contains(&FAILED) => FAILED,
        reasons if reasons.contains(&BAD_INPUT) => BAD_INPUT,
        _ => MISSING,
    }
}

fn run_status(run: &Run) -> Option<u8> {
    match &run.failure {
        Some(failure) if failure.bad_input => Some(BAD_INPUT),
        Some(failure) if failure.missing => Some(MISSING),
        Some(_) => Some(FAILED),
        None => (!run.is_ended() || run.lost_output().is_some()).then_some(FAILED),
    }
}

/// Progress on stderr: a bar on a terminal, else a line per stage that takes long to come.
struct Progress {
    bar: Option<ProgressBar>,
    backend: String,
    /// Backends and models by run: launches of several runs take turns.
    runs: Vec<(RunId, &'static str, String)>,
    /// The launch that goes on, if there are several.
    launch: String,
    pausing: bool,
}

impl Progress {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, backend: String::new(), runs: Vec::new(), launch: String::new(), pausing: false }
    }

    fn show(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted(plan) => {
                plan.backend.name().clone_into(&mut self.backend);
                self.runs.extend(record.run.map(|run| (run, plan.backend.name(), file_name(&plan.model).to_owned())));
                let simulated = if plan.simulated { " (simulated)" } else { "" };
                let rate = plan.mode.rate_hz.map_or_else(String::new, |rate| format!(" at {rate}/s"));
                let round = plan
                    .mode
                    .repeat
                    .map_or_else(String::new, |place| format!(", round {} of {}", place.index + 1, place.of));
                self.line(&format!("{}{simulated}{rate}{round}: {}", plan.backend, plan.model));
            }
            Event::LaunchStarted { index, of, reason } => {
                if let Some((_, backend, model)) = self.runs.iter().find(|(run, ..)| Some(*run) == record.run) {
                    let several = self.runs.iter().any(|(_, other, name)| other == backend && name != model);
                    self.backend = if several { format!("{backend} {model}") } else { (*backend).to_owned() };
                }
                self.launch = if *of > 1 { format!(" {}/{of}", index + 1) } else { String::new() };
                let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                // Of many, a bar says enough.
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
                    // A time says more than a number that may be passed.
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
                    // The validator's word comes after the failure itself was told.
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

    /// Without a bar only the beginning and the end of a pause are worth a line.
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
