//! Safe wrapper of the QNN libraries.
//!
//! Every handle is owned by a value that frees it on drop and keeps alive what it depends on: a [`Context`] holds its
//! [`Device`] and [`Backend`], a backend its [`Logger`], everything its [`Library`]. So on every path contexts are
//! freed before devices, devices before backends, backends before loggers.
//!
//! `unsafe` code lives in this package only, apart from the symbols that the tap exports.

mod binary_info;
mod dlc;
mod error;
mod events;
mod execute;
mod expose;
mod handles;
mod htp;
mod interface;
mod interpose;
mod log;
mod model_library;
mod profile;
mod profile_log;
mod raw;
mod recording;
mod room;
mod table;
mod tensor;
mod verdict;

pub(crate) use events::RawEvent;
pub(crate) use interface::count_slots;
pub(crate) use log::formatted;
pub(crate) use raw::text;
pub(crate) use recording::lone_op;
pub(crate) use table::as_function;
pub(crate) use tensor::{describe, records};

pub use binary_info::read_binary_info;
pub use dlc::{ComposedGraph, Dlc};
pub use error::QnnError;
pub use events::{EventReader, ProfileEvent};
pub use execute::Execution;
pub use expose::{ExposedGraph, Exposure};
pub use handles::{Backend, Context, Device, Graph, Logger};
pub use htp::{DeviceTarget, GraphOptions, HtpPlatform, PowerProfile, PowerVote};
pub use interface::{Library, SystemLibrary, VersionPolicy};
pub use interpose::Composition;
pub use log::{errors_during, set_sink, without_level};
pub use model_library::ModelLibrary;
pub use profile::Profile;
pub use profile_log::{LogWriter, Message, Method, ProfileLog};
pub use recording::{ContextKey, GraphKey, OpPlace, Owner, Recorder, Recording, Refusal};
pub use table::{FunctionTable, TableError};
pub use tensor::OwnedTensor;
pub use verdict::OpAnswer;
