//! Text for users, wherever it is shown: figures with their units, and lines wrapped to a width.

/// The last component of a path from any system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path)
}

mod json;
mod numbers;
mod redact;
mod wrap;

pub use json::{Printable, clean_json};
pub use numbers::{
    apart_text, bytes as bytes_text, count as count_text, counted, duration as duration_text, duration_with_micro,
    known_text, noun, rate as rate_text, share as share_text, three_digits,
};
pub use redact::Redactor;
pub use wrap::{paragraph, titled, wrap, wrapped};
