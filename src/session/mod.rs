//! A session: sources feed one bounded hub, which numbers and records events and passes them on.

mod coding;
mod digest;
mod hub;
mod open;
mod playlist;
mod reader;
mod recorder;
mod run_ids;
mod tape;

pub use crate::files::OutputError;
pub use coding::{Coding, decode};
pub use hub::{Gate, Hub, Incoming, Observer, Source};
pub use open::{AnyRecords, Opened, any_records, read_any, read_held};
pub use playlist::Playlist;
pub use reader::{ReadError, SessionReader};
pub use recorder::{RecordError, Recorder};
pub use run_ids::RunIds;
pub use tape::Tape;
