//! A debuggable Android app: how it is started, and with what. Everything inside its folder is done as its
//! user, through `run-as`.
//!
//! Based on documentation, because no phone was available. A debuggable app is started through the program
//! named by its property `wrap.PACKAGE`, here a script that sets the tap's variables and then executes its
//! arguments.

use super::DeviceTapError;
use super::script::{STDERR, STDOUT, SWAPPED, TOLD, TapPlace, copies};
use crate::devices::{Device, quote};
use crate::event::clean_text;
use crate::tap::library::FILE;
use std::fmt::Write as _;
use std::time::Duration;

/// Longest value of a property, bytes.
const LONGEST_PROPERTY: usize = 91;
/// Copying the library, or starting an app, takes a moment on a slow phone.
const LIMIT: Duration = Duration::from_mins(1);
/// The wrapper script of the app, in the run's folder.
const WRAP: &str = "wrap";

/// What a device reports about a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Its name.
    pub package: String,
    /// Its own folder.
    home: String,
    /// Folders in which Android unpacked its libraries.
    pub libraries: Vec<String>,
}

/// Whether this is a valid Android package name.
pub fn is_package(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    name.contains('.') && name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

impl App {
    /// Checks whether the shell may act as the app.
    pub async fn find(device: &Device, package: &str) -> Result<Self, DeviceTapError> {
        let script = format!(
            "run-as {package} sh -c pwd 2>&1 || exit 1\np=$(pm path {package} 2>/dev/null | head -n 1); p=${{p#package:}}; for d in \
             \"${{p%/*}}\"/lib/*; do [ -d \"$d\" ] && echo \"$d\"; done; true"
        );
        let output = device.run(&script, "acting as the app").await?;
        let text = output.text();
        let (id, package) = (device.id().to_owned(), package.to_owned());
        let mut lines = text.lines().map(str::trim);
        match lines.next() {
            Some(home) if output.status == 0 && home.starts_with('/') => {
                let libraries = lines.filter(|line| line.starts_with('/')).map(ToOwned::to_owned).collect();
                Ok(Self { package, home: home.to_owned(), libraries })
            }
            _ => Err(refusal(&text, package, id)),
        }
    }

    /// Where its run takes place.
    pub fn place(&self) -> TapPlace {
        TapPlace { folder: format!("{}/qnnscope", self.home), app: Some(self.package.clone()) }
    }

    /// Copies the tap's library (sent to `from`) and its script into the app's folder.
    pub async fn furnish(
        &self,
        device: &Device,
        from: &str,
        backends: &[String],
        variables: &[(String, String)],
    ) -> Result<(), DeviceTapError> {
        let place = self.place();
        let value = self.property()?;
        let made = place.as_owner(&format!("rm -rf {0}; mkdir -p {0}/{TOLD} {0}/{SWAPPED}", quote(&place.folder)));
        let put = place.inside(&format!("cat >{FILE} && chmod 700 {FILE}{}", copies(backends)));
        let mut wrap = String::new();
        for (name, value) in variables {
            let _ = writeln!(wrap, "export {name}={}", quote(value));
        }
        let _ = writeln!(wrap, "exec \"$@\" >{0}/{STDOUT} 2>{0}/{STDERR}", quote(&place.folder));
        let written = place.inside(&format!("cat >{WRAP} && chmod 700 {WRAP}"));
        let script = format!(
            "{made} && {put} <{} && printf %s {} | {written} && {}",
            quote(&format!("{from}/{FILE}")),
            quote(&wrap),
            self.set_property(&value)
        );
        let output = device.run_within(&script, "putting the tap into the app's folder", LIMIT).await?;
        if output.status == 0 {
            return Ok(());
        }
        let message = output.text().lines().last().unwrap_or("it printed nothing").to_owned();
        Err(DeviceTapError::AppRefused { package: self.package.clone(), device: device.id().to_owned(), message })
    }

    /// The value of the property that names the script.
    fn property(&self) -> Result<String, DeviceTapError> {
        let value = format!("sh {}/{WRAP}", self.place().folder);
        if value.len() > LONGEST_PROPERTY {
            return Err(DeviceTapError::LongName { package: self.package.clone() });
        }
        Ok(value)
    }

    /// Sets the property; fails if the shell may not.
    fn set_property(&self, value: &str) -> String {
        let name = format!("wrap.{}", self.package);
        let value = quote(value);
        format!(
            "{{ setprop {name} {value} && [ \"$(getprop {name})\" = {value} ] || {{ echo the shell may not set {name}; false; }}; }}"
        )
    }

    /// Restarts the app and records its pid. The property is only read when the app starts, and is reset at once, so
    /// that the app still starts if qnnscope dies.
    pub fn start(&self) -> String {
        let (package, place) = (&self.package, self.place());
        let told = place.inside("cat >.pid && mv .pid pid");
        format!(
            "{} || exit 0\nam force-stop {package}\nc=$(cmd package resolve-activity --brief -c android.intent.category.LAUNCHER {package} | tail -n \
             1)\nam start -W -n \"$c\" >/dev/null 2>&1\ni=0\nwhile [ $i -lt 50 ]; do p=$(pidof {package}); [ -n \"$p\" ] && break; sleep 0.1; \
             i=$((i+1)); done\n{}\n[ -n \"$p\" ] && echo \"${{p%% *}}\" | {told}",
            place.inside("mkdir started 2>/dev/null"),
            self.take_back(),
        )
    }

    fn take_back(&self) -> String {
        format!("setprop wrap.{} ''", self.package)
    }

    /// Stops the app, like a signal stops a program.
    pub fn end(&self) -> String {
        format!("am force-stop {}", self.package)
    }

    /// Cleans up the app's folder, if the device is reachable.
    pub async fn remove(&self, device: &Device) {
        let place = self.place();
        let script = format!("{}\n{}", self.take_back(), place.as_owner(&format!("rm -rf {}", quote(&place.folder))));
        let _ = device.run(&script, "removing the tap from the app's folder").await;
    }
}

/// Recognises the messages of older and newer versions of `run-as`.
fn refusal(text: &str, package: String, device: String) -> DeviceTapError {
    let message = clean_text(text.lines().next().unwrap_or("it printed nothing").trim());
    if text.contains("not debuggable") {
        DeviceTapError::NotDebuggable { package, device }
    } else if text.contains("unknown package") || text.contains("is unknown") {
        DeviceTapError::NoPackage { package, device }
    } else {
        DeviceTapError::AppRefused { package, device, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_of_run_as_is_known() {
        let of = |text: &str| refusal(text, "a.b".to_owned(), "d".to_owned());
        for text in ["run-as: unknown package: a.b", "run-as: Package 'a.b' is unknown"] {
            assert!(matches!(of(text), DeviceTapError::NoPackage { .. }), "{text}");
        }
        for text in ["run-as: package not debuggable: a.b", "run-as: Package 'a.b' is not debuggable"] {
            assert!(matches!(of(text), DeviceTapError::NotDebuggable { .. }), "{text}");
        }
        let DeviceTapError::AppRefused { message, .. } = of("sh: run-as: not found\n") else { panic!() };
        assert_eq!(message, "sh: run-as: not found");
    }

    #[test]
    fn names_of_packages_are_words_for_a_shell() {
        assert!(is_package("com.example.app_2"));
        for name in ["", "app", "com.example;reboot", "com.example app", ".a", "com.$(x)"] {
            assert!(!is_package(name), "{name}");
        }
        let long = App {
            package: "a.".to_owned() + &"b".repeat(90),
            home: "/data/user/0/x".to_owned(),
            libraries: Vec::new(),
        };
        assert!(long.property().is_ok(), "the folder counts, not the name");
        let long = App { home: format!("/data/user/0/{}", "b".repeat(90)), ..long };
        assert!(matches!(long.property(), Err(DeviceTapError::LongName { .. })));
    }
}
