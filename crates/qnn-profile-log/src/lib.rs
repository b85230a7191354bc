//! QNN profiling logs: `qnn-profiling-data_*.log` of the vendor's tools and `*_qnn.log` of ONNX Runtime.
//!
//! A log is a plain sequence of chunks, each a length and a FlatBuffer. [`Decoder`] accepts the bytes as they arrive
//! and returns whole chunks; [`Chunk`], [`Message`] and [`Event`] are views into its buffer, so nothing is allocated
//! per event. A chunk is fully checked before any of it is returned. See `docs/profile-log.md`.

mod batch;
mod budget;
mod chunk;
mod csv;
mod csv_pieces;
mod decoder;
mod error;
mod fold;
mod format;
mod found;
mod inferences;
mod json;
mod kinds;
mod lines;
mod names;
mod output;
mod overview;
mod reader;
mod session;
mod shape;
mod shown;
mod spool;
mod table;
mod text;
mod times;
mod turns;
mod verify;
mod visit;

pub use chunk::{Chunk, Event, Events, Header, Interval, Message, Messages, Value};
pub use csv::{write_csv, write_csv_once};
pub use decoder::{Decoder, MAX_CHUNK_BYTES};
pub use error::{Damage, ProfileLogError};
pub use fold::{Fold, GraphFold};
pub use format::MAX_EVENT_DEPTH;
pub use json::{PROFILE_LOG_SCHEMA, write_json};
pub use kinds::{EventType, Method, Unit};
pub use lines::{Line, Lines, Sum};
pub use names::{OpIdentifier, op_identifier};
pub use reader::{LogReader, ReadOutcome};
pub use session::SessionSplitter;
pub use text::write_text;
pub use times::Times;
