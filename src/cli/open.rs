//! `qnnscope open`: recorded sessions in the live view.

use super::{CliError, Global, OK, live, say, setup};
use crate::accuracy::AccuracyDocument;
use crate::app::{self, AppOptions, Library, Recording};
use crate::event::clean_text;
use crate::history::{self, Filter, HistoryError};
use crate::report::comparison::LoadError;
use crate::session::{Opened, Playlist, ReadError};
use crate::store::Store;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `qnnscope open`.
#[derive(Debug, clap::Args)]
pub struct OpenArgs {
    /// Session files, or what `accuracy --json` printed; @ID, @NAME or @last picks a session of the history [default: choose one of the history]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replay from the start instead of showing everything at once
    #[arg(long)]
    play: bool,
    /// Recorded seconds per second, 0.1 to 100
    #[arg(long, value_name = "X", default_value = "1", requires = "play", value_parser = speed)]
    speed: f64,
}

/// Opens recorded sessions.
pub fn open(args: &OpenArgs, global: &Global) -> Result<u8, CliError> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let text = "`open` needs a terminal; `qnnscope show FILE` prints the report without one";
        return Err(CliError::Usage(text.to_owned()));
    }
    let files: Vec<PathBuf> = args.files.iter().map(|file| history::resolve(file)).collect::<Result<_, _>>()?;
    if let Some(document) = accuracy(&files)? {
        return view_accuracy(document, global);
    }
    let (mut first, mut notes) = (None, Vec::new());
    if !files.is_empty() {
        let (opened, recording) = load(files, args.play.then_some(args.speed)).map_err(LoadError::from)?;
        let subject = if opened.imported.is_some() { "" } else { "the session " };
        notes = opened.notes.iter().map(|note| format!("{subject}{note}")).collect();
        first = Some((if args.play { Store::new() } else { opened.store }, recording));
    }
    // Without a history the named files still open.
    let library = library(args.play.then_some(args.speed))
        .or_else(|error| if first.is_some() { Ok(None) } else { Err(error) })?;
    let options = AppOptions { library, ..live::looks(global) };
    setup::block_on(app::replay(options, first))??;
    for note in &notes {
        say(&format!("note: {}", clean_text(note)));
    }
    Ok(OK)
}

/// The comparison of two models in a file, if it is one.
fn accuracy(files: &[PathBuf]) -> Result<Option<AccuracyDocument>, CliError> {
    for path in files {
        let shown = || clean_text(&path.to_string_lossy());
        match AccuracyDocument::read(path) {
            Ok(None) => {}
            Ok(Some(_)) if files.len() > 1 => {
                let text = format!("{} compares two models layer by layer: open it alone", shown());
                return Err(CliError::Usage(text));
            }
            Ok(document) => return Ok(document),
            Err(reason) => return Err(LoadError::Document { path: shown(), reason }.into()),
        }
    }
    Ok(None)
}

/// Shows a comparison of two models in the live view.
pub fn view_accuracy(document: AccuracyDocument, global: &Global) -> Result<u8, CliError> {
    let options = AppOptions { accuracy: Some(Arc::new(document)), ..live::looks(global) };
    setup::block_on(app::replay(options, None))??;
    Ok(OK)
}

fn load(files: Vec<PathBuf>, play: Option<f64>) -> Result<(Opened, Recording), ReadError> {
    let playlist = Playlist::new(files)?;
    let opened = playlist.fold()?;
    let store = &opened.store;
    let started_us = store.session().map_or(0, |session| session.monotonic_us);
    let span_us = (started_us.min(store.now_us()), store.now_us());
    let mut recording = Recording::new(move || Box::new(playlist.records()), span_us, play);
    recording.notice = opened.notes.first().map(|note| format!("the session {note}"));
    Ok((opened, recording))
}

/// The kept sessions.
fn library(play: Option<f64>) -> Result<Option<Library>, HistoryError> {
    let history = setup::history()?;
    let sessions = history.entries(&Filter::default())?;
    let load = move |id: &str| {
        let (opened, recording) = load(vec![history.file(id)], play).map_err(|error| error.to_string())?;
        Ok((if play.is_some() { Store::new() } else { opened.store }, recording))
    };
    Ok(Some(Library { sessions, load: Arc::new(load) }))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.1..=100.0).contains(speed));
    speed.ok_or_else(|| "expected a number from 0.1 to 100".to_owned())
}
