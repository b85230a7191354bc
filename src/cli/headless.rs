//! Runs without the live view: progress on stderr, the report on stdout.

use super::options::OutputOptions;
use super::progress::Progress;
use super::{BAD_INPUT, CliError, FAILED, INTERRUPTED, MISSING, OK, say, setup};
use crate::backends::local::Limits;
use crate::probes::HostProbe;
use crate::report::{ResultDocument, text_report};
use crate::run::{Conductor, RunRequest};
use crate::session::RecordError;
use crate::store::{Run, Store};
use crate::text::Printable;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use std::cell::Cell;
use std::io::Write;
use std::time::Duration;
use tokio::sync::watch;

/// Makes the runs and prints the results.
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

/// Outcome of the runs.
pub struct Measured {
    /// Their data.
    pub store: Store,
    /// True if the user stopped them.
    pub interrupted: bool,
    /// Why recording stopped, if so.
    pub record_error: Option<RecordError>,
}

/// Makes the runs with progress on stderr; a signal or the time `limit` ends them.
pub async fn measure(
    requests: &[RunRequest],
    limits: Limits,
    output: &OutputOptions,
    limit: Option<Duration>,
) -> Result<Measured, CliError> {
    let (mut hub, source) = setup::open_session(output).await?;
    let (stop, stopped) = watch::channel(false);
    let mut store = Store::new();
    let mut progress = Progress::new(requests);
    let probe = HostProbe::start(source.clone());
    let runs = async {
        Conductor::new(source, limits).run_all(requests, &stopped).await;
        // Joins the sampler's thread, which drops the last source; the hub then ends.
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

/// Prints to stdout; a reader that closes the pipe is not an error.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(text.as_bytes())
}

/// The same for bytes.
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

/// Fails if there is no standard output: output would be lost without any write reporting it.
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

/// A JSON document on one line, newline included.
pub fn one_line(document: &impl Serialize) -> Result<Vec<u8>, CliError> {
    let mut json = Vec::new();
    let mut out = serde_json::Serializer::with_formatter(&mut json, Printable::default());
    document
        .serialize(&mut out)
        .map_err(|error| CliError::Io { action: "write the document".to_owned(), source: error.into() })?;
    json.push(b'\n');
    Ok(json)
}

/// The first signal asks the run to stop, keeping its figures; the second ends it immediately.
async fn interrupts(stop: &watch::Sender<bool>, asked: &Cell<bool>) {
    caught(setup::termination()).await;
    asked.set(true);
    say("stopping; press Ctrl-C again to stop at once");
    let _ = stop.send(true);
    caught(setup::insistence()).await;
}

/// Waits for a signal. Without handlers, signals end the process as usual; the runner notices and exits.
async fn caught(signal: impl Future<Output = std::io::Result<()>>) {
    if signal.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// 0 if every run succeeded and wrote all that it should; else 1 if any run failed for another reason, 2 if
/// any had bad input, 3 if something was missing.
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
