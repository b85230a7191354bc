//! `qnnscope doctor`.

use super::headless::{print, print_json};
use super::patience::Patience;
use super::width::text_width;
use super::{CliError, FAILED, Global, OK, options};
use crate::backends::runtime::Env;
use crate::doctor::{Doctor, Examination};
use crate::report::{DoctorDocument, doctor_text};
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Arguments of `qnnscope doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Examines tools, libraries and devices. Fails if nothing can run.
pub fn doctor(args: &DoctorArgs, global: &Global) -> Result<u8, CliError> {
    let examination = examine(args.patience, global)?;
    if args.json {
        print_json(&DoctorDocument::new(&examination))?;
    } else {
        print(&doctor_text(&examination, text_width()))?;
    }
    Ok(if examination.can_run() { OK } else { FAILED })
}

/// Runs the examination, showing its progress on a terminal.
pub fn examine(patience: Patience, global: &Global) -> Result<Examination, CliError> {
    let serial = || std::env::var("ANDROID_SERIAL").ok().filter(|serial| !serial.is_empty());
    let doctor = Doctor {
        runtime: global.runtime.clone(),
        runner: global.runner.clone(),
        device: global.device().map(str::to_owned).or_else(serial),
        adb_server: global.adb_server.clone(),
        memory_bytes: options::free_memory_share(),
        env: Env::from_process(),
    };
    let bar = std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    });
    let looking_at = Mutex::new(String::new());
    let tell = |what: &str| {
        what.clone_into(&mut looking_at.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(bar) = &bar {
            bar.set_message(format!("looking at {what}"));
        }
    };
    // On a terminal the progress bar shows it.
    let waited_for = || match bar {
        None => looking_at.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        Some(_) => String::new(),
    };
    let work = async { Ok::<_, CliError>(doctor.examine(&tell).await) };
    let examination = patience.wait(waited_for, work);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    examination
}
