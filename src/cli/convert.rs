//! `qnnscope convert`.

use super::headless::{print, print_json};
use super::onnx_options::OnnxOptions;
use super::options::{self, RunOptions};
use super::patience::Patience;
use super::target::Site;
use super::{CliError, FAILED, Global, OK, onnx_install, start};
use crate::backends::Backend;
use crate::backends::qnn::runner::{OnnxTask, RunTask};
use crate::backends::runtime::Env;
use crate::convert::{
    Conversion, ConvertDocument, ConvertError, Made, Target, TfliteTools, Verified, carry_out, convert_text,
    convert_tflite, verify,
};
use crate::event::clean_text;
use crate::models::source::{SourceFormat, identify_source};
use crate::models::{ModelFormat, identify};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `qnnscope convert`.
#[derive(Debug, Clone, clap::Args)]
pub struct ConvertArgs {
    /// ONNX or TFLite model, DLC or model library (.so)
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// What to write: a .dlc, a .bin (context binary), or a .onnx (EPContext model); of a split model one .dlc each, numbered
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Backend to convert for: it decides which nodes QNN takes
    #[arg(short, long, value_name = "BACKEND", default_value = "htp", value_parser = options::backend)]
    backend: Backend,
    /// QNN's number of the SoC to compile for: 57 is SM8650
    #[arg(long, value_name = "N")]
    soc_model: Option<u32>,
    /// Name of the SoC, for TFLite models
    #[arg(long, value_name = "NAME", default_value = "SM8650")]
    soc: String,
    /// Keep context binaries inside of the EPContext model
    #[arg(long)]
    embed: bool,
    /// Run source and result on the same inputs, and tell how far their outputs are apart
    #[arg(long)]
    verify: bool,
    /// Overwrite files that are there
    #[arg(long)]
    force: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    onnx: OnnxOptions,
    #[command(flatten)]
    patience: Patience,
}

/// Converts the model and says what came of it.
pub fn convert(args: &ConvertArgs, global: &Global) -> Result<u8, CliError> {
    let target = Target::of(&args.output, args.embed).ok_or_else(|| {
        let path = clean_text(&args.output.to_string_lossy());
        CliError::Usage(format!("the ending of {path} does not tell what to write: use .dlc, .bin or .onnx"))
    })?;
    let runtime = options::runtime(global)?;
    let site = Site::Here { runtime: runtime.clone(), counters: None };
    let bar = spinner(args);
    if identify_source(&args.model) == Some(SourceFormat::Tflite) {
        if target != Target::Dlc {
            return Err(no_way(args, target, "LiteRT's compiler makes DLCs of TFLite models").into());
        }
        let made = args.patience.wait(|| "LiteRT's compiler".to_owned(), async {
            let tools = TfliteTools::find(&Env::from_process()).await?;
            convert_tflite(&tools, &runtime.path, &args.model, &args.soc, &args.output, args.force).await
        });
        bar.finish_and_clear();
        return tell(args, &made?, true, None);
    }
    let format = identify(&args.model)?;
    onnx_install::offer(&args.model, &site, global)?;
    if format != ModelFormat::Onnx && target != Target::Binary {
        return Err(no_way(args, target, "QNN's own formats only become context binaries").into());
    }
    if format == ModelFormat::ContextBinary {
        return Err(no_way(args, target, "it is compiled already").into());
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
    let what = || format!("{} to become {}", clean_text(&args.model.to_string_lossy()), target.label());
    let made = args.patience.wait(what, carry_out(&conversion));
    bar.finish_and_clear();
    let made = made?;
    let verified = if args.verify { Some(check(args, &made, target, &run, &site, global)?) } else { None };
    tell(args, &made, matches!(target, Target::ContextModel { .. }), verified.as_ref())
}

fn no_way(args: &ConvertArgs, target: Target, reason: &str) -> ConvertError {
    ConvertError::NoWay { model: args.model.clone(), to: target.label().to_owned(), reason: reason.to_owned() }
}

fn tell(args: &ConvertArgs, made: &Made, keeps_all: bool, verified: Option<&Verified>) -> Result<u8, CliError> {
    let document = ConvertDocument::new(&args.model, made, keeps_all, verified);
    if args.json {
        print_json(&document)?;
    } else {
        print(&convert_text(&document))?;
    }
    Ok(if document.is_verified() { OK } else { FAILED })
}

/// The task of a run of `model` as this command's options have it.
fn task(
    args: &ConvertArgs,
    backend: Backend,
    model: &std::path::Path,
    site: &Site,
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
    let mut requests = options.requests(model, site, global)?;
    match requests.pop() {
        Some(request) => Ok(request.task),
        None => Err(CliError::Usage("there is nothing to run".to_owned())),
    }
}

/// Source and result on the same inputs.
fn check(
    args: &ConvertArgs,
    made: &Made,
    target: Target,
    run: &RunTask,
    site: &Site,
    global: &Global,
) -> Result<Verified, CliError> {
    let Site::Here { runtime, .. } = site else { return Ok(Err("only this machine can verify".to_owned())) };
    if matches!(target, Target::Dlc) && made.files.len() > 1 {
        return Ok(Err("the model was split: no file is all of it".to_owned()));
    }
    let Some(file) = made.files.first() else { return Ok(Err("there is no file".to_owned())) };
    // The reference of an ONNX model is ONNX Runtime's own kernels; that of QNN's formats the same backend, uncompiled.
    let source = RunTask { onnx: run.onnx.clone().map(|onnx| OnnxTask { reference: true, ..onnx }), ..run.clone() };
    // A DLC runs where its types run everywhere; compiled files run where they were compiled for.
    let has_cpu = runtime.library("cpu").is_some();
    let backend = if target == Target::Dlc && has_cpu { Backend::Cpu } else { args.backend };
    let result = task(args, backend, file, site, global)?;
    // An EPContext model has no free dimensions any more, and its options were for making it.
    let result = RunTask {
        onnx: result.onnx.map(|onnx| OnnxTask { dimensions: Vec::new(), options: Vec::new(), ..onnx }),
        ..result
    };
    let what = || "source and result to run".to_owned();
    args.patience.wait(what, verify(&source, &result, args.patience.limits()))
}

fn spinner(args: &ConvertArgs) -> ProgressBar {
    let shown = std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(format!("converting {}", clean_text(&args.model.to_string_lossy())));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
