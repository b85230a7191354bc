//! What the tap needs from the system: clocks, thread ids, memory. Everything here is safe to call from any thread.

#![expect(unsafe_code, reason = "FFI")]

use std::cell::Cell;

/// The monotonic clock, nanoseconds.
pub(super) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the out pointer is valid; the clock exists everywhere.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The wall clock, microseconds since 1970-01-01 UTC.
pub(super) fn epoch_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

thread_local! {
    /// Asking the kernel costs more than everything else on this path.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Kernel's id of this thread.
pub(super) fn thread_id() -> u32 {
    THREAD
        .try_with(|id| {
            if id.get() == 0 {
                // SAFETY: takes nothing and cannot fail.
                let raw = unsafe { libc::syscall(libc::SYS_gettid) };
                id.set(u32::try_from(raw).unwrap_or(u32::MAX));
            }
            id.get()
        })
        .unwrap_or(u32::MAX)
}

/// A fork's only thread has a different id than the cached one.
pub(super) fn forget_thread_id() {
    let _ = THREAD.try_with(|id| id.set(0));
}

/// Resident memory of this process, bytes.
pub(super) fn rss_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: takes a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}

/// The file an address was loaded from.
pub(super) fn file_of(address: *const std::ffi::c_void) -> Option<String> {
    // SAFETY: a record of pointers; all zero bytes are a valid value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about; the out pointer is valid.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's own terminated string.
    Some(unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}

/// Runs `work` with all signals blocked in this thread; threads started meanwhile keep them blocked, so that the
/// program's signals reach the program's threads.
pub(super) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals are plain bits; all pointers are valid.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let value = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        value
    }
}
