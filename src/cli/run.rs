//! `qnnscope run`.

use super::onnx_options::OnnxOptions;
use super::options::{OutputOptions, RunOptions};
use super::requests::Destination;
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
    let devices = target::all_named(global);
    if devices.iter().all(|device| device == LOCAL_DEVICE) {
        target::refuse_runner_here(LOCAL_DEVICE, global)?;
    }
    let sites = setup::block_on(target::sites(&devices, &args.options, global));
    // A file that is not a model is reported before anything missing.
    if devices.iter().any(|device| device == LOCAL_DEVICE) {
        for model in &args.models {
            identify(model)?;
        }
    }
    let sites = sites??;
    let options = RunOptions { beside: args.output.beside(), ..args.options.clone() };
    let (mut places, mut converted) = (Vec::new(), Vec::new());
    for (site, device) in sites.iter().zip(&devices) {
        let (mut models, mut onnx) = (args.models.clone(), options.onnx.clone());
        for model in &mut models {
            onnx_install::offer(model, site, global)?;
            if let Some(done) = device_onnx::converted(model, &options, device, global)? {
                model.clone_from(&done.model);
                converted.push(done);
                // The ONNX options applied to the conversion.
                onnx = OnnxOptions::default();
            }
        }
        places.push(Destination { site: site.clone(), models, onnx });
    }
    let requests = options.requests_on(&places, global)?;
    if args.output.is_live() {
        // Runs started later from the view are distinguished there.
        let first = places.swap_remove(0);
        let options = RunOptions { onnx: first.onnx, ..options };
        let start = StartChoice {
            device: sites[0].device_id().to_owned(),
            model: first.models.first().cloned().unwrap_or_default(),
            backends: args.options.backend.clone(),
        };
        return live::live(Some((start, requests)), &options, &args.output, global);
    }
    headless::run(&requests, args.options.limits(), &args.output)
}
