//! The user's settings for the tap, from the program's environment.

use qnnscope_core::tap as words;
use std::path::{Path, PathBuf};

/// Where messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SinkPath {
    /// A listening Unix socket.
    Socket(PathBuf),
    /// A folder; each process writes its own file there.
    Folder(PathBuf),
}

impl SinkPath {
    /// Where files of this process go.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Socket(path) => path.parent(),
            Self::Folder(path) => Some(path),
        }
    }
}

/// How often executions are profiled in detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailEvery {
    /// As often as costs less than 1 % of the time inside QNN.
    Auto,
    /// Every N-th execution of a graph.
    Nth(u64),
    /// Not at all.
    Never,
}

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub sink: SinkPath,
    pub detail: DetailEvery,
    /// QNN's number of the minimum log level.
    pub log_level: Option<u32>,
    pub repair_device_config: bool,
}

impl Settings {
    /// From variables; `None` without a place to write to.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let sink = variable(words::SINK_VARIABLE)?;
        let sink = match sink.split_once(':')? {
            ("unix", path) if !path.is_empty() => SinkPath::Socket(path.into()),
            ("dir", path) if !path.is_empty() => SinkPath::Folder(path.into()),
            _ => return None,
        };
        let detail = match variable(words::DETAIL_VARIABLE).as_deref() {
            Some("0") => DetailEvery::Never,
            Some(text) => text.parse().map_or(DetailEvery::Auto, DetailEvery::Nth),
            None => DetailEvery::Auto,
        };
        let log_level = match variable(words::LOG_VARIABLE).as_deref() {
            Some("error") => Some(1),
            Some("warn" | "warning") => Some(2),
            Some("info") => Some(3),
            Some("verbose") => Some(4),
            Some("debug") => Some(5),
            _ => None,
        };
        let repairs = variable(words::REPAIR_VARIABLE).unwrap_or_default();
        let repair_device_config = repairs.split(',').any(|repair| repair.trim() == "device-config");
        Some(Self { sink, detail, log_level, repair_device_config })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Settings> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read(find)
    }

    #[test]
    fn variables_are_understood_and_nonsense_is_the_default() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[(words::SINK_VARIABLE, "/tmp/x")]), None);
        assert_eq!(read(&[(words::SINK_VARIABLE, "unix:")]), None);
        let sink = (words::SINK_VARIABLE, "unix:/tmp/a:b");
        let plain = read(&[sink]).unwrap();
        assert_eq!(plain.sink, SinkPath::Socket("/tmp/a:b".into()));
        assert_eq!((plain.detail, plain.log_level, plain.repair_device_config), (DetailEvery::Auto, None, false));
        let detail = |text: &'static str| read(&[sink, (words::DETAIL_VARIABLE, text)]).unwrap().detail;
        assert_eq!(detail("0"), DetailEvery::Never);
        assert_eq!(detail("7"), DetailEvery::Nth(7));
        assert_eq!(detail("auto"), DetailEvery::Auto);
        assert_eq!(detail("-3"), DetailEvery::Auto);
        let all =
            read(&[sink, (words::LOG_VARIABLE, "verbose"), (words::REPAIR_VARIABLE, "x, device-config")]).unwrap();
        assert_eq!((all.log_level, all.repair_device_config), (Some(4), true));
        assert_eq!(read(&[(words::SINK_VARIABLE, "dir:/data")]).unwrap().sink, SinkPath::Folder("/data".into()));
    }
}
