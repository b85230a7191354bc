//! Arguments of `qnnscope convert`.

use super::onnx_options::OnnxOptions;
use super::options::{self, RunOptions};
use super::patience::Patience;
use super::{CliError, Global, start};
use crate::backends::Backend;
use crate::backends::qnn::runner::RunTask;
use crate::models::{ModelFormat, identify};
use crate::run::Site;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `qnnscope convert`.
#[derive(Debug, Clone, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ConvertArgs {
    /// ONNX or TFLite model, DLC or model library (.so)
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// File to write: .dlc, .bin (context binary) or .onnx (EPContext model); a split model becomes several numbered .dlc
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Backend to convert for; it decides which nodes QNN takes
    #[arg(short, long, value_name = "BACKEND", default_value = "htp", value_parser = options::backend)]
    pub backend: Backend,
    /// QNN's number of the SoC to compile for: 57 is SM8650
    #[arg(long, value_name = "N")]
    pub soc_model: Option<u32>,
    /// Name of the SoC, for TFLite models
    #[arg(long, value_name = "NAME", default_value = "SM8650")]
    pub soc: String,
    /// Convert with the SDK's own converters ($QNN_SDK_ROOT), to a .dlc, a model library (.so) for this machine, or a context binary (.bin)
    #[arg(long, value_name = "WHAT", value_parser = ["sdk"])]
    pub with: Option<String>,
    /// Extra argument for the SDK's converter; may be repeated
    #[arg(long, value_name = "ARG", requires = "with", allow_hyphen_values = true)]
    pub sdk_arg: Vec<String>,
    /// Embed the context binaries in the EPContext model
    #[arg(long)]
    pub embed: bool,
    /// Run source and result on the same inputs and report how much their outputs differ
    #[arg(long)]
    pub verify: bool,
    /// Inputs of --verify: a number of random ones, a folder of inputs, or a list in qnn-net-run's format [default: 3, or 1 for
    /// a compiled result]
    #[arg(long, value_name = "N|PATH", requires = "verify")]
    pub verify_inputs: Option<String>,
    /// Keep the conversion log in this file; a failed conversion leaves it beside the output
    #[arg(long, value_name = "FILE", conflicts_with = "with")]
    pub log: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub onnx: OnnxOptions,
    #[command(flatten)]
    pub patience: Patience,
}

impl ConvertArgs {
    /// The task of running `model` with this command's options.
    pub fn task(&self, backend: Backend, model: &Path, site: &Arc<Site>, global: &Global) -> Result<RunTask, CliError> {
        let is_onnx = identify(model).is_ok_and(|format| format == ModelFormat::Onnx);
        let asked = OnnxOptions { no_cpu_fallback: false, ..self.onnx.clone() };
        let options = RunOptions {
            backend: vec![backend],
            soc_model: self.soc_model,
            onnx: if is_onnx { asked } else { OnnxOptions::default() },
            ..start::default_options()?
        };
        let mut requests = options.requests(&[model.to_owned()], site, global)?;
        match requests.pop() {
            Some(request) => Ok(request.task),
            None => Err(CliError::Usage("there is nothing to run".to_owned())),
        }
    }
}
