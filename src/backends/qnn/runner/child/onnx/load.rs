//! Opens the libraries and creates sessions.

use super::{Overheard, at, no_use, to_stream};
use crate::backends::onnx::options::{SessionOptions, knows};
use crate::backends::qnn::api::{Library, VersionPolicy};
use crate::backends::qnn::onnx::{LogSink, OnnxRuntime, OnnxSession, SessionSpec};
use crate::backends::qnn::runner::child::failed::Failed;
use crate::backends::qnn::runner::child::model::{check_whole, identify_model, open_library};
use crate::backends::qnn::runner::child::run::Stages;
use crate::backends::qnn::runner::run_task::{OnnxTask, RunTask};
use crate::backends::settings;
use crate::event::{Event, LogLevel, RuntimeInfo, Stage, clean_text};
use crate::models::Named;
use crate::models::read_source;
use crate::models::source::SourceFormat;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Largest model copied to name its nodes.
const MAX_COPY_BYTES: u64 = 512 << 20;
/// File name of that copy.
const NAMED: &str = "named-nodes.onnx";

/// Everything needed before any session.
pub struct Loaded {
    pub runtime: OnnxRuntime,
    pub options: SessionOptions,
    pub dimensions: Vec<(String, u64)>,
    reference: bool,
    /// The file for sessions: the model, or a copy in which every node has a name.
    pub model: PathBuf,
    _copy: Option<Workspace>,
    /// The backend's own library, which the plug-in opens as well.
    _library: Rc<Library>,
}

impl Loaded {
    /// How to create the session for latencies.
    pub fn spec(&self, sink: LogSink, log_level: LogLevel) -> SessionSpec {
        SessionSpec {
            provider_options: self.options.provider.clone(),
            entries: self.options.entries.clone(),
            dimensions: self.dimensions.clone(),
            with_qnn: !self.reference,
            log_level,
            sink,
            profile: None,
        }
    }
}

impl Stages<'_> {
    /// Opens ONNX Runtime, the plug-in and the backend.
    pub(super) fn load_onnx(&mut self, task: &RunTask, onnx: &OnnxTask) -> Result<Loaded, Failed> {
        let (model, _) = identify_model(&task.model)?;
        let resolved = settings::resolve(&task.settings, task.backend)?;
        let plugin = std::fs::read(&onnx.plugin).unwrap_or_default();
        let options =
            SessionOptions::new(&task.runtime_dir, task.backend, &resolved, &onnx.options, |key| knows(&plugin, key));
        drop(plugin);
        self.settle(&options.settled);
        if let Some(path) = &task.save_context {
            self.settle(&[no_use("--save-context", path, "`qnnscope convert` makes context binaries of ONNX models")]);
        }
        let policy = if task.allow_unknown_runtime { VersionPolicy::CountSlots } else { VersionPolicy::KnownOnly };
        let (runtime, library) = self.stage(Stage::LibraryLoad, || {
            let library = open_library(&task.runtime_dir, task.backend, policy)?;
            for path in [&onnx.library, &onnx.plugin] {
                check_whole(path)?;
            }
            let sink = to_stream(self.shared, task.log_level);
            let mut runtime = OnnxRuntime::open(&onnx.library, sink).map_err(at(Stage::LibraryLoad))?;
            // References are computed without the plug-in: once registered, ONNX Runtime may choose it on its
            // own.
            if !onnx.reference {
                runtime.register(&onnx.plugin).map_err(at(Stage::LibraryLoad))?;
            }
            Ok((runtime, library))
        })?;
        self.emitter.event(Event::RuntimeLoaded(RuntimeInfo {
            path: library.path().display().to_string(),
            build_id: library.table().build_id(),
            core_api: library.table().core_api(),
            backend_api: library.table().backend_api(),
            provider: format!("{} through ONNX Runtime {}", library.table().provider_name(), version(&runtime)),
        }));
        self.emitter.event(Event::ModelIdentified(Box::new(model)));
        let (copy, path) = named(task).map_or_else(|| (None, task.model.clone()), |(copy, path)| (Some(copy), path));
        Ok(Loaded {
            model: path,
            _copy: copy,
            runtime,
            options,
            dimensions: onnx.dimensions.clone(),
            reference: onnx.reference,
            _library: library,
        })
    }

    /// Creates the session for latencies.
    pub(super) fn create(&self, task: &RunTask, loaded: &Loaded) -> Result<OnnxSession, Failed> {
        let spec = loaded.spec(to_stream(self.shared, task.log_level), task.log_level.min(LogLevel::Warning));
        let model = &loaded.model;
        self.stage(Stage::Finalize, || {
            loaded.runtime.session(model, &spec).map_err(|error| {
                // Tries again for the reasons: only the verbose log has the nodes and why they failed.
                let overheard = Overheard::default();
                let spec = SessionSpec {
                    sink: overheard.sink(self.shared, task.log_level),
                    ..loaded.spec(to_stream(self.shared, task.log_level), LogLevel::Verbose)
                };
                let _ = loaded.runtime.session(model, &spec);
                let failed = overheard.with(|log| {
                    let failed = log.failed();
                    let told = failed.iter().take(3).filter_map(|(name, note)| {
                        Some(format!("the plug-in could not run `{name}`: {}", note.reason.as_ref()?))
                    });
                    told.collect::<Vec<String>>()
                });
                Failed::session(&error, &task.model, &failed, loaded.runtime.version())
            })
        })
    }
}

/// A copy of the model in which unnamed nodes have names: the plug-in's own names for them say nothing about
/// the model. `None` if all have names, or no copy can be made: separate weight files are looked up beside
/// the model, and a large file is not worth it.
fn named(task: &RunTask) -> Option<(Workspace, PathBuf)> {
    let source = read_source(&task.model, SourceFormat::Onnx, &[]).ok()?;
    let stays = source.external_files.is_empty() && source.contexts.is_empty() && source.bytes <= MAX_COPY_BYTES;
    let named = Named::of(&task.model).ok()?.filter(|_| stays)?;
    let workspace = Workspace::new().ok()?;
    let path = workspace.path().join(NAMED);
    named.write(BufWriter::new(File::create(&path).ok()?)).ok()?;
    Some((workspace, path))
}

/// `1.24.4`.
pub fn version(runtime: &OnnxRuntime) -> String {
    clean_text(runtime.version())
}

/// A folder for this process's files: the one it may write to, or a temporary one.
pub enum Workspace {
    Given(PathBuf),
    Own(tempfile::TempDir),
}

impl Workspace {
    /// One for the profiles of a session.
    pub fn new() -> std::io::Result<Self> {
        let given = std::env::var_os(super::super::SCRATCH_VARIABLE).filter(|value| !value.is_empty());
        match given {
            Some(path) => Ok(Self::Given(PathBuf::from(path))),
            None => tempfile::tempdir().map(Self::Own),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Own(dir) => dir.path(),
        }
    }
}
