//! A tapped program in the live view: every graph it executes, layer by layer; its output goes to the log.

use super::super::{CliError, FAILED, Global, OK, headless as runs, say, setup, target};
use super::TapArgs;
use super::headless::{end_as, status_of};
use super::site::{Site, runtime, tell};
use super::there;
use crate::app::{self, AppOptions, Request, StartChoice};
use crate::event::{Event, LOCAL_DEVICE, LogLevel, LogLine, LogSource, Record, TapSeen};
use crate::probes::HostProbe;
use crate::report::tap_text;
use crate::session::Source;
use crate::store::Store;
use crate::tap::device::{self, DeviceTap};
use crate::tap::{Ended, Output, Program, Server, send};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::{mpsc, watch};

/// Records queued for the view.
const VIEW_CAPACITY: usize = 4096;
/// Maximum length of a piece of a line shown as one, bytes.
const LONGEST_LINE: u64 = 64 << 10;
/// Time that an interrupted program may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time that its last output may take to arrive.
const LAST_LINES: Duration = Duration::from_millis(500);
/// Bytes of program output buffered for the view.
const PIPE_BYTES: usize = 256 << 10;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;

/// One of the program's outputs.
type Pipe = Box<dyn AsyncRead + Send + Unpin>;

/// Opens the live view and runs the program in it.
pub fn live(args: &TapArgs, global: &Global) -> Result<u8, CliError> {
    let (ended, status) = setup::block_on(session(args, global))??;
    Ok(if there::is_there(global) { status_of(ended, status) } else { end_as(ended, status) })
}

/// A program that is ready to run, or already running.
enum Ready {
    Here(Box<(Site, Program)>),
    There(Box<DeviceTap>),
}

async fn session(args: &TapArgs, global: &Global) -> Result<(Option<Ended>, u8), CliError> {
    let (mut hub, source) = setup::open_session(&args.output()).await?;
    let ready = if there::is_there(global) {
        Ready::There(Box::new(there::prepare(args, global, &source).await?))
    } else {
        let site = Site::new(args)?;
        let program = site.start(args, Output::Piped, &source).await?;
        Ready::Here(Box::new((site, program)))
    };
    let name = args.command.first().map(PathBuf::from).unwrap_or_default();
    let app_options = AppOptions {
        theme: global.theme.clone(),
        ascii: global.ascii,
        start: Some(StartChoice { device: target::named(global), model: name, backends: Vec::new() }),
        themes_dir: app::default_keymap_path().and_then(|path| Some(path.parent()?.join("themes"))),
        keymap_file: app::default_keymap_path().filter(|path| path.exists()),
        ..AppOptions::default()
    };
    let (records, mut view) = mpsc::channel::<Record>(VIEW_CAPACITY);
    let (requests, mut asked) = mpsc::channel::<Request>(16);
    let (stop, stopping) = watch::channel(false);
    let pump = tokio::spawn(async move {
        // The session outlives the view and is recorded to its end.
        while let Some(record) = hub.next().await {
            let _ = records.send(record).await;
        }
        for record in hub.close() {
            let _ = records.send(record).await;
        }
        hub
    });
    let work = async {
        let ended = match ready {
            Ready::Here(ready) => {
                let (site, program) = *ready;
                here((args, global), site, program, &source, stopping).await
            }
            Ready::There(tap) => away(*tap, (args, global), &source, stopping).await,
        };
        // Drops the last source; the hub then ends.
        drop(source);
        ended
    };
    let serve = async {
        while let Some(request) = asked.recv().await {
            match request {
                Request::Stop(_) => drop(stop.send(true)),
                Request::Quit => break,
                // The program is fixed: none of this can be chosen.
                Request::Start { .. } | Request::Restart(_) | Request::Switch { .. } => {}
            }
        }
        // The view is gone, and the program is to go with it.
        let _ = stop.send(true);
    };
    let shown = async {
        let (mut store, ()) = tokio::join!(app::run(app_options, Store::new(), &mut view, requests), serve);
        // Until the end, this stands in for the view.
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

/// Runs a program on this machine to its end.
async fn here(
    (args, global): (&TapArgs, &Global),
    site: Site,
    mut program: Program,
    source: &Source,
    stopping: watch::Receiver<bool>,
) -> Option<Ended> {
    let _probe = HostProbe::start(source.clone());
    let (server, mut told) = Server::new(LOCAL_DEVICE, source.clone(), runtime(global));
    let (over, is_over) = watch::channel(false);
    let running = async {
        let ended = run(&mut program, source, stopping).await;
        let _ = over.send(true);
        ended
    };
    let serving = async { tokio::join!(running, server.serve(&site.listener, is_over)).0 };
    tokio::select! {
        ended = serving => ended,
        // Otherwise context binaries could not be read before the end.
        () = server.read_binaries() => None,
        () = site.watch(source, Output::Piped, args.swap.is_some(), &mut told) => None,
    }
}

/// Runs a program on a device to its end.
async fn away(
    tap: DeviceTap,
    (args, global): (&TapArgs, &Global),
    source: &Source,
    mut stopping: watch::Receiver<bool>,
) -> Option<Ended> {
    let (orders, given) = mpsc::unbounded_channel();
    let [(stdout, own_stdout), (stderr, own_stderr)] = [(); 2].map(|()| tokio::io::duplex(PIPE_BYTES));
    let printed = [stdout, stderr].map(|pipe| tokio::spawn(lines(Some(Box::new(pipe) as Pipe), source.clone())));
    let interrupt = async {
        if stopping.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
        let _ = orders.send(SIGINT);
        tokio::time::sleep(PATIENCE).await;
        let _ = orders.send(SIGKILL);
        std::future::pending::<()>().await;
    };
    let outputs: [device::Pipe; 2] = [Box::new(own_stdout), Box::new(own_stderr)];
    let ended = tokio::select! {
        ended = there::carry_out(tap, (args, global), source, outputs, Output::Piped, given) => ended,
        () = interrupt => Err(CliError::Interrupted),
    };
    for task in printed {
        let _ = task.await;
    }
    match ended {
        Ok(ended) => Some(ended),
        Err(error) => {
            let line = LogLine::new(LogLevel::Error, LogSource::Qnnscope, error.render().trim_end());
            source.send(None, Event::Log(line)).await;
            None
        }
    }
}

/// Runs the program to its end and collects its output. When told to stop, it interrupts the program first,
/// as a terminal would.
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
        // A program that does not end on that is killed.
        send(pid, SIGKILL);
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = program.wait() => ended.ok(),
        () = interrupt => None,
    };
    for task in printed {
        let abort = task.abort_handle();
        // Processes that outlive it may keep the pipe open.
        if tokio::time::timeout(LAST_LINES, task).await.is_err() {
            abort.abort();
        }
    }
    if let Some(ended) = ended {
        tell(source, TapSeen::ProgramEnded { status: ended.status, signal: ended.signal }).await;
    }
    ended
}

/// Forwards the program's output line by line.
async fn lines(pipe: Option<Pipe>, source: Source) {
    let Some(pipe) = pipe else { return };
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    // A line without an end is cut, so that it cannot exhaust the memory.
    while let Ok(1..) = (&mut pipe).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        let event = Event::Log(LogLine::new(LogLevel::Info, LogSource::Program, &text));
        source.send(None, event).await;
        line.clear();
    }
}
