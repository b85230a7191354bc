//! `qnnscope demo`: the bundled model on cpu and htp, with nothing installed beforehand.

use super::install::{self, InstallArgs, Policy};
use super::options::{self, OutputOptions, RunOptions};
use super::run::{self, RunArgs};
use super::{CliError, Global, say, start};
use crate::backends::Backend;
use crate::backends::runtime::{DEFAULT_WHEEL_VERSION, Env, RuntimeError};
use crate::event::LOCAL_DEVICE;
use crate::files::write_whole;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// The bundled model: 59 ops, quantised to 8 bits, random weights; made by `demo/make_demo_model.py`.
const MODEL: &[u8] = include_bytes!("../../demo/qnnscope-demo-int8.dlc");
const MODEL_NAME: &str = "qnnscope-demo-int8.dlc";

/// Arguments of `qnnscope demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Install a missing runtime without asking; only libraries whose checksum qnnscope knows
    #[arg(short, long)]
    yes: bool,
    /// Inferences to measure on each backend
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// Installs what is needed and profiles the bundled model.
pub fn demo(args: &DemoArgs, global: &Global) -> Result<u8, CliError> {
    if let Err(error) = options::runtime(global) {
        let CliError::Runtime(RuntimeError::NotFound { .. }) = error else { return Err(error) };
        if !args.yes {
            confirm()?;
        }
        // Consent to the demo covers the libraries it was built for, not any others.
        let install = InstallArgs {
            version: DEFAULT_WHEEL_VERSION.to_owned(),
            wheel: None,
            force: false,
            yes: false,
            onnx: false,
            json: false,
        };
        install::install(&install, Policy::PinnedOnly)?;
    }
    let options = RunOptions {
        backend: vec![Backend::Cpu, Backend::Htp],
        iterations: Some(args.iterations),
        ..start::default_options()?
    };
    // The demo shows this machine whatever $ANDROID_SERIAL says; only --device moves it elsewhere.
    let device = global.device().unwrap_or(LOCAL_DEVICE).to_owned();
    let global = Global { device: vec![device], ..global.clone() };
    run::run(&RunArgs { models: vec![unpack()?], options, output: args.output.clone() }, &global)
}

/// Asks on the terminal; without one, the demo proceeds.
fn confirm() -> Result<(), CliError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        say("no QNN runtime is installed: fetching one, under Qualcomm's licence");
        return Ok(());
    }
    let _ = write!(
        std::io::stderr(),
        "No QNN runtime is installed. Fetch onnxruntime-qnn {DEFAULT_WHEEL_VERSION} (QAIRT 2.47, about 93 MB, under \
         Qualcomm's licence) with pip? [Y/n] "
    );
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(count), "" | "y" | "yes") if count > 0 => Ok(()),
        _ => Err(CliError::Missing {
            message: "no QNN runtime is installed".to_owned(),
            hint: "`qnnscope demo --yes` or `qnnscope runtime install` installs it".to_owned(),
        }),
    }
}

/// Puts the bundled model into the data folder, unless it is there already.
pub fn unpack() -> Result<PathBuf, CliError> {
    let folder = Env::from_process().data_dir.ok_or(RuntimeError::NoDataDir)?.join("demo");
    let path = folder.join(MODEL_NAME);
    if std::fs::read(&path).is_ok_and(|bytes| bytes == MODEL) {
        return Ok(path);
    }
    match std::fs::create_dir_all(&folder).and_then(|()| write_whole(&path, MODEL)) {
        Ok(()) => Ok(path),
        Err(source) => Err(CliError::Io { action: format!("write the demo model to {}", path.display()), source }),
    }
}
