//! Tells the lines of a system or a library from those of the program that uses it.

use super::pattern::regex;
use regex::bytes::Regex;
use std::sync::LazyLock;

static FOREIGN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(concat!(
        // Android's log, the kernel's, FastRPC's.
        r"^\s*\S*\d\d-\d\d \d\d:\d\d:\d\d\.\d+ |^\s*[vdiwe][/ ]\S+ *[:(]|^\[ *\d+\.\d{6}\] |adsprpc|fastrpc|\bkernel: ",
        // QNN's own, HTP's compiler's, ONNX Runtime's.
        r"|<[ewivd]>|\[ *(error|verbose|info|warning) *\] +<|::error:|\.cc:\d+:+error|\[[ewiv]:onnxruntime|^\[[ewivd]\]\S|^[ewi]\d{4} ",
        r"|onnxruntime_pybind|^\s*file \x22.*(site|dist)-packages|^\S*(site|dist)-packages\S*:\d+|^\s*ep error|^ ?index: \d+ got:|^ ?please fix either|^\S+-\d+ exited with"
    ))
    .ok()
});

/// True for a line that a system or a library printed, as far as its form tells.
pub fn is_foreign(line: &[u8]) -> bool {
    FOREIGN.as_ref().is_some_and(|foreign| foreign.is_match(line))
}

static SYSTEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r"^\s*(\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ |^[vdiwef]/\S+ *[:(]|^\[ *\d+\.\d{5,6}\] |\bsystemd\[\d|\baudit\(").ok()
});

/// True for a line of a log to which many programs write: Android's, the kernel's, systemd's.
pub fn is_of_system(line: &[u8]) -> bool {
    SYSTEM.as_ref().is_some_and(|system| system.is_match(line))
}

static CHATTER: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"^\W*$|libnative|starting stage|completed stage|ddr bandwidth|_bytes=").ok());

/// True for blanks, rules, and what the libraries print of themselves and of compilation.
pub fn is_chatter(line: &[u8]) -> bool {
    CHATTER.as_ref().is_some_and(|chatter| chatter.is_match(line))
}
