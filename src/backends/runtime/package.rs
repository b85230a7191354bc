//! The packages whose wheels are installed: their names, and which of their files are kept.

use super::{DEFAULT_WHEEL_VERSION, ONNX_WHEEL_NAME, ONNX_WHEEL_VERSION, WHEEL_NAME};
use std::path::Path;

/// The library every runtime must have; the other entries are searched around it.
pub const SYSTEM_LIBRARY: &str = "libQnnSystem.so";
/// File name of the plug-in.
pub const PLUGIN: &str = "libonnxruntime_providers_qnn.so";
/// Prefix of the library's file name; its version follows.
pub(super) const LIBRARY: &str = "libonnxruntime.so";
/// The licence file of QNN's libraries in the wheels.
const QUALCOMM_LICENCE: &str = "Qualcomm_LICENSE.pdf";
/// The licence of ONNX Runtime.
const LICENCE: &str = "LICENSE";
/// The licences of other parts of a wheel.
const NOTICES: &str = "ThirdPartyNotices.txt";

/// A package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Package {
    /// QNN's libraries, with ONNX Runtime's plug-in for them.
    #[default]
    Qnn,
    /// ONNX Runtime, for ONNX models.
    OnnxRuntime,
}

impl Package {
    /// Its name on the package index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qnn => WHEEL_NAME,
            Self::OnnxRuntime => ONNX_WHEEL_NAME,
        }
    }

    /// The version installed if none is named.
    pub fn default_version(self) -> &'static str {
        match self {
            Self::Qnn => DEFAULT_WHEEL_VERSION,
            Self::OnnxRuntime => ONNX_WHEEL_VERSION,
        }
    }

    /// The folder of the libraries in the wheel, if this entry reveals it.
    pub(super) fn home(self, entry: &str) -> Option<&str> {
        let (folder, name) = entry.rsplit_once('/')?;
        self.is_library(name).then_some(folder)
    }

    /// Whether a file of this name is the library found in every wheel of the package.
    pub(super) fn is_library(self, name: &str) -> bool {
        match self {
            Self::Qnn => name == SYSTEM_LIBRARY,
            Self::OnnxRuntime => {
                name.strip_prefix(LIBRARY).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
        }
    }

    /// The name of a kept entry in the flat folder. `home` is the folder of the libraries in the wheel; the
    /// dependencies of QNN's libraries are in the folder beside it with the suffix `.libs`, ONNX Runtime's licence in
    /// the parent folder.
    pub(super) fn flat_name<'a>(self, home: &str, entry: &'a str) -> Option<&'a str> {
        let (folder, name) = entry.rsplit_once('/')?;
        let shared = Path::new(name).extension().is_some_and(|extension| extension == "so") || name.contains(".so.");
        let keep = match self {
            Self::Qnn if folder == home => {
                let licence = [QUALCOMM_LICENCE, LICENCE, NOTICES].contains(&name);
                licence || name == PLUGIN || (shared && name.starts_with("libQnn"))
            }
            Self::Qnn => shared && folder.strip_suffix(".libs") == Some(home),
            Self::OnnxRuntime if folder == home => self.is_library(name),
            Self::OnnxRuntime => {
                home.rsplit_once('/').is_some_and(|(above, _)| above == folder) && [LICENCE, NOTICES].contains(&name)
            }
        };
        keep.then_some(name)
    }

    /// The licence of its libraries.
    pub(super) fn licence(self) -> &'static str {
        match self {
            Self::Qnn => QUALCOMM_LICENCE,
            Self::OnnxRuntime => LICENCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_keeps_its_libraries_and_licences() {
        let (qnn, onnx) = (Package::Qnn, Package::OnnxRuntime);
        assert_eq!(qnn.home("onnxruntime_qnn/libQnnSystem.so"), Some("onnxruntime_qnn"));
        assert_eq!(onnx.home("onnxruntime/capi/libonnxruntime.so.1.24.4"), Some("onnxruntime/capi"));
        assert_eq!(onnx.home("onnxruntime/capi/libonnxruntime_providers_shared.so"), None);
        for (package, home, entry, kept) in [
            (qnn, "q", "q/libQnnCpu.so", true),
            (qnn, "q", "q/libonnxruntime_providers_qnn.so", true),
            (qnn, "q", "q/libGenie.so", false),
            (qnn, "q", "q.libs/libc++-71bc274c.so.1.0", true),
            (qnn, "q", "q/Qualcomm_LICENSE.pdf", true),
            (onnx, "onnxruntime/capi", "onnxruntime/capi/libonnxruntime.so.1.24.4", true),
            (onnx, "onnxruntime/capi", "onnxruntime/capi/onnxruntime_pybind11_state.so", false),
            (onnx, "onnxruntime/capi", "onnxruntime/LICENSE", true),
            (onnx, "onnxruntime/capi", "onnxruntime/tools/LICENSE", false),
        ] {
            assert_eq!(package.flat_name(home, entry).is_some(), kept, "{entry}");
        }
    }
}
