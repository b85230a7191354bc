//! `qnnscope` without a subcommand: the start screen.

use super::options::{OutputOptions, RunOptions};
use super::{CliError, Global, live};
use clap::{Args, FromArgMatches};
use std::io::IsTerminal;

/// Opens the start screen.
pub fn start(global: &Global) -> Result<u8, CliError> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(CliError::Usage(
            "the start screen needs a terminal; use `qnnscope run MODEL`; `qnnscope --help` lists the rest".to_owned(),
        ));
    }
    live::live(None, &default_options()?, &OutputOptions::default(), global)
}

/// The options of a command line without any.
pub fn default_options() -> Result<RunOptions, CliError> {
    let command = RunOptions::augment_args(clap::Command::new("run"));
    command
        .try_get_matches_from(["run"])
        .and_then(|matches| RunOptions::from_arg_matches(&matches))
        .map_err(|error| CliError::Usage(error.to_string()))
}
