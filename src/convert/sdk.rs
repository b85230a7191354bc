//! The SDK's own converters, if the user has an SDK: each step runs one of its programs, keeps its log, and
//! looks up a failure among the known causes.

use super::course::{Course, cause};
use super::error::ConvertError;
use super::steps::Made;
use crate::backends::Backend;
use crate::backends::on_device::DLC_LIBRARY;
use crate::backends::runtime::Env;
use crate::event::clean_text;
use crate::files::write_whole;
use crate::models::ModelFormat;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// Folder of the SDK's programs for this machine.
const HOST: &str = "x86_64-linux-clang";
/// Largest log that is kept, in bytes.
const MAX_LOG_BYTES: usize = 16 << 20;

/// What the SDK's programs produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkTarget {
    /// A DLC, by qairt-converter.
    Dlc,
    /// A model library for this machine, by qnn-onnx-converter and qnn-model-lib-generator.
    Library,
    /// A context binary for a backend, by qnn-context-binary-generator; for an ONNX model, qairt-converter
    /// runs first.
    Binary {
        /// The backend.
        backend: Backend,
        /// Format of the model.
        of: ModelFormat,
    },
}

/// The user's SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkTools {
    root: PathBuf,
    python: PathBuf,
}

impl SdkTools {
    /// The SDK named by `$QNN_SDK_ROOT` or `$QAIRT_SDK_ROOT`.
    ///
    /// # Errors
    /// Neither variable names an SDK with converters.
    pub fn find(env: &Env) -> Result<Self, ConvertError> {
        let roots = [("QNN_SDK_ROOT", &env.qnn_sdk_root), ("QAIRT_SDK_ROOT", &env.qairt_sdk_root)];
        let mut looked = Vec::new();
        for (name, root) in roots {
            match root {
                Some(root) if root.join("bin").join(HOST).is_dir() => {
                    return Ok(Self { root: root.clone(), python: env.python.clone() });
                }
                Some(root) => looked.push(format!("{name} is {}, which has no bin/{HOST}", root.display())),
                None => looked.push(format!("{name} is not set")),
            }
        }
        Err(ConvertError::MissingTool {
            tool: "the SDK",
            reason: looked.join("; "),
            advice: "set QNN_SDK_ROOT to the root of Qualcomm's SDK; without one, omit --with sdk".to_owned(),
        })
    }

    fn tool(&self, name: &'static str) -> Result<PathBuf, ConvertError> {
        let path = self.root.join("bin").join(HOST).join(name);
        if path.is_file() {
            return Ok(path);
        }
        let reason = format!("{} is not there", path.display());
        let advice = "install the SDK with its converters".to_owned();
        Err(ConvertError::MissingTool { tool: name, reason, advice })
    }

    /// Converts the model to `out`. `more` are additional arguments for the last program (for a library, the
    /// converter rather than the generator). The logs of all steps are kept in one file.
    pub async fn convert(
        &self,
        model: &Path,
        out: &Path,
        target: SdkTarget,
        more: &[String],
        force: bool,
        course: &Course<'_>,
    ) -> Result<Made, ConvertError> {
        let begun = Instant::now();
        let log = out.with_extension("log");
        if !force && let Some(path) = [out, log.as_path()].into_iter().find(|path| path.exists()) {
            return Err(ConvertError::Exists { path: path.to_owned() });
        }
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| ConvertError::Io { action, path, source }
        };
        let dir = crate::files::private_folder().map_err(io("make a folder in", &std::env::temp_dir()))?;
        let model = std::path::absolute(model).unwrap_or_else(|_| model.to_owned());
        let mut steps = Steps { sdk: self, folder: dir.path(), log: &log, text: Vec::new() };
        let made = match target {
            SdkTarget::Dlc => steps.dlc(&model, more, course).await?,
            SdkTarget::Library => steps.library(&model, more, course).await?,
            SdkTarget::Binary { backend, of: ModelFormat::Onnx } => {
                let dlc = steps.dlc(&model, &[], course).await?;
                steps.binary(&dlc, ModelFormat::Dlc, backend, more, course).await?
            }
            SdkTarget::Binary { backend, of } => steps.binary(&model, of, backend, more, course).await?,
        };
        let bytes = std::fs::read(&made).map_err(|_| ConvertError::Tool {
            tool: "the converter".to_owned(),
            status: "exit status 0".to_owned(),
            last: format!("it wrote no {}", made.file_name().unwrap_or_default().to_string_lossy()),
            advice: Some(format!("its log is {}", log.display())),
        })?;
        write_whole(out, &bytes).map_err(io("write", out))?;
        let files = vec![out.to_owned(), log];
        Ok(Made { files, names: None, converted: None, seconds: begun.elapsed().as_secs_f64() })
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Programs that run one after another, with one log.
struct Steps<'a> {
    sdk: &'a SdkTools,
    folder: &'a Path,
    log: &'a Path,
    text: Vec<u8>,
}

impl Steps<'_> {
    /// Converts an ONNX model to a DLC.
    async fn dlc(&mut self, model: &Path, more: &[String], course: &Course<'_>) -> Result<PathBuf, ConvertError> {
        let made = self.folder.join("model.dlc");
        let mut args = words(&["--input_network"]);
        args.push(model.into());
        args.extend(words(&["--output_path"]));
        args.push(made.clone().into());
        args.extend(more.iter().map(OsString::from));
        course.take("qairt-converter", self.run("qairt-converter", args)).await?;
        Ok(made)
    }

    /// Builds a model library for this machine.
    async fn library(&mut self, model: &Path, more: &[String], course: &Course<'_>) -> Result<PathBuf, ConvertError> {
        let source = self.folder.join("model.cpp");
        let mut args = words(&["--input_network"]);
        args.push(model.into());
        args.push("-o".into());
        args.push(source.clone().into());
        args.extend(more.iter().map(OsString::from));
        course.take("qnn-onnx-converter", self.run("qnn-onnx-converter", args)).await?;
        let mut args = words(&["-c"]);
        args.push(source.clone().into());
        let weights = source.with_extension("bin");
        if weights.exists() {
            args.push("-b".into());
            args.push(weights.into());
        }
        args.push("-o".into());
        args.push(self.folder.join("lib").into());
        args.extend(words(&["-t", HOST]));
        course.take("qnn-model-lib-generator", self.run("qnn-model-lib-generator", args)).await?;
        Ok(self.folder.join("lib").join(HOST).join("libmodel.so"))
    }

    /// Builds a context binary from a DLC or a model library.
    async fn binary(
        &mut self,
        model: &Path,
        format: ModelFormat,
        backend: Backend,
        more: &[String],
        course: &Course<'_>,
    ) -> Result<PathBuf, ConvertError> {
        let lib = self.sdk.root.join("lib").join(HOST);
        let mut args = words(&["--backend"]);
        args.push(lib.join(backend.library()).into());
        args.push("--model".into());
        if format == ModelFormat::Dlc {
            args.push(lib.join(DLC_LIBRARY).into());
            args.push("--dlc_path".into());
        }
        args.push(model.into());
        args.extend(words(&["--binary_file", "model", "--output_dir"]));
        args.push(self.folder.into());
        args.extend(more.iter().map(OsString::from));
        course.take("qnn-context-binary-generator", self.run("qnn-context-binary-generator", args)).await?;
        Ok(self.folder.join("model.bin"))
    }

    async fn run(&mut self, name: &'static str, args: Vec<OsString>) -> Result<(), ConvertError> {
        let program = self.sdk.tool(name)?;
        // The converters are Python scripts for the Python that the user set up for them.
        let is_script = std::fs::read(&program).is_ok_and(|bytes| bytes.starts_with(b"#!") && has_python(&bytes));
        let mut command = tokio::process::Command::new(if is_script { &self.sdk.python } else { &program });
        if is_script {
            command.arg(&program);
        }
        let lib = self.sdk.root.join("lib");
        let output = command
            .args(args)
            .env("QNN_SDK_ROOT", &self.sdk.root)
            .env("PYTHONPATH", before(&lib.join("python"), "PYTHONPATH"))
            .env("LD_LIBRARY_PATH", before(&lib.join(HOST), "LD_LIBRARY_PATH"))
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|source| ConvertError::Io { action: "start", path: program.clone(), source })?;
        self.text.extend_from_slice(&output.stdout);
        self.text.extend_from_slice(&output.stderr);
        self.text.truncate(MAX_LOG_BYTES);
        write_whole(self.log, &self.text).map_err(|source| ConvertError::Io {
            action: "write",
            path: self.log.to_owned(),
            source,
        })?;
        if output.status.success() {
            return Ok(());
        }
        Err(self.failed(name, output.status))
    }

    fn failed(&self, name: &str, status: std::process::ExitStatus) -> ConvertError {
        let log = clean_text(&self.log.to_string_lossy());
        let advice = match cause(&self.text, Some(status.code().unwrap_or(-1))) {
            Some(cause) => format!("{cause}; the log is {log}"),
            None => format!("the log is {log}; `qnnscope diagnose {log}` explains it"),
        };
        let text = String::from_utf8_lossy(&self.text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).map(clean_text).unwrap_or_default();
        ConvertError::Tool { tool: name.to_owned(), status: status.to_string(), last, advice: Some(advice) }
    }
}

/// Whether the first line of a script names Python.
fn has_python(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).contains("python")
}

/// `folder` in front of the variable's value.
fn before(folder: &Path, variable: &str) -> OsString {
    let mut value = folder.as_os_str().to_owned();
    if let Some(old) = std::env::var_os(variable).filter(|old| !old.is_empty()) {
        value.push(":");
        value.push(old);
    }
    value
}
