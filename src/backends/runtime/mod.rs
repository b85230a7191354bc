//! The QNN runtime libraries: finding and installing them.
//!
//! qnnscope is not linked with any part of QNN. It opens `libQnn*.so` at run time from one folder, a
//! *runtime*, which is one of (first match wins, see [`choose`]):
//!
//! 1. the folder given with `--runtime`,
//! 2. `$QNNSCOPE_RUNTIME`,
//! 3. `$QNN_SDK_ROOT`, then `$QAIRT_SDK_ROOT`: the vendor's SDK, `lib/<target>/` for this machine,
//! 4. a runtime installed by [`install()`]: version [`DEFAULT_WHEEL_VERSION`] first (it has every backend), then the
//!    newest.
//!
//! # What an install leaves on disk
//!
//! ```text
//! <data folder>/runtimes/
//!     .lock                               held while an install runs; never removed
//!     .tmp-XXXXXX/                        an install under way, or one that was killed: the next install removes it
//!     2.3.0-manylinux_2_35_x86_64/        a whole runtime
//!         libQnnCpu.so libQnnHtp.so ...   the libraries, and what they link to, in one flat folder
//!         Qualcomm_LICENSE.pdf LICENSE ThirdPartyNotices.txt
//!         runtime.json                    what was installed, with sizes and SHA-256 sums
//! ```
//!
//! The data folder is `$QNNSCOPE_DATA_DIR`, else `qnnscope` in the user's data folder (`$XDG_DATA_HOME` is
//! honoured). A runtime appears by one rename after all its files are on disk, so a killed install leaves
//! either nothing or a complete runtime.
//!
//! # What is trusted
//!
//! qnnscope carries the checksums of the wheels it was tested with. Any other file is unpacked only if the user
//! consents ([`Consent`]), and the manifest records which case applied. Installed files are compared with the manifest
//! at every run.
//!
//! `libHtpPrepare.so` of the `x86_64` wheels is left out: libQnnHtp neither links nor opens it, and graphs are compiled
//! for HTP without it. The `libQnnHtpPrepare.so` of the aarch64 wheels is kept.

mod consent;
mod env;
mod error;
mod install;
mod locate;
mod manifest;
mod onnx;
mod package;
mod pins;
mod pip;
mod platform;
mod progress;
mod source;
#[cfg(test)]
mod testing;
mod verify;
mod wheel;

pub use consent::{Consent, Unpinned};
pub use env::Env;
pub use error::RuntimeError;
pub use install::{InstallRequest, Installed, install};
pub use locate::{LibraryFile, RuntimeDir, Survey, choose, locate, survey};
pub use manifest::{MANIFEST_FILE, MANIFEST_SCHEMA, ManifestFile, RuntimeManifest};
pub use onnx::{OnnxKit, OnnxLibrary, installed as installed_onnx, onnx_kit, onnx_library};
pub use package::{PLUGIN, Package};
pub use pins::pinned_versions;
pub use platform::{Platform, elf_machine, version_key};
pub use progress::InstallProgress;
pub use source::RuntimeSource;
pub use verify::{ChangeKind, ChangedFile, Depth, changed_files, changed_in, damaged};
pub(crate) use wheel::{Wheel, WheelName};

/// The Python package whose wheels carry the libraries.
pub const WHEEL_NAME: &str = "onnxruntime-qnn";

/// The Python package with ONNX Runtime itself.
pub const ONNX_WHEEL_NAME: &str = "onnxruntime";

/// The version of it that is installed: the one the plug-ins of all known QNN wheels work with.
pub const ONNX_WHEEL_VERSION: &str = "1.24.4";

/// The wheel installed, and preferred, if no version is named: the newest one with a CPU backend on `x86_64`.
pub const DEFAULT_WHEEL_VERSION: &str = "2.3.0";
