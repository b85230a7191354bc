//! Raw declarations of the QNN C ABI: records, slots, function types. No logic.
//!
//! Layouts are facts about the ABI (offsets and sizes measured on x86_64 and aarch64), written by hand and checked
//! against `tests/data/qnn-abi-offsets.csv` in this module's test. Field names are ours.

mod functions;
mod htp;
#[cfg(test)]
mod layout_test;
mod records;
pub mod slots;
mod system;
mod system_profile;

pub use functions::*;
pub use htp::*;
pub use records::*;
pub use slots::{MODEL_LIBRARY_SLOTS, MODEL_LIBRARY_TABLE, known_core_slots};
pub use system::*;
pub use system_profile::*;
