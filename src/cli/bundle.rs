//! `qnnscope diagnose --bundle`: a shareable report, shown to the user before it is written.

use super::patience::Patience;
use super::width::text_width;
use super::{CliError, Global, doctor, say};
use crate::diagnosis::{Diagnosis, DiagnosisDocument, diagnosis_text};
use crate::event::LOCAL_DEVICE;
use crate::files::{Guard, Kind, read_at_most, write_whole};
use crate::report::{Bundle, doctor_text};
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

/// A log longer than this is not read a second time in full, bytes.
const MAX_LOG_BYTES: u64 = 1 << 30;
const OPTION: &str = "--bundle";

/// What the user specified on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Write without asking.
    pub yes: bool,
    /// Overwrite another program's file.
    pub force: bool,
}

/// Gathers, shows and writes the report.
pub fn bundle(
    diagnosis: &Diagnosis,
    log: &Path,
    file: &Path,
    Wish { yes, force }: Wish,
    patience: Patience,
    global: &Global,
) -> Result<(), CliError> {
    let mut guard = Guard::new(force);
    guard.reads("the log", log);
    guard.prints();
    guard.claim(OPTION, file, Kind::Bundle)?;
    let log = read_at_most(log, MAX_LOG_BYTES)
        .map_err(|source| CliError::Io { action: format!("read {} again", log.display()), source })?;
    let examination = doctor::examine(patience, global)?;

    let mut bundle = Bundle::new(&own_words(global));
    bundle.add("diagnosis.txt", &diagnosis_text(diagnosis, 160));
    let document = serde_json::to_string_pretty(&DiagnosisDocument::new(diagnosis)).unwrap_or_default();
    bundle.add("diagnosis.json", &document);
    bundle.add("doctor.txt", &doctor_text(&examination, 160));
    bundle.add("versions.txt", &versions());
    bundle.add_log(&log);
    say(bundle.preview().trim_end());
    let answer = if yes { Some(true) } else { agreed(file) };
    if answer != Some(true) {
        let text = format!("{} was not written; --yes writes without asking", file.display());
        // A user declined; a script was not asked.
        if answer.is_none() {
            return Err(CliError::Usage(text));
        }
        say(&text);
        return Ok(());
    }
    let io = |source| CliError::Io { action: format!("write {}", file.display()), source };
    write_whole(file, &bundle.archive().map_err(io)?).map_err(io)?;
    say(&format!("{} written; check it before you send it", file.display()));
    Ok(())
}

/// Asks on a terminal; `None` without one.
fn agreed(file: &Path) -> Option<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(std::io::stderr(), "Write {}? [y/N] ", file.display());
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Some(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Names of this user, this machine and the named device.
fn own_words(global: &Global) -> Vec<(String, &'static str)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut words: Vec<(String, &'static str)> = Vec::new();
    words.extend(["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(variable).map(|name| (name, "user")));
    for name in
        sysinfo::System::host_name().into_iter().chain(["HOSTNAME", "COMPUTERNAME"].into_iter().filter_map(variable))
    {
        // `box.example.org` also goes by `box`.
        let short = name.split('.').next().filter(|short| *short != name).map(ToOwned::to_owned);
        words.extend(std::iter::once(name).chain(short).map(|name| (name, "host")));
    }
    words.retain(|(name, what)| *what != "host" || name != "localhost");
    let serial = global.device().map(str::to_owned).or_else(|| variable("ANDROID_SERIAL"));
    words.extend(serial.filter(|name| name != LOCAL_DEVICE && name != "adb").map(|name| (name, "serial")));
    words.dedup();
    words
}

fn versions() -> String {
    let mut out = format!("qnnscope {}\n", env!("CARGO_PKG_VERSION"));
    let system = sysinfo::System::long_os_version().unwrap_or(std::env::consts::OS.to_owned());
    let kernel = sysinfo::System::kernel_version().unwrap_or_default();
    let _ = writeln!(out, "{system}, kernel {kernel}, {}", std::env::consts::ARCH);
    let _ = writeln!(out, "terminal width {}", text_width());
    out
}
