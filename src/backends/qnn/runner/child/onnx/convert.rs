//! Makes DLCs and context binaries from ONNX models: the plug-in writes them during session creation.

use super::load::Loaded;
use super::{Overheard, at, model};
use crate::backends::onnx::placement::{Known, node_of};
use crate::backends::onnx::{PlacementLog, place};
use crate::backends::qnn::onnx::{OnnxError, PROVIDER, SessionSpec};
use crate::backends::qnn::runner::child::emit::Emitter;
use crate::backends::qnn::runner::child::failed::{Failed, report_failure};
use crate::backends::qnn::runner::child::run::Stages;
use crate::backends::qnn::runner::child::run_log::RunLog;
use crate::backends::qnn::runner::protocol::{ConvertTask, ConvertWork, Converted, Frame, NamedOps};
use crate::event::{Event, LogLevel, RunStatus, Stage, clean_text};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Executes the task; the answer names the files in the task's folder.
pub fn convert(task: &ConvertTask, emitter: &Arc<Emitter>) {
    let mut stages = Stages { emitter, shared: emitter, inferences: 0, log: RunLog::default(), began: Instant::now() };
    let status = match stages.convert_onnx(task) {
        Ok(converted) => {
            emitter.frame(&Frame::Converted(Box::new(converted)));
            RunStatus::Ok
        }
        Err(failed) => {
            report_failure(&failed, emitter);
            RunStatus::Failed
        }
    };
    emitter.event(Event::RunFinished { status });
}

impl Stages<'_> {
    fn convert_onnx(&mut self, task: &ConvertTask) -> Result<Converted, Failed> {
        let run = &task.run;
        let Some(onnx) = &run.onnx else {
            return Err(Failed::bad_input(Stage::Prepare, "convert", "this is not an ONNX model".to_owned()));
        };
        let source = self.stage(Stage::Prepare, || model::read(run, onnx))?;
        let loaded = self.load_onnx(run, onnx)?;
        let overheard = Overheard::default();
        let mut spec = loaded.spec(overheard.sink(self.shared, run.log_level), LogLevel::Verbose);
        match &task.work {
            ConvertWork::Dlc => {
                let library = run.runtime_dir.join("libQnnIr.so");
                if !library.exists() {
                    let message = format!("this runtime cannot write DLCs: {} is missing", library.display());
                    return Err(Failed::missing(Stage::LibraryLoad, "dlopen", message));
                }
                for (key, value) in [
                    ("dump_qnn_ir_dlc", "1".into()),
                    ("dump_qnn_ir_dlc_dir", task.out_dir.to_string_lossy()),
                    ("qnn_ir_backend_path", library.to_string_lossy()),
                ] {
                    spec.provider_options.push((key.to_owned(), value.into_owned()));
                }
            }
            ConvertWork::Context { name, embed } => {
                let path = task.out_dir.join(name);
                for (key, value) in [
                    ("ep.context_enable", "1".into()),
                    ("ep.context_embed_mode", if *embed { "1".into() } else { "0".into() }),
                    ("ep.context_file_path", path.to_string_lossy()),
                ] {
                    spec.entries.push((key.to_owned(), value.into_owned()));
                }
            }
        }
        let session = self.stage(Stage::Finalize, || make(&loaded, task, &spec, &overheard))?;
        let assignment = session.assignment().map_err(at(Stage::Finalize))?;
        let described = model::describe(run, &source, &session, loaded.model != run.model)?;
        drop(session);
        drop(loaded);
        let files = written(task)?;
        Ok(overheard.with(|log| {
            let placed =
                place(Known { assignment: &assignment, log: Some(log), provider: PROVIDER, ..described.known() });
            let ops = named_ops(log, &described);
            Converted { files, placed, ops }
        }))
    }
}

fn make(
    loaded: &Loaded,
    task: &ConvertTask,
    spec: &SessionSpec,
    overheard: &Overheard,
) -> Result<crate::backends::qnn::onnx::OnnxSession, Failed> {
    let failed = |error: OnnxError| {
        let told = overheard.with(|log| {
            let failed = log.failed();
            let told = failed.iter().take(3).filter_map(|(name, note)| {
                Some(format!("the plug-in could not take `{name}`: {}", note.reason.as_ref()?))
            });
            told.collect::<Vec<String>>()
        });
        Failed::session(&error, &task.run.model, &told, loaded.runtime.version())
    };
    loaded.runtime.session(&loaded.model, spec).map_err(failed)
}

/// What the plug-in wrote, by name.
fn written(task: &ConvertTask) -> Result<Vec<String>, Failed> {
    let failed = |error: std::io::Error| {
        Failed::lost(Stage::Finalize, "convert", format!("cannot read {}: {error}", task.out_dir.display()))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&task.out_dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        files.extend(entry.file_name().into_string().ok().filter(|_| entry.path().is_file()));
    }
    files.sort();
    Ok(files)
}

/// The QNN ops of each node as built by the plug-in.
fn named_ops(log: &PlacementLog, described: &model::Described) -> Vec<NamedOps> {
    let by_name: HashMap<&str, usize> =
        described.graph.ops.iter().enumerate().map(|(at, op)| (op.name.as_str(), at)).collect();
    let mut rows: Vec<NamedOps> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for (op, op_type) in log.built() {
        let node = node_of(op, Some(log), &by_name);
        let key = node.map_or_else(|| format!("\0{op}"), ToOwned::to_owned);
        let row = *at.entry(key).or_insert_with(|| {
            let node_type = node.and_then(|name| by_name.get(name)).map(|at| described.graph.ops[*at].op_type.clone());
            rows.push(NamedOps { node: node.map(clean_text), node_type, ops: Vec::new() });
            rows.len() - 1
        });
        rows[row].ops.push((op.to_owned(), op_type.to_owned()));
    }
    rows
}
