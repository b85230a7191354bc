//! Clocks. Events carry the host's monotonic clock; the session header ties it to wall time.

/// The monotonic clock of this machine, microseconds. On Unix all processes share it, so a child's timestamps and ours
/// lie on one axis.
#[cfg(unix)]
pub fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000 + nanos / 1_000
}

/// The monotonic clock, microseconds since this process first read it (without a runner no shared clock is needed).
#[cfg(not(unix))]
pub fn now_us() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Wall clock, microseconds since 1970-01-01 UTC; 0 if the clock is set before that.
pub fn epoch_us() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()
        .and_then(|d| u64::try_from(d.as_micros()).ok())
        .unwrap_or(0)
}
