//! `qnnscope export`: sessions for other engines.

use super::headless::print;
use super::{CliError, FAILED, OK, say, setup};
use crate::dataset::{self, Exported};
use crate::event::clean_text;
use crate::history::{self, Filter, State};
use std::path::PathBuf;

/// Arguments of `qnnscope export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Session files; @ID, @NAME or @last picks a session of the history [default: all of the history]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Add the sessions to the Parquet dataset in this folder; those that it has already are left alone
    #[arg(long, value_name = "DIR", required = true)]
    parquet: PathBuf,
}

/// Adds sessions to a dataset.
pub fn export(args: &ExportArgs) -> Result<u8, CliError> {
    let files = if args.files.is_empty() {
        let history = setup::history()?;
        // What is being recorded would be added without its end.
        let is_ended = |state| !matches!(state, State::Recording | State::Unreadable);
        let mut entries = history.entries(&Filter::default())?;
        entries.retain(|entry| is_ended(entry.state));
        entries.iter().rev().map(|entry| history.file(&entry.id)).collect()
    } else {
        args.files.iter().map(|file| history::resolve(file)).collect::<Result<Vec<PathBuf>, _>>()?
    };
    let (mut added, mut known, mut failed) = (0u64, 0u64, 0u64);
    let mut rows: Vec<(&'static str, u64)> = Vec::new();
    for file in &files {
        match dataset::export(file, &args.parquet) {
            Ok(Exported::Known) => known += 1,
            Ok(Exported::Added(tables)) => {
                added += 1;
                for (table, count) in tables {
                    match rows.iter_mut().find(|(name, _)| *name == table) {
                        Some((_, sum)) => *sum += count,
                        None => rows.push((table, count)),
                    }
                }
            }
            // One that is damaged does not keep the others out, a full disk does.
            Err(dataset::DatasetError::Session(error)) => {
                failed += 1;
                say(&format!("error: {}", clean_text(&error.to_string())));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let of = rows.iter().map(|(table, count)| format!("{count} rows of {table}")).collect::<Vec<_>>().join(", ");
    let of = if of.is_empty() { String::new() } else { format!(": {of}") };
    let left = if known > 0 { format!("; {known} were in it already") } else { String::new() };
    print(&format!("{added} sessions added to {}{of}{left}\n", dataset::shown(&args.parquet)))?;
    Ok(if failed > 0 { FAILED } else { OK })
}
