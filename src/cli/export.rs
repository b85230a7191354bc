//! `qnnscope export`: sessions for other analysis tools.

use super::headless::print;
use super::{CliError, FAILED, OK, say, setup};
use crate::dataset::{self, DatasetError, Exported};
use crate::history::{self, Filter, State};
use crate::report::comparison::{read_document, seekable};
use crate::text::counted;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `qnnscope export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Session and result files, files of other tools (docs/imports.md); @ID, @NAME or @last picks a session of the history
    /// [default: all of the history]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Add the sessions to the Parquet dataset in this folder; those already in it stay as they are
    #[arg(long, value_name = "DIR", required = true)]
    parquet: PathBuf,
}

/// Adds sessions to a dataset.
pub fn export(args: &ExportArgs) -> Result<u8, CliError> {
    let files = if args.files.is_empty() {
        let history = setup::history()?;
        // A session still being recorded would be added incomplete.
        let is_ended = |state| !matches!(state, State::Recording | State::Unreadable);
        let mut entries = history.entries(&Filter::default())?;
        entries.retain(|entry| is_ended(entry.state));
        entries.iter().rev().map(|entry| history.file(&entry.id)).collect()
    } else {
        args.files.iter().map(|file| history::resolve(file)).collect::<Result<Vec<PathBuf>, _>>()?
    };
    let (mut added, mut mended, mut known, mut failed) = (0u64, 0u64, 0u64, 0u64);
    let mut rows: Vec<(&'static str, u64)> = Vec::new();
    for file in &files {
        match add(file, &args.parquet) {
            Ok(Exported::Known | Exported::NoEvents) => known += 1,
            Ok(Exported::Added { rows: tables, mended: is_mended }) => {
                added += 1;
                mended += u64::from(is_mended);
                for (table, count) in tables {
                    match rows.iter_mut().find(|(name, _)| *name == table) {
                        Some((_, sum)) => *sum += count,
                        None => rows.push((table, count)),
                    }
                }
            }
            // A damaged file does not block the others; a full disk does.
            Err(error @ (CliError::Compare(_) | CliError::Dataset(DatasetError::Session(_)))) => {
                failed += 1;
                say(error.render().trim_end());
            }
            Err(error) => return Err(error),
        }
    }
    let of = rows
        .iter()
        .map(|(table, count)| format!("{} of {table}", counted(*count, "row")))
        .collect::<Vec<_>>()
        .join(", ");
    let of = if of.is_empty() { String::new() } else { format!(": {of}") };
    let mut left = String::new();
    for (count, what) in [(mended, "of them repaired"), (known, "already in it")] {
        if count > 0 {
            let _ = write!(left, "; {count} {what}");
        }
    }
    let added = counted(added, "session");
    print(&format!("{added} added to {}{of}{left}\n", dataset::shown(&args.parquet)))?;
    Ok(if failed > 0 { FAILED } else { OK })
}

/// Adds a file: its events, or only its figures if it has no events.
fn add(path: &Path, folder: &Path) -> Result<Exported, CliError> {
    let file = seekable(path)?;
    let exported = dataset::export(&file, folder)?;
    if exported != Exported::NoEvents {
        return Ok(exported);
    }
    let document = read_document(&file)?;
    Ok(dataset::export_figures(&file, document.value(), folder)?)
}
