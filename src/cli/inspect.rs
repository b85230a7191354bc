//! `qnnscope inspect`.

use super::headless::{print, print_json};
use super::{CliError, Global, OK, options, setup};
use crate::backends::local::{Ended, Limits, ask};
use crate::backends::qnn::runner::{Frame, InspectTask, Task};
use crate::models::identify;
use crate::report::{InspectDocument, inspect_text};
use std::path::PathBuf;

/// Arguments of `qnnscope inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// DLC, model library (.so) or context binary
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Reads the model in a runner child and prints what it is made of.
pub fn inspect(args: &InspectArgs, global: &Global) -> Result<u8, CliError> {
    identify(&args.model)?;
    let runtime = options::runtime(global)?;
    let task = Task::Inspect(InspectTask {
        runtime_dir: runtime.path,
        model: args.model.clone(),
        allow_unknown_runtime: global.allow_unknown_runtime,
    });
    let limits = Limits { memory_bytes: options::free_memory_share(), ..Limits::default() };
    let (model, graphs) = match setup::block_on(ask(&task, limits))?? {
        Ended::Done(Some(Frame::Inspected { model, graphs })) => (model, graphs),
        Ended::Failed(failure) => return Err(CliError::Failure(failure)),
        Ended::Done(_) => return Err(CliError::Usage("the runner gave no answer".to_owned())),
    };
    let document = InspectDocument::new(&model, graphs);
    if args.json {
        print_json(&document)?;
    } else {
        print(&inspect_text(&document))?;
    }
    Ok(OK)
}
