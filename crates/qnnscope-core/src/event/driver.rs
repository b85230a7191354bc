//! What makes the inferences of a run, and what that means for its figures.

use serde::{Deserialize, Serialize};

/// What makes the inferences of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// qnnscope's runner on this machine.
    #[default]
    Runner,
    /// The SDK's qnn-net-run on the device. It always profiles: the clean phase has the level `basic`.
    NetRun,
    /// qnnscope's runner on the device.
    DeviceRunner,
    /// Another tool, whose file was read: see [`Mode::origin`](super::Mode::origin).
    Imported,
    /// A program of the user's, as the tap within it saw it.
    Tap,
    /// ONNX Runtime with QNN as a plug-in, in qnnscope's runner on this machine.
    OnnxRuntime,
}

impl Driver {
    /// Words for people.
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

    /// What it can do, and what its figures are of.
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
            // What it was told is in its file, or not known.
            Self::Imported => DriverTraits { is_here: false, knows_warmup: false, ..ours },
        }
    }
}

/// What a driver can do, and what its figures are of. Code asks here instead of listing drivers, so that a new one is a row of
/// [`Driver::traits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of independent facts")]
pub struct DriverTraits {
    /// It runs on this machine, or may: of a run, [`RunPlan::is_here`](super::RunPlan::is_here) says it.
    pub is_here: bool,
    /// It is started from the adb shell, whose scheduling class is not that of an app in the foreground.
    pub is_from_shell: bool,
    /// How many inferences and launches it makes is an option of ours.
    pub takes_counts: bool,
    /// How it warmed up is known.
    pub knows_warmup: bool,
    /// It cannot measure without the backend's profiling: its clean phase has the level `basic`.
    pub always_profiles: bool,
    /// It measures layers in its own process, once a run.
    pub layers_apart: bool,
    /// Its latencies contain copies of its own, outside the backend's call.
    pub latency_has_copies: bool,
}
