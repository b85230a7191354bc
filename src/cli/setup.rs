//! What every session starts with.

pub use super::kept::{history, protect_history};
use super::options::OutputOptions;
use super::{CliError, say};
use crate::backends::on_device::removed;
use crate::devices::local_device;
use crate::event::{Event, SESSION_SCHEMA, SessionStarted, clean_text, epoch_us, now_us};
use crate::files::Guard;
use crate::history::{HistoryError, Limits, config_path};
use crate::session::{Hub, Recorder, Source};
use crate::store::Store;
use std::io;

/// An async runtime on this thread. Runners are children of the main thread: the kernel ends them together
/// with the thread that started them, so it must be the one that lives longest.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    check_descriptors()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::Io { action: "start the event loop".to_owned(), source })?;
    let value = runtime.block_on(async {
        let value = work.await;
        removed().await;
        value
    });
    // Blocking helpers (signal listeners) must not delay the exit.
    runtime.shutdown_background();
    Ok(value)
}

/// Files kept open by an event loop, its signals, a runner's pipes and files being examined.
const DESCRIPTORS: usize = 40;

/// Ensures that enough files can be opened. Otherwise libraries and devices would appear to be missing.
pub fn check_descriptors() -> Result<(), CliError> {
    #[cfg(unix)]
    {
        let taken: Result<Vec<_>, _> = (0..DESCRIPTORS).map(|_| rustix::io::dup(rustix::stdio::stderr())).collect();
        if matches!(taken, Err(rustix::io::Errno::MFILE)) {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
            let limit = limit.map_or_else(String::new, |limit| format!(" (the limit of open files is {limit})"));
            return Err(CliError::Missing {
                message: format!("{DESCRIPTORS} more files cannot be opened{limit}"),
                hint: "raise the limit: ulimit -n 1024".to_owned(),
            });
        }
    }
    Ok(())
}

/// As [`block_on`], but a termination signal drops the work, including the runner and everything it started,
/// even if a shell in the background set the signal to be ignored.
pub fn block_on_until_stopped<T, E: Into<CliError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, CliError> {
    block_on(async {
        tokio::select! {
            // Signal handlers must be in place before the work starts a process that they should end.
            biased;
            Ok(()) = termination() => Err(CliError::Interrupted),
            result = work => result.map_err(Into::into),
        }
    })?
}

/// Waits for a termination signal: SIGINT, SIGTERM, or SIGHUP unless `nohup` says to ignore it.
#[cfg(unix)]
pub async fn termination() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    // Checked before installing the handler, after which it no longer shows as ignored.
    let mut hangup = if is_ignored(SignalKind::hangup()) { None } else { Some(signal(SignalKind::hangup())?) };
    let hung_up = async {
        match &mut hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        insisted = insistence() => insisted,
        _ = hung_up => Ok(()),
    }
}

/// Waits for SIGINT or SIGTERM. A closing terminal may send SIGHUP twice, which is not a second request by
/// the user.
#[cfg(unix)]
pub async fn insistence() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// True if this process was started with the signal ignored.
#[cfg(unix)]
fn is_ignored(signal: tokio::signal::unix::SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal.as_raw_value() - 1).is_ok_and(|bit| mask >> bit & 1 == 1)
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub async fn termination() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub async fn insistence() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Starts the history's copy of a session; `None` if the user does not want one.
fn keep(began_us: u64) -> Result<Option<Recorder>, HistoryError> {
    if !Limits::load(config_path().as_deref())?.keep {
        return Ok(None);
    }
    history()?.begin(began_us).map(Some)
}

fn not_kept(error: &HistoryError) {
    say(&format!("note: the history does not keep this session: {}", clean_text(&error.to_string())));
}

/// Syncs a hub's session to disk and lists it in the history. `store` is the fold of its records.
pub fn close_session(hub: &mut Hub, store: Option<&Store>) {
    let Some((file, store)) = hub.finish(store).zip(store) else { return };
    let listed = Limits::load(config_path().as_deref()).and_then(|limits| history()?.end(&file, store, limits));
    if let Err(error) = listed {
        not_kept(&error);
    }
}

/// A hub with its header and this machine already on the stream.
pub async fn open_session(output: &OutputOptions) -> Result<(Hub, Source), CliError> {
    let guard = Guard::new(output.force);
    let recorder = output.record.as_deref().map(|path| Recorder::create_with(path, &guard)).transpose()?;
    let (mut hub, source) = Hub::new(recorder);
    let device = local_device();
    let began_us = epoch_us();
    if !output.no_history {
        match keep(began_us) {
            Ok(Some(kept)) => hub.keep(kept),
            Ok(None) => {}
            // If nothing can be kept, the runs still proceed.
            Err(error) => not_kept(&error),
        }
    }
    let header = SessionStarted {
        schema: SESSION_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        epoch_us: began_us,
        monotonic_us: now_us(),
        host: format!("{} {}", device.os, device.abi),
    };
    source.send(None, Event::SessionStarted(header)).await;
    source.send(None, Event::DeviceSeen(device)).await;
    Ok((hub, source))
}
