//! Whether runners confine themselves.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether runners of this process confine themselves.
static UNCONFINED: AtomicBool = AtomicBool::new(false);

/// From now on runners are not confined: the user said so, for libraries that need more.
pub fn run_unconfined() {
    UNCONFINED.store(true, Ordering::Relaxed);
}

/// Whether runners that are started now are confined.
pub fn is_confined() -> bool {
    cfg!(unix) && !UNCONFINED.load(Ordering::Relaxed)
}
