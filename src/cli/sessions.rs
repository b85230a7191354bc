//! `qnnscope sessions`: the history.

use super::headless::{print, print_json};
use super::options::backend;
use super::{CliError, OK, say, setup};
use crate::backends::Backend;
use crate::event::clean_text;
use crate::files::{Guard, Kind, OutputError};
use crate::history::{Entry, Filter, Marks, moment_us};
use crate::report::{SessionsDocument, session_text, sessions_text};
use crate::session::{Coding, decode};
use clap::Subcommand;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `qnnscope sessions`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

/// Which sessions are listed.
#[derive(Debug, Default, clap::Args)]
struct ListArgs {
    /// Only sessions with a model whose path contains this
    #[arg(long, value_name = "TEXT")]
    model: Option<String>,
    /// Only sessions on a device whose id or name contains this
    #[arg(long = "on", value_name = "TEXT")]
    device: Option<String>,
    /// Only sessions on this backend
    #[arg(short, long, value_name = "BACKEND", value_parser = backend)]
    backend: Option<Backend>,
    /// Only sessions that began on this day (UTC) or later
    #[arg(long, value_name = "DATE", value_parser = moment_us)]
    since: Option<u64>,
    /// Only sessions that began before this day (UTC)
    #[arg(long, value_name = "DATE", value_parser = moment_us)]
    until: Option<u64>,
    /// Only sessions with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only sessions whose name, note, tags, model or error contain this
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// The newest of them
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// A session: its id or the beginning of it, its name, `last`, or `last~N`.
#[derive(Debug, clap::Args)]
struct One {
    /// Id or its beginning, name, last, or last~N
    #[arg(value_name = "SESSION")]
    session: String,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// What the history knows of a session; `qnnscope show @SESSION` prints its report
    Show {
        #[command(flatten)]
        one: One,
        /// Print the document as JSON on stdout
        #[arg(long)]
        json: bool,
    },
    /// Give a session tags, or take them away
    Tag {
        #[command(flatten)]
        one: One,
        /// The tags
        #[arg(value_name = "TAG", required = true)]
        tags: Vec<String>,
        /// Take them away
        #[arg(long)]
        remove: bool,
    },
    /// Give a session a note; an empty one takes it away
    Note {
        #[command(flatten)]
        one: One,
        /// The note
        #[arg(value_name = "TEXT")]
        text: String,
    },
    /// Give a session a name; an empty one takes it away
    Rename {
        #[command(flatten)]
        one: One,
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove sessions
    Delete {
        /// Ids or their beginnings, names, last, or last~N
        #[arg(value_name = "SESSION", required = true)]
        sessions: Vec<String>,
    },
    /// Write a session to a file: compressed if its name ends in .zst, else as JSON lines
    Export {
        #[command(flatten)]
        one: One,
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Overwrite a file that qnnscope did not write
        #[arg(long)]
        force: bool,
    },
}

/// Lists or changes the history.
pub fn sessions(args: &SessionsArgs) -> Result<u8, CliError> {
    let history = setup::history()?;
    match &args.command {
        None => return list(&args.list),
        Some(SessionsCommand::Show { one, json }) => {
            let entry = history.find(&one.session)?;
            if *json {
                print_json(&SessionsDocument::new(&[entry]))?;
            } else {
                print(&session_text(&entry, &history.file(&entry.id)))?;
            }
        }
        Some(SessionsCommand::Tag { one, tags, remove }) => mark(one, |marks| {
            // As stored: without surrounding white space.
            for tag in tags.iter().map(|tag| tag.trim()) {
                if *remove {
                    marks.tags.remove(tag);
                } else {
                    marks.tags.insert(tag.to_owned());
                }
            }
        })?,
        Some(SessionsCommand::Note { one, text }) => mark(one, |marks| marks.note = Some(text.clone()))?,
        Some(SessionsCommand::Rename { one, name }) => mark(one, |marks| marks.name = Some(name.clone()))?,
        Some(SessionsCommand::Delete { sessions }) => {
            // All are looked up before the first is deleted: `last` must not move in between.
            let found: Vec<Entry> = sessions.iter().map(|session| history.find(session)).collect::<Result<_, _>>()?;
            for entry in &found {
                history.delete(entry)?;
                say(&format!("removed {}", entry.id));
            }
        }
        Some(SessionsCommand::Export { one, file, force }) => {
            let source = history.file(&history.find(&one.session)?.id);
            let mut guard = Guard::new(*force);
            guard.reads("the session", &source);
            setup::protect_history(&mut guard);
            copy(&source, file, &guard)?;
        }
    }
    Ok(OK)
}

fn list(args: &ListArgs) -> Result<u8, CliError> {
    let filter = Filter {
        model: args.model.clone(),
        device: args.device.clone(),
        backend: args.backend.map(|backend| backend.name().to_owned()),
        tag: args.tag.clone(),
        text: args.text.clone(),
        since_us: args.since,
        until_us: args.until,
        limit: args.limit.map(|limit| limit as usize),
    };
    let entries = setup::history()?.entries(&filter)?;
    if args.json {
        print_json(&SessionsDocument::new(&entries))?;
    } else if entries.is_empty() {
        let any = filter != Filter::default();
        say(if any { "no session matches these filters" } else { "no sessions yet: every run is kept from now on" });
    } else {
        print(&sessions_text(&entries))?;
    }
    for (entry, error) in entries.iter().filter_map(|entry| Some((entry, entry.marks_error.as_ref()?))) {
        say(&format!("note: of {}: {}", entry.id, clean_text(error)));
    }
    Ok(OK)
}

fn mark(one: &One, change: impl FnOnce(&mut Marks)) -> Result<(), CliError> {
    let history = setup::history()?;
    let mut entry = history.find(&one.session)?;
    history.mark(&mut entry, change)?;
    print(&session_text(&entry, &history.file(&entry.id)))
}

fn copy(source: &std::path::Path, target: &std::path::Path, guard: &Guard) -> Result<(), CliError> {
    let option = "the exported session";
    let failed = |source| OutputError::Io { option, path: target.to_owned(), source };
    let mut out = guard.open(option, target, Kind::Session)?;
    let copied = out.empty().and_then(|()| {
        let file = File::open(source)?;
        match Coding::of_name(target) {
            Coding::Zstd => io::copy(&mut io::BufReader::new(file), &mut out),
            Coding::Plain => whole_lines(decode(file)?.as_mut(), &mut out),
        }
    });
    copied.and_then(|_| out.sync()).map_err(failed)?;
    Ok(())
}

/// Copies lines as far as they are readable: a truncated session is exported up to that point.
fn whole_lines(source: &mut dyn io::BufRead, out: &mut impl Write) -> io::Result<u64> {
    let mut copied = 0;
    loop {
        let read = match source.fill_buf() {
            Ok([]) => return Ok(copied),
            Ok(bytes) => {
                out.write_all(bytes)?;
                bytes.len()
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(copied),
            Err(error) => return Err(error),
        };
        copied += read as u64;
        source.consume(read);
    }
}
