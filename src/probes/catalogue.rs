//! The catalogue of counters: data, and the rules every row must follow.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The catalogue's text.
const TEXT: &str = include_str!("catalogue.toml");

/// The subject of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The Hexagon NPU.
    Npu,
    /// The Adreno GPU.
    Gpu,
    /// The processor cores.
    Cpu,
    /// Memory bus and other clocks.
    Bus,
    /// Memory of the device.
    Memory,
    /// The process that runs the model.
    Process,
    /// Temperatures.
    Thermal,
    /// Throttling state.
    Throttling,
    /// Battery and supply.
    Power,
    /// Everything else, and users' own counters.
    Other,
}

/// How often a counter is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cadence {
    /// Every tick.
    Fast,
    /// At most ten times a second.
    Tenth,
    /// Once a second.
    Second,
    /// On its own stream, as often as possible without taking more than half the time.
    Slow,
}

/// How to parse a file's content into a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parse {
    /// The first number, times the scale.
    Number,
    /// The first number before a `%` or `@`.
    Percent,
    /// Busy and total of an interval: their quotient in per cent; 0 of 0 is 0.
    Pair,
    /// A clock in Hz, kHz or MHz, distinguished by magnitude: MHz.
    Clock,
    /// A word of the row's table.
    Words,
    /// A line `KEY: N kB`: bytes.
    KeyedKb,
    /// `total=` of the line with the key, microseconds: share of the interval in per cent.
    Pressure,
    /// Busy share of the processors in `keys`, from `/proc/stat`, per cent.
    CpuBusy,
    /// Busy share of the busiest processor, per cent.
    CpuBusiest,
    /// Time per level in microseconds, and a table of the levels' clocks: mean clock in MHz.
    LevelTimes,
    /// Lines with a clock in kHz and a time: mean clock in MHz.
    TimeInState,
    /// All numbers of many files: their sum.
    Sum,
    /// Second field of `/proc/PID/statm`, pages: bytes.
    ResidentPages,
    /// User and system time in `/proc/PID/stat`: per cent of one core.
    ProcessCpu,
    /// Threads in `/proc/PID/stat`.
    ProcessThreads,
    /// Battery current in µA or mA of either sign: mA, negative while discharging.
    BatteryCurrent,
    /// Battery voltage in µV or mV: V.
    BatteryVoltage,
    /// Battery current times voltage: W, negative while discharging.
    BatteryPower,
    /// A line `KEY: N` of a service's text, times the scale.
    DumpsysValue,
    /// Temperature of the thermal service with the name in `keys`.
    DumpsysTemperature,
    /// State of the thermal service's cooling device with the name in `keys`.
    DumpsysCooling,
    /// Active GPU time of the user in `keys`: per cent.
    DumpsysGpuWork,
    /// GPU memory of the watched process.
    DumpsysGpuProcess,
}

impl Parse {
    /// True if a value is the difference of two readings, so that the first reading has none.
    pub fn is_rate(self) -> bool {
        matches!(
            self,
            Self::Pressure
                | Self::CpuBusy
                | Self::CpuBusiest
                | Self::LevelTimes
                | Self::TimeInState
                | Self::ProcessCpu
                | Self::DumpsysGpuWork
        )
    }
}

/// One row: a counter, or a family of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Stable id; instances add `.NAME`.
    pub id: String,
    /// Display label; instances add their name.
    pub label: String,
    /// What it tells about.
    pub group: Group,
    /// Unit of the values.
    pub unit: String,
    /// Candidate paths: globs, `dumpsys:SERVICE`, `{pid}` for the watched process.
    pub paths: Vec<String>,
    /// All paths that exist become instances.
    #[serde(default)]
    pub each: bool,
    /// File beside the path that names the instance.
    pub name: Option<String>,
    /// Names to include (globs); empty: all.
    #[serde(default)]
    pub names: Vec<String>,
    /// Names to exclude (globs).
    #[serde(default)]
    pub names_not: Vec<String>,
    /// How to parse content into a value.
    pub parse: Parse,
    /// The keys to find in files with many lines.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Factor from the file's unit to the row's.
    #[serde(default = "one")]
    pub scale: f64,
    /// Further files beside the path needed for the value.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Values of words.
    #[serde(default)]
    pub words: BTreeMap<String, f64>,
    /// File beside the path with the clocks of the levels.
    pub levels: Option<String>,
    /// Files with the processors of each cluster; one instance per file.
    pub clusters: Option<String>,
    /// Upper end of the natural range.
    pub maximum: Option<f64>,
    /// File beside the path with the upper end of the range.
    pub maximum_file: Option<String>,
    /// Plausible values, in the unit.
    pub range: [f64; 2],
    /// Values that stand for "no reading", in the unit.
    #[serde(default)]
    pub placeholders: Vec<f64>,
    /// How often it is read.
    pub cadence: Cadence,
    /// Readable only by root on all devices.
    #[serde(default)]
    pub root: bool,
    /// Sampled unless the user chooses otherwise.
    #[serde(default = "yes")]
    pub chosen: bool,
    /// Only used if no counter of this row can be read.
    pub instead_of: Option<String>,
    /// Path that shows whether files of a process exist.
    pub probe: Option<String>,
    /// Its meaning and pitfalls.
    pub about: String,
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    counter: Vec<Row>,
}

/// All rows in display order.
pub fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    // A unit test parses the same text, so this cannot fail in a build that passed it.
    ROWS.get_or_init(|| toml::from_str::<File>(TEXT).map(|file| file.counter).unwrap_or_default())
}

/// True if `text` matches `pattern`, in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl Row {
    /// True if an instance with this name belongs to the row.
    pub(crate) fn takes(&self, name: &str) -> bool {
        (self.names.is_empty() || self.names.iter().any(|pattern| matches(pattern, name)))
            && !self.names_not.iter().any(|pattern| matches(pattern, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_sound() {
        let file: File = toml::from_str(TEXT).unwrap();
        let ids: BTreeSet<&str> = file.counter.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids.len(), file.counter.len(), "an id stands twice");
        for row in &file.counter {
            let id = &row.id;
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.'), "{id}");
            assert!(!row.label.is_empty() && row.about.ends_with('.'), "{id} is not described");
            assert!(!row.paths.is_empty() && row.range[0] < row.range[1] && row.scale > 0.0, "{id}");
            let service = |path: &String| path.strip_prefix("dumpsys:").is_some_and(|name| !name.is_empty());
            for path in &row.paths {
                assert!(path.starts_with('/') || service(path), "{id}: {path}");
                assert!(
                    !path.contains(|c: char| c.is_whitespace() || "'\"$`\\".contains(c)),
                    "{id}: {path} needs quoting"
                );
            }
            assert_eq!(row.cadence == Cadence::Slow, row.paths.iter().all(service), "{id}: services are slow");
            assert_eq!(row.parse == Parse::Words, !row.words.is_empty(), "{id}");
            assert_eq!(row.parse == Parse::LevelTimes, row.levels.is_some(), "{id}");
            let process = row.paths.iter().any(|path| path.contains("{pid}")) || row.parse == Parse::DumpsysGpuProcess;
            assert_eq!(process, row.group == Group::Process, "{id}");
            assert!(row.maximum.is_none_or(|top| top <= row.range[1]), "{id}");
            assert!(row.each || row.name.is_none() && row.names.is_empty(), "{id} has names and no instances");
            if let Some(other) = &row.instead_of {
                assert!(ids.contains(other.as_str()) && other != id, "{id} is instead of {other}");
            }
            let needs_key = [Parse::KeyedKb, Parse::Pressure, Parse::DumpsysValue, Parse::DumpsysGpuWork];
            assert!(!needs_key.contains(&row.parse) || row.keys.len() == 1, "{id} needs a key");
        }
        assert_eq!(rows().len(), file.counter.len());
        assert!(rows().iter().any(|row| row.id == "video.load" && row.label.contains("video codec")));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("cpu*", "cpu-1-0", true),
            ("*ibat*", "pm8550b-ibat-lvl0", true),
            ("*-lvl*", "pm8550b-ibat-lvl0", true),
            ("gpu", "gpuss-0", false),
            ("gpu", "gpu", true),
            ("a*b", "ab", true),
            ("a*b", "a", false),
            ("*", "", true),
            ("soc:*", "soc:qcom,gpubw", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
