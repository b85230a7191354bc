//! Running commands as root.

use super::script::quote;
use qnnscope_core::device_state::Root;

/// `script` wrapped for running as root in the device's shell; unchanged without root.
pub fn as_root(root: Root, script: &str) -> String {
    match root {
        Root::None | Root::Shell => script.to_owned(),
        Root::SuC => format!("su -c {}", quote(script)),
        Root::Su0 => format!("su 0 sh -c {}", quote(script)),
    }
}
