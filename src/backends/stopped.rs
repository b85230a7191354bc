//! Determines from a backend's log the op it stopped at.

use super::Backend;
use super::settings::Resolved;
use crate::devices::socs_by_model;
use crate::event::{Refusal, clean_text};
use crate::models::{Graph, Op};

/// The architecture that HTP's libraries assume on a PC if none is named.
const DEFAULT_ARCH: u32 = 68;

/// The op that HTP's compiler names when it gives up: the origin of the part it could not build.
pub fn finalized_op(line: &str) -> Option<&str> {
    let (name, _) = line.trim().strip_prefix('"')?.split_once("\" generated: ")?;
    Some(name)
}

/// The op that a line reports as refused, and its type if given: from HTP's validator, a model library's
/// converter code, or a DLC composer.
pub fn refused_op(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.trim();
    if let Some((_, rest)) = line.split_once("validateNativeOps master op validator ") {
        let mut parts = rest.split(' ').next()?.rsplitn(3, ':');
        let (op_type, _package, name) = (parts.next()?, parts.next()?, parts.next()?);
        return Some((name, Some(op_type)));
    }
    if let Some((_, rest)) = line.split_once("datatypes requested for the HTP Op '") {
        let (op_type, rest) = rest.split_once("' in the node '")?;
        return Some((rest.split_once('\'')?.0, Some(op_type)));
    }
    let name = |before: &str, after: &str| line.split_once(before)?.1.split_once(after).map(|(name, _)| name);
    let found = name("Failed to validate op ", " with error").or_else(|| name("validating node ", " failed"));
    Some((found.filter(|name| !name.is_empty())?, None))
}

/// The architecture a graph is compiled for on this machine.
pub fn target_arch(backend: Backend, resolved: &Resolved) -> Option<String> {
    if backend != Backend::Htp {
        return None;
    }
    let by_model = || resolved.soc_model.and_then(|model| socs_by_model(model).find_map(|soc| soc.arch));
    let assumed = || (backend.is_simulated_here() && resolved.soc_model.is_none()).then_some(DEFAULT_ARCH);
    resolved.arch.or_else(by_model).or_else(assumed).map(|arch| format!("v{arch}"))
}

/// The refusal of an op named in the log, with everything known about the op; `None` if the log names none.
pub fn from_log(
    backend: Backend,
    hardware: Option<String>,
    graphs: &[Graph],
    log: Vec<String>,
    finalizing: bool,
) -> Option<Refusal> {
    let named = if finalizing {
        log.iter().find_map(|line| finalized_op(line)).map(|name| (name.to_owned(), None))
    } else {
        // Several lines may report the same op, and not each has its type.
        let (name, op_type) = log.iter().find_map(|line| refused_op(line))?;
        let typed =
            log.iter().filter_map(|line| refused_op(line)).find(|(other, with)| *other == name && with.is_some());
        Some((name.to_owned(), op_type.or(typed.and_then(|(_, with)| with)).map(ToOwned::to_owned)))
    };
    let (name, op_type) = named?;
    let known = graphs.iter().find_map(|graph| Some((graph, graph.ops.iter().find(|op| op.name == name)?)));
    let (graph, op) = match known {
        Some((graph, op)) => (graph.name.clone(), op.clone()),
        None => (String::new(), nameless(&name, op_type.as_deref())),
    };
    Some(Refusal { backend, hardware, graph, op, log, tensor_ids: Vec::new(), verdict: None })
}

/// An op of which only the name is known.
fn nameless(name: &str, op_type: Option<&str>) -> Op {
    Op {
        index: 0,
        name: clean_text(name),
        op_type: op_type.map(clean_text).unwrap_or_default(),
        package: String::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        params: serde_json::Map::new(),
        macs: None,
        parameter_bytes: 0,
        bytes_moved: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: &str) -> Vec<String> {
        log.lines().map(|line| line.rsplit("<E>").next().unwrap_or(line).trim().to_owned()).collect()
    }

    #[test]
    fn real_logs_name_their_op() {
        let finalize = lines(include_str!("../../tests/data/run-logs/htp-finalize-1002-hardswish-info.log"));
        let found = from_log(Backend::Htp, None, &[], finalize, true).unwrap();
        assert_eq!((found.op.name.as_str(), found.op.op_type.as_str()), ("b0/res", ""));
        let typed = lines(include_str!("../../tests/data/run-logs/op-3110-int32-conv-htp-error.log"));
        let found = from_log(Backend::Htp, None, &[], typed, false).unwrap();
        assert_eq!((found.op.name.as_str(), found.op.op_type.as_str()), ("ic", "Conv2d"));
        let rank = lines(include_str!("../../tests/data/run-logs/op-3110-rank6-htp-error.log"));
        assert_eq!(from_log(Backend::Htp, None, &[], rank, false).unwrap().op.name, "d6_0_relu");
        let shapes = lines(include_str!("../../tests/data/run-logs/op-shapes-cpu-error.log"));
        assert_eq!(from_log(Backend::Cpu, None, &[], shapes, false).unwrap().op.name, "s0_add");
        let good = lines(include_str!("../../tests/data/run-logs/good-cpu-2op-verbose.log"));
        assert!(from_log(Backend::Cpu, None, &[], good, false).is_none());
    }

    #[test]
    fn names_may_hold_what_separates() {
        let line = "validateNativeOps master op validator a:b/c:qti.aisw:Frobnicate failed 4005";
        assert_eq!(refused_op(line), Some(("a:b/c", Some("Frobnicate"))));
        assert_eq!(refused_op("Failed to validate op a b with error 0xc26"), Some(("a b", None)));
        assert_eq!(finalized_op("\"a \"b\"\" generated: could not create op"), Some("a \"b\""));
        for line in ["", "validating node  failed.", "\"x\" generates", "Failed to validate op"] {
            assert_eq!((refused_op(line), finalized_op(line)), (None, None), "{line}");
        }
    }
}
