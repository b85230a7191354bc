//! Errors about runtimes, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{DEFAULT_WHEEL_VERSION, PLUGIN, Package, Platform, RuntimeSource, WHEEL_NAME};

const MIB: u64 = 1 << 20;

/// A failed search for a runtime, or a failed install of one. The message says what failed and on what;
/// [`RuntimeError::hint`] says what to do next.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The requested version is not a version number.
    #[error("cannot install {WHEEL_NAME}: {version:?} is not a version number")]
    BadVersion {
        /// What was requested.
        version: String,
    },
    /// There is no folder to install into or to search.
    #[error("cannot find the data folder of qnnscope: this user has no home folder")]
    NoDataDir,
    /// Python could not be started.
    #[error("cannot start Python ({}) to download {WHEEL_NAME}", python.display())]
    PythonMissing {
        /// The program tried.
        python: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Python runs, but has no pip.
    #[error("cannot download {WHEEL_NAME}: {} has no pip", python.display())]
    PipMissing {
        /// The Python used.
        python: PathBuf,
    },
    /// pip failed for an unknown reason.
    #[error("pip could not download {requirement} ({status}){}", quote(lines))]
    PipFailed {
        /// What was requested.
        requirement: String,
        /// pip's exit status.
        status: String,
        /// The last lines of its output that matter.
        lines: Vec<String>,
    },
    /// pip could not reach the package index.
    #[error("pip could not reach the package index for {requirement}{}", quote(lines))]
    Network {
        /// What was requested.
        requirement: String,
        /// The last lines of its output that matter.
        lines: Vec<String>,
    },
    /// The package lacks this version for this machine, but has others.
    #[error("pip finds no {requirement} for this machine, only {}", available.join(", "))]
    NoSuchVersion {
        /// What was requested.
        requirement: String,
        /// The versions pip offers here.
        available: Vec<String>,
    },
    /// The package index has nothing for this machine.
    #[error("pip finds no wheel of {requirement} for this machine ({platform})")]
    NoWheel {
        /// What was requested.
        requirement: String,
        /// This machine.
        platform: Platform,
        /// The pip used, if too old to know the tags of these wheels.
        old_pip: Option<String>,
    },
    /// The file given as a wheel does not have a wheel's name.
    #[error("cannot install {}: not the name of a wheel (NAME-VERSION-PYTHON-ABI-PLATFORM.whl)", path.display())]
    NotAWheel {
        /// The file.
        path: PathBuf,
    },
    /// The wheel contains libraries for another kind of machine.
    #[error("cannot install {}: {found}, this machine is {platform}", wheel.display())]
    OtherPlatform {
        /// The wheel.
        wheel: PathBuf,
        /// What shows it.
        found: String,
        /// This machine.
        platform: Platform,
    },
    /// The wheel is not a readable zip archive, or its content does not match its checksums.
    #[error("cannot unpack {}: the file is damaged: {detail}", wheel.display())]
    CorruptWheel {
        /// The wheel.
        wheel: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The wheel is valid, but contains none of the libraries.
    #[error("cannot install {}: there is no {} in it", wheel.display(), match package {
        Package::Qnn => "libQnnSystem.so",
        Package::OnnxRuntime => "libonnxruntime.so",
    })]
    NotTheWheel {
        /// The wheel.
        wheel: PathBuf,
        /// What it should be.
        package: Package,
    },
    /// The wheel's package or version differs from its name.
    #[error("refused to install {}: {found}", wheel.display())]
    OtherPackage {
        /// The wheel.
        wheel: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// qnnscope does not know the wheel's checksum, and nobody consented.
    #[error("{wheel} was not installed: {reason}")]
    NotPinned {
        /// Its file name, or package and version if not fetched.
        wheel: String,
        /// What is wrong with it.
        reason: String,
        /// What the user can do about it.
        consent: &'static str,
    },
    /// Installed files have changed.
    #[error("the runtime in {} was changed since it was installed: {}", dir.display(), changed.join(", "))]
    Changed {
        /// The runtime's folder.
        dir: PathBuf,
        /// Its version.
        version: String,
        /// The files, each with its change.
        changed: Vec<String>,
    },
    /// The wheel has an entry that no valid wheel has.
    #[error("refused to unpack {}: entry {entry:?} {reason}", wheel.display())]
    UnsafeEntry {
        /// The wheel.
        wheel: PathBuf,
        /// Name of the entry.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk filled up.
    #[error("cannot {operation}: the disk of {} is full", dir.display())]
    DiskFull {
        /// What was being done.
        operation: &'static str,
        /// The folder on the full disk.
        dir: PathBuf,
        /// Space the whole step needs, if known.
        needed: Option<u64>,
    },
    /// The system denied access.
    #[error("cannot {operation} {}: {source}", path.display())]
    Denied {
        /// What was being done.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another failure of a file operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was being done.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("the install of {WHEEL_NAME} was stopped; nothing was changed")]
    Cancelled,
    /// A named place has no QNN libraries for this machine.
    #[error("no QNN libraries in {} ({origin}): {detail}", path.display())]
    NoLibraries {
        /// The place.
        path: PathBuf,
        /// Who named it.
        origin: RuntimeSource,
        /// What was looked for and what was found.
        detail: String,
    },
    /// A named place has libraries for another kind of machine.
    #[error("{} ({origin}) is {found}, this machine is {platform}", library.display())]
    WrongMachine {
        /// The library examined.
        library: PathBuf,
        /// Who named it.
        origin: RuntimeSource,
        /// What it is: `built for x86_64`, or not a library at all.
        found: String,
        /// This machine.
        platform: Platform,
    },
    /// The only installed runtimes have lost files since installation.
    #[error("the runtime in {} is damaged: {} missing or of another size", dir.display(), missing.join(", "))]
    Incomplete {
        /// The runtime's folder.
        dir: PathBuf,
        /// Its version.
        version: String,
        /// The files that are missing or have the wrong size.
        missing: Vec<String>,
    },
    /// ONNX Runtime, needed for ONNX models, is missing.
    #[error("no ONNX Runtime found; ONNX models need it")]
    NoOnnxRuntime,
    /// The place named by the variable has none.
    #[error("no libonnxruntime.so in {} (QNNSCOPE_ONNXRUNTIME)", path.display())]
    NoOnnxLibrary {
        /// The place.
        path: PathBuf,
    },
    /// Neither the runtime nor an installed one has ONNX Runtime's QNN plug-in.
    #[error("the runtime in {} has no QNN plug-in for ONNX Runtime ({PLUGIN}), nor does any installed runtime", dir.display())]
    NoPlugin {
        /// The runtime's folder.
        dir: PathBuf,
    },
    /// There is no runtime anywhere.
    #[error("no QNN runtime found; looked at {}", looked.join("; "))]
    NotFound {
        /// The places, each with its problem.
        looked: Vec<String>,
    },
}

impl RuntimeError {
    /// Classifies a failed file operation: full disk, no permission, anything else.
    pub(super) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                operation,
                dir: path.parent().map_or_else(|| path.clone(), Path::to_path_buf),
                needed: None,
            },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { operation, path, source }
            }
            _ => Self::Io { operation, path, source },
        }
    }

    /// The next step or command, if any.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::BadVersion { .. } => format!("try --version {DEFAULT_WHEEL_VERSION}"),
            Self::NoOnnxRuntime | Self::NoPlugin { .. } => "get it: qnnscope runtime install --onnx".to_owned(),
            Self::NoOnnxLibrary { .. } => {
                "name the library, its folder or a Python's site-packages; or unset the variable and run: qnnscope runtime \
                 install --onnx"
                    .to_owned()
            }
            Self::NoDataDir => {
                "set QNNSCOPE_DATA_DIR to a folder for the libraries".to_owned()
            }
            Self::PythonMissing { python, .. } if python == Path::new("python3") => {
                "install Python and pip: sudo apt-get install python3 python3-pip; or set QNNSCOPE_PYTHON to a Python 3"
                    .to_owned()
            }
            Self::PythonMissing { .. } => {
                "QNNSCOPE_PYTHON must name a Python 3 program; unset it to use python3".to_owned()
            }
            Self::PipMissing { python } if python == Path::new("python3") => {
                "install pip: sudo apt-get install python3-pip; or set QNNSCOPE_PYTHON to a Python that has pip"
                    .to_owned()
            }
            Self::PipMissing { python } => format!(
                "install pip: {} -m ensurepip; or unset QNNSCOPE_PYTHON to use python3",
                python.display()
            ),
            Self::PipFailed { requirement, .. } => format!(
                "check whether this works: python3 -m pip download --no-deps {requirement}; then install the file: \
                 qnnscope runtime install --wheel FILE"
            ),
            Self::Network { requirement, .. } => format!(
                "check the network, or pip's index and proxy (python3 -m pip config list); or fetch the wheel elsewhere \
                 with pip download --no-deps {requirement} and install it: qnnscope runtime install --wheel FILE"
            ),
            Self::NoSuchVersion { available, .. } => {
                let version = if available.iter().any(|one| one == DEFAULT_WHEEL_VERSION) {
                    DEFAULT_WHEEL_VERSION
                } else {
                    available.last().map_or(DEFAULT_WHEEL_VERSION, String::as_str)
                };
                format!("qnnscope runtime install --version {version}")
            }
            Self::NoWheel { old_pip: Some(version), .. } => format!(
                "pip {version} is too old for these wheels: python3 -m pip install --user --upgrade pip; or set \
                 QNNSCOPE_PYTHON to a Python with a newer pip"
            ),
            Self::NoWheel { .. } => {
                "the wheels are for Linux with glibc 2.35 (x86_64) or 2.34 (aarch64) and newer; elsewhere set QNN_SDK_ROOT \
                 to the vendor's SDK or give --runtime DIR"
                    .to_owned()
            }
            Self::NotAWheel { .. } => {
                "keep the file name that pip gave it: onnxruntime_qnn-VERSION-PYTHON-ABI-PLATFORM.whl".to_owned()
            }
            Self::OtherPlatform { .. } => {
                "let pip choose the wheel for this machine: qnnscope runtime install".to_owned()
            }
            Self::CorruptWheel { .. } => "fetch it again: qnnscope runtime install".to_owned(),
            Self::NotTheWheel { .. } => format!(
                "give a wheel of {WHEEL_NAME}, or let pip fetch it: qnnscope runtime install"
            ),
            Self::OtherPackage { .. } => format!(
                "give a wheel of {WHEEL_NAME} with the name that pip gave it, or let pip fetch it: qnnscope runtime install"
            ),
            Self::NotPinned { consent, .. } => (*consent).to_owned(),
            Self::UnsafeEntry { .. } => {
                "do not use this file; fetch the wheel from the package index: qnnscope runtime install".to_owned()
            }
            Self::DiskFull { dir, needed, .. } => match needed {
                Some(bytes) => format!(
                    "free {} MiB in {}, or set QNNSCOPE_DATA_DIR to a folder on another disk",
                    bytes.div_ceil(MIB),
                    dir.display()
                ),
                None => format!(
                    "free space in {}, or set QNNSCOPE_DATA_DIR to a folder on another disk",
                    dir.display()
                ),
            },
            Self::Denied { operation: "open" | "read", path, .. } => {
                format!("check who may read it: ls -l {}", path.display())
            }
            Self::Denied { path, .. } => format!(
                "check who may write there: ls -ld {}; or set QNNSCOPE_DATA_DIR to a folder of yours",
                path.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(path).display()
            ),
            Self::NoLibraries { path, .. }
                if path.extension().is_some_and(|extension| extension == "whl") =>
            {
                format!("qnnscope runtime install --wheel {}", path.display())
            }
            Self::NoLibraries { origin, .. } | Self::WrongMachine { origin, .. } => format!(
                "point {origin} at a folder with libQnnSystem.so for this machine, or unset it and run: qnnscope \
                 runtime install"
            ),
            Self::Incomplete { version, .. } | Self::Changed { version, .. } => {
                format!("qnnscope runtime install --force --version {version}")
            }
            Self::NotFound { .. } => "qnnscope runtime install".to_owned(),
            Self::Io { .. } | Self::Cancelled => return None,
        };
        Some(hint)
    }
}

/// pip's own message, indented below ours.
fn quote(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        text.push_str("\n    pip: ");
        text.push_str(line);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_failures_are_sorted_by_what_helps() {
        let path = Path::new("/data/runtimes/x.so");
        let sort = |kind: io::ErrorKind| RuntimeError::file("write", path, kind.into());
        let full = sort(io::ErrorKind::StorageFull);
        assert!(matches!(&full, RuntimeError::DiskFull { dir, .. } if dir == Path::new("/data/runtimes")), "{full:?}");
        assert!(matches!(sort(io::ErrorKind::ReadOnlyFilesystem), RuntimeError::Denied { .. }));
        assert!(matches!(sort(io::ErrorKind::NotFound), RuntimeError::Io { .. }));
    }

    #[test]
    fn wording_of_the_common_failures() {
        let full = RuntimeError::DiskFull {
            operation: "unpack the wheel",
            dir: PathBuf::from("/data"),
            needed: Some(200 * MIB + 1),
        };
        assert_eq!(full.to_string(), "cannot unpack the wheel: the disk of /data is full");
        assert_eq!(
            full.hint().as_deref(),
            Some("free 201 MiB in /data, or set QNNSCOPE_DATA_DIR to a folder on another disk")
        );
        let pip = RuntimeError::PipMissing { python: PathBuf::from("python3") };
        assert_eq!(pip.to_string(), "cannot download onnxruntime-qnn: python3 has no pip");
        assert!(pip.hint().is_some_and(|hint| hint.starts_with("install pip: sudo apt-get install python3-pip")));
        let version = RuntimeError::NoSuchVersion {
            requirement: "onnxruntime-qnn==9.9.9".to_owned(),
            available: vec!["2.3.0".to_owned(), "2.7.0".to_owned()],
        };
        assert_eq!(version.to_string(), "pip finds no onnxruntime-qnn==9.9.9 for this machine, only 2.3.0, 2.7.0");
        assert_eq!(version.hint().as_deref(), Some("qnnscope runtime install --version 2.3.0"));
        let nothing = RuntimeError::NotFound { looked: vec![] };
        assert_eq!(nothing.hint().as_deref(), Some("qnnscope runtime install"));
    }
}
