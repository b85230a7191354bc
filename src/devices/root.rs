//! Running commands as root.

use super::script::quote;
use qnnscope_core::device_state::Root;

/// `script` as it has to be given to the device's shell to run as root; as it is where it cannot.
pub fn as_root(root: Root, script: &str) -> String {
    match root {
        Root::None | Root::Shell => script.to_owned(),
        Root::SuC => format!("su -c {}", quote(script)),
        Root::Su0 => format!("su 0 sh -c {}", quote(script)),
    }
}
