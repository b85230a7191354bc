//! Turns vendor log callbacks into lines.

#![expect(unsafe_code, reason = "FFI")]

use crate::sys;
use qnnscope_core::event::{LogLevel, clean_text};
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Sink = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

static SINK: OnceLock<Sink> = OnceLock::new();

/// Sets the sink for log lines of the libraries. The first call in the process wins: callbacks may come from library
/// threads at any time until the process ends.
pub fn set_sink(sink: impl Fn(LogLevel, &str) + Send + Sync + 'static) {
    let _ = SINK.set(Box::new(sink));
}

/// Longest formatted line; longer ones are cut.
const BUFFER: usize = 4096;
/// Maximum number of lines kept per call; the list of datatypes an op accepts is about 140 lines.
const MOST_KEPT: usize = 400;

/// Lines kept during an operation.
struct Kept {
    lines: Vec<String>,
    /// Whether they also go to the sink.
    pass_on: bool,
    /// The least severe level kept.
    level: LogLevel,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a line of our own to those of the libraries.
pub(super) fn say(text: &str) {
    if let Some(sink) = SINK.get() {
        sink(LogLevel::Verbose, text);
    }
}

/// Runs `work` and returns what was logged meanwhile, without passing it to the sink.
pub(super) fn kept_during<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    keep(false, LogLevel::Debug, work)
}

/// The same, but the lines also go to the sink.
pub(super) fn noted_during<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    keep(true, LogLevel::Debug, work)
}

/// Runs `work` and returns the errors logged meanwhile; everything goes to the sink.
pub fn errors_during<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    keep(true, LogLevel::Error, work)
}

fn keep<T>(pass_on: bool, level: LogLevel, work: impl FnOnce() -> T) -> (T, Vec<String>) {
    *kept() = Some(Kept { lines: Vec::new(), pass_on, level });
    let value = work();
    (value, kept().take().map(|kept| kept.lines).unwrap_or_default())
}

/// The text without HTP's level prefix (` <E> `).
pub fn without_level(text: &str) -> &str {
    let text = text.trim_start();
    match text.as_bytes() {
        [b'<', b'E' | b'W' | b'I' | b'V' | b'D', b'>', ..] => text[3..].trim_start(),
        _ => text,
    }
}

/// The callback given to every logger.
pub(super) unsafe extern "C" fn callback(format: *const c_char, level: u32, _stamp: u64, arguments: *mut c_void) {
    let Some(sink) = SINK.get() else { return };
    // SAFETY: format and va_list come from the library for exactly this call.
    let Some(text) = (unsafe { formatted(format, arguments) }) else { return };
    let level = LogLevel::from_qnn(level);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut passes = true;
        if let Some(kept) = &mut *kept() {
            if level <= kept.level && kept.lines.len() < MOST_KEPT {
                kept.lines.push(clean_text(without_level(line)));
            }
            passes = kept.pass_on;
        }
        if passes {
            sink(level, line);
        }
    }
}

/// The text of a log call, cut at [`BUFFER`] bytes.
///
/// # Safety
/// `format` is null or a terminated string, and `arguments` its `va_list` (one pointer on the supported targets), which
/// is consumed.
pub(crate) unsafe fn formatted(format: *const c_char, arguments: *mut c_void) -> Option<String> {
    if format.is_null() {
        return None;
    }
    let mut buffer = [0u8; BUFFER];
    // SAFETY: the buffer and its size agree; the rest is promised.
    let written = unsafe { sys::vsnprintf(buffer.as_mut_ptr().cast(), buffer.len(), format, arguments) };
    let written = usize::try_from(written).ok()?;
    Some(String::from_utf8_lossy(&buffer[..written.min(BUFFER - 1)]).into_owned())
}
