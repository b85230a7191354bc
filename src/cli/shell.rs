//! `qnnscope completions` and `qnnscope man`, generated from the command line definition.

use super::headless::print;
use super::{CliError, OK};
use crate::files::{Guard, Kind, write_whole};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Arguments of `qnnscope completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for the shell.
pub fn completions(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut for_people(), "qnnscope", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(OK)
}

/// Arguments of `qnnscope man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Command to print the page of [default: qnnscope itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Overwrite files that are not man pages of qnnscope
    #[arg(long, requires = "dir")]
    force: bool,
}

/// Prints a man page, or writes all of them.
pub fn man(args: &ManArgs) -> Result<u8, CliError> {
    let mut whole = for_people();
    whole.build();
    let Some(dir) = &args.dir else {
        let page = match &args.command {
            None => whole.clone(),
            Some(name) => find(&whole, name)?,
        };
        print(&String::from_utf8_lossy(&rendered(&page)?))?;
        return Ok(OK);
    };
    std::fs::create_dir_all(dir).map_err(|source| unwritten(dir, source))?;
    let mut guard = Guard::new(args.force);
    let mut pages = Vec::new();
    for page in std::iter::once(&whole).chain(shown(&whole)) {
        let path = dir.join(format!("{}.1", page.get_display_name().unwrap_or("qnnscope")));
        guard.claim("--dir", &path, Kind::ManPage)?;
        pages.push((path, rendered(page)?));
    }
    // Nothing is written unless all pages may be.
    for (path, page) in pages {
        write_whole(&path, &page).map_err(|source| unwritten(&path, source))?;
    }
    Ok(OK)
}

/// The command line without internal subcommands.
fn for_people() -> clap::Command {
    let whole = super::Cli::command();
    let about = whole.get_about().cloned().unwrap_or_default();
    clap::Command::new("qnnscope")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .args(whole.get_arguments())
        .subcommands(shown(&whole).cloned())
}

/// Public commands.
fn shown(whole: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    whole.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn find(whole: &clap::Command, name: &str) -> Result<clap::Command, CliError> {
    let found = shown(whole).find(|command| command.get_name() == name).cloned();
    found.ok_or_else(|| CliError::Usage(format!("there is no command `{name}`: `qnnscope --help` lists them")))
}

fn rendered(page: &clap::Command) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(page.clone())
        .render(&mut bytes)
        .map_err(|source| CliError::Io { action: "make the page".to_owned(), source })?;
    Ok(bytes)
}

fn unwritten(path: &Path, source: std::io::Error) -> CliError {
    CliError::Io { action: format!("write {}", path.display()), source }
}
