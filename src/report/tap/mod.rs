//! Reports of a tapped program: text, and `qnnscope.tap/1`.

mod document;
mod text;

pub use document::{TAP_SCHEMA, TapDocument};
pub use text::tap_text;

use crate::backends::errors;
use qnnscope_core::tap::Call;

/// Symbol of the code with which a call failed.
fn symbol(call: &Call) -> Option<&'static str> {
    errors::lookup(call.code, &call.call).map(|row| row.symbol)
}

/// `SIGSEGV`, or the number of a signal without a name.
fn signal_text(signal: i32) -> String {
    crate::backends::local::signal_name(signal).map_or_else(|| format!("signal {signal}"), ToOwned::to_owned)
}
