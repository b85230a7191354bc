//! ONNX Runtime's log, and the name that identifies lines, options and nodes of the plug-in.

use ort::logging::LogLevel as OrtLevel;
use qnnscope_core::event::LogLevel;
use std::sync::Arc;

/// Name under which the plug-in is registered, and that identifies its options and nodes.
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

/// Receives log lines; called from any thread.
pub type LogSink = Arc<dyn Fn(LogLine<'_>) + Send + Sync>;

/// The sink in ort's form, without the colours ONNX Runtime puts around warnings.
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

/// Our levels mapped to ONNX Runtime's, which has none below verbose.
pub(super) fn ort_level(level: LogLevel) -> OrtLevel {
    match level {
        LogLevel::Error => OrtLevel::Error,
        LogLevel::Warning => OrtLevel::Warning,
        LogLevel::Info => OrtLevel::Info,
        LogLevel::Verbose | LogLevel::Debug => OrtLevel::Verbose,
    }
}
