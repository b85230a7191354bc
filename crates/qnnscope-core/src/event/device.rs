//! What is known about a device before a run.

use crate::device_state::{DeviceState, Root};
use serde::{Deserialize, Serialize};

/// Facts about a device. Everything it does not report is `None`, never a guess.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// `local`, or the adb serial.
    pub id: String,
    /// Maker and product name.
    pub model: Option<String>,
    /// The SoC.
    pub soc: SocFacts,
    /// `Android 14 (API 34)`, or the name of the Linux distribution.
    pub os: String,
    /// Build id or fingerprint of the system.
    pub build: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Instruction set, such as `arm64-v8a`.
    pub abi: String,
    /// GPU as the driver names it, or as the SoC table does.
    pub gpu: Option<String>,
    /// CPU clusters, in the order of their cpufreq policies.
    pub clusters: Vec<Cluster>,
    /// User id of the shell.
    pub shell_uid: Option<u32>,
    /// How commands run as root.
    pub root: Root,
    /// `Enforcing` or `Permissive`.
    pub selinux: Option<String>,
    /// Free space where qnnscope puts files, bytes.
    pub free_bytes: Option<u64>,
    /// Physical memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory available to new processes, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Device nodes of the DSP and the GPU that exist, with their modes as `ls -l` shows them.
    pub nodes: Vec<String>,
    /// Battery, where there is one.
    pub battery: Option<Battery>,
    /// Thermal status of Android: 0 none … 6 shutdown.
    pub thermal_status: Option<u32>,
    /// Hottest plausible sensor at the time, °C.
    pub hottest_celsius: Option<f64>,
    /// Android's power-save mode.
    pub power_save: Option<bool>,
    /// Whether the screen is on.
    pub screen_on: Option<bool>,
    /// Processes that use a lot of CPU: name and share of one core, %.
    pub busy_processes: Vec<BusyProcess>,
}

/// The SoC's identifiers, and what the table knows about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocFacts {
    /// Part, such as `SM8650`.
    pub part: Option<String>,
    /// Marketing name.
    pub name: Option<String>,
    /// `/sys/devices/soc0/soc_id`.
    pub soc_id: Option<u32>,
    /// The number QNN options expect.
    pub soc_model: Option<u32>,
    /// Hexagon architecture, such as `v75`.
    pub hexagon_arch: Option<String>,
    /// VTCM, MiB.
    pub vtcm_mb: Option<u32>,
    /// Whether float graphs run on HTP.
    pub htp_fp16: Option<bool>,
}

/// Cores that share a clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The cores' numbers.
    pub cpus: Vec<u32>,
    /// Lowest clock, Hz.
    pub min_freq_hz: Option<u64>,
    /// Highest clock, Hz.
    pub max_freq_hz: Option<u64>,
    /// Governor.
    pub governor: Option<String>,
}

/// State of the battery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Battery {
    /// Charge, %.
    pub level_percent: Option<f64>,
    /// `charging`, `discharging`, `not charging`, `full` or `unknown`.
    pub status: String,
    /// Power sources: `usb`, `ac`, `wireless`, `dock`; empty if nothing is plugged in.
    pub powered_by: Vec<String>,
    /// Temperature, °C.
    pub temperature_celsius: Option<f64>,
    /// Voltage, V.
    pub voltage_v: Option<f64>,
}

impl Battery {
    /// True if the charger feeds the system, so the battery current says nothing about the chip's power.
    pub fn is_externally_powered(&self) -> bool {
        !self.powered_by.is_empty() || matches!(self.status.as_str(), "charging" | "full" | "not charging")
    }
}

/// A process that uses a lot of CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BusyProcess {
    /// Name.
    pub name: String,
    /// Share of one core, %.
    pub cpu_percent: f64,
}

/// Something about a device that may disturb the figures of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confound {
    /// Stable id, such as `charging`.
    pub id: String,
    /// The observation, in one sentence with figures.
    pub observation: String,
    /// How to eliminate it.
    pub advice: String,
}

/// A device appeared, disappeared, or changed its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChange {
    /// The adb serial.
    pub id: String,
    /// Its state now.
    pub state: DeviceState,
    /// Model name as adb gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Files being sent to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Name of the file being sent.
    pub name: String,
    /// Its number, from 1.
    pub file: usize,
    /// Files in all.
    pub files: usize,
    /// Bytes sent, of all files.
    pub done_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}
