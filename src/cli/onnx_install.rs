//! Installs ONNX Runtime and its QNN plug-in, on request or for the first run of an ONNX model.

use super::install::{InstallArgs, Policy, carry_out};
use super::{CliError, Global, options};
use crate::backends::runtime::{
    DEFAULT_WHEEL_VERSION, Env, InstallRequest, ONNX_WHEEL_VERSION, PLUGIN, Package, RuntimeDir, RuntimeError,
    RuntimeSource, onnx_kit, onnx_library,
};
use crate::models::{ModelFormat, identify};
use crate::run::Site;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

/// Installs ONNX Runtime, and reinstalls QNN's libraries if they were installed before the plug-in was kept
/// with them.
pub fn install(args: &InstallArgs, policy: Policy, global: &Global) -> Result<(), CliError> {
    let env = Env::from_process();
    carry_out(InstallRequest::of(Package::OnnxRuntime, env.clone()), args, policy)?;
    let runtime = match options::runtime(global) {
        Ok(runtime) => Some(runtime),
        Err(CliError::Runtime(RuntimeError::NotFound { .. })) => None,
        Err(error) => return Err(error),
    };
    if runtime.as_ref().is_some_and(|runtime| onnx_kit(runtime, &env).is_ok()) {
        return Ok(());
    }
    let mut request = InstallRequest::new(env);
    if let Some(version) = runtime.as_ref().filter(|runtime| is_installed(runtime)).and_then(|one| one.version.clone())
    {
        request.version = version;
    }
    let again = InstallArgs { wheel: None, force: true, ..args.clone() };
    carry_out(request, &again, policy)
}

fn is_installed(runtime: &RuntimeDir) -> bool {
    runtime.source == RuntimeSource::Installed
}

/// Offers to install what an ONNX model lacks; without a terminal, the run reports what is missing.
pub fn offer(model: &Path, site: &Site, global: &Global) -> Result<(), CliError> {
    let Site::Here { runtime, .. } = site else { return Ok(()) };
    let env = Env::from_process();
    let is_missing =
        matches!(onnx_kit(runtime, &env), Err(RuntimeError::NoOnnxRuntime | RuntimeError::NoPlugin { .. }));
    let is_onnx = identify(model).is_ok_and(|format| format == ModelFormat::Onnx);
    if !is_onnx || !is_missing || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    if onnx_library(Some(runtime), &env)?.is_none() {
        wanted.push(format!("onnxruntime {ONNX_WHEEL_VERSION} (about 17 MB, MIT licence)"));
    }
    if !runtime.path.join(PLUGIN).is_file() {
        let version = runtime.version.as_deref().unwrap_or(DEFAULT_WHEEL_VERSION);
        wanted.push(format!("onnxruntime-qnn {version} again, for its plug-in (about 93 MB, Qualcomm's licence)"));
    }
    let text = format!("ONNX models need ONNX Runtime. Fetch {} with pip? [Y/n] ", wanted.join(" and "));
    let _ = std::io::stderr().write_all(text.as_bytes());
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if !matches!((read, answer.trim().to_ascii_lowercase().as_str()), (Ok(1..), "" | "y" | "yes")) {
        return Ok(());
    }
    let args = InstallArgs {
        version: DEFAULT_WHEEL_VERSION.to_owned(),
        wheel: None,
        force: false,
        yes: false,
        onnx: true,
        json: false,
    };
    install(&args, Policy::PinnedOnly, global)
}
