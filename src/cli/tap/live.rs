//! A tapped program in the live view: every graph that it executes, per layer; what it prints is in the log.

use super::super::{CliError, FAILED, Global, OK, headless as runs, say, setup};
use super::TapArgs;
use super::headless::end_as;
use super::site::{Site, tell};
use crate::app::{self, AppOptions, Request, StartChoice};
use crate::event::{Event, LogLevel, LogLine, LogSource, Record, TapSeen};
use crate::probes::HostProbe;
use crate::report::tap_text;
use crate::session::Source;
use crate::store::Store;
use crate::tap::{Ended, Output, Program, Server, send};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::{mpsc, watch};

/// Records that may wait for the view.
const VIEW_CAPACITY: usize = 4096;
/// Longest piece of a line that is shown as one.
const LONGEST_LINE: u64 = 64 << 10;
/// How long a program that was interrupted may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what it printed last may take to arrive.
const LAST_LINES: Duration = Duration::from_millis(500);
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;

/// One of the program's outputs.
type Pipe = Box<dyn AsyncRead + Send + Unpin>;

/// Opens the live view and runs the program in it.
pub fn live(args: &TapArgs, global: &Global) -> Result<u8, CliError> {
    let (ended, status) = setup::block_on(session(args, global))??;
    Ok(end_as(ended, status))
}

async fn session(args: &TapArgs, global: &Global) -> Result<(Option<Ended>, u8), CliError> {
    let (mut hub, source) = setup::open_session(&args.output()).await?;
    let site = Site::new(args)?;
    let mut program = site.start(args, Output::Piped, &source).await?;
    let name = args.command.first().map(PathBuf::from).unwrap_or_default();
    let app_options = AppOptions {
        theme: global.theme.clone(),
        ascii: global.ascii,
        start: Some(StartChoice { device: "local".to_owned(), model: name, backends: Vec::new() }),
        themes_dir: app::default_keymap_path().and_then(|path| Some(path.parent()?.join("themes"))),
        keymap_file: app::default_keymap_path().filter(|path| path.exists()),
        ..AppOptions::default()
    };
    let (records, mut view) = mpsc::channel::<Record>(VIEW_CAPACITY);
    let (requests, mut asked) = mpsc::channel::<Request>(16);
    let (stop, stopping) = watch::channel(false);
    let pump = tokio::spawn(async move {
        // The session goes on where the view has ended, and is recorded to its end.
        while let Some(record) = hub.next().await {
            let _ = records.send(record).await;
        }
        for record in hub.close() {
            let _ = records.send(record).await;
        }
        hub
    });
    let swapped = args.swap.is_some();
    let work = async {
        let probe = HostProbe::start(source.clone());
        let (server, mut told) = Server::new(source.clone());
        let (over, is_over) = watch::channel(false);
        let ended = {
            let running = async {
                let ended = run(&mut program, &source, stopping).await;
                let _ = over.send(true);
                ended
            };
            let serving = async { tokio::join!(running, server.serve(&site.listener, is_over)).0 };
            tokio::select! {
                ended = serving => ended,
                () = site.watch(&source, Output::Piped, swapped, &mut told) => None,
            }
        };
        // With these goes the last source: the hub then ends.
        drop((server, probe, source));
        ended
    };
    let serve = async {
        while let Some(request) = asked.recv().await {
            match request {
                Request::Stop => drop(stop.send(true)),
                Request::Quit => break,
                // The program is what it is: nothing of it can be chosen.
                Request::Start { .. } | Request::Restart | Request::Switch(_) => {}
            }
        }
        // The view is gone, and the program is to go with it.
        let _ = stop.send(true);
    };
    let shown = async {
        let (mut store, ()) = tokio::join!(app::run(app_options, Store::new(), &mut view, requests), serve);
        // Until the end, the view's place is taken here.
        while let Some(record) = view.recv().await {
            if let Ok(store) = &mut store {
                store.apply(&record);
            }
        }
        store
    };
    let (ended, store) = tokio::join!(work, shown);
    let mut hub = pump.await;
    if let Ok(hub) = &mut hub {
        setup::close_session(hub, store.as_ref().ok());
    }
    runs::print(&tap_text(&store?))?;
    if let Ok(mut hub) = hub
        && let Some(error) = hub.take_record_error()
    {
        say(CliError::from(error).render().trim_end());
        return Ok((ended, FAILED));
    }
    Ok((ended, OK))
}

/// The program to its end, with what it prints. Asked to stop, it is interrupted first, as in a terminal.
async fn run(program: &mut Program, source: &Source, mut stopping: watch::Receiver<bool>) -> Option<Ended> {
    let (stdout, stderr) = program.outputs();
    let printed = [
        tokio::spawn(lines(stdout.map(|pipe| Box::new(pipe) as Pipe), source.clone())),
        tokio::spawn(lines(stderr.map(|pipe| Box::new(pipe) as Pipe), source.clone())),
    ];
    let pid = program.pid();
    let interrupt = async {
        if stopping.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
        send(pid, SIGINT);
        tokio::time::sleep(PATIENCE).await;
        // One that does not end by that is ended.
        send(pid, SIGKILL);
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = program.wait() => ended.ok(),
        () = interrupt => None,
    };
    for task in printed {
        let abort = task.abort_handle();
        // Processes that outlive it may hold the pipe open.
        if tokio::time::timeout(LAST_LINES, task).await.is_err() {
            abort.abort();
        }
    }
    if let Some(ended) = ended {
        tell(source, TapSeen::ProgramEnded { status: ended.status, signal: ended.signal }).await;
    }
    ended
}

/// What the program prints, line by line.
async fn lines(pipe: Option<Pipe>, source: Source) {
    let Some(pipe) = pipe else { return };
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    // A line without an end is cut, so that it cannot fill the memory.
    while let Ok(1..) = (&mut pipe).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        let event = Event::Log(LogLine::new(LogLevel::Info, LogSource::Program, &text));
        source.send(None, event).await;
        line.clear();
    }
}
