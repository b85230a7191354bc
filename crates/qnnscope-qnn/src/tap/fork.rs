//! A fork has one thread and a copy of everything else: locks held by other threads stay held, our threads are gone.
//!
//! Everything that survives a fork is behind [`Shared`], whose lock is held while the process forks, so that the child
//! finds it consistent. Per-process state ([`super::process`]) is left behind and recreated.

#![expect(unsafe_code, reason = "FFI")]

use super::{lookup, process, providers, system};
use std::cell::UnsafeCell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// A value behind a lock that a fork can hold and release. Only held briefly, never during a foreign call.
pub(super) struct Shared<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock accesses the value.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Self {
        Self { is_held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Runs `work` on the value. Not reentrant.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        struct Held<'a>(&'a AtomicBool);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        self.hold();
        let held = Held(&self.is_held);
        // SAFETY: the lock is held, so nobody else has a reference.
        let result = work(unsafe { &mut *self.value.get() });
        drop(held);
        result
    }

    fn let_go(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    fn hold(&self) {
        while self.is_held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

extern "C" fn before() {
    // In the order they are taken elsewhere.
    process::BEGINNING.hold();
    lookup::FILES.hold();
    providers::LIBRARIES.hold();
    process::REGISTRY.hold();
}

extern "C" fn in_parent() {
    process::REGISTRY.let_go();
    providers::LIBRARIES.let_go();
    lookup::FILES.let_go();
    process::BEGINNING.let_go();
}

extern "C" fn in_child() {
    in_parent();
    system::forget_thread_id();
    process::leave_behind();
}

/// Installs the fork handlers, once.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: functions without captures that live as long as the library, which is never unloaded.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_even_after_a_panic() {
        static COUNT: Shared<u64> = Shared::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| COUNT.with(|count| *count += 1)));
            }
        });
        let _ = std::panic::catch_unwind(|| COUNT.with(|_| std::panic::resume_unwind(Box::new(()))));
        assert_eq!(COUNT.with(|count| *count), 40_000);
    }
}
