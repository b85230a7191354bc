//! `qnnscope encodings`.

use super::compute::limits;
use super::headless::{print, print_json};
use super::patience::Patience;
use super::width::text_width;
use super::{CliError, FAILED, Global, OK, options, say};
use crate::accuracy::{Side, SidePlace};
use crate::backends::Backend;
use crate::encodings::{
    Encodings, EncodingsDocument, Finding, Hardware, WriteFormat, diff, findings_text, from_graphs, lint, read,
    read_onnx, write,
};
use crate::event::{LOCAL_DEVICE, clean_text};
use crate::files::{Guard, Kind, Seekable, write_whole};
use crate::models::identify_source;
use crate::models::source::SourceFormat;
use crate::models::{Graph, identify};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes at the start of a file that show whether it is JSON.
const START_BYTES: u64 = 64;

/// Arguments of `qnnscope encodings`.
#[derive(Debug, clap::Args)]
pub struct EncodingsArgs {
    #[command(subcommand)]
    command: EncodingsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum EncodingsCommand {
    /// Find what is wrong with encodings: names, shapes, offsets, scales, bit widths, gaps
    Lint(LintArgs),
    /// Show how two sets of encodings differ, whatever their formats
    Diff(DiffArgs),
    /// Write encodings in another format
    Convert(ConvertArgs),
}

#[derive(Debug, clap::Args)]
struct LintArgs {
    /// QNN overrides, AIMET encodings (0.6.1, 1.0.0, 2.0.0), or a model with its own
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The model that the encodings are meant for: ONNX, DLC or model library
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Hexagon architecture they are meant for: v68, v73, v75, ...
    #[arg(long, value_name = "ARCH", value_parser = arch)]
    htp_arch: Option<u32>,
    #[command(flatten)]
    common: Common,
}

/// Only this machine's libraries are used.
fn refuse_device(global: &Global, command: &str) -> Result<(), CliError> {
    let named = global.device().is_some_and(|device| device != LOCAL_DEVICE);
    if named || global.runner.is_some() {
        let text = format!("{command} uses the libraries of this machine; --device and --runner do not apply here");
        return Err(CliError::Usage(text));
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
struct DiffArgs {
    /// Encodings or a model
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Encodings or a model
    #[arg(value_name = "B")]
    b: PathBuf,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
struct ConvertArgs {
    /// Encodings or a model
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format: overrides, aimet-0.6.1, aimet-1.0.0, aimet-2.0.0
    #[arg(long, value_name = "FORMAT", value_parser = |text: &str| text.parse::<WriteFormat>())]
    to: WriteFormat,
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that qnnscope did not write; never one the command reads
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

fn arch(text: &str) -> Result<u32, String> {
    let digits = text.trim_start_matches(['v', 'V']);
    digits.parse().map_err(|_| format!("`{text}` is not an architecture such as v75"))
}

/// Executes the subcommand.
pub fn encodings(args: &EncodingsArgs, global: &Global) -> Result<u8, CliError> {
    refuse_device(global, "encodings")?;
    match &args.command {
        EncodingsCommand::Lint(args) => {
            let encodings = load(&args.file, args.common.patience, global)?;
            let model = match &args.model {
                Some(model) => Some(graphs(model, args.common.patience, global)?),
                None => None,
            };
            let hardware = Hardware { hexagon_arch: args.htp_arch };
            let findings = lint(&encodings, model.as_deref(), hardware);
            let count = encodings.tensors.len();
            let nothing = format!("{count} encodings ({}): no problems found", encodings.format.name());
            report(findings, &args.common, &nothing)
        }
        EncodingsCommand::Diff(args) => {
            let a = load(&args.a, args.common.patience, global)?;
            let b = load(&args.b, args.common.patience, global)?;
            let nothing = format!("{} encodings, all equal", a.tensors.len());
            report(diff(&a, &b), &args.common, &nothing)
        }
        EncodingsCommand::Convert(args) => convert(args, global),
    }
}

fn report(findings: Vec<Finding>, common: &Common, nothing: &str) -> Result<u8, CliError> {
    let document = EncodingsDocument::new(findings);
    if common.json {
        print_json(&document)?;
    } else {
        print(&findings_text(&document, text_width(), nothing))?;
    }
    Ok(if document.has_errors() { FAILED } else { OK })
}

fn convert(args: &ConvertArgs, global: &Global) -> Result<u8, CliError> {
    let encodings = load(&args.file, args.patience, global)?;
    let (text, left_out) = write(&encodings, args.to);
    put(&text, args.output.as_deref(), args.force, &[&args.file])?;
    if !left_out.is_empty() {
        say(&format!(
            "note: left out, as this format cannot hold them or they have no numbers: {}",
            left_out.join(", ")
        ));
    }
    Ok(OK)
}

/// Writes encodings to a file, or prints them.
pub fn put(text: &str, output: Option<&Path>, force: bool, reads: &[&Path]) -> Result<(), CliError> {
    let Some(path) = output else { return print(text) };
    let mut guard = Guard::new(force);
    for path in reads {
        guard.reads("the file", path);
    }
    guard.claim("--output", path, Kind::Encodings)?;
    write_whole(path, text.as_bytes())
        .map_err(|source| CliError::Io { action: format!("write {}", path.display()), source })
}

/// Encodings of a file, or of a model.
pub fn load(path: &Path, patience: Patience, global: &Global) -> Result<Encodings, CliError> {
    // Read in two steps: the start shows the format.
    let held =
        Seekable::new(path).map_err(|source| CliError::Usage(format!("cannot read {}: {source}", path.display())))?;
    let path = held.path();
    let mut start = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(START_BYTES).read_to_end(&mut start));
    // The model reader reports unreadable files.
    if opened.is_ok() && matches!(start.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Ok(read(path)?);
    }
    if identify_source(path) == Some(SourceFormat::Onnx) {
        return Ok(read_onnx(path)?.1);
    }
    Ok(from_graphs(&graphs(path, patience, global)?))
}

/// The graphs of a model, as read by this machine's libraries.
fn graphs(path: &Path, patience: Patience, global: &Global) -> Result<Vec<Graph>, CliError> {
    if identify_source(path) == Some(SourceFormat::Onnx) {
        return Ok(read_onnx(path)?.0);
    }
    identify(path)?;
    let side = Side {
        model: path.to_owned(),
        backend: Backend::Cpu,
        runtime_dir: options::runtime(global)?.path,
        graph: None,
        onnx: None,
        place: SidePlace::Here,
        sha256: None,
        settings: Vec::new(),
        allow_unknown_runtime: global.allow_unknown_runtime,
        limits: limits(300.0),
    };
    let what = || format!("this machine's QNN libraries to read {}", clean_text(&path.to_string_lossy()));
    let graphs = patience.wait(what, async { side.read_all().await.map_err(crate::accuracy::AccuracyError::Model) })?;
    Ok(graphs.1)
}
