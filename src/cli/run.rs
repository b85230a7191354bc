//! `qnnscope run`.

use super::options::{self, RunOptions};
use super::{CliError, Global, headless, live};
use crate::app::StartChoice;
use crate::models::identify;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Arguments of `qnnscope run`.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// DLC, model library (.so) or context binary; told apart by content
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    pub options: RunOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Where results go.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OutputOptions {
    /// Print the result document as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Print a text report instead of the live view
    #[arg(long)]
    pub headless: bool,
    /// Write the session, as it happens, to this file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

impl OutputOptions {
    /// True if the live view is wanted and possible.
    pub fn is_live(&self) -> bool {
        !self.json && !self.headless && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
    }
}

/// Runs the model on each backend.
pub fn run(args: &RunArgs, global: &Global) -> Result<u8, CliError> {
    identify(&args.model)?;
    let runtime = options::runtime(global)?;
    let requests = args.options.requests(&args.model, &runtime, global)?;
    if args.output.is_live() {
        let start = StartChoice {
            device: "local".to_owned(),
            model: args.model.clone(),
            backends: args.options.backend.clone(),
        };
        return live::live(Some((start, requests)), &args.options, &args.output, global);
    }
    headless::run(&requests, args.options.limits(), &args.output)
}
