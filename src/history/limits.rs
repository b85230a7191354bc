//! How much is kept, from the table `[history]` of the user's `config.toml`.

use super::{Entry, HistoryError, State};
use crate::files::read_text_at_most;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Maximum size of a config file, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// How much is kept. Sessions with a name, tag or note are never dropped and do not count towards the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Whether sessions are kept at all.
    pub keep: bool,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// Maximum total size, MB (1024 x 1024 bytes).
    pub max_size_mb: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { keep: true, max_sessions: 1000, max_size_mb: 2048 }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    history: Limits,
}

/// The user's config file, if the platform has a folder for it.
pub fn config_path() -> Option<PathBuf> {
    crate::files::config_file("config.toml")
}

impl Limits {
    /// Loads the limits from a config file; the defaults if there is none.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn load(path: Option<&Path>) -> Result<Self, HistoryError> {
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(Self::default()) };
        let text = read_text_at_most(path, MAX_BYTES).map_err(|source| HistoryError::io("read", path, source))?;
        let config: Config = toml::from_str(&text).map_err(|error| HistoryError::Config {
            path: path.to_owned(),
            reason: error.message().replace('\n', "; "),
        })?;
        Ok(config.history)
    }

    /// The entries, given newest first, that exceed the limits.
    pub(super) fn beyond(&self, entries: &[Entry]) -> Vec<Entry> {
        let (mut count, mut bytes) = (0, 0u64);
        let is_one_too_many = |entry: &&Entry| {
            if entry.is_marked() || entry.state == State::Recording {
                return false;
            }
            count += 1;
            bytes = bytes.saturating_add(entry.bytes);
            count > self.max_sessions || bytes > self.max_size_mb.saturating_mul(1 << 20)
        };
        entries.iter().filter(is_one_too_many).cloned().collect()
    }
}
