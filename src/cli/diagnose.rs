//! `qnnscope diagnose`.

use super::headless::{print, print_json};
use super::{CliError, OK};
use crate::diagnosis::{Diagnoser, Diagnosis, DiagnosisDocument, diagnosis_text};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;
/// Columns where no terminal tells.
const PIPED_WIDTH: usize = 160;
/// Files of an output folder that are looked at.
const MOST_OUTPUTS: usize = 100_000;
/// Folders inside each other that are looked at.
const MOST_LEVELS: usize = 4;

/// Arguments of `qnnscope diagnose`.
#[derive(Debug, clap::Args)]
pub struct DiagnoseArgs {
    /// The log, or - for standard input
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// Exit status of the program that wrote the log (128 and the signal for a signal)
    #[arg(long, value_name = "STATUS", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// Folder with the results of the program that wrote the log: empty files in it are a sign, too
    #[arg(long, value_name = "DIR")]
    outputs: Option<PathBuf>,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Reads the log once and prints what points to known failures. Finding some, or none, is both a success.
pub fn diagnose(args: &DiagnoseArgs) -> Result<u8, CliError> {
    let mut diagnoser = Diagnoser::new();
    if let Some(status) = args.exit_code {
        diagnoser.exit_status(status);
    }
    if let Some(outputs) = &args.outputs {
        diagnoser.empty_outputs(empty_files(outputs)?);
    }
    let diagnosis = if args.log.as_os_str() == "-" {
        read(std::io::stdin().lock(), diagnoser)
    } else {
        File::open(&args.log).and_then(|file| read(file, diagnoser))
    };
    let diagnosis = diagnosis.map_err(|source| unreadable(&args.log, &source))?;
    if args.json {
        print_json(&DiagnosisDocument::new(&diagnosis))?;
    } else {
        print(&diagnosis_text(&diagnosis, text_width()))?;
    }
    Ok(OK)
}

fn unreadable(path: &Path, source: &std::io::Error) -> CliError {
    CliError::Usage(format!("cannot read {}: {source}", path.display()))
}

fn read(mut log: impl Read, mut diagnoser: Diagnoser) -> std::io::Result<Diagnosis> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match log.read(&mut chunk) {
            Ok(0) => return Ok(diagnoser.finish()),
            Ok(count) => diagnoser.feed(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// How many files below `dir` have 0 bytes. Symbolic links are not followed.
fn empty_files(dir: &Path) -> Result<u32, CliError> {
    let mut folders = vec![(dir.to_owned(), 0)];
    let (mut seen, mut empty) = (0, 0);
    while let Some((folder, level)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|source| unreadable(&folder, &source))? {
            let entry = entry.map_err(|source| unreadable(&folder, &source))?;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && level < MOST_LEVELS {
                folders.push((entry.path(), level + 1));
            } else if kind.is_file() && entry.metadata().is_ok_and(|meta| meta.len() == 0) {
                empty += 1;
            }
            seen += 1;
            if seen >= MOST_OUTPUTS {
                return Ok(empty);
            }
        }
    }
    Ok(empty)
}

/// Columns of the terminal, or a width for files and pipes.
pub fn text_width() -> usize {
    let columns = std::io::stdout().is_terminal().then(crossterm::terminal::size).and_then(Result::ok);
    columns.map_or(PIPED_WIDTH, |(columns, _)| usize::from(columns).max(40))
}
