//! Figures of the run that rules set limits on.

use serde::Deserialize;

/// A figure of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Median latency, microseconds.
    LatencyUs,
    /// Inferences of the clean phase.
    Inferences,
    /// Length of the clean phase, seconds.
    SpanS,
    /// First inference divided by the median of the clean phase.
    FirstOverMedian,
    /// Median of the last fifth divided by that of the first fifth, less 1.
    Drift,
    /// 95th percentile divided by the median.
    P95OverMedian,
    /// Share of the RPC time spent outside the accelerator, 0 to 1.
    TransportShare,
    /// The same, microseconds.
    TransportUs,
    /// Share of the call spent outside the RPC, 0 to 1.
    HostShare,
    /// Accelerator cycles divided by accelerator time, MHz.
    EffectiveMhz,
    /// Wait for VTCM at the start of an inference divided by the accelerator's time, 0 to 1.
    VtcmWaitShare,
    /// Power-up of the accelerator at the start of an inference divided by the accelerator's time, 0 to 1.
    PowerUpShare,
    /// Number of times an inference yielded to other work.
    Yields,
    /// Spilled and filled bytes divided by all bytes moved to and from DDR, 0 to 1.
    SpillShare,
    /// Spilled and filled bytes per inference.
    SpillBytes,
    /// VTCM that the graph was compiled for, MiB.
    VtcmMb,
    /// VTCM of the SoC that the graph does not use, MiB.
    VtcmUnusedMb,
    /// HVX threads of the SoC that the graph was not compiled for.
    HvxUnused,
    /// Optimisation level that the graph was compiled with.
    OptimizationLevel,
    /// Time to compose and finalize the graph, seconds.
    PrepareS,
    /// Bytes of all inputs and outputs.
    IoBytes,
    /// Size of the model file, bytes.
    ModelBytes,
    /// Bytes of constants that another graph of the model also holds.
    SharedConstantBytes,
    /// Hexagon architecture, such as 75.
    HexagonArch,
    /// First dimension of the first input.
    Batch,
    /// Mean GPU clock of the clean phase divided by the fastest one seen, 0 to 1.
    GpuClockShare,
}

/// All of them.
pub const ALL: [Figure; 26] = [
    Figure::LatencyUs,
    Figure::Inferences,
    Figure::SpanS,
    Figure::FirstOverMedian,
    Figure::Drift,
    Figure::P95OverMedian,
    Figure::TransportShare,
    Figure::TransportUs,
    Figure::HostShare,
    Figure::EffectiveMhz,
    Figure::VtcmWaitShare,
    Figure::PowerUpShare,
    Figure::Yields,
    Figure::SpillShare,
    Figure::SpillBytes,
    Figure::VtcmMb,
    Figure::VtcmUnusedMb,
    Figure::HvxUnused,
    Figure::OptimizationLevel,
    Figure::PrepareS,
    Figure::IoBytes,
    Figure::ModelBytes,
    Figure::SharedConstantBytes,
    Figure::HexagonArch,
    Figure::Batch,
    Figure::GpuClockShare,
];

impl Figure {
    /// The figure in words.
    pub fn sentence(self, value: f64) -> String {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        match self {
            Self::LatencyUs => format!("the median latency is {}", time(value)),
            Self::Inferences => format!("{value:.0} inferences were measured"),
            Self::SpanS => format!("inferences ran for {value:.0} s"),
            Self::FirstOverMedian => format!("the first inference took {value:.1} times the median"),
            Self::Drift => {
                format!("the last fifth of the inferences takes {:+.0} % against the first fifth", value * 100.0)
            }
            Self::P95OverMedian => format!("the 95th percentile is {value:.1} times the median"),
            Self::TransportShare => format!("{} of the RPC time is outside the accelerator", percent(value)),
            Self::TransportUs => format!("{} of an RPC is outside the accelerator", time(value)),
            Self::HostShare => format!("{} of the call is spent on the CPU, outside the RPC", percent(value)),
            Self::EffectiveMhz => format!("the accelerator ran at an effective {value:.0} MHz"),
            Self::VtcmWaitShare => {
                format!("an inference waits for the VTCM for {} of the accelerator's time", percent(value))
            }
            Self::PowerUpShare => {
                format!("an inference waits {} of the accelerator's time for power-up", percent(value))
            }
            Self::Yields => format!("an inference yielded to other work {value:.1} times on average"),
            Self::SpillShare => format!("{} of the bytes moved to and from DDR are spills and fills", percent(value)),
            Self::SpillBytes => format!("{} are spilled and filled in an inference", bytes(value)),
            Self::VtcmMb => format!("the graph was compiled for {value:.0} MiB of VTCM"),
            Self::VtcmUnusedMb => format!("{value:.0} MiB of the SoC's VTCM are not used"),
            Self::HvxUnused => format!("{value:.0} of the SoC's HVX threads are not used"),
            Self::OptimizationLevel => format!("the graph was compiled with optimisation level {value:.0}"),
            Self::PrepareS => format!("composing and finalizing the graph took {value:.1} s"),
            Self::IoBytes => format!("inputs and outputs total {}", bytes(value)),
            Self::ModelBytes => format!("the model file has {}", bytes(value)),
            Self::SharedConstantBytes => {
                format!("{} of constants are in more than one graph of the model", bytes(value))
            }
            Self::HexagonArch => format!("the Hexagon is a v{value:.0}"),
            Self::Batch => format!("the graph takes {value:.0} input at a time"),
            Self::GpuClockShare => format!("the GPU ran at {} of its fastest observed clock", percent(value)),
        }
    }
}

/// A time in microseconds as text.
pub fn time(us: f64) -> String {
    if us >= 10_000.0 {
        format!("{:.1} ms", us / 1000.0)
    } else if us >= 1000.0 {
        format!("{:.2} ms", us / 1000.0)
    } else {
        format!("{us:.0} us")
    }
}

fn bytes(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.1} GB", v / 1e9),
        v if v >= 1e6 => format!("{:.1} MB", v / 1e6),
        v if v >= 1e3 => format!("{:.1} kB", v / 1e3),
        v => format!("{v:.0} bytes"),
    }
}
