//! Clocks: derives a monotonic time from what a shell can read on a device, and maps it to the host's time axis.

use std::collections::VecDeque;

/// Resolution of `/proc/uptime`.
const UPTIME_STEP_US: i64 = 10_000;
/// A difference between wall clock and uptime too large to come from reading them one after the other.
const STEP_US: i64 = 20_000;
/// How many consecutive timestamps must agree that the clock was set back: a single one may have been delayed between
/// its two reads.
const CONFIRM: usize = 3;
/// Maximum drift between quartz clocks, parts per million.
const DRIFT_PPM: u64 = 100;

/// One time reading by the device's shell, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Wall clock (`$EPOCHREALTIME`), read first; `None` if the shell has none.
    pub epoch_us: Option<u64>,
    /// Time since boot, sleep included (`/proc/uptime`), in steps of 10 ms.
    pub uptime_us: u64,
}

/// Combines the fine wall clock, which can be set, and the coarse uptime, which cannot, into one clock: microseconds
/// that only grow. It equals the time since boot up to a constant of at most 10 ms ([`DeviceClock::ahead_us`]), which
/// the timestamps reveal.
#[derive(Debug, Clone, Default)]
pub struct DeviceClock {
    /// Added to the wall clock; changed only when that is set, so that differences stay exact.
    base_us: Option<i64>,
    /// Uptime minus wall clock: never below the true value, since the uptime is read last, and close to it after some
    /// timestamps.
    upper_us: i64,
    /// The same, exceeding the true value at most by the time between the two reads.
    lower_us: i64,
    stamps: u64,
    /// The bounds if the clock had been set back.
    later: VecDeque<i64>,
    last_us: u64,
}

/// A time on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The device's clock, microseconds; never earlier than the previous one.
    pub device_us: u64,
    /// By how much the wall clock was set, if so.
    pub stepped_us: Option<i64>,
}

impl DeviceClock {
    /// A clock without readings.
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock whose uptime is `offset_us` ahead of the wall clock (this machine's own).
    pub fn with_offset(offset_us: i64) -> Self {
        let stamps = u64::from(u32::MAX);
        Self { base_us: Some(offset_us), upper_us: offset_us, lower_us: offset_us, stamps, ..Self::default() }
    }

    /// By how much this clock is ahead of the time since boot, and the error of that, microseconds.
    pub fn ahead_us(&self) -> (i64, u64) {
        match self.base_us {
            Some(base) => {
                (base - self.upper_us, (self.upper_us - self.lower_us).clamp(0, UPTIME_STEP_US).unsigned_abs())
            }
            None => (0, UPTIME_STEP_US.unsigned_abs()),
        }
    }

    /// The time of a timestamp. Timestamps are passed in the order of reading.
    pub fn moment(&mut self, stamp: Stamp) -> Moment {
        let (device_us, stepped_us) = self.place(stamp);
        self.last_us = self.last_us.max(device_us);
        Moment { device_us: self.last_us, stepped_us }
    }

    /// The device's clock at a timestamp of another shell, which arrives out of order; not used for calibration.
    pub fn late_us(&self, stamp: Stamp) -> u64 {
        let epoch = stamp.epoch_us.and_then(|us| i64::try_from(us).ok());
        epoch.zip(self.base_us).map_or(stamp.uptime_us, |(epoch, base)| at(epoch, base))
    }

    fn place(&mut self, stamp: Stamp) -> (u64, Option<i64>) {
        let uptime = i64::try_from(stamp.uptime_us).unwrap_or(i64::MAX / 2);
        let Some(epoch) = stamp.epoch_us.and_then(|us| i64::try_from(us).ok()) else {
            return (stamp.uptime_us, None);
        };
        self.stamps += 1;
        let lower = uptime.saturating_sub(epoch);
        // The uptime was read after the wall clock and may be almost a step ahead of what it shows.
        let upper = lower.saturating_add(UPTIME_STEP_US);
        let Some(base) = self.base_us else {
            (self.base_us, self.upper_us, self.lower_us) = (Some(upper), upper, lower);
            return (at(epoch, upper), None);
        };
        let difference = upper.saturating_sub(self.upper_us);
        // Small ones refine the bound; so do the first ones, one of which may have been delayed between its two reads.
        if difference < -STEP_US && self.stamps > 16 {
            return (at(epoch, self.step(base, upper, lower)), Some(-difference));
        }
        if difference < 0 {
            self.later.clear();
            self.upper_us = upper;
            self.lower_us = self.lower_us.min(upper);
            return (at(epoch, base), None);
        }
        if difference <= UPTIME_STEP_US + STEP_US {
            self.later.clear();
            self.lower_us = self.lower_us.max(lower).min(self.upper_us);
            return (at(epoch, base), None);
        }
        self.later.push_back(upper);
        if self.later.len() >= CONFIRM {
            let new = self.later.iter().copied().min().unwrap_or(upper);
            if new.saturating_sub(self.upper_us) > STEP_US {
                let step = self.upper_us.saturating_sub(new);
                return (at(epoch, self.step(base, new, new.saturating_sub(UPTIME_STEP_US))), Some(step));
            }
            self.later.clear();
        }
        let ahead = base.saturating_sub(self.upper_us);
        (at(uptime.saturating_add(UPTIME_STEP_US / 2), ahead), None)
    }

    /// Follows a clock that was set; returns the new base.
    fn step(&mut self, base: i64, upper: i64, lower: i64) -> i64 {
        let base = base.saturating_add(upper.saturating_sub(self.upper_us));
        (self.base_us, self.upper_us, self.lower_us) = (Some(base), upper, lower);
        self.later.clear();
        base
    }
}

fn at(epoch: i64, offset: i64) -> u64 {
    u64::try_from(epoch.saturating_add(offset)).unwrap_or(0)
}

/// One time query and its answer, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Host's clock at the query.
    pub asked_us: u64,
    /// Device's time since boot at the answer.
    pub device_us: u64,
    /// Host's clock on receiving the answer.
    pub answered_us: u64,
}

/// Maps the device's time to the host's axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostClock {
    /// Host monotonic time minus the device's clock ([`DeviceClock`]), microseconds.
    offset_us: i64,
    /// Half of the fastest round trip.
    uncertainty_us: u64,
    /// See [`DeviceClock::ahead_us`].
    ahead: (i64, u64),
    /// How long the device has slept since boot, if it reports that: its `CLOCK_MONOTONIC` lacks this.
    suspended_us: Option<u64>,
    /// Host's clock when it was measured.
    measured_us: u64,
}

impl HostClock {
    /// A known offset (this machine's own).
    pub fn exact(offset_us: i64, suspended_us: u64, now_us: u64) -> Self {
        Self { offset_us, uncertainty_us: 0, ahead: (0, 0), suspended_us: Some(suspended_us), measured_us: now_us }
    }

    /// From the fastest of several round trips, on the clock of their timestamps. `resolution_us`: what that clock
    /// cannot tell apart.
    pub fn from_round_trips(
        trips: &[RoundTrip],
        clock: &DeviceClock,
        resolution_us: u64,
        suspended_us: Option<u64>,
    ) -> Option<Self> {
        let trip = trips.iter().min_by_key(|trip| trip.answered_us.saturating_sub(trip.asked_us))?;
        let length = trip.answered_us.saturating_sub(trip.asked_us);
        let middle = i64::try_from(trip.asked_us + length / 2).ok()?;
        Some(Self {
            offset_us: middle.checked_sub(i64::try_from(trip.device_us).ok()?)?,
            uncertainty_us: length.div_ceil(2) + resolution_us,
            ahead: clock.ahead_us(),
            suspended_us,
            measured_us: trip.answered_us,
        })
    }

    /// The better of this and a `newer` measurement: an old precise one beats a new imprecise one until the clocks may
    /// have drifted apart. Data about the device's own clock comes from the newer one.
    #[must_use]
    pub fn or(self, newer: Self) -> Self {
        let age_us = newer.measured_us.saturating_sub(self.measured_us);
        let grown = self.uncertainty_us.saturating_add(age_us * DRIFT_PPM / 1_000_000);
        if newer.uncertainty_us <= grown { newer } else { Self { ahead: newer.ahead, ..self } }
    }

    /// The device's clock was set and followed as well as the uptime allows: any newer measurement is better than this.
    #[must_use]
    pub fn blurred(self) -> Self {
        Self { uncertainty_us: self.uncertainty_us.saturating_add(UPTIME_STEP_US.unsigned_abs()), ..self }
    }

    /// A time of the device's clock ([`DeviceClock`], samples) on the host's axis, microseconds.
    pub fn from_device_us(&self, device_us: u64) -> u64 {
        device_us.saturating_add_signed(self.offset_us)
    }

    /// Host monotonic time minus time since the device's start (`CLOCK_BOOTTIME`, `/proc/uptime`), microseconds.
    pub fn boot_offset_us(&self) -> i64 {
        self.offset_us.saturating_add(self.ahead.0)
    }

    /// Maximum error of [`HostClock::boot_offset_us`], microseconds.
    pub fn boot_uncertainty_us(&self) -> u64 {
        self.uncertainty_us.saturating_add(self.ahead.1)
    }

    /// Maximum error of samples, microseconds.
    pub fn uncertainty_us(&self) -> u64 {
        self.uncertainty_us
    }

    /// A time since the device's start (`CLOCK_BOOTTIME`, `/proc/uptime`) on the host's axis, microseconds.
    pub fn from_boot_us(&self, boot_us: u64) -> u64 {
        boot_us.saturating_add_signed(self.boot_offset_us())
    }

    /// A time of the device's steady clock (`CLOCK_MONOTONIC`, which stands still while the device sleeps; stamps of
    /// `std::chrono::steady_clock`) on the host's axis, microseconds. `None` where the device does not tell how long it has
    /// slept; then a stamp can only be placed by an event that is seen on both axes.
    pub fn from_steady_us(&self, steady_us: u64) -> Option<u64> {
        Some(self.from_boot_us(steady_us.checked_add(self.suspended_us?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timestamps every 7.3 ms from a device booted 1000 s ago.
    fn stamps(count: u64, epoch_of: impl Fn(u64, u64) -> u64) -> Vec<(u64, Stamp)> {
        let stamp = |index: u64| {
            let true_us = 1_000_000_000 + index * 7_300;
            // The uptime is read 20 us later.
            let uptime_us = (true_us + 20) / 10_000 * 10_000;
            (true_us, Stamp { epoch_us: Some(epoch_of(index, true_us)), uptime_us })
        };
        (0..count).map(stamp).collect()
    }

    #[test]
    fn two_clocks_give_a_fine_one_that_cannot_be_set() {
        let mut clock = DeviceClock::new();
        let start = 1_700_000_000_000_000;
        // Set forward by an hour at 100, back by two at 200.
        let epoch = |index: u64, true_us: u64| match index {
            0..100 => start + true_us,
            100..200 => start + true_us + 3_600_000_000,
            _ => start + true_us - 3_600_000_000,
        };
        let mut steps = Vec::new();
        for (index, (true_us, stamp)) in stamps(300, epoch).into_iter().enumerate() {
            let moment = clock.moment(stamp);
            let (ahead, unsure) = clock.ahead_us();
            let error = (moment.device_us - true_us).cast_signed() - ahead;
            assert!(error.abs() <= 12_000, "{index}: off by {error} us");
            if (50..100).contains(&index) {
                assert!(
                    error.unsigned_abs() <= unsure + 20 && unsure < 500,
                    "{index}: off by {error} us, told {unsure}"
                );
            }
            steps.extend(moment.stepped_us.map(|us| (index, us)));
        }
        assert_eq!(steps.len(), 2, "{steps:?}");
        assert_eq!(steps[0].0, 100);
        assert!(
            steps[0].1.abs_diff(3_600_000_000) < 20_000 && steps[1].1.abs_diff(-7_200_000_000) < 20_000,
            "{steps:?}"
        );
    }

    #[test]
    fn a_held_up_read_is_no_step_and_time_never_goes_back() {
        let mut clock = DeviceClock::new();
        let mut last = 0;
        for (index, (_, mut stamp)) in stamps(200, |_, true_us| 5_000_000_000_000 + true_us).into_iter().enumerate() {
            if index % 50 == 49 {
                // The shell was preempted for 80 ms between its two reads.
                stamp.uptime_us += 80_000;
            }
            let moment = clock.moment(stamp);
            assert_eq!(moment.stepped_us, None, "{index}");
            assert!(moment.device_us >= last, "{index}");
            last = moment.device_us;
        }
    }

    #[test]
    fn without_a_clock_of_the_day_the_uptime_serves() {
        let moment = DeviceClock::new().moment(Stamp { epoch_us: None, uptime_us: 1_230_000 });
        assert_eq!(moment, Moment { device_us: 1_230_000, stepped_us: None });
    }

    #[test]
    fn the_quickest_round_trip_wins_and_ages() {
        let trip = |asked_us, length| RoundTrip {
            asked_us,
            device_us: asked_us - 5_000 + length / 2,
            answered_us: asked_us + length,
        };
        let exact = DeviceClock::with_offset(0);
        let trips = [trip(100_000, 4_000), trip(200_000, 300), trip(300_000, 90_000)];
        let sharp = HostClock::from_round_trips(&trips, &exact, 0, Some(2_000)).unwrap();
        assert_eq!((sharp.offset_us, sharp.uncertainty_us), (5_000, 150));
        assert_eq!(sharp.from_boot_us(1_000), 6_000);
        assert_eq!(sharp.from_steady_us(1_000), Some(8_000));
        let blunt = HostClock::from_round_trips(&[trip(10_200_000, 2_000)], &exact, 0, None).unwrap();
        assert_eq!(blunt.from_steady_us(1_000), None);
        assert_eq!(sharp.or(blunt).uncertainty_us, blunt.uncertainty_us, "10 s of drift are more than 1 ms");
        let soon = HostClock::from_round_trips(&[trip(1_200_000, 2_000)], &exact, 0, None).unwrap();
        assert_eq!(sharp.or(soon), sharp);
    }
}
