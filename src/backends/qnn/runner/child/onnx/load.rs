//! Opening the libraries, and making sessions.

use super::{Overheard, at, no_use, to_stream};
use crate::backends::onnx::options::{SessionOptions, knows};
use crate::backends::qnn::api::{Library, VersionPolicy};
use crate::backends::qnn::onnx::{LogSink, OnnxRuntime, OnnxSession, SessionSpec};
use crate::backends::qnn::runner::child::failed::Failed;
use crate::backends::qnn::runner::child::model::{check_whole, identify_model, open_library};
use crate::backends::qnn::runner::child::run::Stages;
use crate::backends::qnn::runner::protocol::{OnnxTask, RunTask};
use crate::backends::settings;
use crate::event::{Event, LogLevel, RuntimeInfo, Stage};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What stands before any session.
pub struct Loaded {
    pub runtime: OnnxRuntime,
    pub options: SessionOptions,
    pub dimensions: Vec<(String, u64)>,
    reference: bool,
    /// The backend's own library, which the plug-in opens again.
    _library: Rc<Library>,
}

impl Loaded {
    /// How the session is made that latencies come from.
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
            // A reference is made without it: where it is known, ONNX Runtime may choose it by itself.
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
        Ok(Loaded {
            runtime,
            options,
            dimensions: onnx.dimensions.clone(),
            reference: onnx.reference,
            _library: library,
        })
    }

    /// Makes the session that latencies come from.
    pub(super) fn create(&self, task: &RunTask, loaded: &Loaded) -> Result<OnnxSession, Failed> {
        let spec = loaded.spec(to_stream(self.shared, task.log_level), task.log_level.min(LogLevel::Warning));
        let model = &task.model;
        self.stage(Stage::Finalize, || {
            loaded.runtime.session(model, &spec).map_err(|error| {
                // Once more, to hear why: the nodes and their reasons are in the verbose log only.
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
                Failed::session(&error, model, &failed)
            })
        })
    }
}

/// `1.24.4`, of what ONNX Runtime says of its build.
fn version(runtime: &OnnxRuntime) -> String {
    let info = runtime.build_info();
    let named = info.split(['=', ',', ' ']).find_map(|word| word.strip_prefix("rel-"));
    named.unwrap_or("of unknown version").to_owned()
}

/// A folder for files of this process: the one that it may write to, or a temporary one.
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
