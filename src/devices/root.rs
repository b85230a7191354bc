//! Whether and how commands can be run as root.

use super::script::quote;
use serde::{Deserialize, Serialize};

/// The way to root on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// There is none, or the user refused it.
    None,
    /// The shell is root already (boards, `adb root` on debug builds).
    Shell,
    /// `su -c COMMAND` (Magisk and its like).
    SuC,
    /// `su 0 COMMAND` (debug builds of Android).
    Su0,
}

impl Root {
    /// True if commands can be run as root.
    pub fn is_available(self) -> bool {
        self != Self::None
    }

    /// `script` as it has to be given to the device's shell to run as root; as it is where it cannot.
    pub fn wrap(self, script: &str) -> String {
        match self {
            Self::None | Self::Shell => script.to_owned(),
            Self::SuC => format!("su -c {}", quote(script)),
            Self::Su0 => format!("su 0 sh -c {}", quote(script)),
        }
    }
}
