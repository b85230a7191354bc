//! The device's wall clock on the host's time axis: a log's header ties its timestamps to it.

use crate::devices::{Device, DeviceError};
use crate::event::now_us;
use std::time::Duration;

/// Number of queries; the fastest answer counts.
const ROUND_TRIPS: usize = 12;
/// Time limit for all of them.
const LIMIT: Duration = Duration::from_secs(20);

/// The device's wall clock relative to the host's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// Host monotonic time minus the device's wall clock, microseconds.
    offset_us: i64,
    /// Maximum error of the offset.
    pub uncertainty_us: u64,
}

impl WallClock {
    /// Queries the device's time several times and keeps the fastest answer: half of its round trip is the uncertainty.
    /// A shell without `$EPOCHREALTIME` uses `date`, which takes longer.
    pub async fn align(device: &Device) -> Result<Self, DeviceError> {
        let action = "asking for its time";
        let mut stream =
            device.stream("while read -r x; do if [ -n \"$EPOCHREALTIME\" ]; then echo \"$EPOCHREALTIME\"; else date +%s.%N; fi; done");
        let id = device.id();
        let asked = async {
            let mut best: Option<Self> = None;
            for _ in 0..ROUND_TRIPS {
                let before_us = now_us();
                stream.write(b"\n");
                let line = match stream.next_line().await {
                    Some(line) => line?,
                    None => return Err(DeviceError::LinkLost { id: id.to_owned(), action: action.to_owned() }),
                };
                let after_us = now_us();
                let Some(epoch_us) = epoch_us(&line) else {
                    let message = String::from_utf8_lossy(&line).into_owned();
                    let action = action.to_owned();
                    return Err(DeviceError::Command { id: id.to_owned(), action, status: 0, message });
                };
                let middle = i64::try_from(before_us.midpoint(after_us)).unwrap_or(i64::MAX);
                let clock = Self {
                    offset_us: middle.saturating_sub(i64::try_from(epoch_us).unwrap_or(i64::MAX)),
                    uncertainty_us: (after_us - before_us).div_ceil(2),
                };
                best = Some(best.filter(|best| best.uncertainty_us <= clock.uncertainty_us).unwrap_or(clock));
            }
            best.ok_or_else(|| DeviceError::LinkLost { id: id.to_owned(), action: action.to_owned() })
        };
        let timed_out = || DeviceError::TimedOut { id: id.to_owned(), action: action.to_owned(), limit: LIMIT };
        tokio::time::timeout(LIMIT, asked).await.unwrap_or_else(|_| Err(timed_out()))
    }

    /// An exactly known clock.
    #[cfg(test)]
    pub fn with_offset_us(offset_us: i64) -> Self {
        Self { offset_us, uncertainty_us: 0 }
    }

    /// Converts a time on the device's wall clock to the host's axis, microseconds.
    pub fn host_us(&self, epoch_us: u64) -> u64 {
        epoch_us.saturating_add_signed(self.offset_us)
    }
}

/// `SECONDS.FRACTION` with three to nine decimals.
fn epoch_us(line: &[u8]) -> Option<u64> {
    let (seconds, fraction) = std::str::from_utf8(line).ok()?.trim().split_once(['.', ','])?;
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_shell_are_read() {
        assert_eq!(epoch_us(b"1795250000.123456"), Some(1_795_250_000_123_456));
        assert_eq!(epoch_us(b"1795250000.5\r"), Some(1_795_250_000_500_000));
        assert_eq!(epoch_us(b"1795250000.123456789"), Some(1_795_250_000_123_456));
        assert_eq!(epoch_us(b"sh: date: not found"), None);
    }

    #[test]
    fn this_machine_is_aligned_with_itself() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock = runtime.block_on(WallClock::align(&Device::local())).unwrap();
        let error = clock.host_us(crate::event::epoch_us()).abs_diff(now_us());
        // The two clocks are read a few microseconds apart; with `date`, a process start lies in between.
        assert!(error <= clock.uncertainty_us + 1000, "off by {error} us, told {} us", clock.uncertainty_us);
    }
}
