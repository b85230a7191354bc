//! `qnnscope runtime`: installs the QNN libraries and lists existing ones.

use super::install::{InstallArgs, Policy, install};
use super::patience::Patience;
use super::{CliError, Global, onnx_install, runtime_list, runtime_verify};
use clap::{Args, Subcommand};

/// Arguments of `qnnscope runtime`.
#[derive(Debug, Args)]
pub struct RuntimeArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RuntimeCommand,
}

/// What `qnnscope runtime` can do.
#[derive(Debug, Subcommand)]
pub enum RuntimeCommand {
    /// Download the QNN libraries with pip and keep them in the data folder
    Install(InstallArgs),
    /// List the runtimes of this machine, the one in use first
    List(ListArgs),
    /// Check installed files against the manifest: size and SHA-256 of each
    Verify(VerifyArgs),
}

/// Arguments of `qnnscope runtime verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Print the result as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `qnnscope runtime list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print the list as JSON on stdout
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Executes `qnnscope runtime`.
pub fn runtime(args: &RuntimeArgs, global: &Global) -> Result<u8, CliError> {
    match &args.command {
        RuntimeCommand::Install(args) => {
            if args.onnx {
                onnx_install::install(args, Policy::Asking, global)?;
            } else {
                install(args, Policy::Asking)?;
            }
            Ok(super::OK)
        }
        RuntimeCommand::Verify(args) => runtime_verify::verify(args.json, global),
        RuntimeCommand::List(args) => runtime_list::list(args.json, args.patience, global),
    }
}
