//! JSON of other tools: read whole, with clean strings.

use super::error::Problem;
use super::sample::Sample;
use crate::text::clean_json;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The file as a document of this form.
pub fn document<T: DeserializeOwned>(sample: &Sample) -> Result<T, Problem> {
    of_bytes(&sample.bytes()?)
}

/// The same of bytes.
pub fn of_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(&clean_json(bytes)).map_err(|error| {
        let what = if error.is_eof() { "is truncated or incomplete" } else { "is damaged" };
        Problem::content(format!("its JSON {what}: {error}"))
    })
}

/// A number that is there and makes sense as a time, a size or a count.
pub fn positive(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|number| number.is_finite() && *number > 0.0)
}
