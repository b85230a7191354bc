//! `qnnscope report`: sessions and other tools' files as a page, a comment, a table, a picture or a trace.

use super::{CliError, OK, say, setup};
use crate::accuracy::AccuracyDocument;
use crate::event::clean_text;
use crate::files::{Guard, Kind, write_whole};
use crate::history;
use crate::report::comparison::LoadError;
use crate::report::export::{FORMATS, Format, by_ending, by_name};
use crate::report::{Material, Recorded};
use crate::text::bytes_text;
use std::path::PathBuf;

/// Arguments of `qnnscope report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Sessions (`run --record`), files of other tools (docs/imports.md), what `accuracy --json` printed, @ID or @last of the history
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// File to write: .html, .md, .csv, .svg, .png, .trace.json (Perfetto), .hlog (HDR histograms)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format, if the file name does not show it: html, md, csv, svg, png, trace or hdr
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<&'static str>,
    /// Remove paths, device serials, names of models, layers and tensors, and all log lines
    #[arg(long)]
    redact: bool,
    /// Overwrite a file that qnnscope did not write
    #[arg(long)]
    force: bool,
}

fn format(text: &str) -> Result<&'static str, String> {
    let known = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    by_name(text).map(|format| format.name).ok_or_else(|| format!("known formats are {}", known()))
}

/// Writes the report.
pub fn report(args: &ReportArgs) -> Result<u8, CliError> {
    let format = chosen(args)?;
    let mut guard = Guard::new(args.force);
    let named: Vec<PathBuf> = args.files.iter().map(|file| history::resolve(file)).collect::<Result<_, _>>()?;
    for file in &named {
        guard.reads("the file", file);
    }
    guard.prints();
    setup::protect_history(&mut guard);
    guard.claim("--output", &args.output, Kind::Report)?;
    let (mut files, mut accuracy) = (Vec::new(), Vec::new());
    for (number, path) in (1..).zip(&named) {
        if args.files.len() > 1 {
            say(&format!("reading {} ({number} of {})", clean_text(&path.to_string_lossy()), args.files.len()));
        }
        let shown = clean_text(&path.to_string_lossy());
        match AccuracyDocument::read(path) {
            Ok(Some(document)) => accuracy.push((shown, document)),
            Ok(None) => files.push(Recorded::open(path)?),
            Err(reason) => return Err(LoadError::Document { path: shown, reason }.into()),
        }
    }
    if files.is_empty() && !["html", "md"].contains(&format.name) {
        let text = "layer-by-layer comparisons export to .html and .md only; the other formats hold runs";
        return Err(CliError::Usage(text.to_owned()));
    }
    let material = Material::of_files(&files, args.redact).with_accuracy(&accuracy);
    let bytes = (format.make)(&material).map_err(|source| CliError::Export { source })?;
    write_whole(&args.output, &bytes)
        .map_err(|source| CliError::Io { action: format!("write {}", args.output.display()), source })?;
    let shown = clean_text(&args.output.to_string_lossy());
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    say(&format!("wrote {shown}: {}, {}", format.label, bytes_text(bytes.len() as f64)));
    Ok(OK)
}

fn chosen(args: &ReportArgs) -> Result<&'static Format, CliError> {
    let named = args.format.and_then(by_name);
    named.or_else(|| by_ending(&args.output)).ok_or_else(|| {
        let endings: Vec<&str> = FORMATS.iter().filter_map(|format| format.endings.first().copied()).collect();
        let name = args.output.display();
        CliError::Usage(format!(
            "{name} has no known file extension: use one of {}, or give --format",
            endings.join(", ")
        ))
    })
}
