//! `qnnscope run`.

use super::onnx_options::OnnxOptions;
use super::options::{OutputOptions, RunOptions};
use super::{CliError, Global, device_onnx, headless, live, onnx_install, setup, target};
use crate::app::StartChoice;
use crate::event::LOCAL_DEVICE;
use crate::models::identify;
use std::path::PathBuf;

/// Arguments of `qnnscope run`.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// DLC, model library (.so), context binary or ONNX model; recognised by content. Launches of several models alternate, so
    /// that drift favours none
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    #[command(flatten)]
    pub options: RunOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Runs each model on each backend.
pub fn run(args: &RunArgs, global: &Global) -> Result<u8, CliError> {
    let device = target::named(global);
    target::refuse_runner_here(&device, global)?;
    let site = setup::block_on(target::site(&device, &args.options, global));
    // A file that is no model is told before anything that may be missing.
    if device == LOCAL_DEVICE {
        for model in &args.models {
            identify(model)?;
        }
    }
    let site = site??;
    let options = RunOptions { beside: args.output.beside(), ..args.options.clone() };
    let mut models = args.models.clone();
    let mut converted = Vec::new();
    for model in &mut models {
        onnx_install::offer(model, &site, global)?;
        if let Some(done) = device_onnx::converted(model, &options, &device, global)? {
            model.clone_from(&done.model);
            converted.push(done);
        }
    }
    // The options of ONNX models were for the conversion.
    let onnx = if converted.is_empty() { options.onnx.clone() } else { OnnxOptions::default() };
    let options = RunOptions { onnx, ..options };
    let requests = options.requests(&models, &site, global)?;
    if args.output.is_live() {
        let start = StartChoice {
            device: requests.first().map_or(device, |request| request.plan.device.clone()),
            model: models.first().cloned().unwrap_or_default(),
            backends: args.options.backend.clone(),
        };
        return live::live(Some((start, requests)), &options, &args.output, global);
    }
    headless::run(&requests, args.options.limits(), &args.output)
}
