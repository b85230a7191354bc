//! Advice for the system that a log comes from.

use crate::event::{DeviceInfo, DeviceKind, clean_text};
use crate::text::wrapped;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A system on which QNN runs, where its advice differs from that for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// A phone, or another Android device, behind adb.
    Android,
    /// A Linux board.
    Linux,
    /// Windows on Snapdragon.
    Windows,
    /// A machine without a DSP: the simulator, the CPU backend, converters.
    Pc,
}

impl Platform {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Android, Self::Linux, Self::Windows, Self::Pc];

    /// Its name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Android => "android",
            Self::Linux => "linux",
            Self::Windows => "windows",
            Self::Pc => "pc",
        }
    }

    /// Its name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Android => "Android",
            Self::Linux => "a Linux board",
            Self::Windows => "Windows",
            Self::Pc => "a PC",
        }
    }

    /// The system of a known device; `None` if its OS is unknown.
    pub fn of_device(device: &DeviceInfo) -> Option<Self> {
        let system = device.os.to_ascii_lowercase();
        match device.kind {
            _ if system.starts_with("android") => Some(Self::Android),
            _ if system.starts_with("windows") => Some(Self::Windows),
            DeviceKind::Local if device.abi.starts_with("x86") => Some(Self::Pc),
            _ if system.is_empty() => None,
            _ => Some(Self::Linux),
        }
    }

    /// Whether a check's command can be typed there. The catalogue's commands are for a shell on the device.
    pub(super) fn has_command(self, command: &str) -> bool {
        let names = |words: &[&str]| words.iter().any(|word| command.contains(word));
        let is_qnnscopes = command.starts_with("qnnscope ");
        match self {
            Self::Android => true,
            Self::Linux => {
                !names(&["getprop", "aapt ", "dumpsys", "pnputil", "signtool"]) && !command.starts_with("logcat")
            }
            Self::Windows => is_qnnscopes || names(&["pnputil", "signtool", "dir ", "python3 "]),
            Self::Pc => !names(&["getprop", "aapt ", "dumpsys", "pnputil", "signtool", "logcat", "/dev/", "soc0"]),
        }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|platform| platform.name() == text);
        known.ok_or_else(|| "one of android, linux, windows, pc".to_owned())
    }
}

/// Keeps the spaces of a command together while its line is wrapped.
const BLANK_OF_COMMAND: char = '\u{2423}';

/// A step in lines of at most `width` columns; commands stay whole, so that they can be copied.
pub(super) fn step_text(first: &str, step: &str, width: usize) -> String {
    let mut is_command = false;
    let joined: String = clean_text(step)
        .chars()
        .map(|c| {
            is_command ^= c == '`';
            if is_command && c == ' ' { BLANK_OF_COMMAND } else { c }
        })
        .collect();
    let rest = " ".repeat(first.chars().count());
    wrapped(first, &rest, &joined, width).replace(BLANK_OF_COMMAND, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{Diagnoser, Diagnosis};

    fn diagnose(log: &str) -> Diagnosis {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(log.as_bytes());
        diagnoser.finish()
    }

    #[test]
    fn a_log_tells_its_system_and_gets_the_steps_for_it() {
        let failed = "QnnDsp <E> DspTransport.openSession qnn_open failed, 0x80000406\n";
        for (before, platform, part) in [
            ("", None, ""),
            ("shell:/data/local/tmp/q $ ./qnn-net-run\n", Some(Platform::Android), "adb push"),
            ("03-11 18:15:40.924 10716 10716 I QnnDsp : start\n", Some(Platform::Android), "adb push"),
            ("cdsprpcd[311]: opened /usr/lib/dsp/cdsp\n", Some(Platform::Linux), "sudo cp"),
            ("loading C:\\qnn\\QnnHtp.dll\n", Some(Platform::Windows), "dir QnnHtp.dll"),
        ] {
            let diagnosis = diagnose(&format!("{before}{failed}"));
            assert_eq!(diagnosis.platform, platform, "{before}");
            let first = &diagnosis.causes[0];
            assert!(first.steps.iter().any(|step| step.contains(part)) || part.is_empty(), "{before}{first:?}");
        }
        let mut told = diagnose(failed);
        told.set_platform(Platform::Linux);
        assert!(told.causes[0].steps[0].contains("sudo cp"), "{:?}", told.causes[0].steps);
    }

    #[test]
    fn commands_are_not_broken() {
        let text =
            step_text("  1. ", "Push the skel of the device: `adb push a/very/long/path/of/a/file $DIR/ now`", 30);
        assert!(text.lines().any(|line| line.trim() == "`adb push a/very/long/path/of/a/file $DIR/ now`"), "{text}");
        assert!(text.starts_with("  1. Push the skel of the\n     device:\n"), "{text}");
    }
}
