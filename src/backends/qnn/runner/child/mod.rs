//! The runner where local runtimes exist.
//!
//! Descriptors 1 and 2 both lead to the parent's error pipe, so that text that vendor libraries print is kept apart from
//! frames and survives a crash. When standard input closes, the parent is gone and the runner ends itself.

mod check;
mod clock;
pub mod emit;
pub mod events;
mod failed;
mod inputs;
mod inspect;
mod layers;
mod listing;
pub mod measure;
mod model;
mod onnx;
mod opened;
mod outputs;
mod phases;
mod pin;
mod probe;
mod run;
mod run_log;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sandbox;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "sandbox_elsewhere.rs"]
mod sandbox;
mod schedule;
mod straight;
mod tensors;

pub use events as profile_events;
pub(crate) use sandbox::SCRATCH_VARIABLE;

pub use inputs::{InputSet, prepare as input_sets, read_list, read_npy};
pub(crate) use inputs::{encode, scale_offset};
pub use onnx::graph_of;

use crate::backends::qnn::api;
use crate::backends::qnn::runner::protocol::{Command, Task};
use crate::event::LogLevel;
use emit::Emitter;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// Entry point of the hidden subcommand. Exits with 0 if a task was executed, whether or not the model ran: failures
/// are events.
pub fn main() -> ExitCode {
    let emitter = match Emitter::take_stdout() {
        Ok(emitter) => Arc::new(emitter),
        Err(error) => {
            eprintln!("runner: cannot set up its output: {error}");
            return ExitCode::FAILURE;
        }
    };
    die_with_parent();
    let sink = emitter.clone();
    api::set_sink(move |level: LogLevel, text: &str| sink.backend_log(level, text));
    emitter.hello();
    let mut input = BufReader::new(std::io::stdin());
    let mut line = String::new();
    if input.read_line(&mut line).unwrap_or(0) == 0 {
        return ExitCode::FAILURE;
    }
    let task: Task = match serde_json::from_str(&line) {
        Ok(task) => task,
        Err(error) => {
            emitter.runner_log(LogLevel::Error, &format!("cannot read the task: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // Before any thread is started, and before any vendor code is loaded.
    emitter.confined(sandbox::enter(&task));
    let stop = Arc::new(AtomicBool::new(false));
    let (orders, ordered) = mpsc::channel();
    watch_commands(input, stop.clone(), orders);
    match task {
        Task::Run(task) => run::run(&task, &emitter, &stop),
        Task::Inspect(task) => inspect::inspect(&task, &emitter),
        Task::Probe(task) => probe::probe(&task, &emitter),
        Task::Check(task) => check::check(&task, &emitter),
        Task::Tensors(task) => tensors::tensors(&task, &emitter, &ordered),
        Task::Convert(task) => onnx::convert::convert(&task, &emitter),
    }
    emitter.done();
    // Vendor libraries leave threads behind whose exit handlers may hang; all our output is written.
    end_now()
}

/// Reads commands until standard input closes, which means that the parent is gone.
///
/// `orders` receives the numbers of inferences to compute, and closes when the parent wants the runner to end.
fn watch_commands(mut input: BufReader<std::io::Stdin>, stop: Arc<AtomicBool>, orders: mpsc::Sender<u64>) {
    let mut orders = Some(orders);
    std::thread::spawn(move || {
        let mut line = String::new();
        loop {
            line.clear();
            match input.read_line(&mut line) {
                Ok(0) | Err(_) => {
                    end_now();
                }
                Ok(_) => match serde_json::from_str(&line) {
                    Ok(Command::Stop) => {
                        stop.store(true, Ordering::Relaxed);
                        orders = None;
                    }
                    // A task without orders has dropped the other end.
                    Ok(Command::Compute { index }) => {
                        let _ = orders.as_ref().map(|orders| orders.send(index));
                    }
                    Err(_) => {}
                },
            }
        }
    });
}

/// Asks the kernel to kill this process with its parent, in case vendor code blocks every thread.
fn die_with_parent() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
}

/// Ends the process at once, without exit handlers.
fn end_now() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::exit(0)
}
