//! ONNX Runtime's library and the QNN plug-in.

use super::error::OnnxError;
use super::session::{OnnxSession, SessionSpec};
use ort::environment::Environment;
use ort::logging::LogLevel as OrtLevel;
use qnnscope_core::event::LogLevel;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name under which the plug-in is registered, and by which its options and nodes are known.
pub const PROVIDER: &str = "QNNExecutionProvider";

/// A line of ONNX Runtime's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// Level.
    pub level: LogLevel,
    /// Source file, line and function.
    pub location: &'a str,
    /// Text; may have several lines.
    pub text: &'a str,
}

/// Takes log lines; called from any thread.
pub type LogSink = Arc<dyn Fn(LogLine<'_>) + Send + Sync>;

/// The opened library; one a process.
#[derive(Debug)]
pub struct OnnxRuntime {
    environment: Environment,
    plugin: Option<PathBuf>,
}

impl OnnxRuntime {
    /// Opens the library. Telemetry is off.
    pub fn open(path: &Path, sink: LogSink) -> Result<Self, OnnxError> {
        let failed = |reason: String| OnnxError::Library { path: path.to_owned(), reason };
        let builder = ort::init_from(path).map_err(|error| failed(error.to_string()))?;
        let environment = builder
            .with_name("qnnscope")
            .with_telemetry(false)
            .with_logger(logger(sink))
            .build()
            .map_err(|error| failed(error.to_string()))?;
        environment.set_log_level(OrtLevel::Warning);
        Ok(Self { environment, plugin: None })
    }

    /// What the library says of its build.
    pub fn build_info(&self) -> String {
        ort::info().to_owned()
    }

    /// Makes the plug-in's provider known.
    pub fn register(&mut self, plugin: &Path) -> Result<(), OnnxError> {
        let failed = |error: ort::Error| OnnxError::Plugin { path: plugin.to_owned(), reason: error.to_string() };
        self.environment.register_ep_library(PROVIDER, plugin).map_err(failed)?;
        self.plugin = Some(plugin.to_owned());
        if self.environment.devices().any(|device| device.ep().is_ok_and(|name| name == PROVIDER)) {
            return Ok(());
        }
        Err(OnnxError::NoDevice { path: plugin.to_owned() })
    }

    /// Makes a session of a model file.
    pub fn session(&self, model: &Path, spec: &SessionSpec) -> Result<OnnxSession, OnnxError> {
        OnnxSession::create(&self.environment, model, spec)
    }
}

/// The sink as ort wants it, without the colours that ONNX Runtime puts around warnings.
pub(super) fn logger(sink: LogSink) -> ort::logging::LoggerFunction {
    Arc::new(move |level, _category, _id, location, text| {
        let level = match level {
            OrtLevel::Verbose => LogLevel::Verbose,
            OrtLevel::Info => LogLevel::Info,
            OrtLevel::Warning => LogLevel::Warning,
            OrtLevel::Error | OrtLevel::Fatal => LogLevel::Error,
        };
        sink(LogLine { level, location, text });
    })
}

/// Our levels as ONNX Runtime has them; it has none below verbose.
pub(super) fn ort_level(level: LogLevel) -> OrtLevel {
    match level {
        LogLevel::Error => OrtLevel::Error,
        LogLevel::Warning => OrtLevel::Warning,
        LogLevel::Info => OrtLevel::Info,
        LogLevel::Verbose | LogLevel::Debug => OrtLevel::Verbose,
    }
}
