//! Source and result on the same inputs: how far the outputs are apart.

use super::error::ConvertError;
use crate::analysis::compare::{Accuracy, OutputValues, accuracy};
use crate::backends::ProfilingLevel;
use crate::backends::local::{Ended, Limits, Supervisor};
use crate::backends::qnn::runner::{RunTask, Task};
use crate::event::Budget;
use std::path::Path;
use tokio::sync::watch;

/// Largest output that is compared.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;

/// What a comparison came to, or why there is none.
pub type Verified = Result<Accuracy, String>;

/// Runs both and compares their outputs. `source` and `result` say how each is run; their inputs come from one seed.
pub async fn verify(source: &RunTask, result: &RunTask, limits: Limits) -> Result<Verified, ConvertError> {
    let reference = match outputs(source, limits).await? {
        Ok(outputs) => outputs,
        Err(reason) => return Ok(Err(format!("the source does not run: {reason}"))),
    };
    let theirs = match outputs(result, limits).await? {
        Ok(outputs) => outputs,
        Err(reason) => return Ok(Err(format!("the result does not run: {reason}"))),
    };
    Ok(accuracy(&reference, &theirs))
}

/// The outputs of one inference.
async fn outputs(task: &RunTask, limits: Limits) -> Result<Result<Vec<OutputValues>, String>, ConvertError> {
    let parent = std::env::temp_dir();
    let dir = crate::files::private_folder().map_err(|source| ConvertError::Io {
        action: "make a folder in",
        path: parent,
        source,
    })?;
    let task = RunTask {
        save_outputs: Some(dir.path().join("outputs")),
        save_context: None,
        profile_log: None,
        warmup: 0,
        budget: Budget::Iterations(1),
        profiling: ProfilingLevel::Off,
        ..task.clone()
    };
    let (_stop, stopped) = watch::channel(false);
    match Supervisor::new(None, limits).run(&Task::Run(Box::new(task)), stopped).await? {
        Ended::Failed(failure) => return Ok(Err(failure.message)),
        Ended::Done(_) => {}
    }
    Ok(read(&dir.path().join("outputs/Result_0")))
}

fn read(folder: &Path) -> Result<Vec<OutputValues>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("it saved no outputs: {error}"))?;
    let mut outputs = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".npy")) else { continue };
        let bytes = crate::files::read_at_most(&path, MAX_OUTPUT_BYTES).map_err(|error| error.to_string())?;
        let (shape, values) = values(&bytes)?;
        outputs.push(OutputValues { inference: 0, name: name.to_owned(), shape: Some(shape), values });
    }
    outputs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(outputs)
}

#[cfg(unix)]
fn values(bytes: &[u8]) -> Result<(Vec<u64>, Vec<f32>), String> {
    let (shape, values) = crate::backends::qnn::runner::read_npy(bytes)?;
    #[expect(clippy::cast_possible_truncation, reason = "outputs are saved as float32")]
    Ok((shape, values.into_iter().map(|value| value as f32).collect()))
}

#[cfg(not(unix))]
fn values(_: &[u8]) -> Result<(Vec<u64>, Vec<f32>), String> {
    Err("nothing runs on this system".to_owned())
}
