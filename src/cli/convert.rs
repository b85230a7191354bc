//! `qnnscope convert`.

use super::convert_verify::{check, check_tflite, name_tflite};
use super::headless::{print, print_json};
use super::onnx_options::OnnxOptions;
use super::options::{self, RunOptions};
use super::patience::Patience;
use super::{CliError, FAILED, Global, OK, onnx_install, start};
use crate::accuracy::Inputs;
use crate::backends::Backend;
use crate::backends::qnn::runner::RunTask;
use crate::backends::runtime::{Env, RuntimeDir};
use crate::convert::{
    Check, Conversion, ConvertDocument, ConvertError, ConvertTarget, Course, Made, SdkTarget, SdkTools, StepProgress,
    TfliteTools, carry_out, convert_text, convert_tflite, inputs_of,
};
use crate::event::clean_text;
use crate::models::source::{SourceFormat, identify_source};
use crate::models::{ModelFormat, identify};
use crate::run::Site;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Arguments of `qnnscope convert`.
#[derive(Debug, Clone, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ConvertArgs {
    /// ONNX or TFLite model, DLC or model library (.so)
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// File to write: .dlc, .bin (context binary) or .onnx (EPContext model); a split model becomes several numbered .dlc
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Backend to convert for; it decides which nodes QNN takes
    #[arg(short, long, value_name = "BACKEND", default_value = "htp", value_parser = options::backend)]
    pub(super) backend: Backend,
    /// QNN's number of the SoC to compile for: 57 is SM8650
    #[arg(long, value_name = "N")]
    soc_model: Option<u32>,
    /// Name of the SoC, for TFLite models
    #[arg(long, value_name = "NAME", default_value = "SM8650")]
    soc: String,
    /// Convert with the SDK's own converters ($QNN_SDK_ROOT), to a .dlc, a model library (.so) for this machine, or a context binary (.bin)
    #[arg(long, value_name = "WHAT", value_parser = ["sdk"])]
    with: Option<String>,
    /// Extra argument for the SDK's converter; may be repeated
    #[arg(long, value_name = "ARG", requires = "with", allow_hyphen_values = true)]
    sdk_arg: Vec<String>,
    /// Embed the context binaries in the EPContext model
    #[arg(long)]
    embed: bool,
    /// Run source and result on the same inputs and report how much their outputs differ
    #[arg(long)]
    verify: bool,
    /// Inputs of --verify: a number of random ones, a folder of inputs, or a list in qnn-net-run's format [default: 3, or 1 for
    /// a compiled result]
    #[arg(long, value_name = "N|PATH", requires = "verify")]
    verify_inputs: Option<String>,
    /// Keep the conversion log in this file; a failed conversion leaves it beside the output
    #[arg(long, value_name = "FILE", conflicts_with = "with")]
    log: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    onnx: OnnxOptions,
    #[command(flatten)]
    pub(super) patience: Patience,
}

/// Converts the model and reports the result.
pub fn convert(args: &ConvertArgs, global: &Global) -> Result<u8, CliError> {
    if args.with.is_some() {
        return with_sdk(args, global);
    }
    let target = ConvertTarget::of(&args.output, args.embed).ok_or_else(|| {
        let path = clean_text(&args.output.to_string_lossy());
        CliError::Usage(format!("{path} has no known file extension: use .dlc, .bin or .onnx"))
    })?;
    let inputs = inputs_of(args.verify_inputs.as_deref(), 0, if target == ConvertTarget::Dlc { 3 } else { 1 })
        .map_err(CliError::Usage)?;
    if let Some(log) = args.log.as_ref().filter(|log| log.exists() && !args.force) {
        return Err(ConvertError::Exists { path: log.clone() }.into());
    }
    let runtime = options::runtime(global)?;
    let progress = Progress::new(args);
    let tell = |told: StepProgress<'_>| progress.tell(told);
    let course = Course::new(&tell);
    if identify_source(&args.model) == Some(SourceFormat::Tflite) {
        if target != ConvertTarget::Dlc {
            return Err(no_way(args, target, "LiteRT's compiler makes DLCs of TFLite models").into());
        }
        return of_tflite(args, &runtime, &inputs, &course, &progress);
    }
    let site = Arc::new(Site::Here { runtime: runtime.clone(), counters: None });
    let format = identify(&args.model)?;
    onnx_install::offer(&args.model, &site, global)?;
    if format != ModelFormat::Onnx && target != ConvertTarget::Binary {
        return Err(no_way(args, target, "QNN's own formats convert to context binaries only").into());
    }
    if format == ModelFormat::ContextBinary {
        return Err(no_way(args, target, "it is already compiled").into());
    }
    let run = task(args, args.backend, &args.model, &site, global)?;
    let conversion = Conversion {
        run: run.clone(),
        target,
        out: args.output.clone(),
        force: args.force,
        no_cpu_fallback: args.onnx.no_cpu_fallback,
        limits: args.patience.limits(),
    };
    let work = async {
        let made = match carry_out(&conversion, &course).await {
            Ok(made) => made,
            Err(error) => return Err(course.failed(error, args.log.clone(), &args.output, args.force).into()),
        };
        let checks = if args.verify {
            Some(Box::pin(check(args, &made, target, &run, &inputs, &site, global, &course)).await?)
        } else {
            None
        };
        Ok::<_, CliError>((made, checks))
    };
    let (made, checks) = args.patience.wait(|| progress.waited_for(), work)?;
    progress.end();
    keep_log(args, &course)?;
    tell_made(args, &made, matches!(target, ConvertTarget::ContextModel { .. }), checks.as_deref(), &course)
}

fn of_tflite(
    args: &ConvertArgs,
    runtime: &RuntimeDir,
    inputs: &Inputs,
    course: &Course<'_>,
    progress: &Progress,
) -> Result<u8, CliError> {
    let work = async {
        let tools = TfliteTools::find(&Env::from_process()).await?;
        let (model, out) = (&args.model, &args.output);
        let mut made = convert_tflite(&tools, &runtime.path, model, &args.soc, out, args.force, course).await?;
        name_tflite(args, runtime, &mut made, course).await?;
        let checks = if args.verify {
            Some(Box::pin(check_tflite(args, runtime, tools.python.clone(), &made.files, inputs, course)).await)
        } else {
            None
        };
        Ok::<_, CliError>((made, checks))
    };
    let (made, checks) = args.patience.wait(|| progress.waited_for(), work)?;
    progress.end();
    keep_log(args, course)?;
    tell_made(args, &made, true, checks.as_deref(), course)
}

fn keep_log(args: &ConvertArgs, course: &Course<'_>) -> Result<(), CliError> {
    match &args.log {
        Some(log) => Ok(course.keep(log)?),
        None => Ok(()),
    }
}

/// With the SDK's programs, which read and write other formats than QNN's libraries.
fn with_sdk(args: &ConvertArgs, global: &Global) -> Result<u8, CliError> {
    let ending = args.output.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let (target, like) = match ending.as_deref() {
        Some("dlc") => (SdkTarget::Dlc, ConvertTarget::Dlc),
        // A library is read like a DLC.
        Some("so") => (SdkTarget::Library, ConvertTarget::Dlc),
        Some("bin") => (SdkTarget::Binary { backend: args.backend, of: ModelFormat::Dlc }, ConvertTarget::Binary),
        _ => {
            let path = clean_text(&args.output.to_string_lossy());
            return Err(CliError::Usage(format!("the SDK's tools write .dlc, .so or .bin files, not {path}")));
        }
    };
    if !args.model.is_file() {
        let path = clean_text(&args.model.to_string_lossy());
        return Err(CliError::Usage(format!("{path} is not a file")));
    }
    // The converters read more than qnnscope knows of.
    let target = match target {
        SdkTarget::Binary { backend, .. } => SdkTarget::Binary { backend, of: identify(&args.model)? },
        other => other,
    };
    if let SdkTarget::Binary { of: ModelFormat::ContextBinary, .. } = target {
        return Err(no_way(args, like, "it is already compiled").into());
    }
    let sdk = SdkTools::find(&Env::from_process())?;
    let verified = if args.verify { Some(verification(args, like, global)?) } else { None };
    let progress = Progress::new(args);
    let tell = |told: StepProgress<'_>| progress.tell(told);
    let course = Course::new(&tell);
    let work = async {
        let made = sdk.convert(&args.model, &args.output, target, &args.sdk_arg, args.force, &course).await?;
        let Some((run, site, inputs)) = &verified else { return Ok((made, None)) };
        // Its log is no model.
        let result = Made { files: vec![args.output.clone()], ..made.clone() };
        let checks = Box::pin(check(args, &result, like, run, inputs, site, global, &course)).await?;
        Ok::<_, CliError>((made, Some(checks)))
    };
    let (made, checks) = args.patience.wait(|| progress.waited_for(), work)?;
    progress.end();
    tell_made(args, &made, true, checks.as_deref(), &course)
}

/// Prepares the comparison of source and result before any time is spent.
fn verification(
    args: &ConvertArgs,
    target: ConvertTarget,
    global: &Global,
) -> Result<(RunTask, Arc<Site>, Inputs), CliError> {
    let usual = if target == ConvertTarget::Dlc { 3 } else { 1 };
    let inputs = inputs_of(args.verify_inputs.as_deref(), 0, usual).map_err(CliError::Usage)?;
    let site = Arc::new(Site::Here { runtime: options::runtime(global)?, counters: None });
    onnx_install::offer(&args.model, &site, global)?;
    let run = task(args, args.backend, &args.model, &site, global)?;
    Ok((run, site, inputs))
}

fn no_way(args: &ConvertArgs, target: ConvertTarget, reason: &str) -> ConvertError {
    ConvertError::NoWay { model: args.model.clone(), to: target.label().to_owned(), reason: reason.to_owned() }
}

fn tell_made(
    args: &ConvertArgs,
    made: &Made,
    keeps_all: bool,
    checks: Option<&[Check]>,
    course: &Course<'_>,
) -> Result<u8, CliError> {
    let document = ConvertDocument::new(&args.model, made, keeps_all, checks, course.steps());
    if args.json {
        print_json(&document)?;
    } else {
        print(&convert_text(&document))?;
    }
    Ok(if document.is_verified() { OK } else { FAILED })
}

/// The task for running `model` with this command's options.
pub(super) fn task(
    args: &ConvertArgs,
    backend: Backend,
    model: &std::path::Path,
    site: &Arc<Site>,
    global: &Global,
) -> Result<RunTask, CliError> {
    let is_onnx = identify(model).is_ok_and(|format| format == ModelFormat::Onnx);
    let asked = OnnxOptions { no_cpu_fallback: false, ..args.onnx.clone() };
    let options = RunOptions {
        backend: vec![backend],
        soc_model: args.soc_model,
        onnx: if is_onnx { asked } else { OnnxOptions::default() },
        ..start::default_options()?
    };
    let mut requests = options.requests(&[model.to_owned()], site, global)?;
    match requests.pop() {
        Some(request) => Ok(request.task),
        None => Err(CliError::Usage("there is nothing to run".to_owned())),
    }
}

/// Reports progress on stderr: a line per step with its time, and on a terminal the current step.
struct Progress {
    bar: ProgressBar,
    doing: Mutex<String>,
}

impl Progress {
    fn new(args: &ConvertArgs) -> Self {
        let shown = std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        let doing = format!("converting {}", clean_text(&args.model.to_string_lossy()));
        bar.set_message(doing.clone());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, doing: Mutex::new(doing) }
    }

    fn tell(&self, told: StepProgress<'_>) {
        match told {
            StepProgress::Begun(step) => {
                self.bar.set_message(step.to_owned());
                step.clone_into(&mut self.doing.lock().unwrap_or_else(PoisonError::into_inner));
            }
            StepProgress::Taken(step) => {
                let line = format!("{:>7.1} s  {}", step.seconds, clean_text(&step.step));
                self.bar.suspend(|| eprintln!("{line}"));
            }
        }
    }

    /// Reports what it waits for if no terminal shows it.
    fn waited_for(&self) -> String {
        if std::io::stderr().is_terminal() {
            return String::new();
        }
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
