//! Failed stages, before they become events.

use super::emit::Emitter;
use super::inputs::InputError;
use crate::backends::qnn::api::{QnnError, Recording};
use crate::backends::qnn::onnx::OnnxError;
use crate::backends::settings::SettingError;
use crate::backends::{Backend, errors};
use crate::event::{Event, Failure, Refusal, Stage, clean_text};
use crate::files::OutputError;
use crate::models::{FormatError, dlc_sdk_version};
use std::io;
use std::path::Path;

/// A failed stage, before it becomes an event.
pub struct Failed {
    stage: Stage,
    call: String,
    code: Option<u64>,
    symbol: Option<String>,
    message: String,
    missing: bool,
    bad_input: bool,
    refusal: Option<Box<Refusal>>,
}

impl Failed {
    /// A QNN error.
    #[expect(clippy::needless_pass_by_value, reason = "it ends an error path, where owned errors arrive")]
    pub fn qnn(stage: Stage, error: QnnError) -> Self {
        Self {
            stage,
            call: error.call().to_owned(),
            code: error.code(),
            symbol: error.symbol().map(ToOwned::to_owned),
            message: error.to_string(),
            missing: false,
            bad_input: false,
            refusal: None,
        }
    }

    /// The request was wrong.
    pub fn bad_input(stage: Stage, call: &str, message: String) -> Self {
        Self { bad_input: true, ..Self::other(stage, call, message) }
    }

    /// Requested output could not be written.
    pub fn lost(stage: Stage, call: &str, message: String) -> Self {
        Self { bad_input: false, ..Self::bad_input(stage, call, message) }
    }

    /// An error of ONNX Runtime.
    pub fn onnx(stage: Stage, error: &OnnxError) -> Self {
        let failed = Self::other(stage, error.call(), error.to_string());
        match error {
            OnnxError::NotNumbers { .. } => Self { bad_input: true, ..failed },
            error => Self { missing: error.is_missing(), ..failed },
        }
    }

    /// A session that could not be created; `told` holds the plug-in's messages about its nodes.
    pub fn session(error: &OnnxError, model: &Path, told: &[String], version: &str) -> Self {
        let failed = Self::onnx(Stage::Finalize, error);
        let told = told.iter().fold(String::new(), |all, text| all + "; " + text);
        let OnnxError::Call { code, message, .. } = error else { return failed };
        // INVALID_ARGUMENT, NO_SUCHFILE, NO_MODEL, INVALID_PROTOBUF, NOT_IMPLEMENTED, INVALID_GRAPH; the loader also
        // returns FAIL.
        let is_models = matches!(code, Some(2 | 3 | 4 | 7 | 9 | 10))
            || ["Load model from", "External", "external", "filesystem error", "Deserialize tensor"]
                .iter()
                .any(|words| message.contains(words));
        let model = model.display();
        if let Some(newer) = too_new(message) {
            let message =
                format!("{model} is newer than ONNX Runtime {version}: {newer}; its message: {message}{told}");
            return Self { message, bad_input: true, ..failed };
        }
        let message = format!("ONNX Runtime {version} cannot load {model}: {message}{told}");
        Self { message, bad_input: is_models, ..failed }
    }

    /// A failure with the QNN code behind it, if any.
    pub fn with_code(stage: Stage, call: &str, code: Option<u64>, message: String) -> Self {
        let symbol = code.and_then(|code| errors::lookup(code, call)).map(|row| row.symbol.to_owned());
        Self { code, symbol, ..Self::other(stage, call, message) }
    }

    /// Something needed is missing.
    pub fn missing(stage: Stage, call: &str, message: String) -> Self {
        Self { missing: true, ..Self::other(stage, call, message) }
    }

    fn other(stage: Stage, call: &str, message: String) -> Self {
        Self {
            stage,
            call: call.to_owned(),
            code: None,
            symbol: None,
            message,
            missing: false,
            bad_input: false,
            refusal: None,
        }
    }

    /// The same, with the op at which the backend stopped, if known.
    pub fn stopped_at(self, refusal: Option<Refusal>) -> Self {
        Self { refusal: refusal.map(Box::new), ..self }
    }

    /// What was taken for a context binary is not one.
    pub fn not_a_binary(path: &Path, error: &QnnError) -> Self {
        Self {
            code: error.code(),
            symbol: error.symbol().map(ToOwned::to_owned),
            ..Self::bad_input(
                Stage::ContextCreate,
                error.call(),
                format!("{} is a damaged or foreign context binary: {error}", path.display()),
            )
        }
    }

    /// The same, as something that is missing.
    pub fn into_missing(self) -> Self {
        Self { missing: true, ..self }
    }

    /// One sentence for display.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same at another stage.
    pub fn at(self, stage: Stage) -> Self {
        Self { stage, ..self }
    }
}

impl From<FormatError> for Failed {
    fn from(error: FormatError) -> Self {
        Self::bad_input(Stage::Prepare, "identify", clean_text(&error.to_string()))
    }
}

impl From<InputError> for Failed {
    fn from(error: InputError) -> Self {
        Self::bad_input(Stage::Prepare, "inputs", clean_text(&error.to_string()))
    }
}

impl From<SettingError> for Failed {
    fn from(error: SettingError) -> Self {
        Self::bad_input(Stage::Prepare, "settings", clean_text(&error.to_string()))
    }
}

impl From<OutputError> for Failed {
    fn from(error: OutputError) -> Self {
        let advice = error.advice().map_or_else(String::new, |advice| format!("; {advice}"));
        let message = format!("{error}{advice}");
        let failed = Self::bad_input(Stage::Prepare, "output", clean_text(&message));
        let is_full =
            |source: &io::Error| matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        match &error {
            OutputError::Io { source, .. } if is_full(source) => Self { bad_input: false, ..failed },
            _ => failed,
        }
    }
}

/// Sends the failure as an event, with the last log lines.
pub fn report_failure(failed: &Failed, emitter: &Emitter) {
    emitter.event(Event::Failed(Box::new(Failure {
        stage: failed.stage,
        call: failed.call.clone(),
        code: failed.code,
        symbol: failed.symbol.clone(),
        message: clean_text(&failed.message),
        hint: None,
        missing: failed.missing,
        bad_input: failed.bad_input,
        refusal: failed.refusal.clone(),
        log_tail: emitter.log_tail(),
    })));
}

/// A DLC that the system library rejects, or of which it does not even start a graph.
pub fn unreadable_dlc(path: &Path, error: QnnError) -> Failed {
    let QnnError::Call { call, .. } = &error else { return Failed::qnn(Stage::Compose, error) };
    let maker = dlc_sdk_version(path).map_or_else(String::new, |version| format!("; it was made with SDK {version}"));
    let message =
        format!("{} cannot be read by this runtime (damaged, or made by a newer SDK{maker}): {error}", path.display());
    Failed::bad_input(Stage::Compose, call, message)
}

/// Names the op the backend refused, which the composer's own code hides; `hardware` is the composition's target.
pub fn explain_compose(failed: Failed, noted: &Recording, backend: Backend, hardware: Option<String>) -> Failed {
    let Some(refusal) = noted.refusals.first() else {
        let Some(code) = noted.options_refused else { return failed };
        let message = format!("graphCreate refused the graph's options with {code}; then {}", failed.message);
        let symbol = errors::lookup(code, "graphCreate").map(|row| row.symbol.to_owned());
        return Failed { call: "graphCreate".to_owned(), code: Some(code), symbol, message, ..failed };
    };
    let row = errors::lookup(refusal.code, refusal.call);
    let meaning = row.map_or_else(String::new, |row| format!(" ({}: {})", row.symbol, row.meaning));
    let message = format!(
        "op `{}` ({}) was refused by {} with {}{meaning}; then {}",
        refusal.op.name, refusal.op.op_type, refusal.call, refusal.code, failed.message
    );
    let stopped = Refusal {
        backend,
        hardware,
        graph: refusal.graph.clone(),
        op: refusal.op.clone(),
        log: refusal.log.clone(),
        tensor_ids: refusal.tensor_ids.clone(),
        verdict: None,
    };
    Failed {
        call: refusal.call.to_owned(),
        code: Some(refusal.code),
        symbol: row.map(|row| row.symbol.to_owned()),
        message,
        ..failed
    }
    .stopped_at(Some(stopped))
}

/// From ONNX Runtime's message: which part of the model is too new for it, and what to do about it.
fn too_new(message: &str) -> Option<String> {
    let number = |mark: &str| {
        let rest = message.split_once(mark)?.1.trim_start_matches([':', ' ']);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        (!digits.is_empty()).then_some(digits)
    };
    let (what, known, remedy) = if let Some(version) = number("model IR version") {
        let known = number("max supported IR version");
        (format!("IR version {version}"), known, "export it again with an older `onnx` package, or set its ir_version")
    } else {
        let opset = number("Opset ")?;
        let known = number("is till opset");
        (format!("opset {opset}"), known, "export it with an older opset_version, or use onnx.version_converter")
    };
    let known = known.map_or_else(String::new, |known| format!("; the newest it reads is {known}"));
    Some(format!("it has {what}{known}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::too_new;

    #[test]
    fn what_is_too_new_is_named_with_what_is_not() {
        let ir = too_new("model.cc:181 Unsupported model IR version: 14, max supported IR version: 13").unwrap();
        assert!(ir.contains("IR version 14; the newest it reads is 13") && ir.contains("ir_version"), "{ir}");
        let opset = "ValidateOpsetForDomain(int) versions. Opset 40 is under development. Current official support for domain \
                     ai.onnx is till opset 25.";
        let opset = too_new(opset).unwrap();
        assert!(
            opset.contains("opset 40; the newest it reads is 25") && opset.contains("version_converter"),
            "{opset}"
        );
        assert_eq!(too_new("No Op registered for Frobnicate with domain_version of 17"), None);
    }
}
