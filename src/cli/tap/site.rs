//! Everything around a tapped program: socket, library, variables, and barriers to the tap.

use super::super::{CliError, Global, options, say};
use super::TapArgs;
use crate::backends::local::Scratch;
use crate::event::{Event, TapRecord, TapSeen, clean_text};
use crate::files::write_whole;
use crate::session::Source;
use crate::tap::{Listener, Output, Program, ServerEvent, Variables, library, reach};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// Time within which the tap loads, if it loads at all.
const LOADS_WITHIN: Duration = Duration::from_millis(900);
/// Backends that the tap can replace.
const SWAPPED: [&str; 3] = ["libQnnHtp.so", "libQnnCpu.so", "libQnnGpu.so"];

/// What the program is given.
pub struct Site {
    pub listener: Listener,
    pub variables: Variables,
    barrier: Option<reach::Barrier>,
    pid_file: Option<PathBuf>,
    _folder: Scratch,
}

impl Site {
    /// Finds the library and starts listening.
    pub fn new(args: &TapArgs) -> Result<Self, CliError> {
        let library = library::find(args.tap_library.as_deref()).map_err(|error| match error {
            library::LibraryError::NotATap(..) => CliError::Usage(error.to_string()),
            error => CliError::Missing {
                message: error.to_string(),
                hint: format!(
                    "build it with `cargo build`, or name it with --tap-library FILE or ${}",
                    library::VARIABLE
                ),
            },
        })?;
        let io = |action: &str| {
            let action = action.to_owned();
            move |source| CliError::Io { action, source }
        };
        let folder = Scratch::new().map_err(io("make a folder for temporary files"))?;
        let listener = match &args.listen {
            Some(path) => Listener::at(path)?,
            None => Listener::private()?,
        };
        let mut variables = start_variables(args);
        variables.sink(listener.path());
        let barrier = args.command.first().and_then(|program| reach::barrier(program));
        match &args.swap {
            Some(real) => swap(real, &library, folder.path(), &mut variables)?,
            // The loader would complain on the program's stderr.
            None if barrier.as_ref().is_some_and(|barrier| barrier.refuses) => {}
            None => {
                let old = std::env::var_os("LD_PRELOAD");
                let value = library::preload(&library, folder.path(), old.as_deref());
                variables.set("LD_PRELOAD", value.map_err(io("link the tap library"))?);
            }
        }
        if let Some(path) = &args.pid_file {
            write_whole(path, format!("{}\n", std::process::id()).as_bytes()).map_err(io("write --pid-file"))?;
        }
        Ok(Self { listener, variables, barrier, pid_file: args.pid_file.clone(), _folder: folder })
    }

    /// Starts the program and reports what keeps the tap out of it, if that is known.
    pub async fn start(&self, args: &TapArgs, output: Output, source: &Source) -> Result<Program, CliError> {
        let command = args.command.iter().map(|word| clean_text(&word.to_string_lossy())).collect();
        tell(source, TapSeen::ProgramStarted { command }).await;
        let program = Program::start(&args.command, &self.variables, output)?;
        if let Some(barrier) = &self.barrier {
            let reason =
                format!("{} {}; {}", clean_text(&barrier.file.to_string_lossy()), barrier.reason, barrier.advice);
            not_reached(source, reason, output).await;
        }
        Ok(program)
    }

    /// Waits for the first process that loads the tap, and reports it if there is none.
    pub async fn watch(
        &self,
        source: &Source,
        output: Output,
        swapped: bool,
        told: &mut mpsc::UnboundedReceiver<ServerEvent>,
    ) {
        // In place of a backend, the tap is loaded when the program opens that backend, which may be late.
        let in_time = tokio::time::timeout(LOADS_WITHIN, told.recv()).await;
        if self.barrier.is_none() && !swapped && in_time.is_err() {
            let reason =
                "no process of the program loaded the tap within a second: the program is hardened, or another process \
                          starts its children (use --listen for those)"
                    .to_owned();
            not_reached(source, reason, output).await;
        }
        // Events report whatever comes later.
        while told.recv().await.is_some() {}
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Only a file that is still this process's own, with its id in it.
        let Some(path) = self.pid_file.as_ref().and_then(|path| path.canonicalize().ok()) else { return };
        let own = format!("{}\n", std::process::id());
        if path.is_file() && std::fs::read(&path).is_ok_and(|text| text == own.as_bytes()) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Reports what keeps the tap out: on stderr unless the live view is open. The program continues.
async fn not_reached(source: &Source, reason: String, output: Output) {
    if output == Output::Own {
        say(&format!("qnnscope: {reason}"));
    }
    tell(source, TapSeen::NotReached { reason }).await;
}

/// Folder of the available QNN libraries, which read the context binaries of programs whose own libraries are
/// not; `None` if there are none.
pub fn runtime(global: &Global) -> Option<PathBuf> {
    options::runtime(global).ok().map(|runtime| runtime.path)
}

/// Variables passed to the tap wherever it is loaded.
pub fn start_variables(args: &TapArgs) -> Variables {
    let mut variables = Variables::default();
    variables.detail(&args.detail_every);
    if let Some(level) = &args.log {
        variables.log(level);
    }
    if let Some(repair) = &args.repair {
        variables.repair(repair);
    }
    variables
}

/// Puts an observation about the program as a whole on the stream.
pub async fn tell(source: &Source, seen: TapSeen) {
    source.send(None, Event::Tap(Box::new(TapRecord { process: None, seen }))).await;
}

/// A folder with the tap under the backends' names, to be searched before the real ones.
fn swap(real: &Path, library: &Path, folder: &Path, variables: &mut Variables) -> Result<(), CliError> {
    let real =
        real.canonicalize().map_err(|source| CliError::Io { action: format!("use {}", real.display()), source })?;
    let there: Vec<&str> = SWAPPED.into_iter().filter(|name| real.join(name).is_file()).collect();
    if there.is_empty() {
        let names = SWAPPED.join(", ");
        return Err(CliError::Missing {
            message: format!("{} has none of {names}", real.display()),
            hint: "give the folder that the program's libraries are in".to_owned(),
        });
    }
    for name in there {
        // Copies: the loader takes two links for the same library, and the tap for whichever backend was
        // opened first.
        std::fs::copy(library, folder.join(name))
            .map_err(|source| CliError::Io { action: "copy the tap library".to_owned(), source })?;
    }
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(&real);
    if let Some(old) = std::env::var_os("LD_LIBRARY_PATH").filter(|old| !old.is_empty()) {
        path.push(":");
        path.push(old);
    }
    variables.set("LD_LIBRARY_PATH", path);
    variables.real(&real);
    Ok(())
}
