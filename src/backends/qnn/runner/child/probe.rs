//! Tries a backend library: whether it loads and initialises, and its self-description.

use super::emit::Emitter;
use crate::backends::qnn::api::{
    Backend, Device, DeviceTarget, Library, Logger, QnnError, SystemLibrary, VersionPolicy,
};
use crate::backends::qnn::runner::protocol::{Frame, NoDevice, ProbeAnswer, ProbeTask};
use crate::event::LogLevel;

/// Opens the library and, for backends, creates a backend and a device.
pub fn probe(task: &ProbeTask, emitter: &Emitter) {
    // Saver writes a folder into the working directory as soon as it is opened.
    if let Err(error) = std::env::set_current_dir(&task.scratch) {
        emitter.runner_log(LogLevel::Warning, &format!("cannot enter {}: {error}", task.scratch.display()));
    }
    let mut answer = ProbeAnswer { sandbox: emitter.sandbox(), ..ProbeAnswer::default() };
    let is_system = task.library.file_name().is_some_and(|name| name.to_string_lossy().contains("QnnSystem"));
    let result = if is_system {
        SystemLibrary::open(&task.library).map(|_| ())
    } else {
        try_backend(task, emitter, &mut answer)
    };
    if let Err(error) = result {
        answer.error = Some(reason(&error, &emitter.log_tail()));
    }
    emitter.frame(&Frame::Probed(answer));
}

fn try_backend(task: &ProbeTask, emitter: &Emitter, answer: &mut ProbeAnswer) -> Result<(), QnnError> {
    let library = Library::open(&task.library, VersionPolicy::CountSlots)?;
    answer.build_id = library.table().build_id();
    answer.core_api = Some(library.table().core_api());
    answer.backend_api = Some(library.table().backend_api());
    // Saver and IR run nothing: the only possible check is that they open.
    if !RUNNING_BACKENDS.contains(&library.table().backend_id()) {
        return Ok(());
    }
    let logger = Logger::create(&library, LogLevel::Error)?;
    let backend = Backend::create(&logger)?;
    if let Err(error) = Device::create(&backend, DeviceTarget::default()) {
        answer.device = Some(NoDevice { error: error.to_string(), log: emitter.log_tail() });
    }
    Ok(())
}

/// QNN's ids of the backends that execute: CPU, GPU, HTP.
const RUNNING_BACKENDS: [u32; 3] = [3, 4, 6];

/// The error, with the library's own log messages, if any.
fn reason(error: &QnnError, tail: &[String]) -> String {
    match tail.last() {
        Some(line) => format!("{error}; it logged: {}", line.trim()),
        None => error.to_string(),
    }
}
