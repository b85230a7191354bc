//! The vendor's log: loggers created by the program write to it as before, and to us what the user requested.

#![expect(unsafe_code, reason = "FFI")]

use super::process::current;
use super::{guard, providers, system};
use crate::api::{as_function, formatted};
use crate::sys::{self, Handle};
use qnnscope_core::event::clean_text;
use qnnscope_core::tap::TapMessage;
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Maximum number of live loggers with a callback; further ones are left alone.
const MOST: usize = 16;
/// Lines kept per refusal.
const KEPT: usize = 16;

/// A logger of the program.
struct Logger {
    callback: AtomicPtr<c_void>,
    /// The program's level.
    level: AtomicU32,
    handle: AtomicUsize,
}

static LOGGERS: [Logger; MOST] = [const {
    Logger { callback: AtomicPtr::new(std::ptr::null_mut()), level: AtomicU32::new(0), handle: AtomicUsize::new(0) }
}; MOST];

static CALLBACKS: [sys::LogCallback; MOST] = numbered!(line);

thread_local! {
    /// Errors logged during an operation of this thread.
    static DURING: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// The user's level, QNN's number; 0 if unset.
fn wanted() -> u32 {
    current().and_then(|tap| tap.settings.log_level).unwrap_or(0)
}

/// A `va_list` as passed to C functions: a pointer to this on x86_64 and aarch64.
type Arguments = [u64; 4];
/// Its size: three words on x86_64, four on aarch64.
const ARGUMENTS_BYTES: usize = if cfg!(target_arch = "aarch64") { 32 } else { 24 };

unsafe extern "C" fn line<const I: usize>(format: *const c_char, level: u32, stamp: u64, arguments: *mut c_void) {
    let logger = &LOGGERS[I];
    // The first reader consumes the list.
    let mut copy: Arguments = [0; 4];
    if !arguments.is_null() {
        // SAFETY: a va_list has that many bytes and may be copied like this on these targets.
        unsafe { std::ptr::copy_nonoverlapping(arguments.cast::<u8>(), (&raw mut copy).cast::<u8>(), ARGUMENTS_BYTES) };
    }
    let theirs = logger.level.load(Ordering::Relaxed);
    if level <= theirs {
        let callback: Option<sys::LogCallback> = as_function(logger.callback.load(Ordering::Acquire));
        if let Some(callback) = callback {
            // SAFETY: the program's own callback with what the library passed.
            unsafe { callback(format, level, stamp, arguments) };
        }
    }
    guard(|| {
        let wanted = wanted();
        if level > theirs.max(wanted) {
            return;
        }
        // SAFETY: format and list belong to this call.
        let Some(text) = (unsafe { formatted(format, (&raw mut copy).cast()) }) else { return };
        tell(level, &text);
    });
}

fn tell(level: u32, text: &str) {
    let Some(tap) = current() else { return };
    for text in text.lines().filter(|line| !line.trim().is_empty()) {
        let text = clean_text(text);
        if level <= 1 {
            let _ = DURING.try_with(|during| {
                if let Ok(mut during) = during.try_borrow_mut()
                    && let Some(lines) = &mut *during
                    && lines.len() < KEPT
                {
                    lines.push(text.clone());
                }
            });
        }
        tap.writer.say(&TapMessage::Log { t_ns: system::now_ns(), level, text });
    }
}

/// Runs `work` and returns the errors logged meanwhile in this thread.
pub(super) fn errors_during<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let keep = |lines| DURING.try_with(|during| during.replace(lines)).unwrap_or_default();
    keep(Some(Vec::new()));
    let value = work();
    (value, keep(None).unwrap_or_default())
}

pub(super) unsafe extern "C" fn log_create<const P: usize>(
    callback: Option<sys::LogCallback>,
    level: u32,
    out: *mut Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::LogCreateFn>(P, sys::slots::core::LOG_CREATE) else {
        return sys::NOT_SUPPORTED;
    };
    let place = callback.and_then(|theirs| guard(|| claim(theirs, level)).flatten());
    let (passed, passed_level) = match place {
        Some(place) => (Some(CALLBACKS[place]), guard(wanted).unwrap_or(0).max(level)),
        // Without a callback the library chooses where to write; that stays so.
        None => (callback, level),
    };
    // SAFETY: forwards the caller's arguments, with a callback of ours that passes on to the caller's.
    let code = unsafe { real(passed, passed_level, out) };
    if let Some(place) = place {
        let logger = &LOGGERS[place];
        if code == 0 && !out.is_null() {
            // SAFETY: the call succeeded, so it was written.
            logger.handle.store(unsafe { *out }.addr(), Ordering::Release);
        } else {
            logger.callback.store(std::ptr::null_mut(), Ordering::Release);
        }
    }
    code
}

fn claim(callback: sys::LogCallback, level: u32) -> Option<usize> {
    let null = std::ptr::null_mut();
    let place = LOGGERS.iter().position(|logger| {
        let new = callback as *mut c_void;
        logger.callback.compare_exchange(null, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    LOGGERS[place].handle.store(0, Ordering::Relaxed);
    LOGGERS[place].level.store(level, Ordering::Relaxed);
    Some(place)
}

fn logger_of(handle: Handle) -> Option<&'static Logger> {
    LOGGERS.iter().find(|logger| !handle.is_null() && logger.handle.load(Ordering::Acquire) == handle.addr())
}

pub(super) unsafe extern "C" fn log_set_level<const P: usize>(handle: Handle, level: u32) -> u64 {
    let Some(real) = providers::real::<sys::LogSetLevelFn>(P, sys::slots::core::LOG_SET_LEVEL) else {
        return sys::NOT_SUPPORTED;
    };
    let mut passed = level;
    if let Some(logger) = logger_of(handle) {
        logger.level.store(level, Ordering::Relaxed);
        passed = guard(wanted).unwrap_or(0).max(level);
    }
    // SAFETY: forwards the caller's handle.
    unsafe { real(handle, passed) }
}

pub(super) unsafe extern "C" fn log_free<const P: usize>(handle: Handle) -> u64 {
    let Some(real) = providers::real::<sys::FreeFn>(P, sys::slots::core::LOG_FREE) else { return sys::NOT_SUPPORTED };
    let logger = logger_of(handle);
    // SAFETY: forwards the caller's handle.
    let code = unsafe { real(handle) };
    if let Some(logger) = logger.filter(|_| code == 0) {
        // The library may still be writing its last line: the slot keeps its callback until it is reused.
        logger.handle.store(0, Ordering::Release);
        logger.callback.store(std::ptr::null_mut(), Ordering::Release);
    }
    code
}
