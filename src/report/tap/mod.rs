//! Reports of a tapped program: text, and `qnnscope.tap/1`.

mod document;
mod text;

/// Maximum number of inputs or outputs listed per graph.
const LISTED: usize = 16;

pub use document::{TAP_SCHEMA, TapDocument};
pub use text::tap_text;

use super::inspect::{context_binary_lines, tensor_line};
use crate::backends::errors;
use crate::event::BinaryRead;
use qnnscope_core::tap::Call;

/// The contents of a context binary as lines: as `inspect` shows them, with the inputs and outputs of its
/// graphs.
pub fn binary_lines(read: &BinaryRead) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(info) = &read.info {
        lines.extend(context_binary_lines(info));
        for graph in &info.graphs {
            for (kind, tensors) in [("input", &graph.inputs), ("output", &graph.outputs)] {
                let listed = tensors.iter().take(LISTED);
                lines.extend(listed.map(|tensor| format!("{}: {kind} {}", graph.name, tensor_line(tensor))));
                if tensors.len() > LISTED {
                    lines.push(format!("{}: and {} more {kind}s", graph.name, tensors.len() - LISTED));
                }
            }
        }
    }
    lines.extend(read.reason.as_ref().map(|reason| format!("not read: {reason}")));
    lines
}

/// Symbol of the code a call failed with.
fn symbol(call: &Call) -> Option<&'static str> {
    errors::lookup(call.code, &call.call).map(|row| row.symbol)
}

/// `SIGSEGV`, or the number of a signal without a name.
fn signal_text(signal: i32) -> String {
    crate::backends::local::signal_name(signal).map_or_else(|| format!("signal {signal}"), ToOwned::to_owned)
}
