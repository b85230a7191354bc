//! `qnnscope show`: a file's contents, as `run` would have printed them.

use super::headless::{print, print_json};
use super::{CliError, OK, say};
use crate::history;
use crate::report::comparison::{LoadError, read_document, seekable};
use crate::report::{ResultDocument, document_text, text_report};
use crate::session::read_held;
use std::path::PathBuf;

/// Arguments of `qnnscope show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Session or result file; @ID, @NAME or @last picks a session of the history
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the result document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Prints the report of a file.
pub fn show(args: &ShowArgs) -> Result<u8, CliError> {
    let path = history::resolve(&args.file)?;
    let file = seekable(&path)?;
    let Some(opened) = read_held(&file).map_err(LoadError::from)? else {
        let document = read_document(&file)?;
        if args.json {
            print_json(document.value())?;
        } else {
            print(&document_text(document.sides()))?;
        }
        return Ok(OK);
    };
    if args.json {
        let imported = opened.imported.map(|kind| (kind, path.as_path()));
        print_json(&ResultDocument::new(&opened.store).imported_from(imported))?;
    } else {
        print(&text_report(&opened.store))?;
    }
    for note in &opened.notes {
        say(&format!("note: {}{note}", if opened.imported.is_some() { "" } else { "the session " }));
    }
    Ok(OK)
}
