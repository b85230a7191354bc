//! When a run stopped at an op, known by name or not: asks the backend's validator about each op as `check`
//! does, in a separate runner, so that run and check report the same about the same model.

use crate::backends::local::{Ended, Limits, Supervisor};
use crate::backends::qnn::runner::{Asked, CheckTask, CheckWork, Frame, RunTask, Task};
use crate::backends::settings;
use crate::backends::stopped::target_arch;
use crate::diagnosis::Fault;
use crate::event::{Event, Failure, LogLevel, LogLine, LogSource, Refusal, RunId, Stage};
use crate::hints;
use crate::models::ModelFormat;
use crate::session::Source;
use crate::store::Run;
use std::time::Duration;
use tokio::sync::watch;

/// Time limit for all answers: the run has already failed, and the user is waiting.
const PATIENCE: Duration = Duration::from_mins(1);
/// Failures of a run that are unrelated to its ops.
const ENDED_FROM_OUTSIDE: [&str; 5] = ["supervision", "wait", "spawn", "SIGKILL", "SIGTERM"];

/// Asks about the ops of a run that failed on this machine, and sends its failure again with the validator's
/// verdict on the op at which it stopped. Ends at once if the user ends the run.
pub async fn ask_validator(source: &Source, run: RunId, task: &RunTask, limits: Limits, stop: &watch::Receiver<bool>) {
    let Some(tape) = source.tape() else { return };
    let known = tape.with(|store| {
        let run = store.run(run)?;
        let failure = run.failure.as_ref().filter(|failure| is_open(failure) && has_ops(run))?;
        Some((failure.clone(), run.graph().map(|graph| graph.name.clone())))
    });
    let Some((told, chosen)) = known else { return };
    let Ok(resolved) = settings::resolve(&task.settings, task.backend) else { return };
    let check = CheckTask {
        runtime_dir: task.runtime_dir.clone(),
        backend: task.backend,
        model: task.model.clone(),
        soc_model: resolved.soc_model,
        arch: resolved.arch,
        vtcm_mb: None,
        work: CheckWork::Ask,
        allow_unknown_runtime: task.allow_unknown_runtime,
    };
    let limits = Limits { stage_timeout: limits.stage_timeout.min(PATIENCE), ..limits };
    let question = Task::Check(Box::new(check));
    let asking = Supervisor::new(None, limits).run(&question, stop.clone());
    let Ok(Ok(Ended::Done(Some(Frame::Asked(asked))))) = tokio::time::timeout(PATIENCE, asking).await else { return };
    if asked.verdicts.is_empty() {
        return;
    }
    let Some(mut refusal) = refused(&told, chosen.as_deref(), &asked) else {
        let count = asked.verdicts.len();
        let text = format!("asked afterwards, the {} backend takes each of the model's {count} ops", task.backend);
        let line = LogLine::new(LogLevel::Info, LogSource::Qnnscope, &text);
        source.send(Some(run), Event::Log(line)).await;
        return;
    };
    refusal.backend = task.backend;
    refusal.hardware = target_arch(task.backend, &resolved);
    let mut explained = Failure { refusal: Some(Box::new(refusal)), ..told.clone() };
    // The backend's own messages are not repeated.
    if Fault::of(&explained) == Fault::of(&told) && Fault::suspected(&explained).is_none() {
        return;
    }
    explained.hint = hints::for_failure(&explained).or(explained.hint);
    source.send(Some(run), Event::Failed(Box::new(explained))).await;
}

/// True if the validator may know more than the failure shows.
fn is_open(failure: &Failure) -> bool {
    let stage = matches!(failure.stage, Stage::Compose | Stage::Finalize | Stage::FirstInference);
    let asked = failure.call == "backendValidateOpConfig";
    stage && !asked && !failure.missing && !failure.bad_input && !ENDED_FROM_OUTSIDE.contains(&failure.call.as_str())
}

/// True if the run's model has ops to ask about.
fn has_ops(run: &Run) -> bool {
    let format = run.model.as_ref().map(|model| model.format);
    matches!(format, Some(ModelFormat::Dlc | ModelFormat::ModelLibrary))
}

/// The validator's verdict on the op at which the run stopped, if known; else on the first one it refuses.
fn refused(failure: &Failure, chosen: Option<&str>, asked: &Asked) -> Option<Refusal> {
    let stopped = failure.refusal.as_deref();
    let composing = failure.stage == Stage::Compose;
    asked.verdicts.iter().filter(|verdict| verdict.code != 0).find_map(|verdict| {
        let graph = asked.graphs.get(verdict.graph)?;
        let op = graph.ops.get(verdict.op)?;
        // Other graphs of the model are only composed.
        let of_run = composing || chosen.is_none_or(|name| name == graph.name);
        let is_stop = stopped.is_none_or(|refusal| {
            refusal.op.name == op.name && (refusal.graph.is_empty() || refusal.graph == graph.name)
        });
        (of_run && is_stop).then(|| Refusal {
            backend: crate::backends::Backend::Unknown,
            hardware: None,
            graph: graph.name.clone(),
            op: op.clone(),
            log: verdict.log.clone(),
            tensor_ids: verdict.tensor_ids.clone(),
            verdict: Some(verdict.code),
        })
    })
}
