//! `qnnscope inspect`.

use super::headless::{print, print_json};
use super::inspect_source::Job;
use super::patience::Patience;
use super::{CliError, Global, OK, inspect_source, onnx_options, options, target};
use crate::backends::device_runner;
use crate::backends::local::{Ended, Limits, ask};
use crate::backends::qnn::runner::{Frame, InspectTask, Task};
use crate::event::{LOCAL_DEVICE, ModelInfo, Sandbox, clean_text};
use crate::models::identify_source;
use crate::models::source::SourceFormat;
use crate::models::{Graph, identify, source_names};
use crate::report::{InspectDocument, inspect_text};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `qnnscope inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// DLC, model library (.so), context binary, or a model before conversion: ONNX, TFLite, ExecuTorch (.pte)
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Size of a free dimension of an ONNX model, such as batch=1; may be repeated
    #[arg(long, value_name = "NAME=N", value_parser = onnx_options::dimension)]
    dim: Vec<(String, u64)>,
    /// Write the QNN context binaries that an ONNX, TFLite or ExecuTorch model carries into this folder
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// Let --extract overwrite files that qnnscope did not write
    #[arg(long, requires = "extract")]
    force: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Reads the model in a runner, here or on the device, and prints its contents.
pub fn inspect(args: &InspectArgs, global: &Global) -> Result<u8, CliError> {
    // Models before conversion are read here, whichever device they are for.
    if let Some(format) = identify_source(&args.model) {
        if !args.dim.is_empty() && format != SourceFormat::Onnx {
            return Err(CliError::Usage(format!("--dim is for ONNX models, and this is {}", format.with_article())));
        }
        let job = Job {
            model: args.model.clone(),
            format,
            dimensions: args.dim.clone(),
            extract: args.extract.clone(),
            force: args.force,
            stop: Arc::default(),
        };
        return inspect_source::inspect(job, args.json, args.patience);
    }
    for (flag, given) in [("--extract", args.extract.is_some()), ("--dim", !args.dim.is_empty())] {
        if given {
            identify(&args.model)?;
            return Err(CliError::Usage(format!("{flag} is for models before conversion: ONNX, TFLite, ExecuTorch")));
        }
    }
    let (model, graphs, sandbox) = read(&args.model, args.patience, global)?;
    let document = InspectDocument::new(&model, graphs, sandbox, source_names(&args.model).as_ref());
    if args.json {
        print_json(&document)?;
    } else {
        print(&inspect_text(&document))?;
    }
    Ok(OK)
}

/// A model as read by a runner, here or on the named device.
pub fn read(
    model: &Path,
    patience: Patience,
    global: &Global,
) -> Result<(Box<ModelInfo>, Vec<Graph>, Sandbox), CliError> {
    // A device named only by an environment variable is meant for runs: inspecting there needs a runner, here
    // it does not.
    let asked = global.device().is_some() || global.runner.is_some();
    let device = if asked { target::named(global) } else { LOCAL_DEVICE.to_owned() };
    target::refuse_runner_here(&device, global)?;
    let ended =
        if device == LOCAL_DEVICE { here(model, patience, global) } else { there(model, &device, patience, global) };
    match ended? {
        Ended::Done(Some(Frame::Inspected { model, graphs, sandbox })) => Ok((model, graphs, sandbox)),
        Ended::Failed(failure) => Err(CliError::Failure(failure)),
        Ended::Done(_) => Err(CliError::Usage("the runner did not answer".to_owned())),
    }
}

fn here(model: &Path, patience: Patience, global: &Global) -> Result<Ended, CliError> {
    identify(model)?;
    let task = Task::Inspect(task(model, options::runtime(global)?.path, global));
    patience.wait(|| waited_for(model, "this machine's QNN libraries"), ask(&task, patience.limits()))
}

/// Only a runner can inspect: the SDK's tools cannot.
fn there(model: &Path, name: &str, patience: Patience, global: &Global) -> Result<Ended, CliError> {
    let whom = || waited_for(model, &format!("device {name}"));
    patience.wait(whom, async {
        let device = target::find(name, global).await?;
        let facts = device.describe().await?;
        let options = target::runner(&device, &facts, true, global).await?;
        let task = task(model, PathBuf::new(), global);
        Ok::<_, CliError>(
            device_runner::inspect(
                &device,
                &facts,
                &options,
                &task,
                Limits { memory_bytes: None, ..patience.limits() },
            )
            .await?,
        )
    })
}

/// Describes which process is reading the model.
fn waited_for(model: &Path, whom: &str) -> String {
    format!("{whom} to read {}", clean_text(&model.to_string_lossy()))
}

fn task(model: &Path, runtime_dir: PathBuf, global: &Global) -> InspectTask {
    InspectTask { runtime_dir, model: model.to_owned(), allow_unknown_runtime: global.allow_unknown_runtime }
}
