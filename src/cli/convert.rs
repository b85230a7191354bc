//! `qnnscope convert`.

use super::convert_args::ConvertArgs;
use super::convert_verify::{check, check_tflite, name_tflite};
use super::headless::{print, print_json};
use super::{CliError, FAILED, Global, OK, onnx_install, options};
use crate::accuracy::Inputs;
use crate::backends::qnn::runner::RunTask;
use crate::backends::runtime::{Env, RuntimeDir};
use crate::convert::{
    Check, Conversion, ConvertDocument, ConvertError, ConvertTarget, Course, Made, SdkTarget, SdkTools, StepProgress,
    TfliteTools, carry_out, convert_text, convert_tflite, inputs_of,
};
use crate::event::clean_text;
use crate::models::identify_source;
use crate::models::source::SourceFormat;
use crate::models::{ModelFormat, identify};
use crate::run::Site;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    let run = args.task(args.backend, &args.model, &site, global)?;
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

/// Converts with the SDK's programs, which read and write other formats than QNN's libraries.
fn with_sdk(args: &ConvertArgs, global: &Global) -> Result<u8, CliError> {
    let ending = args.output.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let (target, like) = match ending.as_deref() {
        Some("dlc") => (SdkTarget::Dlc, ConvertTarget::Dlc),
        // A library is read just like a DLC.
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
    // The converters read more formats than qnnscope knows.
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
        // The conversion log is not a model.
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
    let run = args.task(args.backend, &args.model, &site, global)?;
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

/// Reports progress on stderr: one line per step with its duration, and on a terminal the current activity.
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

    /// What is being waited for, if no terminal shows it.
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
