//! First bytes that identify files.

/// Context binaries begin with two small big-endian numbers (2 and 3 in QAIRT 2.47 and 2.51, for CPU and HTP
/// alike) and contain no text. This only decides who reads the file: the system library has the last word.
pub fn starts_context_binary(start: &[u8]) -> bool {
    match start {
        [0, 0, 0, first, 0, 0, 0, second, ..] => (1..16).contains(first) && (1..16).contains(second),
        _ => false,
    }
}
