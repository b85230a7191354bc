//! Turns what a backend says about a refused op into one sentence and the offending tensor.

use super::datatypes::{self, Sets};
use crate::backends::errors;
use crate::models::{DataType, Op, Tensor, TensorKind};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Lines that repeat the op or the code, or refer to a document.
const NOISE: [&str; 8] = [
    "QnnBackend_validateOpConfig failed",
    "Failed to validate op",
    "validateNativeOps master op validator",
    "Op specific validation failed",
    "OpConfig validation failed for",
    "Please refer to",
    "LIBNATIVE:",
    "Initializing HtpProvider",
];
/// Most backend lines that are quoted if none is understood.
const QUOTED: usize = 2;

/// Why an op is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// One sentence.
    pub text: String,
    /// Which remedies apply.
    pub kind: Kind,
    /// The offending tensor: its index among the op's inputs and outputs, counted through.
    pub tensor: Option<usize>,
}

/// Kinds of reasons, as named by remedies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A tensor has too many dimensions, or too few.
    Rank,
    /// The combination of the op's datatypes is not supported.
    Datatypes,
    /// A newer architecture supports it.
    NewerArch,
    /// The SoC does not run floats.
    Fp16,
    /// The backend has no such op.
    UnknownOp,
    /// A dimension or value is outside of the supported range.
    Value,
    /// It has more or fewer inputs, outputs or parameters than in the backend's definition of the op.
    Count,
    /// A reason in the backend's own words.
    Other,
    /// The backend gives no reason.
    Silent,
}

/// A pattern for one line.
fn line(expression: &str) -> Option<Regex> {
    Regex::new(expression).ok()
}

static RANK: LazyLock<Option<Regex>> = LazyLock::new(|| line(r"^\[(\d+)\] has incorrect Rank (\d+)"));
static VALUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| line(r"^\[(\d+)\] has incorrect (\w+) (-?[\w.]+), expected (.+?)\.?$"));
static DATATYPE: LazyLock<Option<Regex>> =
    LazyLock::new(|| line(r"^(Input|Output)\[(\d+)\] has (?:incorrect )?Datatype (0x[0-9a-fA-F]+)"));
static COUNT: LazyLock<Option<Regex>> =
    LazyLock::new(|| line(r"(?i)^wrong number of (param|input|output)\w*\D{0,20}(\d+)"));
static MISMATCH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    line(r"^Tensor (\d+) and (\d+) have mismatching datatypes\. (0x[0-9a-fA-F]+) != (0x[0-9a-fA-F]+)")
});

fn find<'a>(pattern: &LazyLock<Option<Regex>>, lines: &[&'a str]) -> Option<Captures<'a>> {
    let pattern = pattern.as_ref()?;
    lines.iter().find_map(|line| pattern.captures(line))
}

/// Parses the log of a refusal. `ids` are the log's numbers for the op's inputs and outputs.
pub fn reason(op: &Op, code: u64, log: &[String], ids: &[u32]) -> Reason {
    let says_something = |line: &&str| !line.is_empty() && !NOISE.iter().any(|noise| line.contains(noise));
    let lines: Vec<&str> = log.iter().map(|line| line.trim()).filter(says_something).collect();
    let tensors: Vec<&Tensor> = op.inputs.iter().chain(&op.outputs).collect();
    let by_id = |text: &str| text.parse().ok().and_then(|id: u32| ids.iter().position(|known| *known == id));
    if lines.iter().any(|line| line.contains("doesn't support FP16")) {
        let tensor = tensors.iter().position(|tensor| tensor.dtype.is_float());
        let text = "this SoC runs no floats on HTP (the backend says that it does not support FP16)".to_owned();
        return Reason { text, kind: Kind::Fp16, tensor };
    }
    if let Some(found) = find(&RANK, &lines) {
        let rank: usize = found[2].parse().unwrap_or(0);
        let tensor = by_id(&found[1]).or_else(|| tensors.iter().position(|tensor| tensor.shape.len() == rank));
        return Reason { text: format!("rank {rank} is not taken"), kind: Kind::Rank, tensor };
    }
    if let Some(sets) = Sets::read(&lines) {
        let (text, slot) = datatypes::sentence(&sets);
        let tensor = slot.and_then(|slot| slot.position(op)).or_else(|| suspect(op));
        return Reason { text, kind: Kind::Datatypes, tensor };
    }
    if let Some(found) = find(&MISMATCH, &lines) {
        return mismatch(op, &tensors, &found, by_id);
    }
    if let Some(found) = find(&VALUE, &lines) {
        let (what, value, expected) = (&found[2], &found[3], &found[4]);
        // The validator also compares architecture numbers this way.
        if let (Some(least), Ok(68..=99)) = (expected.strip_prefix(">= "), value.parse::<u32>()) {
            let text = format!("needs Hexagon v{least} or newer, asked for v{value}");
            return Reason { text, kind: Kind::NewerArch, tensor: None };
        }
        let text = format!("{} {value} is not taken, expected {expected}", what.to_lowercase());
        return Reason { text, kind: Kind::Value, tensor: by_id(&found[1]) };
    }
    if let Some(found) = find(&COUNT, &lines) {
        let what = if found[1].eq_ignore_ascii_case("param") { "parameter" } else { &found[1].to_ascii_lowercase() };
        let plural = if &found[2] == "1" { "" } else { "s" };
        let text = format!("it has {} {what}{plural}, which is not what this backend's {} has", &found[2], op.op_type);
        return Reason { text, kind: Kind::Count, tensor: None };
    }
    if let Some(found) = find(&DATATYPE, &lines) {
        return one_datatype(op, &found);
    }
    let tensor = suspect(op);
    if code == 4005 || code == 3003 {
        let text = format!("the backend has no op {}", op.op_type);
        return Reason { text, kind: Kind::UnknownOp, tensor: None };
    }
    let mut quoted: Vec<&str> = Vec::new();
    for line in lines {
        // If a line repeats another in fewer words, only the first is worth reading.
        if quoted.len() < QUOTED && !quoted.iter().any(|said| said.contains(line)) {
            quoted.push(line);
        }
    }
    if quoted.is_empty() {
        let meaning = errors::lookup(code, "backendValidateOpConfig").map_or("unknown code", |row| row.meaning);
        let text = format!("the backend does not say why ({code}: {meaning})");
        return Reason { text, kind: Kind::Silent, tensor };
    }
    Reason { text: quoted.join("; "), kind: Kind::Other, tensor }
}

/// A tensor whose type is not among those that the op supports there.
fn one_datatype(op: &Op, found: &Captures<'_>) -> Reason {
    let slot: usize = found[2].parse().unwrap_or(usize::MAX);
    let inputs = op.inputs.len();
    let (side, count, before) =
        if &found[1] == "Input" { ("in", inputs, 0) } else { ("out", op.outputs.len(), inputs) };
    let tensor = (slot < count).then_some(before + slot).or_else(|| suspect(op));
    let dtype = u32::from_str_radix(found[3].trim_start_matches("0x"), 16).map(DataType);
    let dtype = dtype.map_or_else(|_| found[3].to_owned(), DataType::name);
    Reason { text: format!("datatypes not taken: {side}[{}] {dtype}", &found[2]), kind: Kind::Datatypes, tensor }
}

fn mismatch(op: &Op, tensors: &[&Tensor], found: &Captures<'_>, by_id: impl Fn(&str) -> Option<usize>) -> Reason {
    let dtype = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).map(DataType);
    let places = [by_id(&found[1]), by_id(&found[2])];
    let named = |at: usize| {
        let name = places[at].and_then(|place| tensors.get(place)).map_or("?", |tensor| tensor.name.as_str());
        let dtype = dtype(&found[at + 3]).map_or_else(|_| found[at + 3].to_owned(), DataType::name);
        format!("`{name}` ({dtype})")
    };
    let text = format!("{} and {} have different datatypes", named(0), named(1));
    // Of the two, the one that differs from most tensors of the op: a float among quantised ones, else the second.
    let odd = |place: &usize| tensors.get(*place).is_some_and(|tensor| !tensor.dtype.is_fixed_point());
    let tensor = places.iter().flatten().copied().find(odd).or(places[1]).or_else(|| suspect(op));
    Reason { text, kind: Kind::Datatypes, tensor }
}

/// The most likely offender if the backend names no tensor: one of a type that few ops support, a float among
/// quantised tensors, or a quantised one without an encoding.
pub fn suspect(op: &Op) -> Option<usize> {
    let tensors: Vec<&Tensor> = op.inputs.iter().chain(&op.outputs).collect();
    let quantised = tensors.iter().any(|tensor| tensor.dtype.is_fixed_point());
    let find = |odd: &dyn Fn(&Tensor) -> bool| {
        tensors.iter().position(|tensor| tensor.kind != TensorKind::Null && odd(tensor))
    };
    let name = |tensor: &Tensor| tensor.dtype.name();
    find(&|tensor| matches!(name(tensor).as_str(), "int64" | "uint64" | "float64"))
        .or_else(|| find(&|tensor| tensor.shape.contains(&0)))
        .or_else(|| find(&|tensor| quantised && tensor.dtype.is_float()))
        .or_else(|| find(&|tensor| tensor.dtype.is_fixed_point() && tensor.quantization.is_none()))
        .or_else(|| find(&|tensor| matches!(name(tensor).as_str(), "int32" | "uint32" | "bool8")))
        .or_else(|| find(&|tensor| tensor.shape.len() > 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn tensor(name: &str, dtype: u32, shape: &[u32]) -> Tensor {
        Tensor {
            name: name.to_owned(),
            dtype: DataType(dtype),
            shape: shape.to_vec(),
            quantization: None,
            kind: TensorKind::Native,
        }
    }

    fn op(inputs: Vec<Tensor>, outputs: Vec<Tensor>) -> Op {
        Op {
            index: 0,
            name: "op".to_owned(),
            op_type: "Conv2d".to_owned(),
            package: "qti.aisw".to_owned(),
            inputs,
            outputs,
            params: Map::new(),
            macs: None,
            parameter_bytes: 0,
            bytes_moved: None,
        }
    }

    fn said(op: &Op, code: u64, log: &[&str], ids: &[u32]) -> Reason {
        let log: Vec<String> = log.iter().map(|&line| line.to_owned()).collect();
        reason(op, code, &log, ids)
    }

    #[test]
    fn words_of_the_backend_become_a_reason() {
        let op =
            op(vec![tensor("a", 0x0408, &[1, 2]), tensor("b", 0x0232, &[1, 2, 3])], vec![tensor("c", 0x0408, &[1])]);
        let ids = [4, 7, 9];
        for (line, kind, text, place) in [
            ("[7] has incorrect Rank 3.", Kind::Rank, "rank 3 is not taken", Some(1)),
            ("[4294967295] has incorrect Rank 3.", Kind::Rank, "rank 3 is not taken", Some(1)),
            ("[4294967295] has incorrect Rank 9.", Kind::Rank, "rank 9 is not taken", None),
            (
                "[4294967295] has incorrect Value 68, expected >= 73.",
                Kind::NewerArch,
                "needs Hexagon v73 or newer, asked for v68",
                None,
            ),
            (
                "[9] has incorrect Value 0, expected equal to -32768.",
                Kind::Value,
                "value 0 is not taken, expected equal to -32768",
                Some(2),
            ),
            ("The SocModel doesn't support FP16", Kind::Fp16, "this SoC runs no floats on HTP", Some(1)),
            (
                "Tensor 4 and 7 have mismatching datatypes. 0x408 != 0x232.",
                Kind::Datatypes,
                "`a` (ufixed8) and `b` (float32) have different datatypes",
                Some(1),
            ),
            ("Input[1] has Datatype 0x232.", Kind::Datatypes, "datatypes not taken: in[1] float32", Some(1)),
            (
                "Output[0] has incorrect Datatype 0x408.",
                Kind::Datatypes,
                "datatypes not taken: out[0] ufixed8",
                Some(2),
            ),
            ("BQ is not supported", Kind::Other, "BQ is not supported", Some(1)),
            ("Wrong number of Parameters 4.", Kind::Count, "it has 4 parameters, which", None),
            ("Wrong number of Inputs 1", Kind::Count, "it has 1 input, which", None),
        ] {
            let found = said(
                &op,
                3110,
                &["Op specific validation failed.", line, "QnnBackend_validateOpConfig failed 3110"],
                &ids,
            );
            assert!(found.text.starts_with(text), "{line}: {}", found.text);
            assert_eq!((found.kind, found.tensor), (kind, place), "{line}");
        }
        assert_eq!(
            said(&op, 4005, &["validateNativeOps master op validator x failed 4005"], &ids).kind,
            Kind::UnknownOp
        );
        let silent = said(&op, 3110, &["[QNN_CPU] OpConfig validation failed for Conv2d"], &ids);
        assert_eq!((silent.kind, silent.tensor), (Kind::Silent, Some(1)), "a float among quantised tensors");
    }

    #[test]
    fn empty_lines_are_no_reason() {
        let op = op(vec![tensor("a", 0x0408, &[1])], Vec::new());
        let silent = said(&op, 3110, &["", "   "], &[1]);
        assert_eq!(silent.kind, Kind::Silent);
        assert!(silent.text.contains("does not say why"), "{}", silent.text);
    }

    #[test]
    fn the_suspect_is_the_oddest_tensor() {
        let suspects = |dtypes: &[u32]| {
            let inputs = dtypes.iter().map(|&dtype| tensor("t", dtype, &[1])).collect();
            suspect(&op(inputs, Vec::new()))
        };
        assert_eq!(suspects(&[0x0232, 0x0232]), None, "floats among floats");
        assert_eq!(suspects(&[0x0232, 0x0032, 0x0064]), Some(2), "int64 before int32");
        assert_eq!(suspects(&[0x0032, 0x0232]), Some(0));
        assert_eq!(suspect(&op(vec![tensor("t", 0x0232, &[1, 0])], Vec::new())), Some(0), "no elements");
    }

    proptest::proptest! {
        #[test]
        fn no_log_is_too_strange(lines in proptest::collection::vec("\\PC{0,60}", 0..6), numbers in proptest::collection::vec("Tensor [0-9]{1,12} and [0-9]{1,3} have mismatching datatypes. 0x[0-9a-f]{1,20} != 0x1|\\[[0-9]{1,30}\\] has incorrect Rank [0-9]{1,30}", 0..3)) {
            let op = op(vec![tensor("a", 0x0408, &[1])], Vec::new());
            let log: Vec<String> = lines.into_iter().chain(numbers).collect();
            let found = reason(&op, 3110, &log, &[1]);
            proptest::prop_assert!(!found.text.is_empty());
            proptest::prop_assert!(crate::diagnosis::preflight::remedies::remedy(crate::backends::Backend::Htp, &op, &found).is_some());
        }
    }
}
