//! `qnnscope run`.

use super::options::{self, OutputOptions, RunOptions};
use super::{CliError, Global, headless, live};
use crate::app::StartChoice;
use crate::models::identify;
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
