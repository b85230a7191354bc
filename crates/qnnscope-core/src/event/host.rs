//! Devices and their counters.

use serde::{Deserialize, Serialize};

/// How a device is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The machine qnnscope runs on.
    Local,
    /// A device behind an adb server.
    Adb,
}

/// Identity of a device. Unknown is `None`, never a guess.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// `local`, or the adb serial.
    pub id: String,
    /// How it is reached.
    pub kind: DeviceKind,
    /// Product name or processor name.
    pub model: Option<String>,
    /// SoC name, such as `SM8650`.
    pub soc: Option<String>,
    /// Hexagon architecture, such as `v75`.
    pub hexagon_arch: Option<String>,
    /// Instruction set, such as `x86_64` or `arm64-v8a`.
    pub abi: String,
    /// Operating system and its version.
    pub os: String,
}

/// A counter that can be sampled, or the reason it cannot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterInfo {
    /// Stable id, such as `host.cpu.busy`.
    pub id: String,
    /// Short label for people.
    pub label: String,
    /// Unit of the values: `%`, `MHz`, `bytes`, `°C`.
    pub unit: String,
    /// Upper end of the natural range, if any (100 for per cent, total bytes for memory).
    pub maximum: Option<f64>,
    /// Why it cannot be read; its samples then never carry a value.
    pub unavailable: Option<String>,
}

/// One tick: a value for each declared counter, in the declared order; `None` is a gap, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterSample {
    /// The set; 0, the host's own, is left out.
    #[serde(default, skip_serializing_if = "is_host")]
    pub set: u32,
    /// Time of reading, host monotonic microseconds.
    pub t_us: u64,
    /// The values.
    pub values: Vec<Option<f64>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_host(set: &u32) -> bool {
    *set == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_set_are_the_hosts() {
        let old = r#"{"t_us":5,"values":[1.5,null]}"#;
        let sample: CounterSample = serde_json::from_str(old).unwrap();
        assert_eq!(sample, CounterSample { set: 0, t_us: 5, values: vec![Some(1.5), None] });
        assert_eq!(serde_json::to_string(&sample).unwrap(), old);
    }
}
