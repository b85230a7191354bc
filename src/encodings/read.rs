//! Reads encoding files, each record separately, so that a malformed one does not hide the rest.

use super::{Encoding, Encodings, Finding, Format, Slice, Use};
use crate::event::clean_text;
use crate::files::read_text_at_most;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest file: per-channel encodings of a large language model are far smaller.
const MAX_BYTES: u64 = 256 << 20;
/// Most slices of one tensor.
const MAX_SLICES: usize = 1 << 20;

/// Why a file holds no encodings.
#[derive(Debug, Error)]
pub enum EncodingError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is not an encodings file: {reason}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
}

/// Reads a file.
///
/// # Errors
/// A file that cannot be read, or holds no encodings.
pub fn read(path: &Path) -> Result<Encodings, EncodingError> {
    let text =
        read_text_at_most(path, MAX_BYTES).map_err(|source| EncodingError::Io { path: path.to_owned(), source })?;
    parse(&text).map_err(|reason| EncodingError::Foreign { path: path.to_owned(), reason })
}

/// Reads the text of a file.
///
/// # Errors
/// What is missing.
pub fn parse(text: &str) -> Result<Encodings, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(document) = document else { return Err("it is not a JSON object".to_owned()) };
    let version = document.get("version").and_then(Value::as_str).unwrap_or_default();
    let mut findings = Vec::new();
    let mut tensors = Vec::new();
    let format = if let Some(rows) = document.get("encodings") {
        let rows = rows.as_array().ok_or("its `encodings` is not a list")?;
        tensors.extend(rows.iter().filter_map(|row| aimet_200(row, &mut findings)));
        Format::Aimet200
    } else {
        let keys = [("activation_encodings", Use::Activation), ("param_encodings", Use::Parameter)];
        if !keys.iter().any(|(key, _)| document.contains_key(*key)) {
            return Err("it has neither `activation_encodings` and `param_encodings` nor `encodings`".to_owned());
        }
        let mut listed = false;
        for (key, used) in keys {
            match document.get(key) {
                Some(Value::Object(rows)) => {
                    for (name, row) in rows {
                        tensors.extend(overrides(name, row, used, &mut findings));
                    }
                }
                Some(Value::Array(rows)) => {
                    listed = true;
                    tensors.extend(rows.iter().filter_map(|row| aimet_100(row, used, &mut findings)));
                }
                None => {}
                Some(_) => findings.push(
                    Finding::error(
                        "wrong-shape",
                        "",
                        format!("`{key}` is neither a map nor a list"),
                        "write a map of tensor names",
                    )
                    .of_file(),
                ),
            }
        }
        match (listed, version) {
            (true, _) => Format::Aimet100,
            (false, "0.6.1") => Format::Aimet061,
            (false, _) => Format::Overrides,
        }
    };
    let mut seen = HashSet::new();
    for encoding in &tensors {
        if !seen.insert(encoding.name.clone()) {
            findings.push(Finding::error(
                "twice",
                &encoding.name,
                "the tensor has several records; which one is used depends on the tool".to_owned(),
                "keep one of them",
            ));
        }
    }
    Ok(Encodings { format, tensors, findings })
}

/// A number, even if a tool wrote it as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A boolean, also as Python spells it (`True`).
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be small and whole")]
fn bits(row: &Map<String, Value>, key: &str) -> Option<u32> {
    let value = number(row.get(key)?)?;
    (value.fract() == 0.0 && (1.0..=64.0).contains(&value)).then_some(value as u32)
}

fn no_bits(name: &str, key: &str, findings: &mut Vec<Finding>) {
    let message = format!("`{key}` is missing or not a whole number from 1 to 64");
    findings.push(Finding::error("bit-width", name, message, format!("write \"{key}\": 8")));
}

fn is_float(row: &Map<String, Value>) -> bool {
    row.get("dtype").and_then(Value::as_str).is_some_and(|dtype| dtype.eq_ignore_ascii_case("float"))
}

/// A record of QNN overrides and AIMET 0.6.1: a list of maps, one for each channel.
fn overrides(name: &str, value: &Value, used: Use, findings: &mut Vec<Finding>) -> Option<Encoding> {
    let name = &clean_text(name);
    let rows: Vec<&Map<String, Value>> = match value {
        Value::Array(rows) => rows.iter().filter_map(Value::as_object).take(MAX_SLICES).collect(),
        Value::Object(row) => {
            findings.push(Finding::error(
                "wrong-shape",
                name,
                "the record is a map, not a list of maps; converters fail on it (or drop it, if they do not know the name)"
                    .to_owned(),
                format!("write \"{name}\": [{{...}}]"),
            ));
            vec![row]
        }
        _ => Vec::new(),
    };
    let Some(first) = rows.first() else {
        let fix = format!("write \"{name}\": [{{\"bitwidth\": 8, \"min\": ..., \"max\": ...}}]");
        findings.push(Finding::error("wrong-shape", name, "it has no record".to_owned(), fix));
        return None;
    };
    let Some(bits) = bits(first, "bitwidth") else {
        no_bits(name, "bitwidth", findings);
        return None;
    };
    let slices = rows
        .iter()
        .map(|row| {
            let get = |key: &str| row.get(key).and_then(number);
            // If there is a scale but no offset, symmetry determines it.
            Slice { scale: get("scale"), offset: get("offset"), min: get("min"), max: get("max") }
        })
        .collect::<Vec<_>>();
    Some(Encoding {
        name: name.clone(),
        used,
        bits,
        is_float: is_float(first),
        symmetric: first.get("is_symmetric").and_then(truth),
        per_channel: slices.len() > 1,
        slices,
        axis: None,
    })
}

fn lists(row: &Map<String, Value>, key: &str) -> Option<Vec<f64>> {
    match row.get(key)? {
        Value::Array(values) => values.iter().take(MAX_SLICES).map(number).collect(),
        value => Some(vec![number(value)?]),
    }
}

fn named(row: &Value, findings: &mut Vec<Finding>) -> Option<String> {
    let name = row.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    if name.is_none() {
        let message = "a record has no `name`".to_owned();
        findings.push(
            Finding::error("wrong-shape", "", message, "write \"name\": \"<tensor>\" into each record").of_file(),
        );
    }
    name.map(clean_text)
}

fn aimet_100(row: &Value, used: Use, findings: &mut Vec<Finding>) -> Option<Encoding> {
    let name = named(row, findings)?;
    let row = row.as_object()?;
    let Some(bits) = bits(row, "bw") else {
        no_bits(&name, "bw", findings);
        return None;
    };
    for key in ["scale", "offset"] {
        if row.get(key).is_some_and(|value| !value.is_array()) {
            let message = format!("`{key}` is a number; version 1.0.0 uses lists, even for one channel");
            findings.push(Finding::error("wrong-shape", &name, message, format!("write \"{key}\": [...]")));
        }
    }
    let (scales, offsets) = (lists(row, "scale").unwrap_or_default(), lists(row, "offset").unwrap_or_default());
    if !offsets.is_empty() && offsets.len() != scales.len() {
        let message = format!("there are {} scales and {} offsets", scales.len(), offsets.len());
        findings.push(Finding::error("channel-count", &name, message, "write one offset for each scale"));
    }
    let slices: Vec<Slice> = scales
        .iter()
        .enumerate()
        .map(|(at, scale)| Slice { scale: Some(*scale), offset: offsets.get(at).copied(), min: None, max: None })
        .collect();
    let kind = row.get("enc_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "PER_TENSOR" && slices.len() > 1 {
        let message = format!("`enc_type` is PER_TENSOR, and there are {} scales", slices.len());
        findings.push(Finding::error("channel-count", &name, message, "write PER_CHANNEL, or one scale"));
    }
    Some(Encoding {
        name,
        used,
        bits,
        is_float: is_float(row),
        symmetric: row.get("is_sym").and_then(truth),
        per_channel: kind == "PER_CHANNEL" || slices.len() > 1,
        slices,
        axis: None,
    })
}

fn aimet_200(row: &Value, findings: &mut Vec<Finding>) -> Option<Encoding> {
    let name = named(row, findings)?;
    let row = row.as_object()?;
    let dtype = row.get("output_dtype").and_then(Value::as_str).unwrap_or_default();
    let is_float = dtype.contains("float");
    let digits = dtype.trim_start_matches(|c: char| !c.is_ascii_digit());
    let Some(bits) = digits.parse::<u32>().ok().filter(|bits| (1..=64).contains(bits)) else {
        let message = format!("`output_dtype` is `{}`", clean_text(dtype));
        findings.push(Finding::error("bit-width", &name, message, "write int4, uint8, int8, uint16, int16 or int32"));
        return None;
    };
    let is_signed = dtype.starts_with("int");
    let scales = lists(row, "y_scale").unwrap_or_default();
    let zeros = lists(row, "y_zero_point").unwrap_or_default();
    if !zeros.is_empty() && zeros.len() != scales.len() && zeros.len() != 1 {
        let message = format!("there are {} scales and {} zero points", scales.len(), zeros.len());
        findings.push(Finding::error("channel-count", &name, message, "write one zero point for each scale"));
    }
    let middle = if is_signed { (1u64 << (bits.min(32) - 1)) as f64 } else { 0.0 };
    let slices: Vec<Slice> = scales
        .iter()
        .enumerate()
        .map(|(at, scale)| {
            let zero = zeros.get(at).or(zeros.first()).copied().unwrap_or(0.0);
            Slice { scale: Some(*scale), offset: Some(-zero - middle), min: None, max: None }
        })
        .collect();
    let axis = row.get("axis").and_then(Value::as_i64);
    // This version has a single list that does not state the use: signed entries are weights and biases.
    let used = if is_signed || axis.is_some() { Use::Parameter } else { Use::Activation };
    let listed = row.get("y_scale").is_some_and(Value::is_array);
    Some(Encoding {
        name,
        used,
        bits,
        is_float,
        symmetric: Some(slices.iter().all(|slice| slice.offset == Some(-middle)) && is_signed),
        per_channel: listed && axis.is_some(),
        slices,
        axis,
    })
}
