//! ONNX models on a device: converted here and run there.

use super::onnx_options::OnnxOptions;
use super::options::RunOptions;
use super::patience::Patience;
use super::{CliError, Global, say};
use crate::backends::runtime::{Env, RuntimeError, choose};
use crate::convert::{Conversion, ConvertTarget, Course, carry_out};
use crate::event::{LOCAL_DEVICE, clean_text};
use crate::models::{ModelFormat, identify};
use crate::run::Site;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// What runs on the device instead of an ONNX model.
#[derive(Debug)]
pub struct Converted {
    /// The DLC.
    pub model: PathBuf,
    /// Its folder, deleted on drop.
    _dir: TempDir,
}

/// Converts an ONNX model for a run on a device; `None` for other models and for runs here.
pub fn converted(
    model: &Path,
    options: &RunOptions,
    device: &str,
    global: &Global,
) -> Result<Option<Converted>, CliError> {
    if device == LOCAL_DEVICE || !identify(model).is_ok_and(|format| format == ModelFormat::Onnx) {
        return Ok(None);
    }
    let Some(backend) = options.backend.first().copied() else { return Ok(None) };
    // --runtime may name the device's libraries; the conversion uses this machine's.
    let env = Env::from_process();
    let runtime = choose(global.runtime.as_deref(), &env).or_else(|_: RuntimeError| choose(None, &env))?;
    let site = Arc::new(Site::Here { runtime, counters: None });
    let here = RunOptions {
        backend: vec![backend],
        onnx: OnnxOptions { no_cpu_fallback: false, ..options.onnx.clone() },
        save_outputs: None,
        save_context: None,
        save_profile_log: None,
        ..options.clone()
    };
    let mut requests = here.requests(&[model.to_owned()], &site, global)?;
    let Some(request) = requests.pop() else { return Ok(None) };
    let dir = crate::files::private_folder()
        .map_err(|source| CliError::Io { action: "make a temporary folder".to_owned(), source })?;
    let out = dir.path().join(model.file_stem().unwrap_or(model.as_os_str())).with_extension("dlc");
    let shown = clean_text(&model.to_string_lossy());
    say(&format!("{shown} is an ONNX model: converting it to a DLC here (for {backend}) to run on {device}"));
    let limits = options.limits();
    let conversion = Conversion {
        run: request.task,
        target: ConvertTarget::Dlc,
        out: out.clone(),
        force: false,
        // Part of a model is not the model.
        no_cpu_fallback: true,
        limits,
    };
    let what = || format!("{shown} to become a DLC");
    Patience::of(None).wait(what, carry_out(&conversion, &Course::new(&|_| ())))?;
    Ok(Some(Converted { model: out, _dir: dir }))
}
