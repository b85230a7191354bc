//! ONNX Runtime's library and the QNN plug-in.

use super::error::OnnxError;
use super::log::{LogSink, PROVIDER, logger};
use super::session::{OnnxSession, SessionSpec};
use ort::environment::Environment;
use ort::logging::LogLevel as OrtLevel;
use ort::sys;
use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// The opened library; one per process.
#[derive(Debug)]
pub struct OnnxRuntime {
    environment: Environment,
    plugin: Option<PathBuf>,
    version: String,
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
        Ok(Self { environment, plugin: None, version: version(path) })
    }

    /// The library's own version, such as `1.24.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Registers the plug-in's provider.
    pub fn register(&mut self, plugin: &Path) -> Result<(), OnnxError> {
        let failed = |error: ort::Error| OnnxError::Plugin { path: plugin.to_owned(), reason: error.to_string() };
        self.environment.register_ep_library(PROVIDER, plugin).map_err(failed)?;
        self.plugin = Some(plugin.to_owned());
        if self.environment.devices().any(|device| device.ep().is_ok_and(|name| name == PROVIDER)) {
            return Ok(());
        }
        Err(OnnxError::NoDevice { path: plugin.to_owned() })
    }

    /// Creates a session for a model file.
    pub fn session(&self, model: &Path, spec: &SessionSpec) -> Result<OnnxSession, OnnxError> {
        OnnxSession::create(&self.environment, model, spec)
    }
}

/// The version reported by a library, which is already open; if it reports none, that in its file name.
#[expect(unsafe_code, reason = "ort asks for the version when it opens the library, and does not hand it on")]
fn version(path: &Path) -> String {
    // SAFETY: the library is loaded, so no constructors run; it stays loaded, as ort never closes it.
    let said = unsafe { libloading::Library::new(path) }.ok().and_then(|library| {
        // SAFETY: this is the function's type in ONNX Runtime's header, in every version.
        let base = unsafe { library.get::<unsafe extern "system" fn() -> *const sys::OrtApiBase>(b"OrtGetApiBase\0") };
        // SAFETY: the function takes nothing, and returns a table that lives as long as the library.
        let base = unsafe { base.ok()?() };
        // SAFETY: as above; a null pointer is refused.
        let text = unsafe { (base.as_ref()?.GetVersionString)() };
        // SAFETY: the text is a NUL-terminated constant of the library.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    let named = || {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = real.file_name()?.to_string_lossy().into_owned();
        Some(name.rsplit_once(".so.")?.1.to_owned())
    };
    said.filter(|text| !text.is_empty()).or_else(named).unwrap_or_else(|| format!("({})", path.display()))
}
