//! `qnnscope inspect`.

use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, Global, OK, options, target};
use crate::backends::device_runner;
use crate::backends::local::{Ended, Limits, ask};
use crate::backends::qnn::runner::{Frame, InspectTask, Task};
use crate::event::{ModelInfo, clean_text};
use crate::models::{Graph, identify};
use crate::report::{InspectDocument, inspect_text};
use std::path::{Path, PathBuf};

/// Arguments of `qnnscope inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// DLC, model library (.so) or context binary
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Reads the model in a runner, here or on the device, and prints what it is made of.
pub fn inspect(args: &InspectArgs, global: &Global) -> Result<u8, CliError> {
    let (model, graphs) = read(&args.model, args.patience, global)?;
    let document = InspectDocument::new(&model, graphs);
    if args.json {
        print_json(&document)?;
    } else {
        print(&inspect_text(&document))?;
    }
    Ok(OK)
}

/// What a runner, here or on the device that is named, reads of a model.
pub fn read(model: &Path, patience: Patience, global: &Global) -> Result<(Box<ModelInfo>, Vec<Graph>), CliError> {
    // A device that only a variable names is for runs: an inspection there needs a runner, and one here does not.
    let asked = global.device.is_some() || global.runner.is_some();
    let device = if asked { target::named(global) } else { target::LOCAL.to_owned() };
    target::refuse_runner_here(&device, global)?;
    let ended =
        if device == target::LOCAL { here(model, patience, global) } else { there(model, &device, patience, global) };
    match ended? {
        Ended::Done(Some(Frame::Inspected { model, graphs })) => Ok((model, graphs)),
        Ended::Failed(failure) => Err(CliError::Failure(failure)),
        Ended::Done(_) => Err(CliError::Usage("the runner gave no answer".to_owned())),
    }
}

fn here(model: &Path, patience: Patience, global: &Global) -> Result<Ended, CliError> {
    identify(model)?;
    let task = Task::Inspect(task(model, options::runtime(global)?.path, global));
    patience.wait(|| waited_for(model, "this machine's QNN libraries"), ask(&task, patience.limits()))
}

/// Only a runner can inspect: the SDK's tools have nothing for it.
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

/// Who reads the model.
fn waited_for(model: &Path, whom: &str) -> String {
    format!("{whom} to read {}", clean_text(&model.to_string_lossy()))
}

fn task(model: &Path, runtime_dir: PathBuf, global: &Global) -> InspectTask {
    InspectTask { runtime_dir, model: model.to_owned(), allow_unknown_runtime: global.allow_unknown_runtime }
}
