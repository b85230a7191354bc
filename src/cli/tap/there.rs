//! A tapped program on a device: `qnnscope tap --device SERIAL -- PROGRAM`.

use super::super::options::rate;
use super::super::{CliError, Global, say, setup, target};
use super::TapArgs;
use super::input::{self, Input};
use super::outcome::{TapOutcome, folded};
use super::site::{runtime, start_variables, tell};
use crate::backends::runtime::Env;
use crate::event::{Event, LOCAL_DEVICE, TapRecord, TapSeen, clean_text};
use crate::probes::CounterOptions;
use crate::session::Source;
use crate::tap::device::{DeviceTap, DeviceTapOptions, LibrarySearch, Pipe};
use crate::tap::{Ended, Output, ProgramError, Server, Signals};
use std::io::Write;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::sync::mpsc;

/// Bytes of program output buffered for forwarding.
const PIPE_BYTES: usize = 64 << 10;

/// Options of programs on a device.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of programs on a device")]
pub struct DeviceArgs {
    /// Debuggable app to restart with the tap attached, instead of a program
    #[arg(long, value_name = "NAME")]
    pub package: Option<String>,
    /// Environment variable for the program there: NAME=VALUE
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = assignment)]
    env: Vec<(String, String)>,
    /// Counter readings per second on the device; 0: none
    #[arg(long, value_name = "HZ", default_value_t = 20.0, value_parser = rate)]
    counter_rate: f64,
    /// Counters to read, by id, group or glob: cpu, thermal.npu*; `qnnscope counters` lists them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    counters: Vec<String>,
    /// File with your own counters [default: counters.toml in the config folder]
    #[arg(long, value_name = "FILE")]
    counter_file: Option<PathBuf>,
}

impl DeviceArgs {
    /// The first given option that has no use on this machine.
    pub fn any(&self) -> Option<&'static str> {
        let given = [
            (self.package.is_some(), "--package"),
            (!self.env.is_empty(), "--env"),
            (!self.counters.is_empty(), "--counters"),
            (self.counter_file.is_some(), "--counter-file"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }

    /// Files that are read.
    pub fn file(&self) -> Option<&PathBuf> {
        self.counter_file.as_ref()
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(plain) {
        return Err(format!("{name} is not a valid variable name"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Finds the device, examines the program there, and sends what is needed.
pub async fn prepare(args: &TapArgs, global: &Global, source: &Source) -> Result<DeviceTap, CliError> {
    input::refuse_pipe()?;
    let input = Input::of_stdin()?;
    let there = &args.there;
    if there.package.is_some() && input.is_some() {
        return Err(CliError::Usage("an app has no standard input: leave it out, or use /dev/null".to_owned()));
    }
    let device = target::find(&target::named(global), global).await?;
    let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
    let options = DeviceTapOptions {
        command: args.command.iter().map(text).collect(),
        package: there.package.clone(),
        swap: args.swap.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        env: there.env.clone(),
        variables: start_variables(args),
        library: LibrarySearch {
            named: args.tap_library.clone(),
            runner: global.runner.clone(),
            data_dir: Env::from_process().data_dir,
        },
        input: input.as_ref().map(|input| input.path().to_owned()),
        counters: CounterOptions::new(there.counter_rate, there.counters.clone(), there.counter_file.as_deref())?,
    };
    let tap = DeviceTap::prepare(&device, &options, source).await?;
    // Piped input may arrive a moment after the start.
    if let Err(error) = input::refuse_pipe() {
        tap.remove().await;
        return Err(error);
    }
    Ok(tap)
}

/// Runs the program from start to end and collects what it left. Its output goes to `outputs`; signals arrive
/// through `orders`.
pub async fn carry_out(
    mut tap: DeviceTap,
    (args, global): (&TapArgs, &Global),
    source: &Source,
    outputs: [Pipe; 2],
    output: Output,
    orders: mpsc::UnboundedReceiver<i32>,
) -> Result<Ended, CliError> {
    let words = args.command.iter().map(|word| clean_text(&word.to_string_lossy()));
    let command = args.there.package.iter().cloned().chain(words).collect();
    tell(source, TapSeen::ProgramStarted { command }).await;
    let unreached = |reason: &str| {
        if output == Output::Own {
            say(&format!("qnnscope: {reason}"));
        }
        let seen = TapSeen::NotReached { reason: reason.to_owned() };
        source.offer(None, Event::Tap(Box::new(TapRecord { process: None, seen })));
    };
    if let Some(reason) = tap.barrier() {
        unreached(&reason);
    }
    let (server, _) = Server::new(tap.device().id(), source.clone(), runtime(global));
    let result = tap.run(&server, outputs, orders, &unreached).await;
    if let Ok(ended) = &result {
        tell(source, TapSeen::ProgramEnded { status: ended.status, signal: ended.signal }).await;
    }
    tap.remove().await;
    Ok(result?)
}

/// Without the live view: the program gets our outputs and our signals.
pub async fn session(args: &TapArgs, global: &Global) -> Result<TapOutcome, CliError> {
    let (mut hub, source) = setup::open_session(&args.output()).await?;
    let work = async {
        let result = run(args, global, &source).await;
        // Drops the last source; the hub then ends.
        drop(source);
        result
    };
    let (result, store) = folded(&mut hub, work).await;
    let (ended, failure) = match result? {
        Ok(ended) => (Some(ended), None),
        Err(error) => (None, Some(error)),
    };
    Ok(TapOutcome { ended, store, record_error: hub.take_record_error(), failure })
}

/// What failed before the program ran, or how it ended if it did.
async fn run(args: &TapArgs, global: &Global, source: &Source) -> Result<Result<Ended, CliError>, CliError> {
    let tap = tokio::select! {
        tap = prepare(args, global, source) => tap?,
        _ = setup::termination() => return Err(CliError::Interrupted),
    };
    let mut signals = Signals::catch().map_err(ProgramError::Signals)?;
    let (orders, given) = mpsc::unbounded_channel();
    let [(stdout, own_stdout), (stderr, own_stderr)] = [(); 2].map(|()| tokio::io::duplex(PIPE_BYTES));
    let poured = [tokio::spawn(pour(own_stdout, std::io::stdout)), tokio::spawn(pour(own_stderr, std::io::stderr))];
    let outputs: [Pipe; 2] = [Box::new(stdout), Box::new(stderr)];
    let pass = async {
        loop {
            let _ = orders.send(signals.next().await);
        }
    };
    let ended = tokio::select! {
        ended = carry_out(tap, (args, global), source, outputs, Output::Own, given) => ended,
        () = pass => Err(CliError::Interrupted),
    };
    for task in poured {
        let _ = task.await;
    }
    Ok(ended)
}

/// Forwards a pipe to one of our own outputs, which may be slow.
async fn pour<W: Write>(mut pipe: DuplexStream, output: impl Fn() -> W + Copy + Send + 'static) {
    let mut bytes = vec![0; PIPE_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut bytes).await {
        let piece = bytes[..count].to_vec();
        let written = tokio::task::spawn_blocking(move || {
            let mut output = output();
            output.write_all(&piece).and_then(|()| output.flush())
        });
        // Its reader may be gone; whatever the program does next must not be lost with it.
        let _ = written.await;
    }
}

/// True if the program is on a device.
pub fn is_there(global: &Global) -> bool {
    target::named(global) != LOCAL_DEVICE
}
