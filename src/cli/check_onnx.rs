//! `qnnscope check` for ONNX models: what ONNX Runtime's QNN plug-in accepts.

use super::check_args::CheckArgs;
use super::headless::{print, print_json};
use super::width::text_width;
use super::{CliError, FAILED, Global, MISSING, OK, onnx_options, options};
use crate::backends::Backend;
use crate::backends::local::Limits;
use crate::backends::runtime::{Env, onnx_kit};
use crate::diagnosis::preflight::{NodesAnswer, NodesDocument, NodesModel, Target, Verdict, nodes_text};
use crate::event::clean_text;
use crate::files::sha256_hex;
use crate::models::read_source;
use crate::models::source::{SourceError, SourceFormat};
use crate::run::OnnxPreflight;
use std::fs::File;
use std::time::Duration;

/// Reads the file before any query, so that damage and missing data are reported at once and in our own
/// words.
pub fn read(args: &CheckArgs) -> Result<NodesModel, CliError> {
    let model = read_source(&args.model, SourceFormat::Onnx, &args.dim)?;
    let io = |source| SourceError::Io { path: args.model.clone(), source };
    let (sha256, bytes) = sha256_hex(File::open(&args.model).map_err(io)?).map_err(io)?;
    Ok(NodesModel { path: clean_text(&model.path.to_string_lossy()), format: "onnx", sha256, bytes })
}

/// Asks every backend about every target.
pub async fn ask(
    args: &CheckArgs,
    global: &Global,
    targets: Vec<Target>,
    tell: impl FnMut(&str, usize, usize),
) -> Result<Vec<NodesAnswer>, CliError> {
    if args.no_compile {
        let text = "--no-compile does not apply to ONNX models: which nodes QNN takes is known only after compiling";
        return Err(CliError::Usage(text.to_owned()));
    }
    let runtime = options::runtime(global)?;
    let kit = onnx_kit(&runtime, &Env::from_process())?;
    let first = |at: &usize| !args.backend[..*at].contains(&args.backend[*at]);
    let backends = if args.backend.is_empty() {
        [Backend::Htp, Backend::Cpu, Backend::Gpu].map(|backend| (backend, false)).to_vec()
    } else {
        (0..args.backend.len()).filter(first).map(|at| (args.backend[at], true)).collect()
    };
    let preflight = OnnxPreflight {
        runtime_dir: runtime.path,
        onnx: onnx_options::task_of(&kit, &args.dim, &args.ep_option),
        model: std::path::absolute(&args.model).unwrap_or_else(|_| args.model.clone()),
        backends,
        targets,
        vtcm_mb: args.vtcm_mb,
        allow_unknown_runtime: global.allow_unknown_runtime,
        limits: Limits {
            stage_timeout: Duration::from_secs_f64(args.stage_timeout),
            memory_bytes: args.memory_limit_mb.map(|mb| mb << 20).or_else(options::free_memory_share),
        },
    };
    Ok(preflight.ask(tell).await?)
}

/// Prints the answers.
pub fn report(args: &CheckArgs, model: NodesModel, answers: &[NodesAnswer]) -> Result<u8, CliError> {
    let document = NodesDocument::new(model, answers);
    if args.json {
        print_json(&document)?;
    } else {
        print(&nodes_text(&document, text_width(), args.all))?;
    }
    Ok(match document.verdict() {
        Verdict::Fine => OK,
        Verdict::Refused => FAILED,
        Verdict::Unknown => MISSING,
    })
}
