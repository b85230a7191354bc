//! A tapped program that keeps its terminal; the report follows at its end.

use super::super::{CliError, FAILED, Global, OK, headless as runs, say, setup};
use super::TapArgs;
use super::outcome::{TapOutcome, folded};
use super::site::{Site, runtime, tell};
use super::there;
use crate::event::{LOCAL_DEVICE, TapSeen};
use crate::files::write_whole;
use crate::probes::HostProbe;
use crate::report::{TapDocument, tap_text};
use crate::session::Source;
use crate::tap::{Ended, Output, Server};
use tokio::sync::watch;

/// Runs the program to its end and reports on it.
pub fn headless(args: &TapArgs, global: &Global) -> Result<u8, CliError> {
    let is_there = there::is_there(global);
    let outcome =
        if is_there { setup::block_on(there::session(args, global)) } else { setup::block_on(session(args, global)) }??;
    let mut status = report(args, &outcome)?;
    if let Some(error) = outcome.record_error {
        say(CliError::from(error).render().trim_end());
        status = FAILED;
    }
    match outcome.failure {
        Some(failure) => Err(failure),
        None if is_there => Ok(status_of(outcome.ended, status)),
        None => Ok(end_as(outcome.ended, status)),
    }
}

async fn session(args: &TapArgs, global: &Global) -> Result<TapOutcome, CliError> {
    let (mut hub, source) = setup::open_session(&args.output()).await?;
    let site = Site::new(args)?;
    let probe = HostProbe::start(source.clone());
    let (server, mut told) = Server::new(LOCAL_DEVICE, source.clone(), runtime(global));
    let (over, is_over) = watch::channel(false);
    let work = async {
        let result = {
            let program = async {
                let result = run(args, &site, &source).await;
                let _ = over.send(true);
                result
            };
            let watching = site.watch(&source, Output::Own, args.swap.is_some() || args.command.is_empty(), &mut told);
            let serving = async {
                let (result, ()) = tokio::join!(program, server.serve(&site.listener, is_over));
                result
            };
            tokio::select! {
                result = serving => result,
                () = watching => Err(CliError::Interrupted),
            }
        };
        // Drops the last source; the hub then ends.
        drop((server, probe, source));
        result
    };
    let (result, store) = folded(&mut hub, work).await;
    Ok(TapOutcome { ended: result?, store, record_error: hub.take_record_error(), failure: None })
}

/// Runs the program from start to end or, if there is none, waits for a signal.
async fn run(args: &TapArgs, site: &Site, source: &Source) -> Result<Option<Ended>, CliError> {
    if args.command.is_empty() {
        tell(source, TapSeen::ProgramStarted { command: Vec::new() }).await;
        say("start the program with these variables; Ctrl-C stops and prints the report:");
        for (name, value) in site.variables.iter() {
            say(&format!("  export {}={}", name.display(), quoted(&value.to_string_lossy())));
        }
        if setup::termination().await.is_err() {
            std::future::pending::<()>().await;
        }
        return Ok(None);
    }
    let mut program = site.start(args, Output::Own, source).await?;
    let wait = |source| CliError::Io { action: "wait for the program".to_owned(), source };
    let ended = program.wait().await.map_err(wait)?;
    tell(source, TapSeen::ProgramEnded { status: ended.status, signal: ended.signal }).await;
    Ok(Some(ended))
}

/// Quotes a value for a shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

/// Prints or writes what was requested.
fn report(args: &TapArgs, outcome: &TapOutcome) -> Result<u8, CliError> {
    match (&args.json, args.document()) {
        (None, _) => runs::print(&tap_text(&outcome.store))?,
        (Some(_), None) => runs::print_bytes(&runs::one_line(&TapDocument::new(&outcome.store))?)?,
        (Some(_), Some(path)) => {
            let document = runs::one_line(&TapDocument::new(&outcome.store))?;
            write_whole(path, &document)
                .map_err(|source| CliError::Io { action: format!("write --json {}", path.display()), source })?;
        }
    }
    Ok(OK)
}

/// Ends as the program did: with its exit status, or by the signal that ended it. Failures here only count if
/// the program succeeded.
pub fn end_as(ended: Option<Ended>, own: u8) -> u8 {
    if let Some(signal) = ended.and_then(|ended| ended.signal) {
        // Returns only if the signal does not end the process.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    status_of(ended, own)
}

/// The same as an exit status, following the shells' convention: 128 plus the number of a signal.
pub fn status_of(ended: Option<Ended>, own: u8) -> u8 {
    let Some(ended) = ended else { return own };
    if let Some(signal) = ended.signal {
        return u8::try_from(128 + signal).unwrap_or(FAILED);
    }
    match ended.status.and_then(|status| u8::try_from(status).ok()) {
        Some(OK) | None => own,
        Some(status) => status,
    }
}
