//! The environment of a process on a device: library paths and priority.

use crate::devices::{Root, quote};
use crate::event::{Setting, SettingOutcome};

/// Priority of apps in the foreground.
const APP_NICE: i32 = -10;

/// The search paths of the CPU's and the DSP's libraries.
pub fn search_paths(folder: &str, vendor_libraries: bool) -> (String, String) {
    let (libraries, dsp) = if vendor_libraries {
        (":/vendor/dsp/cdsp:/vendor/lib64", ";/vendor/dsp/cdsp;/vendor/lib/rfsa/adsp;/system/lib/rfsa/adsp;/dsp")
    } else {
        ("", "")
    };
    // Semicolons separate the DSP's folders; with colons it finds nothing (skel failures such as 1008).
    (format!("{folder}{libraries}"), format!("{folder}{dsp}"))
}

/// The same as assignments for a shell.
pub fn library_paths(folder: &str, vendor_libraries: bool) -> String {
    let (libraries, dsp) = search_paths(folder, vendor_libraries);
    format!("LD_LIBRARY_PATH={} ADSP_LIBRARY_PATH={}", quote(&libraries), quote(&dsp))
}

/// Sets the shell's priority, which every process it starts inherits, with all its threads.
pub fn priority(root: Root) -> String {
    match root {
        Root::None => String::new(),
        Root::Shell => format!("renice -n {APP_NICE} -p $$ >/dev/null 2>&1; "),
        // Double quotes: our shell's pid, not that of the shell behind su.
        Root::SuC => format!("su -c \"renice -n {APP_NICE} -p $$\" >/dev/null 2>&1; "),
        Root::Su0 => format!("su 0 renice -n {APP_NICE} -p $$ >/dev/null 2>&1; "),
    }
}

/// The outcome of the priority setting.
pub fn priority_outcome(root: Root) -> Setting {
    let outcome = match root {
        Root::None => SettingOutcome::NoEffect(
            "only root may raise the priority; it runs as a shell process, not as an app".to_owned(),
        ),
        _ => SettingOutcome::Applied,
    };
    Setting { key: "nice".to_owned(), value: APP_NICE.to_string(), outcome }
}
