//! Turns errors into next steps: one place, one match.

use crate::diagnosis::Fault;
use crate::event::{Failure, Stage};

/// How to fix a failed run, if that is possible without guessing at a cause that was not checked.
pub fn for_failure(failure: &Failure) -> Option<String> {
    if let Some(remedy) = Fault::of(failure).and_then(|fault| fault.remedy) {
        return Some(remedy);
    }
    let text = match (failure.stage, failure.call.as_str(), failure.code) {
        (Stage::LibraryLoad, "dlopen", None) if failure.message.contains("has no cpu backend") => {
            "take a runtime with this backend: `qnnscope runtime list` shows them, `qnnscope runtime install` gets \
             QAIRT 2.47, which has all"
        }
        (Stage::LibraryLoad, "dlopen", None) if failure.message.contains("libatomic") => {
            "install the missing library: sudo apt-get install libatomic1"
        }
        (_, "dlopen", None) if failure.message.contains("Permission denied") => {
            "a library that it is linked to may lie where the sandbox does not let it read: put that folder on \
             LD_LIBRARY_PATH, or give --no-sandbox if you trust the model"
        }
        (Stage::LibraryLoad, "dlopen", None) => "`qnnscope runtime list` shows which backends of each runtime load",
        (Stage::BackendCreate, _, Some(4000)) => {
            "the backend found no hardware or driver it can use here; the GPU backend needs an Adreno driver, so run it \
             on a Snapdragon device"
        }
        (Stage::DeviceCreate, _, Some(14001)) => {
            "check --soc-model and --htp-arch; on hardware the first log line carries the FastRPC code"
        }
        (Stage::ContextCreate, _, Some(5000 | 5005 | 30001 | 30010)) => {
            "make the context binary again with the SDK of this runtime, for this backend"
        }
        (Stage::Compose, _, Some(3110)) => {
            "this backend does not support the op with these types or shapes: quantise the model, or run another backend"
        }
        (Stage::Finalize, _, Some(1002)) => {
            "the HTP compiler could not build the graph: `qnnscope check MODEL -b htp` asks it about each op; float models \
             need a SoC with fp16, such as --soc-model 57"
        }
        (Stage::FirstInference, "graphExecute", Some(6004)) => {
            "compare the inputs and outputs that the model lists with those of its graph: `qnnscope check MODEL` names what differs"
        }
        (_, "CreateSession", _) if failure.message.contains("No Op registered") => {
            "this ONNX Runtime has no such operator: export the model with standard operators, or of an older opset"
        }
        (_, "CreateSession", _) if failure.message.contains("is under development") => {
            "export the model with an opset that this ONNX Runtime supports (torch.onnx.export has opset_version)"
        }
        (_, "CreateSession", _) if failure.message.contains("inserted using the NHWC format") => {
            "the plug-in asked for another layout and then refused the node: change what its reason names, or run -b cpu"
        }
        (_, "GetCapability", _) => {
            "run without --no-cpu-fallback: the placement has a row with reason and remedy for each node"
        }
        (_, "SIGSEGV" | "SIGABRT" | "SIGBUS" | "SIGILL" | "SIGFPE", _) => {
            "the crash is in the vendor's libraries or the model library; --log-level debug shows their last steps"
        }
        (_, "SIGKILL", _) => "something ended the process from outside; if memory was short, `dmesg` names the runner",
        (_, "supervision", _) if failure.message.contains("--memory-limit-mb") => {
            "raise --memory-limit-mb if the model really needs that much"
        }
        (_, "supervision", _) if failure.message.contains("--stage-timeout") => {
            "raise --stage-timeout if the model really needs that long; large models take minutes to finalize"
        }
        _ => return None,
    };
    Some(text.to_owned())
}
