//! `qnnscope diagnose --watch`: diagnosis while a log is being written.

use super::headless::{print, print_json};
use super::watch_counters::{Beside, Reading};
use super::width::text_width;
use super::{CliError, Global, OK, say, setup, target};
use crate::devices::Device;
use crate::diagnosis::{Diagnoser, Diagnosis, DiagnosisDocument, Platform, diagnosis_text};
use crate::event::clean_text;
use crate::files::open_input;
use serde::Serialize;
use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a file is polled, and its new lines are diagnosed.
const EVERY: Duration = Duration::from_millis(300);
/// How often the screen shows new counter values.
const REDRAWN: Duration = Duration::from_secs(1);
/// Bytes per read.
const CHUNK: usize = 256 * 1024;
/// Stands for the device's log in place of a file.
pub const LOGCAT: &str = "logcat";

/// A diagnosis, and the values of the device's counters at the time.
#[derive(Serialize)]
struct Watched {
    #[serde(flatten)]
    diagnosis: DiagnosisDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<Reading>>,
}

/// Source of the lines.
enum Lines {
    File { file: File, read: u64 },
    Device(crate::devices::ShellStream),
}

/// Follows the log until a signal, or the end of the device's log, and reports whenever the diagnosis
/// changes.
pub fn watch(
    log: &Path,
    json: bool,
    platform: Option<Platform>,
    diagnoser: Diagnoser,
    global: &Global,
) -> Result<u8, CliError> {
    setup::block_on(follow(log, json, platform, diagnoser, global))?
}

async fn follow(
    log: &Path,
    json: bool,
    platform: Option<Platform>,
    fresh: Diagnoser,
    global: &Global,
) -> Result<u8, CliError> {
    let (mut lines, beside) = open(log, global).await?;
    // Only a terminal is redrawn just for counters.
    let redraws = beside.is_some() && !json && std::io::stdout().is_terminal();
    let mut drawn = Instant::now();
    let mut has_told_counters = false;
    let mut diagnoser = fresh.clone();
    let mut shown: Option<Vec<(&'static str, f64)>> = None;
    let ended = setup::termination();
    tokio::pin!(ended);
    let mut buffer = vec![0; CHUNK];
    loop {
        let mut at_end = false;
        match &mut lines {
            Lines::File { file, read } => {
                let io = |source| CliError::Io { action: format!("read {}", log.display()), source };
                // A log that shrank has been started over and is a new one.
                if std::fs::metadata(log).is_ok_and(|now| now.len() < *read) {
                    say(&format!("{} was truncated; reading from its start", log.display()));
                    *file = File::open(log).map_err(io)?;
                    file.seek(SeekFrom::Start(0)).map_err(io)?;
                    (*read, diagnoser, shown) = (0, fresh.clone(), None);
                }
                loop {
                    let count = file.read(&mut buffer).map_err(io)?;
                    if count == 0 {
                        break;
                    }
                    *read += count as u64;
                    diagnoser.feed(&buffer[..count]);
                }
                tokio::select! {
                    _ = &mut ended => at_end = true,
                    () = tokio::time::sleep(EVERY) => {}
                }
            }
            Lines::Device(stream) => {
                let until = tokio::time::Instant::now() + EVERY;
                loop {
                    tokio::select! {
                        _ = &mut ended => at_end = true,
                        () = tokio::time::sleep_until(until) => {}
                        line = stream.next_line() => match line {
                            Some(Ok(line)) => {
                                diagnoser.feed(&line);
                                diagnoser.feed(b"\n");
                                continue;
                            }
                            Some(Err(error)) => return Err(error.into()),
                            None => at_end = true,
                        }
                    }
                    break;
                }
            }
        }
        let mut diagnosis = if at_end { diagnoser.clone().finish() } else { diagnoser.so_far() };
        if let Some(platform) = platform {
            diagnosis.set_platform(platform);
        }
        let now: Vec<(&'static str, f64)> =
            diagnosis.causes.iter().map(|finding| (finding.id, finding.confidence)).collect();
        let counters_come = !has_told_counters && beside.as_ref().is_some_and(|beside| !beside.readings().is_empty());
        has_told_counters |= counters_come;
        if shown.as_ref() != Some(&now) || at_end || counters_come || redraws && drawn.elapsed() >= REDRAWN {
            tell(&diagnosis, beside.as_ref(), json, at_end)?;
            drawn = Instant::now();
            shown = Some(now);
        }
        if at_end {
            return Ok(OK);
        }
    }
}

async fn open(log: &Path, global: &Global) -> Result<(Lines, Option<Beside>), CliError> {
    if log == Path::new(LOGCAT) {
        let name = target::named(global);
        let device = target::find(&name, global).await?;
        say(&format!("watching the log of {}; Ctrl-C ends it", clean_text(device.id())));
        let beside = counters(&device).await;
        return Ok((Lines::Device(device.stream("logcat -v threadtime")), beside));
    }
    // Standard input is a file like any other: more of it may come later.
    let log = if log == Path::new("-") { Path::new("/dev/stdin") } else { log };
    let file = open_input(log).map_err(|source| CliError::Usage(format!("cannot read {}: {source}", log.display())))?;
    // If the user names a device, its counters are shown beside the log.
    let beside = match global.device() {
        Some(name) => counters(&target::find(name, global).await?).await,
        None => None,
    };
    say(&format!("watching {}; Ctrl-C ends it", log.display()));
    Ok((Lines::File { file, read: 0 }, beside))
}

/// The counters of a device; a lack of them does not prevent watching the log.
async fn counters(device: &Device) -> Option<Beside> {
    Beside::start(device).await.unwrap_or_else(|error| {
        say(&format!("note: no counters of {}: {}", clean_text(device.id()), error.render().trim_end()));
        None
    })
}

/// On a terminal only the latest answer, otherwise one after the other.
fn tell(diagnosis: &Diagnosis, beside: Option<&Beside>, json: bool, at_end: bool) -> Result<(), CliError> {
    if json {
        let counters = beside.map(Beside::readings);
        return print_json(&Watched { diagnosis: DiagnosisDocument::new(diagnosis), counters });
    }
    let counters = beside.map_or_else(String::new, |beside| beside.text(text_width()));
    let clear = if std::io::stdout().is_terminal() && !at_end { "\x1b[2J\x1b[H" } else { "" };
    print(&format!("{clear}{}{counters}\n", diagnosis_text(diagnosis, text_width())))
}
