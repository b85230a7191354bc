//! What runs the inferences, and what that means for the figures.

use serde::{Deserialize, Serialize};

/// What runs the inferences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// qnnscope's runner on this machine.
    #[default]
    Runner,
    /// The SDK's qnn-net-run on the device. It always profiles: the clean phase uses level `basic`.
    NetRun,
    /// qnnscope's runner on the device.
    DeviceRunner,
    /// Another tool, whose file was read: see [`Mode::origin`](super::Mode::origin).
    Imported,
    /// A user's program, as its tap saw it.
    Tap,
    /// ONNX Runtime with QNN as a plug-in, in qnnscope's runner on this machine.
    OnnxRuntime,
}

impl Driver {
    /// Display text.
    pub fn label(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::NetRun => "qnn-net-run",
            Self::DeviceRunner => "runner on the device",
            Self::Imported => "another tool",
            Self::Tap => "tapped program",
            Self::OnnxRuntime => "ONNX Runtime",
        }
    }

    /// Its capabilities, and what its figures cover.
    pub fn traits(self) -> DriverTraits {
        let ours = DriverTraits {
            is_here: true,
            is_from_shell: false,
            takes_counts: true,
            knows_warmup: true,
            always_profiles: false,
            layers_apart: false,
            latency_has_copies: false,
        };
        match self {
            Self::Runner | Self::OnnxRuntime => ours,
            Self::DeviceRunner => DriverTraits { is_here: false, is_from_shell: true, ..ours },
            Self::NetRun => DriverTraits {
                is_here: false,
                is_from_shell: true,
                always_profiles: true,
                layers_apart: true,
                latency_has_copies: true,
                ..ours
            },
            Self::Tap => DriverTraits { takes_counts: false, knows_warmup: false, ..ours },
            // Its settings are in its file, or unknown.
            Self::Imported => DriverTraits { is_here: false, knows_warmup: false, ..ours },
        }
    }
}

/// A driver's capabilities, and what its figures cover. Code checks these instead of listing drivers, so that a new
/// driver is a row in [`Driver::traits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of independent facts")]
pub struct DriverTraits {
    /// It runs, or may run, on this machine; for a given run see [`RunPlan::is_here`](super::RunPlan::is_here).
    pub is_here: bool,
    /// It starts from the adb shell, whose scheduling class differs from that of a foreground app.
    pub is_from_shell: bool,
    /// Our options set its number of inferences and launches.
    pub takes_counts: bool,
    /// Its warm-up is known.
    pub knows_warmup: bool,
    /// It cannot measure without the backend's profiling: its clean phase uses level `basic`.
    pub always_profiles: bool,
    /// It measures layers in a separate process, once per run.
    pub layers_apart: bool,
    /// Its latencies include copies it makes outside the backend's call.
    pub latency_has_copies: bool,
}
