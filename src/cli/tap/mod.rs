//! `qnnscope tap`.

mod headless;
mod input;
mod live;
mod outcome;
mod site;
mod there;

use super::options::OutputOptions;
use super::{CliError, Global, setup};
use crate::files::{Guard, Kind};
use crate::tap::device::is_package;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Arguments of `qnnscope tap`.
#[derive(Debug, Clone, clap::Args)]
pub struct TapArgs {
    /// The program and its arguments; without one, wait for processes started elsewhere (--listen)
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Leave the terminal to the program and print a text report at its end
    #[arg(long)]
    headless: bool,
    /// Write a JSON document at the end: to FILE, or as one line on stdout after the program's own output
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "so clap tells `--json` from `--json=FILE`")]
    json: Option<Option<PathBuf>>,
    /// Write the session to this file as it happens
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Do not keep the session in the history
    #[arg(long)]
    no_history: bool,
    /// Overwrite files that qnnscope did not write
    #[arg(long)]
    force: bool,
    /// Profile every N-th execution of a graph per layer; 0: none [default: as often as costs less than 1 % of the time]
    #[arg(long, value_name = "N", default_value = "auto", value_parser = detail, hide_default_value = true)]
    detail_every: String,
    /// Level of the vendor's log in programs that take it, whatever theirs is: error, warning, info, verbose, debug
    #[arg(long, value_name = "LEVEL", value_parser = ["error", "warning", "info", "verbose", "debug"])]
    log: Option<String>,
    /// Work around a mistake of the program: device-config, an option record that moved between SDK releases
    #[arg(long, value_name = "WHAT", value_parser = ["device-config"])]
    repair: Option<String>,
    /// Replace the libraries of this folder instead of preloading the tap; with --device, a folder there
    #[arg(long, value_name = "DIR")]
    swap: Option<PathBuf>,
    /// The tap library [default: beside this program] [env: QNNSCOPE_TAP_LIBRARY]
    #[arg(long, value_name = "FILE")]
    tap_library: Option<PathBuf>,
    /// Listen on this socket for processes started elsewhere with the variables that are printed
    #[arg(long, value_name = "SOCKET")]
    listen: Option<PathBuf>,
    /// Write this process's id to a file while it listens
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    #[command(flatten)]
    there: there::DeviceArgs,
}

fn detail(text: &str) -> Result<String, String> {
    match text.parse::<u32>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) if text == "auto" => Ok(text.to_owned()),
        Err(_) => Err("expected auto, 0 or a number of executions".to_owned()),
    }
}

impl TapArgs {
    /// Where the session goes.
    fn output(&self) -> OutputOptions {
        OutputOptions {
            json: self.json.is_some(),
            headless: self.headless,
            record: self.record.clone(),
            no_history: self.no_history,
            force: self.force,
        }
    }

    /// The file of the document, if it goes to one.
    fn document(&self) -> Option<&PathBuf> {
        self.json.as_ref()?.as_ref()
    }

    fn is_live(&self) -> bool {
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        let is_ours = !self.command.is_empty() || self.there.package.is_some();
        !self.headless && self.json.is_none() && is_ours && terminal
    }

    /// Refuses invalid combinations, and files that must not be written, before anything starts.
    fn check(&self, global: &Global) -> Result<(), CliError> {
        let is_there = there::is_there(global);
        if is_there && (self.listen.is_some() || self.pid_file.is_some()) {
            let text =
                "--listen and --pid-file are for programs on this machine: with --device, give the program after `--`";
            return Err(CliError::Usage(text.to_owned()));
        }
        if let Some(option) = self.there.any().filter(|_| !is_there) {
            return Err(CliError::Usage(format!(
                "{option} is for programs on a device: name one with --device SERIAL"
            )));
        }
        if let Some(package) = &self.there.package {
            if !is_package(package) {
                return Err(CliError::Usage(format!("{package} is not the name of an app, such as com.example.app")));
            }
            if !self.command.is_empty() {
                return Err(CliError::Usage("--package starts the app itself: remove the program".to_owned()));
            }
        } else if self.command.is_empty() && self.listen.is_none() && self.pid_file.is_none() {
            let text = if is_there {
                "which program? Give it after `--`: qnnscope tap --device SERIAL -- /data/local/tmp/my_app ARGS"
            } else {
                "which program? Give it after `--`: qnnscope tap -- ./my_app ARGS; or wait for processes started elsewhere with --listen SOCKET"
            };
            return Err(CliError::Usage(text.to_owned()));
        }
        let mut guard = Guard::new(self.force);
        // Files that the command names are its program, scripts and models.
        for word in self.command.iter().filter(|_| !is_there) {
            guard.reads("the command's file", word.as_ref());
        }
        if let Some(file) = self.there.file() {
            guard.reads("--counter-file", file);
        }
        guard.prints();
        if let Some(library) = &self.tap_library {
            guard.reads("the tap library", library);
        }
        if let Some(folder) = self.swap.as_ref().filter(|_| !is_there) {
            guard.reads_folder("the library", folder);
        }
        if let Some(folder) = &global.runtime {
            guard.reads_folder("the library", folder);
        }
        setup::protect_history(&mut guard);
        for (option, path, kind) in [
            ("--record", self.record.as_ref(), Kind::Session),
            ("--json", self.document(), Kind::TapDocument),
            ("--pid-file", self.pid_file.as_ref(), Kind::ProcessId),
        ] {
            if let Some(path) = path {
                guard.claim(option, path, kind)?;
            }
        }
        Ok(())
    }
}

/// Runs a program with the tap attached, or waits for other processes.
pub fn tap(args: &TapArgs, global: &Global) -> Result<u8, CliError> {
    args.check(global)?;
    if args.is_live() { live::live(args, global) } else { headless::headless(args, global) }
}
