//! States of an attached device as adb names them, and how to run commands there as root.

use serde::{Deserialize, Serialize};

/// Whether a device can be used, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// Ready.
    Device,
    /// Known to adb, but not responding.
    Offline,
    /// The user has not authorized this computer on the device.
    Unauthorized,
    /// Authorisation is pending on the device.
    Authorizing,
    /// adb is connecting.
    Connecting,
    /// This user may not open the USB device.
    NoPermissions,
    /// Recovery.
    Recovery,
    /// Boot loader.
    Bootloader,
    /// Sideload mode.
    Sideload,
    /// No longer attached.
    Gone,
    /// Another state reported by adb.
    Other(String),
}

impl DeviceState {
    /// Parses adb's word for a state (`device`, `no permissions; see …`).
    pub fn parse(word: &str) -> Self {
        match word {
            "device" => Self::Device,
            "offline" => Self::Offline,
            "unauthorized" => Self::Unauthorized,
            "authorizing" => Self::Authorizing,
            "connecting" => Self::Connecting,
            "recovery" | "rescue" => Self::Recovery,
            "bootloader" => Self::Bootloader,
            "sideload" => Self::Sideload,
            _ if word.starts_with("no permissions") || word == "noperm" => Self::NoPermissions,
            _ => Self::Other(crate::event::clean_text(word)),
        }
    }

    /// True if commands can be run.
    pub fn is_ready(&self) -> bool {
        *self == Self::Device
    }

    /// What the user can do about it; `None` if nothing needs doing.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Device => None,
            Self::Offline => Some("replug it, or restart adb: adb kill-server && adb start-server"),
            Self::Unauthorized => Some(
                "unlock the device and accept \"Allow USB debugging\" for this computer; if it does not ask, turn USB \
                      debugging off and on",
            ),
            Self::Authorizing | Self::Connecting => Some("wait a moment; unlock the device if it asks for something"),
            Self::NoPermissions => Some(
                "this user may not open the USB device: install Android's udev rules (Debian, Ubuntu: sudo apt-get \
                      install android-sdk-platform-tools-common), join group plugdev, replug it",
            ),
            Self::Recovery => Some("the device is in recovery: start the system, adb reboot"),
            Self::Bootloader => Some("the device is in its boot loader: fastboot reboot"),
            Self::Sideload => Some("the device waits for a sideloaded package: finish it or adb reboot"),
            Self::Gone => Some("replug the device; it then resumes by itself"),
            Self::Other(_) => Some("adb devices -l shows more about this state"),
        }
    }
}

impl std::fmt::Display for DeviceState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Device => "ready",
            Self::Offline => "offline",
            Self::Unauthorized => "unauthorized",
            Self::Authorizing => "authorizing",
            Self::Connecting => "connecting",
            Self::NoPermissions => "not permitted",
            Self::Recovery => "in recovery",
            Self::Bootloader => "in its boot loader",
            Self::Sideload => "in sideload mode",
            Self::Gone => "gone",
            Self::Other(word) => word,
        })
    }
}

/// How commands run as root on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// Unavailable, or refused by the user.
    None,
    /// The shell is already root (boards, `adb root` on debug builds).
    Shell,
    /// `su -c COMMAND` (Magisk and the like).
    SuC,
    /// `su 0 COMMAND` (debug builds of Android).
    Su0,
}

impl Root {
    /// True if commands can be run as root.
    pub fn is_available(self) -> bool {
        self != Self::None
    }
}
