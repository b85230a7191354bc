//! All inferences in one go, like qnn-net-run.

use super::emit::Emitter;
use super::failed::Failed;
use super::layers::{Layers, send_metrics};
use super::measure::Loop;
use super::outputs;
use super::run_log::RunLog;
use crate::backends::ProfilingLevel;
use crate::backends::qnn::api::{Backend, Profile};
use crate::backends::qnn::runner::run_task::{RunTask, Straight};
use crate::event::{Event, LogLevel, Phase, Setting, SettingOutcome, Stage, clean_text};
use crate::models::Graph;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Runs the task's budget without warm-up: the first inference counts, each is profiled at the task's level, and the
/// outputs of the first ones are kept. Returns the number of inferences.
pub fn run(
    task: &RunTask,
    straight: &Straight,
    (backend, graph): (&Rc<Backend>, &Graph),
    emitter: &Emitter,
    measuring: &mut Loop<'_>,
    log: &RunLog,
) -> Result<u64, Failed> {
    let at = |e| Failed::qnn(Stage::Execute, e);
    let profile = Profile::create(backend, task.profiling).map_err(at)?;
    let mut layers = Layers::new(emitter, graph, None);
    let detailed = task.profiling == ProfilingLevel::Detailed;
    let phase = if detailed { Phase::Detailed } else { Phase::Clean };
    let tensors = measuring.execution.outputs();
    let mut kept = Kept { files: Vec::new(), lost: None };
    let count = measuring
        .run(phase, 0, task.budget, profile.as_ref(), |execution, inference| {
            log.inference(&inference);
            if let Some(dir) = task.save_outputs.as_ref().filter(|_| inference.index < straight.keep_outputs) {
                for (position, tensor) in tensors.iter().enumerate() {
                    let bytes = execution.output(position).unwrap_or_default();
                    let folder = dir.join(format!("Result_{}", inference.index));
                    let stem = outputs::stem(&tensors, position);
                    kept.take(&folder, outputs::save_raw(&folder, &stem, tensor, bytes, straight.native_outputs));
                }
            }
            if detailed {
                layers.take(&inference);
            } else {
                send_metrics(emitter, phase, inference.index, &inference.events);
            }
        })
        .map_err(at)?;
    let dir = task.save_outputs.as_ref().map_or_else(String::new, |dir| clean_text(&dir.to_string_lossy()));
    kept.tell(emitter, dir);
    Ok(count)
}

/// Maximum number of output files named on the stream, which bounds the event for runs of any length.
const NAMED: usize = 1000;

/// The outcome of writing outputs. A failure does not end the run, which is about its times.
struct Kept {
    files: Vec<PathBuf>,
    lost: Option<(u64, String)>,
}

impl Kept {
    fn take(&mut self, folder: &Path, written: std::io::Result<PathBuf>) {
        match written {
            Ok(file) if self.files.len() < NAMED => self.files.push(file),
            Ok(_) => {}
            Err(error) => {
                self.lost.get_or_insert_with(|| (0, format!("{}: {error}", folder.display()))).0 += 1;
            }
        }
    }

    fn tell(self, emitter: &Emitter, dir: String) {
        if let Some((count, first)) = self.lost {
            let reason = format!("{count} output files could not be written, first {first}");
            emitter.runner_log(LogLevel::Warning, &reason);
            let outcome = SettingOutcome::Refused(reason);
            emitter.event(Event::SettingApplied(Setting { key: outputs::OPTION.to_owned(), value: dir, outcome }));
        }
        if !self.files.is_empty() {
            let files = self.files.iter().map(|path| clean_text(&path.to_string_lossy())).collect();
            emitter.event(Event::OutputsSaved { files });
        }
    }
}
