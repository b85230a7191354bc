//! Runs inside another program: every QNN call passes through here, is timed and recorded, and goes on to the real
//! library unchanged.
//!
//! The library that programs load is its own package (`qnnscope-tap`) with nothing but exported names; their
//! implementation is here, beside the ABI and the recorder that the runner uses too. It reports to qnnscope in the
//! vocabulary of [`qnnscope_core::tap`].
//!
//! The rules of this folder: never change the program's requests or the answers it gets, never wait for the reader,
//! never unwind into the program, take no lock around a call of the real library, and allocate nothing while a graph
//! executes.

/// A function for each number below [`providers::MOST`]: callbacks carry no user data, so each number needs its own.
macro_rules! numbered {
    ($function:ident) => {
        numbered!($function: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($function:ident: $($number:literal)*) => {
        [$($function::<$number>),*]
    };
}

mod arena;
mod binaries;
mod calls;
mod compose;
mod connection;
mod detail;
mod execute;
mod fork;
mod graphs;
mod list;
mod logs;
mod lookup;
mod notify;
mod options;
mod power;
mod process;
mod providers;
mod ring;
mod settings;
mod system;
mod writer;

pub use lookup::{get_providers, route};
pub use process::{loaded, unloading};

use std::sync::atomic::{AtomicBool, Ordering};

/// True after a panic of ours: from then on everything is passed through.
static OFF: AtomicBool = AtomicBool::new(false);

/// True while the tap is active.
fn is_on() -> bool {
    !OFF.load(Ordering::Relaxed)
}

/// Turns the tap off permanently.
fn turn_off() {
    OFF.store(true, Ordering::Relaxed);
}

/// Runs our own work. A panic ends the tap, never the program.
fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    if !is_on() {
        return None;
    }
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) => {
            turn_off();
            // Dropping the panic payload may panic again.
            std::mem::forget(payload);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_ends_the_tap_and_nothing_else() {
        // Other tests of this process need the tap on: they run in other threads, so the switch is put back at once.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let answer = super::guard(|| if super::is_on() { panic!("made up") } else { 1 });
        std::panic::set_hook(hook);
        assert_eq!(answer, None);
        assert!(!super::is_on());
        assert_eq!(super::guard(|| 2), None, "it stays off");
        super::OFF.store(false, super::Ordering::Relaxed);
        assert_eq!(super::guard(|| 3), Some(3));
    }
}
