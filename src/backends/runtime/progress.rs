//! Progress of an installation.

use std::path::PathBuf;

/// Progress of an install. Steps come in this order; some may be skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallProgress {
    /// Waiting for another install, which holds this lock.
    Waiting {
        /// The lock file.
        lock: PathBuf,
    },
    /// pip is looking for the wheel.
    Asking {
        /// Package and version.
        requirement: String,
    },
    /// pip is downloading.
    Downloading {
        /// Name of the wheel, once pip has printed it.
        wheel: Option<String>,
        /// Bytes so far.
        done: u64,
        /// Total bytes, if pip reports them.
        total: Option<u64>,
    },
    /// The wheel's checksum is being computed.
    Hashing {
        /// Bytes so far.
        done: u64,
        /// Total bytes.
        total: u64,
    },
    /// The libraries are being unpacked and their checksums compared.
    Unpacking {
        /// Bytes so far.
        done: u64,
        /// Total bytes.
        total: u64,
    },
}
