//! What to do on the system that a log comes from.

use super::catalogue::{Cause, catalogue};
use super::finding::Diagnosis;
use crate::event::{DeviceInfo, DeviceKind, clean_text};
use crate::text::wrapped;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A system on which QNN runs, as far as advice differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// A phone, or another device with Android, behind adb.
    Android,
    /// A board with Linux.
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

    /// The one of a device that is known; `None` where its system says nothing.
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

    /// Whether a command of a check can be typed there. Those of the catalogue are for a shell of the device.
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

/// What to do about a cause, in order; the parts that differ between systems.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steps {
    /// Id of the cause.
    pub cause: String,
    #[serde(default)]
    android: Vec<String>,
    #[serde(default)]
    linux: Vec<String>,
    #[serde(default)]
    windows: Vec<String>,
    #[serde(default)]
    pc: Vec<String>,
    /// For systems without a list of their own.
    #[serde(default)]
    any: Vec<String>,
    /// Systems on which the cause does not occur.
    #[serde(default)]
    pub never_on: Vec<Platform>,
}

impl Steps {
    /// The steps on a system.
    pub fn on(&self, platform: Platform) -> &[String] {
        let own = match platform {
            Platform::Android => &self.android,
            Platform::Linux => &self.linux,
            Platform::Windows => &self.windows,
            Platform::Pc => &self.pc,
        };
        if own.is_empty() && !self.never_on.contains(&platform) { &self.any } else { own }
    }
}

impl Cause {
    /// What to do on a system, in order; nothing where only the general advice ([`Cause::fix`]) is known.
    pub fn steps(&self, platform: Platform) -> &'static [String] {
        let steps = catalogue().steps.iter().find(|steps| steps.cause == self.id);
        steps.map_or(&[], |steps| steps.on(platform))
    }
}

impl Diagnosis {
    /// Says which system the log comes from, which decides what is advised.
    pub fn set_platform(&mut self, platform: Platform) {
        self.platform = Some(platform);
        self.advise();
    }

    /// Gives each cause the steps of the system.
    pub(super) fn advise(&mut self) {
        let Some(platform) = self.platform else { return };
        for finding in &mut self.causes {
            finding.steps = finding.cause.steps(platform);
        }
    }
}

/// The commands that steps of the catalogue name, with the cause.
#[cfg(test)]
pub fn commands_of_steps() -> Vec<(&'static str, &'static str)> {
    let all = catalogue().steps.iter();
    let on_all = all.flat_map(|steps| Platform::ALL.into_iter().map(move |platform| (steps, platform)));
    let steps = on_all.flat_map(|(steps, platform)| steps.on(platform).iter().map(|step| (steps.cause.as_str(), step)));
    steps.flat_map(|(cause, step)| step.split('`').skip(1).step_by(2).map(move |command| (cause, command))).collect()
}

/// Keeps the blanks of a command together while its line is wrapped.
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
    use crate::diagnosis::{Diagnoser, causes};

    fn diagnose(log: &str) -> Diagnosis {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(log.as_bytes());
        diagnoser.finish()
    }

    /// The commands of a step, which are in backquotes.
    fn commands(step: &str) -> impl Iterator<Item = &str> {
        step.split('`').skip(1).step_by(2)
    }

    #[test]
    fn every_cause_says_what_to_do_in_order_on_every_system_where_it_occurs() {
        let mut wrong = Vec::new();
        let steps = &catalogue().steps;
        for entry in steps {
            let known = causes().iter().filter(|cause| cause.id == entry.cause).count();
            let entries = steps.iter().filter(|other| other.cause == entry.cause).count();
            if (known, entries) != (1, 1) {
                wrong.push(format!("{}: {known} causes, {entries} entries", entry.cause));
            }
        }
        for cause in causes() {
            // In order, and for all systems alike.
            let is_ordered = cause.fix.starts_with("1. ") && cause.fix.contains(" 2. ");
            let entry = steps.iter().find(|steps| steps.cause == cause.id);
            for platform in Platform::ALL {
                let list = cause.steps(platform);
                let occurs = !entry.is_some_and(|entry| entry.never_on.contains(&platform));
                if occurs && list.is_empty() && !(entry.is_none() && is_ordered) {
                    wrong.push(format!("{} says nothing for {}", cause.id, platform.name()));
                }
                if !occurs && !list.is_empty() {
                    wrong.push(format!("{} never occurs on {}, and says something", cause.id, platform.name()));
                }
                if !list.is_empty() && !list.iter().any(|step| commands(step).next().is_some()) {
                    wrong.push(format!("{} has no command for {}", cause.id, platform.name()));
                }
                let foreign: &[&str] = match platform {
                    Platform::Android => &["sudo ", "systemctl", "apt install", "pnputil", "dpkg", "%SDK%"],
                    Platform::Linux => &["adb ", "getprop", "logcat", "AndroidManifest", "pnputil", "%SDK%"],
                    Platform::Windows => &["adb ", "sudo ", "getprop", "logcat", "/vendor/", "systemctl", "ls -l"],
                    Platform::Pc => &["adb ", "getprop", "logcat", "pnputil", "cdsprpcd", "%SDK%"],
                };
                for step in list {
                    if step.matches('`').count() % 2 != 0 {
                        wrong.push(format!("{}: a command does not end: {step}", cause.id));
                    }
                    // Converters run on a PC, wherever the model goes.
                    let foreign = if cause.stage == "conversion" { &[] } else { foreign };
                    if let Some(word) = foreign.iter().find(|word| step.contains(**word)) {
                        wrong.push(format!("{} for {}: {word}: {step}", cause.id, platform.name()));
                    }
                    if !step.starts_with(|c: char| c.is_ascii_uppercase()) || step.contains('\n') {
                        wrong.push(format!("{}: no sentence: {step}", cause.id));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
