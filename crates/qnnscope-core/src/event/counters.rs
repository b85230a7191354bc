//! Sets of device counters, and how well they are sampled.

use super::CounterInfo;
use serde::{Deserialize, Serialize};

/// Why a counter has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The file does not exist (any more).
    Absent,
    /// Opening it is not permitted.
    Refused,
    /// It opened but could not be read, or was empty.
    Unreadable,
    /// Its content is not a value.
    NotANumber,
    /// The driver's stand-in for "no value".
    Placeholder,
    /// An impossible value.
    Implausible,
    /// No process is being watched, or it has ended.
    NoProcess,
    /// Reading it never finishes.
    Hangs,
}

impl Gap {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Absent => "not on this device",
            Self::Refused => "permission denied",
            Self::Unreadable => "cannot be read",
            Self::NotANumber => "not a number",
            Self::Placeholder => "the sensor returns no reading",
            Self::Implausible => "implausible reading",
            Self::NoProcess => "no process to watch",
            Self::Hangs => "does not answer",
        }
    }
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// Device counters that are read together. A later declaration with the same number replaces it; a counter that moves
/// to another set (because it is slow to read) is declared there again and keeps its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterSet {
    /// Number of the set within the session, from 1; 0 is the host's own, see [`super::Event::CountersDeclared`].
    pub set: u32,
    /// Id of the device.
    pub device: String,
    /// Planned time between two readings, microseconds; 0: as fast as possible.
    pub period_us: u64,
    /// The counters, in the order of the samples' values.
    pub counters: Vec<CounterInfo>,
}

/// A counter has no value from here on, or has one again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterGap {
    /// The set.
    pub set: u32,
    /// Index of the counter in the set.
    pub counter: u32,
    /// Why it has no value; `None`: it has one again.
    pub reason: Option<Gap>,
}

/// How a device's clock relates to the host's: `host = device + offset`, both in microseconds; the device's clock is
/// its time since boot including sleep (`CLOCK_BOOTTIME`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAligned {
    /// Id of the device.
    pub device: String,
    /// Host monotonic microseconds minus the device's.
    pub offset_us: i64,
    /// Half of the fastest round trip: the maximum error of the offset.
    pub uncertainty_us: u64,
}

/// A device's wall clock was set while it was being sampled. Samples are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStepped {
    /// Id of the device.
    pub device: String,
    /// By how much, microseconds; negative: set back.
    pub step_us: i64,
}

/// Sampling statistics since the last report, about once a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplerReport {
    /// Id of the device.
    pub device: String,
    /// Ticks taken.
    pub ticks: u64,
    /// Ticks that came more than half a period late.
    pub late: u64,
    /// Planned ticks skipped because earlier ones took too long.
    pub missed: u64,
    /// Ticks per second.
    pub rate_hz: f64,
    /// Device CPU time per tick, microseconds; `None` if the device does not report it.
    pub cpu_us_per_tick: Option<f64>,
}

/// Sampling of a device ended or was interrupted. Existing samples stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerEnded {
    /// Id of the device.
    pub device: String,
    /// Why; `None`: on request.
    pub reason: Option<String>,
    /// Sampling is retried; the counters are declared again once it works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
}
