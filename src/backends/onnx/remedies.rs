//! Explains to the user why QNN did not take a node, and what to do about it.

use super::reasons::{BackendRefusal, NodeNote};

/// Maximum tensor rank of QNN's backends.
const MAX_RANK: usize = 5;

/// Reason, code, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// QNN's code, if the backend refused the op.
    pub code: Option<u64>,
    /// One sentence, without a full stop.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

/// What is known about the model as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// Free dimensions, in the form of `--dim`.
    pub free_dimensions: &'a [String],
    /// Why the backend did not start.
    pub problem: Option<&'a str>,
    /// Whether QNN's part of the model is precompiled (EPContext).
    pub is_compiled: bool,
}

/// Explains a node that ran on the CPU.
pub fn explain(op_type: &str, note: Option<&NodeNote>, about: Circumstances<'_>) -> Explained {
    let plain = |reason: String, remedy: &str| Explained { code: None, reason, remedy: remedy.to_owned() };
    if let Some(problem) = about.problem {
        return plain(
            format!("the QNN backend did not start: {problem}"),
            "fix the backend first: `qnnscope runtime list` tries each one, `qnnscope doctor` checks the rest",
        );
    }
    if about.is_compiled {
        return plain(
            "the model was compiled for QNN without it".to_owned(),
            "change the source model and convert it again",
        );
    }
    let Some(note) = note else {
        return plain(
            "ONNX Runtime did not offer it to QNN".to_owned(),
            "shape computations stay on the CPU on purpose; give free dimensions a size (--dim NAME=N) to fold them when \
             the model is loaded",
        );
    };
    if note.passed {
        return plain(
            "QNN could run it, but the plug-in left it out of its partitions".to_owned(),
            "a lone node is not worth its two partition boundaries: nothing to do unless its neighbours can move to QNN",
        );
    }
    let reason = note.reason.clone().unwrap_or_else(|| "the plug-in gave no reason".to_owned());
    if let Some(refusal) = &note.refusal {
        return refused(op_type, refusal);
    }
    let says = |words: &str| reason.contains(words);
    if says("are not supported by QNN EP") {
        return plain(
            format!("the plug-in has no translation of {op_type}"),
            "replace it with ops that QNN has, or move it to the start or end of the model, where it does not split the graph",
        );
    }
    if says("Cannot get shape") {
        let remedy = match about.free_dimensions {
            [] => "fix the shapes of the model's inputs, and run shape inference over it".to_owned(),
            free => format!("give every free dimension a size: {}", free.join(" ")),
        };
        return Explained { code: None, reason: "its shape is not known when the model is loaded".to_owned(), remedy };
    }
    if says("No weight scales found") {
        return plain(
            format!("{reason}: 4-bit weights with a single scale are not supported"),
            "quantise the weights per channel, or to 8 bits",
        );
    }
    if says("not take Q nodes") || says("not take DQ nodes") || says("offload_graph_io_quantization") {
        return plain(
            "the plug-in leaves quantising the model's inputs and outputs to the CPU".to_owned(),
            "--ep-option offload_graph_io_quantization=0 gives it to QNN; or feed quantised data",
        );
    }
    if says("Failed to open file") || says("Failed to read") {
        return plain(
            format!("{reason}: its weights are in a file beside the model"),
            "put the complete file beside the model",
        );
    }
    if says("ata type") || says("datatype") || says("DataType") {
        return plain(reason, "cast to a type that QNN takes before this node, and back after it");
    }
    plain(reason, "fix what the reason names; if the backend refused it, `qnnscope check` shows more")
}

fn refused(op_type: &str, refusal: &BackendRefusal) -> Explained {
    let BackendRefusal { code, op, words } = refusal;
    let said = words.last().map_or_else(String::new, |words| format!("; it logged: {words}"));
    let types = op.types.iter().map(|name| name.to_lowercase()).collect::<Vec<_>>().join(", ");
    let qnn = if op.op_type.is_empty() { op_type } else { &op.op_type };
    let (what, remedy) = if op.rank > MAX_RANK {
        (
            format!("a tensor of rank {}", op.rank),
            format!("reshape to at most {MAX_RANK} dimensions before this node, and back after it"),
        )
    } else {
        (
            format!("types {types}, rank {}", op.rank),
            "try other types (quantised, or float16 with --precision), or another backend; `qnnscope check` on the converted model \
             shows which part of the op is refused"
                .to_owned(),
        )
    };
    Explained { code: Some(*code), reason: format!("the backend refused {qnn} with {code} ({what}){said}"), remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::onnx::reasons::TriedOp;

    fn failed(reason: &str) -> NodeNote {
        NodeNote { passed: false, reason: Some(reason.to_owned()), refusal: None }
    }

    #[test]
    fn each_kind_of_reason_has_its_remedy() {
        let free = ["--dim N=1".to_owned()];
        let about = Circumstances { free_dimensions: &free, ..Circumstances::default() };
        for (note, reason, remedy) in [
            (
                failed("Operators of type `Hardmax` are not supported by QNN EP.Hardmax node"),
                "no translation of X",
                "replace it",
            ),
            (failed("Cannot get shape"), "shape is not known", "--dim N=1"),
            (failed("No weight scales found for quantized weights"), "4-bit", "per channel"),
            (
                failed("configured to not take Q nodes that consume a graph input"),
                "leaves quantising",
                "offload_graph_io",
            ),
            (failed("Dilation not supported"), "Dilation not supported", "fix what the reason names"),
            (NodeNote { passed: true, ..NodeNote::default() }, "left it out", "nothing to do"),
        ] {
            let told = explain("X", Some(&note), about);
            assert!(told.reason.contains(reason) && told.remedy.contains(remedy), "{told:?}");
            assert_eq!(told.code, None);
        }
        assert!(explain("Shape", None, about).reason.contains("did not offer"));
        let compiled = Circumstances { is_compiled: true, ..about };
        assert!(explain("X", None, compiled).remedy.contains("convert it again"));
        let down = Circumstances { problem: Some("no such file"), ..about };
        assert!(explain("X", Some(&failed("Cannot get shape")), down).reason.contains("did not start: no such file"));
    }

    #[test]
    fn a_refusal_names_its_rank_or_its_types() {
        let op =
            TriedOp { name: "a".into(), op_type: "ElementWiseAdd".into(), rank: 6, types: vec!["FLOAT_32".into()] };
        let note = |rank| NodeNote {
            refusal: Some(BackendRefusal {
                code: 3110,
                op: TriedOp { rank, ..op.clone() },
                words: vec!["0xc26".into()],
            }),
            ..failed("Failed to add node")
        };
        let six = explain("Add", Some(&note(6)), Circumstances::default());
        assert_eq!(six.code, Some(3110));
        assert!(
            six.reason.contains("rank 6")
                && six.reason.ends_with("it logged: 0xc26")
                && six.remedy.contains("at most 5")
        );
        let four = explain("Add", Some(&note(4)), Circumstances::default());
        assert!(four.reason.contains("types float_32, rank 4"), "{four:?}");
    }
}
