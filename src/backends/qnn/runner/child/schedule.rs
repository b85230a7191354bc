//! Planned starts, as from a camera, and waiting for them.

use super::clock::now_ns;
use crate::event::{Budget, PaceReport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time from creating a schedule to its first planned start, nanoseconds.
const LEAD_NS: u64 = 1_000_000;
/// The part of a wait that spins instead of sleeping, nanoseconds: initially, and its bounds. It adapts to
/// how far the system's sleeps overrun.
const SPIN_NS: u64 = 200_000;
const SPIN_BOUNDS_NS: (u64, u64) = (50_000, 2_000_000);
/// Longest sleep, so that a stop is noticed quickly.
const NAP_NS: u64 = 20_000_000;

/// Starts at a fixed rate, however long the inferences take: one that takes too long delays the following ones, and
/// none is skipped.
#[derive(Debug)]
pub struct Schedule {
    rate_hz: f64,
    begun_ns: u64,
    spin_ns: u64,
    waited_ns: u64,
    wait_cpu_ns: u64,
    worst_start_ns: u64,
}

/// CPU time of this thread, nanoseconds.
fn thread_cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

impl Schedule {
    /// A schedule starting now.
    pub fn new(rate_hz: f64) -> Self {
        Self {
            rate_hz,
            begun_ns: now_ns() + LEAD_NS,
            spin_ns: SPIN_NS,
            waited_ns: 0,
            wait_cpu_ns: 0,
            worst_start_ns: 0,
        }
    }

    /// The planned start of the inference with this number, counted from 0.
    fn planned_ns(&self, number: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
        let since_ns = (number as f64 * 1e9 / self.rate_hz).round() as u64;
        self.begun_ns + since_ns
    }

    /// Number of starts a budget plans.
    fn planned_in_all(&self, budget: Budget) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
        let within = |seconds: f64| (seconds * self.rate_hz - 1e-9).ceil().max(1.0) as u64;
        match budget {
            Budget::Iterations(iterations) => iterations,
            Budget::Seconds(seconds) => within(seconds),
            Budget::AtLeast { iterations, seconds } => iterations.max(within(seconds)),
        }
    }

    /// Number of planned starts up to now.
    fn planned_so_far(&self) -> u64 {
        let since_ns = now_ns().saturating_sub(self.begun_ns) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
        let whole = (since_ns * self.rate_hz / 1e9) as u64;
        whole + 1
    }

    /// True if a phase with this budget ends after `done` inferences: all planned ones are done, or its time is over
    /// while some still wait.
    pub fn is_over(&self, budget: Budget, done: u64) -> bool {
        let out_of_time = match budget {
            Budget::Seconds(seconds) => now_ns().saturating_sub(self.begun_ns) as f64 >= seconds * 1e9,
            Budget::Iterations(_) | Budget::AtLeast { .. } => false,
        };
        out_of_time || done >= self.planned_in_all(budget)
    }

    /// Waits for the planned start of an inference and returns it; `None` if `stop` was set meanwhile. Does not wait
    /// for a start already past.
    pub fn wait(&mut self, number: u64, stop: &AtomicBool) -> Option<u64> {
        let planned = self.planned_ns(number);
        let came = now_ns();
        if came >= planned {
            return Some(planned);
        }
        let cpu = thread_cpu_ns();
        let mut now = came;
        while now < planned {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let left = planned - now;
            if left > self.spin_ns {
                let nap = (left - self.spin_ns).min(NAP_NS);
                std::thread::sleep(Duration::from_nanos(nap));
                let woken = now_ns();
                self.learn(woken.saturating_sub(now + nap));
                now = woken;
            } else {
                std::hint::spin_loop();
                now = now_ns();
            }
        }
        self.waited_ns += now - came;
        self.wait_cpu_ns += thread_cpu_ns().saturating_sub(cpu);
        self.worst_start_ns = self.worst_start_ns.max(now - planned);
        Some(planned)
    }

    /// Adapts to a sleep that overran by this much.
    fn learn(&mut self, overslept_ns: u64) {
        let (low, high) = SPIN_BOUNDS_NS;
        self.spin_ns = (self.spin_ns - self.spin_ns / 8).max(overslept_ns + overslept_ns / 2).clamp(low, high);
    }

    /// How well the schedule was kept, after a phase with `done` inferences.
    pub fn report(&self, budget: Budget, done: u64, stopped: bool) -> PaceReport {
        let all = self.planned_in_all(budget);
        let planned = if stopped { self.planned_so_far().min(all) } else { all };
        PaceReport {
            rate_hz: self.rate_hz,
            planned: planned.max(done),
            done,
            wall_us: now_ns().saturating_sub(self.begun_ns) as f64 / 1e3,
            waited_us: self.waited_ns as f64 / 1e3,
            wait_cpu_us: self.wait_cpu_ns as f64 / 1e3,
            worst_start_us: self.worst_start_ns as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_before_its_moment_and_late_ones_do_not_wait() {
        let mut schedule = Schedule::new(500.0);
        let stop = AtomicBool::new(false);
        for number in 0..20 {
            let planned = schedule.wait(number, &stop).unwrap();
            assert_eq!(planned, schedule.planned_ns(number));
            assert!(now_ns() >= planned);
        }
        let report = schedule.report(Budget::Iterations(20), 20, false);
        assert!(report.waited_us > 0.0 && report.wait_cpu_us <= report.waited_us * 1.01 + 100.0, "{report:?}");
        // Far behind: twenty starts are due at once.
        std::thread::sleep(Duration::from_millis(60));
        let waited = schedule.waited_ns;
        (20..40).for_each(|number| assert!(schedule.wait(number, &stop).is_some()));
        assert_eq!(schedule.waited_ns, waited);
    }

    #[test]
    fn a_stop_ends_a_long_wait() {
        let mut schedule = Schedule::new(0.001);
        assert!(schedule.wait(0, &AtomicBool::new(false)).is_some());
        assert_eq!(schedule.wait(1, &AtomicBool::new(true)), None);
        assert_eq!(schedule.report(Budget::Iterations(5), 1, true).planned, 1);
    }

    #[test]
    fn a_time_plans_the_starts_within_it() {
        let schedule = Schedule::new(30.0);
        for (budget, planned) in [
            (Budget::Seconds(1.0), 30),
            (Budget::Seconds(0.01), 1),
            (Budget::Seconds(0.1), 3),
            (Budget::Seconds(0.11), 4),
            (Budget::AtLeast { iterations: 5, seconds: 1.0 }, 30),
            (Budget::AtLeast { iterations: 50, seconds: 1.0 }, 50),
        ] {
            assert_eq!(schedule.planned_in_all(budget), planned, "{budget:?}");
            assert!(schedule.is_over(budget, planned));
        }
        assert!(!schedule.is_over(Budget::Seconds(1.0), 29));
    }

    #[test]
    fn the_spun_part_follows_the_sleeps_within_bounds() {
        let mut schedule = Schedule::new(1.0);
        schedule.learn(60_000_000);
        assert_eq!(schedule.spin_ns, SPIN_BOUNDS_NS.1);
        (0..100).for_each(|_| schedule.learn(1_000));
        assert_eq!(schedule.spin_ns, SPIN_BOUNDS_NS.0);
    }
}
