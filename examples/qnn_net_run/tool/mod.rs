//! The tool: takes a command line; produces console lines, files and an exit status.

mod config;
mod console;
mod ending;
mod inputs;
mod metadata;
mod options;
mod run;

use console::Console;
use ending::Ending;
use options::{Options, Parsed};
use std::process::ExitCode;

/// Version in `--version` and the first log line: the release whose libraries the tests use.
const BUILD: &str = concat!("v2.47.0.0_qnnscope-", env!("CARGO_PKG_VERSION"));

/// The tool, or its runner process.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == qnnscope::RUNNER_SUBCOMMAND) {
        return qnnscope::backends::qnn::runner::main();
    }
    // The vendor's tool is an ordinary program: anything preloaded into it takes effect.
    qnnscope::backends::local::run_unconfined();
    let options = match Options::parse(&arguments) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Help) => {
            console::plain(options::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Parsed::Version) => {
            console::plain(&format!("QNN SDK {BUILD}"));
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            console::plain_error(&message);
            console::plain(options::HELP);
            return ExitCode::FAILURE;
        }
    };
    let console = Console::new(options.log_level);
    console::plain(&format!("qnn-net-run pid:{}", std::process::id()));
    let ending = run::run(&options, &arguments, &console);
    if let Ending::Crashed(signal) = ending {
        ending::die_by(signal);
    }
    ExitCode::from(ending.tell())
}
