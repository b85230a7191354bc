//! Runs source and result like any model.

use super::Check;
use crate::accuracy::Inputs;
use crate::analysis::compare::{OutputValues, accuracy};
use crate::backends::ProfilingLevel;
use crate::backends::local::{Ended, Limits, Supervisor};
use crate::backends::qnn::runner::{RunTask, Task};
use crate::convert::error::ConvertError;
use crate::event::{Budget, Event};
use crate::session::Hub;
use std::collections::BTreeMap;
use std::path::Path;
use tokio::sync::watch;

/// Largest output that is compared, in bytes.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;
/// Most inputs of a list that are compared.
const MOST_INPUTS: u64 = 10_000;

/// Outputs for all inputs, and HTP's op numbers.
#[derive(Default)]
struct Heard {
    outputs: Vec<OutputValues>,
    htp_ops: BTreeMap<String, u64>,
}

/// Runs both and compares their outputs. `source` and `result` say how to run each; random inputs use the
/// same seeds.
pub async fn verify(
    source: &RunTask,
    result: &RunTask,
    inputs: &Inputs,
    limits: Limits,
) -> Result<Check, ConvertError> {
    let mut check = Check {
        file: result.model.clone(),
        backend: result.backend,
        inputs: 0,
        verified: Err(String::new()),
        htp_ops: BTreeMap::new(),
    };
    let reference = match outputs(source, inputs, limits).await? {
        Ok(heard) => heard.outputs,
        Err(reason) => return Ok(Check { verified: Err(format!("the source does not run: {reason}")), ..check }),
    };
    let result = RunTask { profiling: ProfilingLevel::Detailed, ..result.clone() };
    match outputs(&result, inputs, limits).await? {
        Ok(heard) => {
            check.inputs = heard.outputs.iter().map(|output| output.inference as usize + 1).max().unwrap_or(0);
            check.verified = accuracy(&reference, &heard.outputs);
            check.htp_ops = heard.htp_ops;
        }
        Err(reason) => check.verified = Err(format!("the result does not run: {reason}")),
    }
    Ok(check)
}

/// The outputs for all inputs.
async fn outputs(task: &RunTask, inputs: &Inputs, limits: Limits) -> Result<Result<Heard, String>, ConvertError> {
    let mut heard = Heard::default();
    match inputs {
        Inputs::Random { count, seed } => {
            // A run has one set of random inputs, determined by its seed.
            for (inference, seed) in (0..*count as u64).map(|index| (index, seed.wrapping_add(index))) {
                let task = RunTask { seed, ..task.clone() };
                let one = match once(&task, 1, limits).await? {
                    Ok(one) => one,
                    Err(reason) => return Ok(Err(reason)),
                };
                let inference = u32::try_from(inference).unwrap_or(u32::MAX);
                heard.outputs.extend(one.outputs.into_iter().map(|output| OutputValues { inference, ..output }));
                heard.htp_ops = one.htp_ops;
            }
            Ok(Ok(heard))
        }
        Inputs::List(path) => {
            let task = RunTask { input_list: Some(path.clone()), ..task.clone() };
            once(&task, MOST_INPUTS, limits).await
        }
        Inputs::Folder(_) | Inputs::Files(_) | Inputs::Kept { .. } => {
            Ok(Err("compiled files take their inputs from a list: --verify-inputs with an input list".to_owned()))
        }
    }
}

/// One launch that saves its outputs.
async fn once(task: &RunTask, most: u64, limits: Limits) -> Result<Result<Heard, String>, ConvertError> {
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
        profiling_budget: Budget::Iterations(1),
        ..task.clone()
    };
    let (_stop, stopped) = watch::channel(false);
    let (mut hub, source) = Hub::new(None);
    let run = source.new_run();
    let supervisor = Supervisor::new(Some((source, run)), limits);
    let listening = async {
        let mut htp_ops = BTreeMap::new();
        while let Some(record) = hub.next().await {
            if let Event::OpsDeclared(rows) = record.event {
                htp_ops.extend(rows.into_iter().filter_map(|row| Some((row.name, row.htp_op?))));
            }
        }
        htp_ops
    };
    let task = Task::Run(Box::new(task));
    let (ended, htp_ops) = tokio::join!(supervisor.run(&task, stopped), listening);
    match ended? {
        Ended::Failed(failure) => return Ok(Err(failure.message)),
        Ended::Done(_) => {}
    }
    let mut heard = Heard { outputs: Vec::new(), htp_ops };
    for index in 0..most {
        let folder = dir.path().join(format!("outputs/Result_{index}"));
        if index > 0 && !folder.is_dir() {
            break;
        }
        match read(&folder, u32::try_from(index).unwrap_or(u32::MAX)) {
            Ok(outputs) => heard.outputs.extend(outputs),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(heard))
}

fn read(folder: &Path, inference: u32) -> Result<Vec<OutputValues>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("it saved no outputs: {error}"))?;
    let mut outputs = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".npy")) else { continue };
        let bytes = crate::files::read_at_most(&path, MAX_OUTPUT_BYTES).map_err(|error| error.to_string())?;
        let (shape, values) = values(&bytes)?;
        outputs.push(OutputValues { inference, name: name.to_owned(), shape: Some(shape), values });
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
    Err("models cannot run on this system".to_owned())
}
