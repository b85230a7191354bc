//! How an installation goes on.

use std::path::PathBuf;

/// How far an install is. The steps come in this order; a step may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallProgress {
    /// Another install holds this lock; it is waited for.
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
        /// Name of the wheel, once pip has told it.
        wheel: Option<String>,
        /// Bytes so far.
        done: u64,
        /// Bytes in all, if pip tells.
        total: Option<u64>,
    },
    /// The wheel's checksum is being computed.
    Hashing {
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The libraries are being unpacked and their checksums compared.
    Unpacking {
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
}
