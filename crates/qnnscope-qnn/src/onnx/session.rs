//! Sessions: a model, ready to run.

use super::assignment::{self, Assignment};
use super::error::OnnxError;
use super::log::{LogSink, PROVIDER, logger, ort_level};
use super::tensor::{Input, OnnxTensor, OutputTensor};
use ort::environment::Environment;
use ort::session::{RunOptions, Session, SessionInputValue};
use qnnscope_core::event::LogLevel;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// How to create a session.
#[derive(Clone)]
pub struct SessionSpec {
    /// Options of the QNN provider, without its prefix; unused if `with_qnn` is false.
    pub provider_options: Vec<(String, String)>,
    /// Configuration entries of the session.
    pub entries: Vec<(String, String)>,
    /// Sizes of free dimensions, by name.
    pub dimensions: Vec<(String, u64)>,
    /// Whether QNN is offered the nodes, or the CPU provider gets everything.
    pub with_qnn: bool,
    /// Log level, also for the plug-in and the backend.
    pub log_level: LogLevel,
    /// Receives the log.
    pub sink: LogSink,
    /// Start of the file name of ONNX Runtime's own profile, if requested.
    pub profile: Option<PathBuf>,
}

impl std::fmt::Debug for SessionSpec {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SessionSpec")
            .field("provider_options", &self.provider_options)
            .field("entries", &self.entries)
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

/// A session with the memory of its inputs and the declarations of its outputs.
pub struct OnnxSession {
    session: Session,
    options: RunOptions,
    inputs: Vec<OnnxTensor>,
    outputs: Vec<OnnxTensor>,
    values: Vec<Input>,
}

impl std::fmt::Debug for OnnxSession {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OnnxSession")
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

impl OnnxSession {
    pub(super) fn create(environment: &Environment, model: &Path, spec: &SessionSpec) -> Result<Self, OnnxError> {
        const OPTIONS: &str = "SessionOptions";
        let failed = OnnxError::of(OPTIONS);
        let mut builder = Session::builder(environment).map_err(OnnxError::of(OPTIONS))?;
        builder = builder.with_log_level(ort_level(spec.log_level)).map_err(&failed_builder)?;
        builder = builder.with_logger(logger(spec.sink.clone())).map_err(&failed_builder)?;
        // ONNX Runtime chooses no device itself: it is offered only what the user requested.
        builder =
            builder.with_auto_device(ort::session::builder::AutoDevicePolicy::PreferCPU).map_err(&failed_builder)?;
        for (key, value) in &spec.entries {
            builder = builder.with_config_entry(key, value).map_err(&failed_builder)?;
        }
        for (name, size) in &spec.dimensions {
            let size = i64::try_from(*size).unwrap_or(i64::MAX);
            builder = builder.with_dimension_override(name, size).map_err(&failed_builder)?;
        }
        if let Some(prefix) = &spec.profile {
            builder = builder.with_profiling(prefix).map_err(&failed_builder)?;
        }
        if spec.with_qnn {
            let device = environment.devices().find(|device| device.ep().is_ok_and(|name| name == PROVIDER));
            let device = device.ok_or_else(|| OnnxError::NoDevice { path: PathBuf::from(PROVIDER) })?;
            let options: Vec<(String, String)> =
                spec.provider_options.iter().map(|(key, value)| (format!("{PROVIDER}.{key}"), value.clone())).collect();
            builder = builder.with_devices([device], Some(&options)).map_err(&failed_builder)?;
        }
        let session = builder.commit_from_file(model).map_err(OnnxError::of("CreateSession"))?;
        let inputs = session.inputs().iter().map(OnnxTensor::of).collect();
        let outputs = session.outputs().iter().map(OnnxTensor::of).collect();
        let mut options = RunOptions::new().map_err(&failed)?;
        // Logging per inference would be timed along with it.
        options.set_log_level(ort_level(LogLevel::Warning)).map_err(&failed)?;
        Ok(Self { session, options, inputs, outputs, values: Vec::new() })
    }

    /// The inputs as declared, with free dimensions replaced by the spec's sizes.
    pub fn inputs(&self) -> &[OnnxTensor] {
        &self.inputs
    }

    /// The outputs as declared.
    pub fn outputs(&self) -> &[OnnxTensor] {
        &self.outputs
    }

    /// Allocates the inputs, one shape each, in the order of [`OnnxSession::inputs`].
    pub fn allocate(&mut self, shapes: &[Vec<u64>]) -> Result<(), OnnxError> {
        let pairs = self.inputs.iter().zip(shapes);
        self.values =
            pairs.map(|(tensor, shape)| Input::new(&self.session, tensor, shape)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Copies an input's data in; `false` if there is no such input or the size differs.
    pub fn set_input(&mut self, index: usize, bytes: &[u8]) -> bool {
        self.values.get_mut(index).is_some_and(|input| input.set(bytes))
    }

    /// Runs one inference and discards its outputs.
    pub fn run(&mut self) -> Result<(), OnnxError> {
        let values: Vec<SessionInputValue<'_>> =
            self.values.iter().map(|input| SessionInputValue::from(&input.value)).collect();
        self.session.run_with_options(values.as_slice(), &self.options).map_err(OnnxError::of("Run"))?;
        Ok(())
    }

    /// Runs one inference and copies its outputs; `None` for those that are not plain numbers.
    pub fn run_for_outputs(&mut self) -> Result<Vec<Option<OutputTensor>>, OnnxError> {
        let names: Vec<Cow<'_, str>> = self.outputs.iter().map(|output| Cow::Borrowed(output.name.as_str())).collect();
        let values: Vec<SessionInputValue<'_>> =
            self.values.iter().map(|input| SessionInputValue::from(&input.value)).collect();
        let outputs = self.session.run_with_options(values.as_slice(), &self.options).map_err(OnnxError::of("Run"))?;
        Ok(names.iter().map(|name| outputs.get(name).and_then(OutputTensor::of)).collect())
    }

    /// Which provider took which nodes.
    pub fn assignment(&self) -> Result<Vec<Assignment>, OnnxError> {
        assignment::of(&self.session)
    }

    /// Ends ONNX Runtime's own profile and returns its file.
    pub fn end_profiling(&mut self) -> Result<PathBuf, OnnxError> {
        self.session.end_profiling().map(PathBuf::from).map_err(OnnxError::of("SessionEndProfiling"))
    }
}

fn failed_builder(error: ort::Error<ort::session::builder::SessionBuilder>) -> OnnxError {
    OnnxError::of("SessionOptions")(error)
}
