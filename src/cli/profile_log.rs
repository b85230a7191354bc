//! `qnnscope profile-log`: prints the contents of a QNN profiling log.

use super::headless::{check_output, print};
use super::{BAD_INPUT, CliError, OK, say};
use crate::backends::profile_log::{ProfileLogError, ReadOutcome, write_csv, write_csv_once, write_json, write_text};
use crate::event::clean_text;
use crate::files::open_input;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Arguments of `qnnscope profile-log`.
#[derive(Debug, clap::Args)]
pub struct ProfileLogArgs {
    /// qnn-profiling-data_*.log, or ONNX Runtime's *_qnn.log; `-` reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// text: averages per graph; csv: the rows of the vendor's viewer; json: everything, and statistics per graph
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Csv,
    Json,
}

/// Prints the log.
pub fn profile_log(args: &ProfileLogArgs) -> Result<u8, CliError> {
    let path = args.file.display().to_string();
    check_output().map_err(|source| CliError::Io { action: "write to stdout".to_owned(), source })?;
    let mut sink = Sink { stdout: io::stdout(), gone: false };
    let result = if args.file == Path::new("-") {
        streamed(io::stdin().lock(), args.format, &path, &mut sink)
    } else {
        let file = open(&args.file)?;
        let seekable = file.metadata().is_ok_and(|metadata| metadata.is_file());
        match args.format {
            Format::Csv if seekable => write_csv(file, &path, &mut sink),
            format => streamed(file, format, &path, &mut sink),
        }
    };
    if sink.gone {
        // The reader closed the pipe: it has seen enough.
        return Ok(OK);
    }
    report(result.map_err(|source| CliError::ProfileLog { path: path.clone(), source })?, args.format, &path)
}

fn open(path: &Path) -> Result<File, CliError> {
    let error = |reason: &dyn std::fmt::Display| CliError::Usage(format!("cannot read {}: {reason}", path.display()));
    let file = open_input(path).map_err(|source| error(&source))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(error(&"it is a directory"));
    }
    Ok(file)
}

fn streamed<R: Read, W: Write + Send>(
    source: R,
    format: Format,
    path: &str,
    sink: W,
) -> Result<ReadOutcome, ProfileLogError> {
    match format {
        Format::Text => write_text(source, path, sink),
        Format::Csv => write_csv_once(source, path, sink),
        Format::Json => write_json(source, path, sink),
    }
}

/// Stdout; remembers that its reader is gone, which is not a failure.
struct Sink<W> {
    stdout: W,
    gone: bool,
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.stdout.write(bytes);
        self.gone |= result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.stdout.flush();
        self.gone |= result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        result
    }
}

/// Reports on stderr what the rows do not show.
fn report(outcome: ReadOutcome, format: Format, path: &str) -> Result<u8, CliError> {
    let path = clean_text(path);
    if let Some(note) = nothing(&outcome) {
        let note = format!("{path}: {note}");
        if format == Format::Text {
            print(&(note + "\n"))?;
        } else {
            say(&format!("note: {note}"));
        }
    }
    if outcome.incomplete_bytes > 0 {
        say(&format!(
            "warning: {path}: the last {} bytes are an incomplete chunk and were skipped (the log is still being written, or \
             was truncated)",
            outcome.incomplete_bytes
        ));
    }
    if outcome.sessions > 1 && format == Format::Csv {
        say(&format!(
            "warning: {path}: {} sessions wrote to this log; as in the vendor's CSV, their inferences are listed \
             together and everything else is from the last one (text and json keep them apart)",
            outcome.sessions
        ));
    }
    match outcome.damage {
        None => Ok(OK),
        Some(source) => {
            let error = CliError::ProfileLog { path, source };
            say(error.render().trim_end());
            say("  next: the output covers everything before that chunk");
            Ok(BAD_INPUT)
        }
    }
}

/// Why there is nothing to print, if so.
fn nothing(outcome: &ReadOutcome) -> Option<&'static str> {
    if outcome.is_empty() {
        Some(
            "the log is empty (0 bytes). A run that failed or was killed before its first flush leaves such a log: \
             qnn-net-run writes after about 1000 messages and at its end",
        )
    } else if outcome.chunks == 0 && outcome.damage.is_none() {
        Some("the log holds no complete chunk yet")
    } else {
        None
    }
}
