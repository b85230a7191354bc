//! Writing encodings in any of the formats.

use super::{Encoding, Encodings, Use};
use serde_json::{Value, json};

/// A format that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFormat {
    /// QNN's overrides, as converters take them.
    Overrides,
    /// AIMET 0.6.1.
    Aimet061,
    /// AIMET 1.0.0.
    Aimet100,
    /// AIMET 2.0.0.
    Aimet200,
}

impl std::str::FromStr for WriteFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim_start_matches("aimet-") {
            "overrides" | "qnn" => Ok(Self::Overrides),
            "0.6.1" => Ok(Self::Aimet061),
            "1.0.0" => Ok(Self::Aimet100),
            "2.0.0" => Ok(Self::Aimet200),
            _ => Err(format!("`{text}` is not a format; expected overrides, aimet-0.6.1, aimet-1.0.0, aimet-2.0.0")),
        }
    }
}

/// The encodings as text, and the names of those the format cannot express.
pub fn write(encodings: &Encodings, format: WriteFormat) -> (String, Vec<String>) {
    let mut left_out = Vec::new();
    let producer = json!({"package": "qnnscope", "version": env!("CARGO_PKG_VERSION")});
    let known: Vec<(&Encoding, Vec<(f64, f64)>)> = encodings
        .tensors
        .iter()
        .filter_map(|encoding| {
            let slices: Option<Vec<(f64, f64)>> =
                encoding.slices.iter().map(|slice| encoding.resolved(slice)).collect();
            // Only version 2.0.0 lists biases; the others leave them to the quantiser.
            let fits = format == WriteFormat::Aimet200 || encoding.bits <= 16 || encoding.is_float;
            match slices.filter(|slices| fits && (encoding.is_float || !slices.is_empty())) {
                Some(slices) => Some((encoding, slices)),
                None => {
                    left_out.push(encoding.name.clone());
                    None
                }
            }
        })
        .collect();
    let of = |used: Use| known.iter().filter(move |(encoding, _)| encoding.used == used);
    let document = match format {
        WriteFormat::Overrides | WriteFormat::Aimet061 => {
            let full = format == WriteFormat::Aimet061;
            let map = |used| -> Value {
                of(used)
                    .map(|(encoding, slices)| (encoding.name.clone(), map_record(encoding, slices, full)))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            };
            let mut document = json!({
                "activation_encodings": map(Use::Activation),
                "param_encodings": map(Use::Parameter),
                "producer": producer,
            });
            if full {
                document["version"] = "0.6.1".into();
                document["quantizer_args"] = arguments(&known);
            }
            document
        }
        WriteFormat::Aimet100 => {
            let list =
                |used| -> Vec<Value> { of(used).map(|(encoding, slices)| list_record(encoding, slices)).collect() };
            json!({
                "activation_encodings": list(Use::Activation),
                "param_encodings": list(Use::Parameter),
                "producer": producer,
                "quantizer_args": arguments(&known),
                "version": "1.0.0",
            })
        }
        WriteFormat::Aimet200 => {
            let rows: Vec<Value> = known.iter().map(|(encoding, slices)| onnx_record(encoding, slices)).collect();
            json!({"encodings": rows, "producer": producer, "version": "2.0.0"})
        }
    };
    let mut text = format!("{document:#}");
    text.push('\n');
    (text, left_out)
}

/// quantizer_args for the whole file: the usual bits, and whether weights have a scale per channel.
fn arguments(known: &[(&Encoding, Vec<(f64, f64)>)]) -> Value {
    let usual = |used: Use| {
        let bits = known.iter().filter(|(encoding, _)| encoding.used == used && !encoding.is_float);
        let mut counts = std::collections::BTreeMap::<u32, usize>::new();
        bits.for_each(|(encoding, _)| *counts.entry(encoding.bits).or_default() += 1);
        counts.into_iter().max_by_key(|&(_, count)| count).map_or(8, |(bits, _)| bits)
    };
    let per_channel = known.iter().any(|(encoding, _)| encoding.used == Use::Parameter && encoding.per_channel);
    json!({
        "activation_bitwidth": usual(Use::Activation),
        "dtype": "int",
        "is_symmetric": true,
        "param_bitwidth": usual(Use::Parameter),
        "per_channel_quantization": per_channel,
        "quant_scheme": "min_max",
    })
}

fn is_symmetric(encoding: &Encoding, slices: &[(f64, f64)]) -> bool {
    encoding.symmetric.unwrap_or_else(|| slices.iter().all(|(_, offset)| (*offset - encoding.middle()).abs() < 0.5))
}

fn map_record(encoding: &Encoding, slices: &[(f64, f64)], full: bool) -> Value {
    if encoding.is_float {
        return json!([{"bitwidth": encoding.bits, "dtype": "float"}]);
    }
    let symmetric = if is_symmetric(encoding, slices) { "True" } else { "False" };
    slices
        .iter()
        .map(|&(scale, offset)| {
            let mut row = json!({
                "bitwidth": encoding.bits,
                "is_symmetric": symmetric,
                "max": (offset + encoding.levels()) * scale,
                "min": offset * scale,
                "offset": offset,
                "scale": scale,
            });
            if full {
                row["dtype"] = "int".into();
            }
            row
        })
        .collect()
}

fn list_record(encoding: &Encoding, slices: &[(f64, f64)]) -> Value {
    if encoding.is_float {
        return json!({"bw": encoding.bits, "dtype": "FLOAT", "enc_type": "PER_TENSOR", "name": encoding.name});
    }
    json!({
        "bw": encoding.bits,
        "dtype": "INT",
        "enc_type": if encoding.per_channel { "PER_CHANNEL" } else { "PER_TENSOR" },
        "is_sym": is_symmetric(encoding, slices),
        "name": encoding.name,
        "offset": slices.iter().map(|slice| slice.1).collect::<Vec<f64>>(),
        "scale": slices.iter().map(|slice| slice.0).collect::<Vec<f64>>(),
    })
}

fn onnx_record(encoding: &Encoding, slices: &[(f64, f64)]) -> Value {
    if encoding.is_float {
        return json!({"name": encoding.name, "output_dtype": format!("float{}", encoding.bits)});
    }
    let signed =
        is_symmetric(encoding, slices) && slices.iter().all(|(_, offset)| (*offset - encoding.middle()).abs() < 0.5);
    let mut row = json!({
        "name": encoding.name,
        "output_dtype": format!("{}int{}", if signed { "" } else { "u" }, encoding.bits),
    });
    let zeros: Vec<i64> = if signed {
        Vec::new()
    } else {
        // Offsets are whole and far below 2^53 wherever lint has no objection.
        #[expect(clippy::cast_possible_truncation, reason = "see above; out of range saturates")]
        slices.iter().map(|(_, offset)| -*offset as i64).collect()
    };
    let scales: Vec<f64> = slices.iter().map(|slice| slice.0).collect();
    if encoding.per_channel {
        // A converted file may not say the axis: that of ONNX convolutions.
        row["axis"] = encoding.axis.unwrap_or(0).into();
        row["y_scale"] = scales.into();
        if zeros.iter().any(|&zero| zero != 0) {
            row["y_zero_point"] = zeros.into();
        }
    } else {
        row["y_scale"] = scales.first().copied().into();
        if let Some(&zero) = zeros.first().filter(|&&zero| zero != 0) {
            row["y_zero_point"] = zero.into();
        }
    }
    row
}
