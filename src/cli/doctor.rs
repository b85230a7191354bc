//! `qnnscope doctor`.

use super::diagnose::text_width;
use super::headless::{print, print_json};
use super::{CliError, FAILED, Global, OK, options, setup};
use crate::backends::runtime::Env;
use crate::doctor::Doctor;
use crate::report::{DoctorDocument, doctor_text};
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::time::Duration;

/// Arguments of `qnnscope doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Looks at tools, libraries and devices. Fails where nothing can run.
pub fn doctor(args: &DoctorArgs, global: &Global) -> Result<u8, CliError> {
    let serial = || std::env::var("ANDROID_SERIAL").ok().filter(|serial| !serial.is_empty());
    let doctor = Doctor {
        runtime: global.runtime.clone(),
        runner: global.runner.clone(),
        device: global.device.clone().or_else(serial),
        adb_server: global.adb_server.clone(),
        memory_bytes: options::free_memory_share(),
        env: Env::from_process(),
    };
    let bar = std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    });
    let tell = |what: &str| {
        if let Some(bar) = &bar {
            bar.set_message(format!("looking at {what}"));
        }
    };
    let examination = setup::block_on(doctor.examine(&tell));
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let examination = examination?;
    if args.json {
        print_json(&DoctorDocument::new(&examination))?;
    } else {
        print(&doctor_text(&examination, text_width()))?;
    }
    Ok(if examination.can_run() { OK } else { FAILED })
}
