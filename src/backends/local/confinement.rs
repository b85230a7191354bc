//! Whether runners confine themselves.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether runners of this process confine themselves.
static UNCONFINED: AtomicBool = AtomicBool::new(false);

/// Turns confinement off for runners started from now on, at the user's request: some libraries need more
/// access.
pub fn run_unconfined() {
    UNCONFINED.store(true, Ordering::Relaxed);
}

/// Whether runners started now are confined.
pub fn is_confined() -> bool {
    cfg!(unix) && !UNCONFINED.load(Ordering::Relaxed)
}
