//! How to fix a cause, by system: `catalogue/steps/*.toml`.

use super::{Cause, catalogue};
use crate::diagnosis::platform::Platform;
use serde::Deserialize;

/// The steps that fix a cause, in order, if they differ between systems.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::diagnosis) struct Steps {
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
    /// For systems that have no list of their own.
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
    /// The steps for a system, in order; empty if only the general advice ([`Cause::fix`]) is known.
    pub fn steps(&self, platform: Platform) -> &'static [String] {
        let steps = catalogue().steps.iter().find(|steps| steps.cause == self.id);
        steps.map_or(&[], |steps| steps.on(platform))
    }
}

/// The commands named in the catalogue's steps, each with its cause.
#[cfg(test)]
pub fn commands_of_steps() -> Vec<(&'static str, &'static str)> {
    let all = catalogue().steps.iter();
    let on_all = all.flat_map(|steps| Platform::ALL.into_iter().map(move |platform| (steps, platform)));
    let steps = on_all.flat_map(|(steps, platform)| steps.on(platform).iter().map(|step| (steps.cause.as_str(), step)));
    steps.flat_map(|(cause, step)| step.split('`').skip(1).step_by(2).map(move |command| (cause, command))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::causes;

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
            // Numbered, and the same for all systems.
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
                    // Converters run on a PC, wherever the model is deployed.
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
}
