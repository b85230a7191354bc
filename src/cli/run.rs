//! `qnnscope run`.

use super::onnx_options::OnnxOptions;
use super::options::{OutputOptions, RunOptions};
use super::{CliError, Global, device_onnx, headless, live, onnx_install, setup, target};
use crate::app::StartChoice;
use crate::models::identify;
use std::path::PathBuf;

/// Arguments of `qnnscope run`.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// DLC, model library (.so), context binary or ONNX model; told apart by content
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    pub options: RunOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Runs the model on each backend.
pub fn run(args: &RunArgs, global: &Global) -> Result<u8, CliError> {
    let device = target::named(global);
    target::refuse_runner_here(&device, global)?;
    let site = setup::block_on(target::site(&device, &args.options, global));
    // A file that is no model is told before anything that may be missing.
    if device == target::LOCAL {
        identify(&args.model)?;
    }
    let site = site??;
    let options = RunOptions { beside: args.output.beside(), ..args.options.clone() };
    onnx_install::offer(&args.model, &site, global)?;
    let converted = device_onnx::converted(&args.model, &options, &device, global)?;
    let (model, options) = match &converted {
        // The options of ONNX models were for the conversion.
        Some(converted) => (&converted.model, RunOptions { onnx: OnnxOptions::default(), ..options }),
        None => (&args.model, options),
    };
    let requests = options.requests(model, &site, global)?;
    if args.output.is_live() {
        let start = StartChoice {
            device: requests.first().map_or(device, |request| request.plan.device.clone()),
            model: model.clone(),
            backends: args.options.backend.clone(),
        };
        return live::live(Some((start, requests)), &options, &args.output, global);
    }
    headless::run(&requests, args.options.limits(), &args.output)
}
