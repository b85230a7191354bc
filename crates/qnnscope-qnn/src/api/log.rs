//! Vendor log callbacks, turned into lines.

#![expect(unsafe_code, reason = "FFI")]

use crate::sys;
use qnnscope_core::event::{LogLevel, clean_text};
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Sink = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

static SINK: OnceLock<Sink> = OnceLock::new();

/// Sets where log lines of the libraries go. The first call of the process wins: callbacks may come from library threads
/// at any time until the process ends.
pub fn set_sink(sink: impl Fn(LogLevel, &str) + Send + Sync + 'static) {
    let _ = SINK.set(Box::new(sink));
}

/// Longest line the callback formats; longer ones are cut.
const BUFFER: usize = 4096;
/// Most lines that are kept of one call; the datatypes that an op takes are about 140 lines.
const MOST_KEPT: usize = 400;

static KEPT: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Vec<String>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a line of our own among those of the libraries.
pub(super) fn say(text: &str) {
    if let Some(sink) = SINK.get() {
        sink(LogLevel::Verbose, text);
    }
}

/// Carries `work` out and returns what was logged meanwhile, which does not go to the sink then.
pub(super) fn kept_during<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    *kept() = Some(Vec::new());
    let value = work();
    (value, kept().take().unwrap_or_default())
}

/// The text without the level that HTP puts in front of it (` <E> `).
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
    if format.is_null() {
        return;
    }
    let mut buffer = [0u8; BUFFER];
    // SAFETY: the buffer and its size agree; format and va_list come from the library for exactly this call, and va_list
    // is one pointer on the supported targets.
    let written = unsafe { sys::vsnprintf(buffer.as_mut_ptr().cast(), buffer.len(), format, arguments) };
    let Ok(written) = usize::try_from(written) else { return };
    let text = String::from_utf8_lossy(&buffer[..written.min(BUFFER - 1)]);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(lines) = &mut *kept() {
            if lines.len() < MOST_KEPT {
                lines.push(clean_text(without_level(line)));
            }
            continue;
        }
        sink(LogLevel::from_qnn(level), line);
    }
}
