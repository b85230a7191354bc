//! Whether this process got a standard output. Rust replaces a closed one by `/dev/null` before `main`, so output would
//! be lost without an error. That is why this checks earlier.

use std::sync::atomic::{AtomicBool, Ordering};

static NO_OUTPUT: AtomicBool = AtomicBool::new(false);

/// True if the standard output was closed when the process started, as with `>&-`.
pub fn output_was_closed() -> bool {
    NO_OUTPUT.load(Ordering::Relaxed)
}

// SAFETY: functions listed in this section are called once by the loader, before the runtime of Rust is set up, with arguments
// that a C function without parameters ignores. `look` needs nothing of that runtime.
#[expect(unsafe_code, reason = "nothing else runs before Rust's own start")]
#[unsafe(link_section = ".init_array")]
#[used]
static AT_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor, which may or may not be open, and touches no memory.
    #[expect(unsafe_code, reason = "the C library's call")]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    NO_OUTPUT.store(flags == -1, Ordering::Relaxed);
}
