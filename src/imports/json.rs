//! JSON from other tools: read as a whole, with sanitised strings.

use super::error::Problem;
use super::sample::Sample;
use crate::text::clean_json;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the file as this type of document.
pub fn document<T: DeserializeOwned>(sample: &Sample) -> Result<T, Problem> {
    of_bytes(&sample.bytes()?)
}

/// Parses bytes as this type of document.
pub fn of_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(&clean_json(bytes)).map_err(|error| {
        let what = if error.is_eof() { "is truncated or incomplete" } else { "is damaged" };
        Problem::content(format!("its JSON {what}: {error}"))
    })
}

/// A number that exists and is plausible as a time, a size or a count.
pub fn positive(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|number| number.is_finite() && *number > 0.0)
}
