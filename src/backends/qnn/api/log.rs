//! Vendor log callbacks, turned into lines.

#![expect(unsafe_code, reason = "FFI")]

use crate::backends::qnn::sys;
use crate::event::LogLevel;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

type Sink = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

static SINK: OnceLock<Sink> = OnceLock::new();

/// Sets where log lines of the libraries go. The first call of the process wins: callbacks may come from library threads
/// at any time until the process ends.
pub fn set_sink(sink: impl Fn(LogLevel, &str) + Send + Sync + 'static) {
    let _ = SINK.set(Box::new(sink));
}

/// Longest line the callback formats; longer ones are cut.
const BUFFER: usize = 4096;

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
        sink(LogLevel::from_qnn(level), line);
    }
}
