//! The op at which one of our runs stopped, and why: from what the run recorded, worded as `check` words it.

use super::diagnoser::Diagnoser;
use super::fault::Fault;
use super::preflight::{Kind, Reason, TensorRow, Why, reason, remedy, why_not_built};
use crate::event::{Failure, Refusal, Stage};
use crate::models::Op;

/// Package of QNN's built-in ops.
const OWN_PACKAGE: &str = "qti.aisw";
/// Causes that the backend's words about an op can tell apart when the reason has no kind of its own.
const BY_WORDS: [&str; 5] = [
    "shape-mismatch",
    "zero-size-tensor",
    "op-quant-config-unsupported",
    "op-config-inconsistent",
    "finalize-vtcm-overflow",
];

impl Fault {
    /// The op at which the run stopped, if the failure names one.
    pub fn of(failure: &Failure) -> Option<Self> {
        if failure.stage > Stage::Finalize {
            return None;
        }
        Self::told(failure)
    }

    /// An op that the validator refuses although the graph was built and failed only later. Backends build
    /// graphs, and even run some, that their validators refuse, so it may not be the reason.
    pub fn suspected(failure: &Failure) -> Option<Self> {
        if failure.stage <= Stage::Finalize {
            return None;
        }
        Self::told(failure)
    }

    fn told(failure: &Failure) -> Option<Self> {
        let refusal = failure.refusal.as_deref()?;
        let why = if failure.stage == Stage::Finalize && refusal.verdict.is_none() {
            why_not_built(&refusal.op, &refusal.log, refusal.hardware.as_deref())
        } else {
            refused(failure, refusal)
        };
        let Why { text, tensor, remedy, cause, is_guess } = why;
        let op = &refusal.op;
        Some(Self {
            graph: refusal.graph.clone(),
            name: op.name.clone(),
            op_type: op.op_type.clone(),
            tensor: tensor.and_then(|place| TensorRow::at(op, place)),
            reason: text,
            remedy,
            cause,
            is_guess,
        })
    }
}

/// An op that was refused while its graph was being composed.
fn refused(failure: &Failure, refusal: &Refusal) -> Why {
    let code = refusal.verdict.or(failure.code).unwrap_or_default();
    let found = reason(&refusal.op, code, &refusal.log, &refusal.tensor_ids);
    let remedy = remedy(refusal.backend, &refusal.op, &found);
    let cause = Some(cause_of(refusal, &found));
    Why { text: found.text, tensor: found.tensor, remedy, cause, is_guess: found.kind == Kind::Silent }
}

fn cause_of(refusal: &Refusal, reason: &Reason) -> &'static str {
    let foreign = !refusal.op.package.is_empty() && refusal.op.package != OWN_PACKAGE;
    match reason.kind {
        Kind::Rank => "op-rank-unsupported",
        Kind::Datatypes => "op-dtype-unsupported",
        Kind::NewerArch => "op-needs-newer-arch",
        Kind::Fp16 => "float-unsupported-on-arch",
        Kind::UnknownOp if foreign => "op-package-invalid",
        Kind::UnknownOp => "op-unsupported",
        Kind::Count => "op-config-inconsistent",
        Kind::Value => by_words(&refusal.log).unwrap_or("op-config-inconsistent"),
        // A validator's complaint about an op is usually about parts that do not match.
        Kind::Other => by_words(&refusal.log).unwrap_or_else(|| {
            let is_limit = reason.text.to_ascii_lowercase().contains("supported");
            if is_limit { "op-unsupported" } else { "op-config-inconsistent" }
        }),
        Kind::Silent => by_suspect(&refusal.op, reason),
    }
}

/// The cause suggested by the op's most unusual tensor: the only clue when the backend gives no reason.
fn by_suspect(op: &Op, reason: &Reason) -> &'static str {
    let tensor = reason.tensor.and_then(|place| op.inputs.iter().chain(&op.outputs).nth(place));
    match tensor {
        None => "op-unsupported",
        Some(tensor) if tensor.shape.contains(&0) => "zero-size-tensor",
        Some(tensor) if tensor.dtype.is_fixed_point() => "op-quant-config-unsupported",
        Some(tensor) if tensor.dtype.is_float() && tensor.shape.len() > 5 => "op-rank-unsupported",
        Some(_) => "op-dtype-unsupported",
    }
}

/// The cause that the backend's words about the op point to.
fn by_words(log: &[String]) -> Option<&'static str> {
    let mut diagnoser = Diagnoser::new();
    // A verdict on an op needs more than words.
    diagnoser.taught_by(None);
    diagnoser.set_flag("qnn", "said of an op");
    for (number, line) in (1..).zip(log) {
        diagnoser.feed_line(number, line.as_bytes());
    }
    diagnoser.finish().causes.iter().map(|finding| finding.id).find(|id| BY_WORDS.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::Backend;
    use crate::models::{DataType, Op, Tensor, TensorKind};

    fn tensor(name: &str, dtype: u32) -> Tensor {
        Tensor {
            name: name.to_owned(),
            dtype: DataType(dtype),
            shape: vec![1, 8],
            quantization: None,
            kind: TensorKind::Native,
        }
    }

    fn failure(stage: Stage, code: u64, op_type: &str, package: &str, log: &[&str]) -> Failure {
        let op = Op {
            index: 3,
            name: "gate".to_owned(),
            op_type: op_type.to_owned(),
            package: package.to_owned(),
            inputs: vec![tensor("in", 0x0232)],
            outputs: vec![tensor("out", 0x0232)],
            params: serde_json::Map::new(),
            macs: None,
            parameter_bytes: 0,
            bytes_moved: None,
        };
        let log = log.iter().map(|&line| line.to_owned()).collect();
        let refusal = Refusal {
            backend: Backend::Htp,
            hardware: Some("v68".to_owned()),
            graph: "g".to_owned(),
            op,
            log,
            tensor_ids: Vec::new(),
            verdict: None,
        };
        let refusal = Some(Box::new(refusal));
        Failure { code: Some(code), refusal, ..Failure::new(stage, "backendValidateOpConfig", "refused") }
    }

    #[track_caller]
    fn is(failure: &Failure, cause: Option<&str>, words: &str) {
        let fault = Fault::of(failure).unwrap();
        assert_eq!(fault.cause, cause, "{fault:?}");
        assert!(fault.sentence().contains(words), "{}", fault.sentence());
    }

    #[test]
    fn each_kind_of_refusal_has_its_cause() {
        let compose = |code, op_type, package, line: &str| failure(Stage::Compose, code, op_type, package, &[line]);
        for (line, cause, words) in [
            ("Wrong number of Parameters 4.", "op-config-inconsistent", "(Resize): it has 4 parameters"),
            ("[4294967295] has incorrect Rank 6.", "op-rank-unsupported", "rank 6"),
            ("[1] has incorrect Value 68, expected >= 73.", "op-needs-newer-arch", "v73"),
            ("The SocModel doesn't support FP16", "float-unsupported-on-arch", "no floats"),
            (
                "[9] has incorrect Value 0, expected equal to -32768.",
                "op-quant-config-unsupported",
                "expected equal to -32768",
            ),
            (
                "Dimension at index 1 cannot be broadcast between in[0] (32) and in[1] (31).",
                "shape-mismatch",
                "cannot be broadcast",
            ),
            ("Expected total activation dims 8 to be a multiple of n 9.", "op-config-inconsistent", "multiple of n"),
            (
                "Tensor 3 and 4 have mismatching dimension at index 1. 8 != 9.",
                "shape-mismatch",
                "mismatching dimension",
            ),
            ("Mode 3 is not supported", "op-unsupported", "Mode 3"),
            ("BQ is not supported", "op-quant-config-unsupported", "BQ"),
            ("", "op-unsupported", "does not say why"),
        ] {
            is(&compose(3110, "Resize", OWN_PACKAGE, line), Some(cause), words);
        }
        is(&compose(4005, "Frob", OWN_PACKAGE, "x"), Some("op-unsupported"), "no op Frob");
        is(&compose(4005, "Frob", "my.ops", "x"), Some("op-package-invalid"), "no op Frob");
    }

    #[test]
    fn a_graph_that_does_not_compile_is_explained_by_its_op() {
        let float = [
            "tcm_migration.cc:2163::ERROR:no properties registered for q::QNN_HardSigmoid",
            "graph_prepare.cc:208::ERROR:could not create op: q::ForceFormat_Crouton",
            "graph_prepare.cc:196:  Input 0: id=[0x3ed] op=[flat_to_vtcm@Ff.ff.] output0=[14ConcreteTensorIN5Tdefs14PlainFloat_TCMEE]",
            "\"gate\" generated: could not create op",
        ];
        let no_float = failure(Stage::Finalize, 1002, "ElementWiseNeuron", OWN_PACKAGE, &float);
        is(&no_float, Some("float-unsupported-on-arch"), "HardSigmoid has no float variant on v68");
        let large = [
            "A single op, \"q::TopK\", requires 0x1200000 bytes of TCM, which is greater than the TCM size of 0x400000!",
        ];
        let large = failure(Stage::Finalize, 1002, "TopK", OWN_PACKAGE, &large);
        is(&large, Some("finalize-vtcm-overflow"), "bytes of TCM");
        let other = failure(Stage::Finalize, 1002, "Conv2d", OWN_PACKAGE, &["could not create op: q::x"]);
        is(&other, None, "could not create op");
    }
}
