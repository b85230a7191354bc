//! A session: sources feed one bounded hub, which numbers, records and hands on.

mod hub;
mod reader;
mod recorder;
mod tape;

pub use hub::{Gate, Hub, Incoming, Observer, Source};
pub use reader::{ReadError, SessionReader};
pub use recorder::{RecordError, Recorder};
pub use tape::Tape;
