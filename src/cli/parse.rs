//! Parses the command line. Invalid arguments are echoed, so they are sanitised first.

use super::headless::check_output;
use super::{BAD_INPUT, Cli, FAILED, OK, say};
use crate::event::{clean_text, disturbs};
use clap::Parser;
use std::ffi::OsString;
use std::io::{self, Write};

/// The parsed command line, or the exit status if it asks for help or is invalid.
pub fn parse() -> Result<Cli, u8> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match Cli::try_parse_from(&arguments) {
        Ok(cli) => Ok(cli),
        Err(text) if !text.use_stderr() => Err(print(&text)),
        Err(error) => {
            complain(&error, &arguments);
            Err(BAD_INPUT)
        }
    }
}

/// Help and version are regular output: losing them is a failure.
fn print(text: &clap::Error) -> u8 {
    match check_output().and_then(|()| text.print()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            FAILED
        }
        _ => OK,
    }
}

/// The error quotes the arguments; escape sequences in them must not reach the terminal.
fn complain(error: &clap::Error, arguments: &[OsString]) {
    let texts = || arguments.iter().map(|argument| argument.to_string_lossy());
    if !texts().any(|text| text.contains(disturbs)) {
        let _ = error.print();
        return;
    }
    match Cli::try_parse_from(texts().map(|text| clean_text(&text))) {
        Err(error) => {
            let _ = error.print();
        }
        // Only the characters that were replaced made it invalid.
        Ok(_) => {
            let lines: Vec<String> = error.to_string().lines().map(clean_text).collect();
            say(lines.join("\n").trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_a_diagnosis_advises_are_ones_that_this_program_takes() {
        let mut wrong = Vec::new();
        for (cause, command) in crate::diagnosis::commands_of_steps() {
            for part in command.split("; ").filter(|part| part.starts_with("qnnscope ")) {
                // Parsed, not executed.
                if let Err(error) = Cli::try_parse_from(part.split_whitespace()) {
                    wrong.push(format!("{cause}: {part}: {error}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
