//! `qnnscope check`.

use super::check_args::CheckArgs;
use super::headless::{print, print_json};
use super::patience::Patience;
use super::width::text_width;
use super::{CliError, FAILED, Global, MISSING, OK, check_onnx, options, target};
use crate::backends::Backend;
use crate::backends::local::Limits;
use crate::diagnosis::preflight::{
    Answers, CheckDocument, NodesAnswer, NodesModel, Target, TargetError, Verdict, check_text,
};
use crate::event::LOCAL_DEVICE;
use crate::models::{ModelFormat, identify, source_names};
use crate::run::Preflight;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

/// Asks this machine's backends about the model, and prints the problems they report.
pub fn check(args: &CheckArgs, global: &Global) -> Result<u8, CliError> {
    if global.runner.is_some() {
        let text = "--runner does not apply here: check uses the libraries of this machine, even for a --device";
        return Err(CliError::Usage(text.to_owned()));
    }
    for (flag, given) in [
        ("--soc", !args.soc.is_empty()),
        ("--htp-arch", !args.htp_arch.is_empty()),
        ("--vtcm-mb", args.vtcm_mb.is_some()),
    ] {
        if given && !args.backend.is_empty() && !args.backend.contains(&Backend::Htp) {
            return Err(CliError::Usage(format!("{flag} is an HTP option, and htp is not among the backends")));
        }
    }
    let format = identify(&args.model)?;
    for (flag, given) in [("--dim", !args.dim.is_empty()), ("--ep-option", !args.ep_option.is_empty())] {
        if given && format != ModelFormat::Onnx {
            return Err(CliError::Usage(format!("{flag} is for ONNX models, and this is a {}", format.label())));
        }
    }
    let nodes = if format == ModelFormat::Onnx { Some(check_onnx::read(args)?) } else { None };
    let bar = bar();
    let asked = RefCell::new("the devices and libraries".to_owned());
    // On a terminal the progress bar shows it.
    let waited_for = || if bar.is_none() { asked.borrow().clone() } else { String::new() };
    let work = async {
        let targets = targets(args, global).await?;
        let tell = |question: &str, number: usize, of: usize| {
            question.clone_into(&mut asked.borrow_mut());
            if let Some(bar) = &bar {
                bar.set_length(of as u64);
                bar.set_position(number as u64);
                bar.set_message(question.to_owned());
            }
        };
        Ok::<_, CliError>(match nodes {
            Some(model) => Found::Nodes(model, check_onnx::ask(args, global, targets, tell).await?),
            None => Found::Ops(run(args, global, format, targets, tell).await?),
        })
    };
    let answers = Patience::of(args.timeout).wait(waited_for, work);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    match answers? {
        Found::Ops(answers) => report(args, &answers),
        Found::Nodes(model, answers) => check_onnx::report(args, model, &answers),
    }
}

/// The results: about the ops of a QNN model, or the nodes of an ONNX model.
enum Found {
    Ops(Answers),
    Nodes(NodesModel, Vec<NodesAnswer>),
}

/// The hardware to check for, without duplicates.
async fn targets(args: &CheckArgs, global: &Global) -> Result<Vec<Target>, CliError> {
    let mut targets: Vec<Target> = Vec::new();
    let mut add = |target: Result<Target, TargetError>| {
        let target = target.map_err(|error| CliError::Usage(error.to_string()))?;
        if !targets.iter().any(|known| known.soc_model == target.soc_model) {
            targets.push(target);
        }
        Ok::<_, CliError>(())
    };
    for soc in &args.soc {
        add(Target::from_soc(soc))?;
    }
    for arch in &args.htp_arch {
        add(Target::from_arch(arch))?;
    }
    // A device named only by an environment variable is meant for runs.
    if let Some(name) = global.device().filter(|name| *name != LOCAL_DEVICE) {
        let device = target::find(name, global).await?;
        let facts = device.describe().await?;
        add(Target::from_device(device.id(), &facts.soc))?;
    }
    if targets.is_empty() {
        targets.push(Target::fallback().map_err(|error| CliError::Usage(error.to_string()))?);
    }
    Ok(targets)
}

async fn run(
    args: &CheckArgs,
    global: &Global,
    format: ModelFormat,
    targets: Vec<Target>,
    tell: impl Fn(&str, usize, usize),
) -> Result<Answers, CliError> {
    let binary = format == ModelFormat::ContextBinary;
    let backends: Vec<(Backend, bool)> = match (args.backend.as_slice(), binary) {
        ([], true) => vec![(Backend::Htp, false)],
        ([], false) => [Backend::Htp, Backend::Cpu, Backend::Gpu].map(|backend| (backend, false)).to_vec(),
        (named, _) => {
            let first = |at: &usize| !named[..*at].contains(&named[*at]);
            (0..named.len()).filter(first).map(|at| (named[at], true)).collect()
        }
    };
    let memory_bytes = args.memory_limit_mb.map(|mb| mb << 20).or_else(options::free_memory_share);
    let preflight = Preflight {
        runtime_dir: options::runtime(global)?.path,
        model: args.model.clone(),
        backends,
        targets,
        vtcm_mb: args.vtcm_mb,
        compile: !args.no_compile,
        binary,
        allow_unknown_runtime: global.allow_unknown_runtime,
        limits: Limits { stage_timeout: Duration::from_secs_f64(args.stage_timeout), memory_bytes },
    };
    Ok(preflight.ask(tell).await?)
}

fn report(args: &CheckArgs, answers: &Answers) -> Result<u8, CliError> {
    let names = source_names(&args.model).unwrap_or_default();
    let document = CheckDocument::new(answers).map_err(CliError::Failure)?.named(&names);
    if args.json {
        print_json(&document)?;
    } else {
        print(&check_text(&document, text_width(), args.all))?;
    }
    Ok(match document.verdict() {
        Verdict::Fine => OK,
        Verdict::Refused => FAILED,
        Verdict::Unknown => MISSING,
    })
}

/// Progress on a terminal.
fn bar() -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    // Also cleared when Ctrl-C drops it.
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    Some(bar)
}
