//! The backends, and how much profiling they are asked for.

use serde::{Deserialize, Serialize};

/// A QNN backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Reference backend on the processor.
    Cpu,
    /// Hexagon tensor processor; on an x86 host its simulator.
    Htp,
    /// Adreno.
    Gpu,
    /// Not named: runs read from another tool's file. Nothing can run on it.
    Unknown,
}

impl Backend {
    /// All real backends, in listing order.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Htp, Self::Gpu];

    /// `cpu`, `htp`, `gpu` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Htp => "htp",
            Self::Gpu => "gpu",
            Self::Unknown => "unknown",
        }
    }

    /// File name of its library on Linux and Android.
    pub fn library(self) -> &'static str {
        match self {
            Self::Cpu => "libQnnCpu.so",
            Self::Htp => "libQnnHtp.so",
            Self::Gpu => "libQnnGpu.so",
            Self::Unknown => "no library",
        }
    }

    /// True if this machine can only emulate the backend's hardware: HTP on an x86 machine.
    pub fn is_simulated_here(self) -> bool {
        self == Self::Htp && cfg!(any(target_arch = "x86_64", target_arch = "x86"))
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|b| b.name().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| format!("unknown backend `{text}`; known are cpu, htp, gpu"))
    }
}

/// How much profiling the backend records per inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfilingLevel {
    /// Nothing.
    Off,
    /// Totals.
    Basic,
    /// Totals and every op, in its own phase.
    Detailed,
}

impl ProfilingLevel {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Basic => "basic",
            Self::Detailed => "detailed",
        }
    }
}
