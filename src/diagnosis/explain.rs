//! Explains one code: its name, where it comes from, and what usually causes it.

use super::catalogue::{Cause, cause, causes, code_note};
use super::statements::of_systems;
use crate::backends::errors::{self, ErrorCode, FASTRPC_BASE};
use crate::event::Stage;

/// Most symbols listed when part of a name matches several.
const MOST_CANDIDATES: usize = 24;

/// What is known about one word that the user asked about.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A known number or symbol.
    Known(Explanation),
    /// Part of several symbols.
    Several(Vec<&'static str>),
    /// A number without a row; the component whose range contains it, if any.
    UnknownNumber {
        /// The number, low 16 bits for QNN.
        code: u64,
        /// Component, such as `graph`.
        component: Option<&'static str>,
    },
    /// Neither a number nor part of a symbol.
    NoCode,
}

/// A code with its meanings and causes.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The code: the low 16 bits of the number for QNN.
    pub code: u64,
    /// What it means, by component.
    pub meanings: Vec<Meaning>,
    /// What it means in practice.
    pub says: Option<&'static str>,
    /// Causes, likeliest first.
    pub causes: Vec<&'static Cause>,
    /// How the number was derived, if it was not simply read.
    pub note: Option<&'static str>,
}

/// One row of the table, with where the code occurs.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// The row.
    pub row: ErrorCode,
    /// Calls that return it.
    pub calls: &'static str,
    /// Stages of a run in which those calls happen.
    pub stages: &'static [Stage],
}

/// Explains a decimal or hexadecimal number (negative ones too), or a symbol or part of one, in any case.
pub fn explain(word: &str) -> Answer {
    // As copied from a line: `1008,` or `(0x3ea)`.
    let word = word.trim().trim_matches([',', ';', ':', '.', '(', ')', '[', ']', '"', '\'', '`', '!']);
    if let Some(value) = number(word) {
        let decimal = !word.contains(['x', 'X']);
        return match by_number(value, decimal) {
            // `80000406` is a FastRPC code without its `0x`.
            unknown @ Answer::UnknownNumber { .. } => as_hexadecimal(word).unwrap_or(unknown),
            known => known,
        };
    }
    match by_symbol(word) {
        Answer::NoCode => as_hexadecimal(word).unwrap_or(Answer::NoCode),
        known => known,
    }
}

/// Digits without `0x` that are a known code when read as hexadecimal.
fn as_hexadecimal(word: &str) -> Option<Answer> {
    let has_letter = word.bytes().any(|c| c.is_ascii_alphabetic());
    let is_fastrpc = word.len() == 8 && word.starts_with('8');
    if !(3..=16).contains(&word.len()) || !word.bytes().all(|c| c.is_ascii_hexdigit()) || !(has_letter || is_fastrpc) {
        return None;
    }
    let value = u64::from_str_radix(word, 16).ok().filter(|value| *value >= 1000)?;
    match by_number(value, true) {
        Answer::Known(known) => Some(Answer::Known(Explanation { note: Some("read as hexadecimal"), ..known })),
        _ => None,
    }
}

/// The 64 bits of a number; negative ones as two's complement.
fn number(word: &str) -> Option<u64> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// With `whole`, only the number itself counts and not its low 16 bits, unless those are a code.
fn by_number(value: u64, whole: bool) -> Answer {
    // A negative 32-bit number that was widened.
    let low = value & 0xffff_ffff;
    let widened = value == low || value >> 32 == 0xffff_ffff;
    if widened && low >= FASTRPC_BASE {
        let note = (value != low || low == 0xffff_ffff).then_some("read as a 32-bit number of FastRPC");
        return answer(low, errors::rows(low).collect(), note);
    }
    if value > 0xffff {
        let code = value & 0xffff;
        let rows: Vec<ErrorCode> = errors::rows(code).filter(|row| !errors::is_fastrpc(row)).collect();
        if whole && (rows.is_empty() || code == 0) {
            return Answer::UnknownNumber { code: value, component: None };
        }
        return answer(code, rows, Some("only the low 16 bits are the code; the library may set higher ones"));
    }
    // On the host side FastRPC uses the bare number and those of errno; QNN's own codes start at 1000.
    if value > 0 && value < 1000 {
        let mut rows: Vec<ErrorCode> = ERRNO.iter().filter(|row| row.code == value).copied().collect();
        rows.extend(errors::rows(value));
        // A number with a note of its own does not mean what it means on the DSP.
        if code_note(value).is_none() || rows.is_empty() {
            rows.extend(errors::rows(FASTRPC_BASE + value));
        }
        let note = (!rows.is_empty()).then_some("as FastRPC gives it on the processor's side");
        return answer(value, rows, note);
    }
    answer(value, errors::rows(value).collect(), None)
}

/// Linux error numbers that FastRPC's messages contain.
const ERRNO: [ErrorCode; 13] = [
    errno(1, "EPERM", "operation not permitted"),
    errno(2, "ENOENT", "no such file or folder"),
    errno(11, "EAGAIN", "try again"),
    errno(12, "ENOMEM", "no memory"),
    errno(13, "EACCES", "permission denied"),
    errno(16, "EBUSY", "device or resource busy"),
    errno(19, "ENODEV", "no such device"),
    errno(22, "EINVAL", "invalid argument"),
    errno(24, "EMFILE", "too many open files"),
    errno(28, "ENOSPC", "no space left"),
    errno(104, "ECONNRESET", "connection reset"),
    errno(110, "ETIMEDOUT", "timed out"),
    errno(111, "ECONNREFUSED", "connection refused"),
];

const fn errno(code: u64, symbol: &'static str, meaning: &'static str) -> ErrorCode {
    ErrorCode { code, component: "errno", symbol, meaning }
}

fn answer(code: u64, mut rows: Vec<ErrorCode>, note: Option<&'static str>) -> Answer {
    // Exit statuses of shells and of Windows.
    rows.extend(of_systems(code).into_iter().map(|code| ErrorCode {
        code: code.value,
        component: code.space,
        symbol: code.symbol,
        meaning: code.meaning,
    }));
    if rows.is_empty() {
        return match code_note(code) {
            Some(_) => known(code, rows, Some("the table has no symbol for it")),
            None => Answer::UnknownNumber { code, component: errors::component_of(code) },
        };
    }
    known(code, rows, note)
}

fn known(code: u64, rows: Vec<ErrorCode>, note: Option<&'static str>) -> Answer {
    // A bare host-side number has the same causes as the DSP's.
    let field = code_note(code).or_else(|| (code < 1000).then(|| code_note(FASTRPC_BASE + code)).flatten());
    let mut list: Vec<&'static Cause> =
        field.into_iter().flat_map(|note| &note.causes).filter_map(|id| cause(id)).collect();
    let same = |text: &String| number(text) == Some(code);
    for other in causes().iter().filter(|cause| cause.codes.iter().any(same)) {
        if !list.iter().any(|known| known.id == other.id) {
            list.push(other);
        }
    }
    let meanings = rows.into_iter().map(meaning).collect();
    Answer::Known(Explanation { code, meanings, says: field.map(|note| note.says.as_str()), causes: list, note })
}

fn by_symbol(word: &str) -> Answer {
    let wanted: String =
        word.chars().map(|c| if matches!(c, '-' | ' ' | '.') { '_' } else { c.to_ascii_uppercase() }).collect();
    if wanted.len() < 3 {
        return Answer::NoCode;
    }
    let exact: Vec<ErrorCode> = errors::all().filter(|row| row.symbol == wanted).collect();
    if let Some(row) = exact.first() {
        return known(row.code, exact, None);
    }
    let ends: Vec<ErrorCode> = errors::all().filter(|row| row.symbol.ends_with(&format!("_{wanted}"))).collect();
    let parts: Vec<ErrorCode> = errors::all().filter(|row| row.symbol.contains(&wanted)).collect();
    match (&ends[..], &parts[..]) {
        (_, []) => Answer::NoCode,
        ([row], _) | (_, [row]) => known(row.code, vec![*row], None),
        _ => Answer::Several(parts.iter().map(|row| row.symbol).take(MOST_CANDIDATES).collect()),
    }
}

fn meaning(row: ErrorCode) -> Meaning {
    use Stage::{
        BackendCreate, Compose, ContextCreate, DeviceCreate, Execute, Finalize, FirstInference, LibraryLoad, Teardown,
    };
    let (calls, stages): (&str, &'static [Stage]) = match row.component {
        "property" => ("propertyHasCapability", &[LibraryLoad, BackendCreate]),
        "op package" => ("backendRegisterOpPackage, backendValidateOpConfig, graphAddNode", &[Compose]),
        "backend" => ("backendCreate, backendFree, backendRegisterOpPackage", &[BackendCreate, Teardown]),
        "context" => {
            ("contextCreate, contextCreateFromBinary, contextGetBinary, contextFree", &[ContextCreate, Teardown])
        }
        "graph" => {
            ("graphCreate, graphAddNode, graphFinalize, graphExecute", &[Compose, Finalize, FirstInference, Execute])
        }
        "tensor" => ("tensorCreateGraphTensor, tensorCreateContextTensor", &[Compose]),
        "mem" => ("memRegister, memDeRegister", &[FirstInference, Execute, Teardown]),
        "signal" => ("signalCreate, signalConfig, signalTrigger", &[Finalize, Execute]),
        "error" => ("errorGetMessage", &[]),
        "log" => ("logCreate, logSetLogLevel", &[BackendCreate]),
        "profile" => ("profileCreate, profileGetEvents, profileGetEventData", &[FirstInference, Execute]),
        "perf infrastructure" => ("the power functions of deviceGetInfrastructure", &[DeviceCreate, Execute]),
        "device" => ("deviceCreate, deviceGetPlatformInfo, deviceFree", &[DeviceCreate, Teardown]),
        "global config" => ("globalConfigSet", &[LibraryLoad]),
        "saver" => ("any call of the recording (Saver) library", &[]),
        "interface" => ("QnnInterface_getProviders", &[LibraryLoad]),
        "system interface" => ("QnnSystemInterface_getProviders", &[LibraryLoad]),
        "system profile" => ("systemProfile calls", &[Execute, Teardown]),
        "system dlc" => ("systemDlcCreateFromFile, systemDlcComposeGraphs", &[Compose]),
        "system context" => ("systemContextGetBinaryInfo", &[ContextCreate]),
        component if component.starts_with("system") => ("calls of the system library", &[ContextCreate, Compose]),
        "errno" => ("the kernel, or FastRPC on the processor's side", &[DeviceCreate, ContextCreate, Execute]),
        "exit status" | "Windows" | "Windows NTSTATUS" | "Android" => {
            ("the system, when a library is loaded or a process ends", &[])
        }
        component if component.starts_with("fastrpc") => {
            ("FastRPC, below the HTP and DSP backends", &[DeviceCreate, ContextCreate, Execute])
        }
        _ => ("any call", &[BackendCreate, DeviceCreate, ContextCreate, Compose, Finalize, FirstInference, Execute]),
    };
    Meaning { row, calls, stages }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_of(word: &str) -> Explanation {
        match explain(word) {
            Answer::Known(explanation) => explanation,
            other => panic!("{word}: {other:?}"),
        }
    }

    #[test]
    fn every_spelling_of_a_number_is_read() {
        for word in ["3110", "0xc26", "0XC26", " 3110 ", "0x10c26", "0x0000000100000c26", "68646"] {
            assert_eq!(known_of(word).code, 3110, "{word}");
        }
        for word in ["0x80000406", "2147484678", "-2147482618", "0xffffffff80000406"] {
            assert_eq!(known_of(word).meanings[0].row.symbol, "AEE_EUNABLETOLOAD", "{word}");
        }
        assert_eq!(known_of("-1").code, 0xffff_ffff);
        for word in ["1008,", "(0x3f0)", "3f0", "`1008`:"] {
            assert_eq!(known_of(word).code, 1008, "{word}");
        }
        assert_eq!(known_of("80000406").code, 0x8000_0406);
        assert!(matches!(explain("99999"), Answer::UnknownNumber { code: 99999, component: None }));
        assert_eq!(known_of("0x39").meanings[0].row.symbol, "AEE_EINVALIDDOMAIN");
        assert!(matches!(explain("-57"), Answer::UnknownNumber { .. }));
        assert!(matches!(explain("99999999999999999999"), Answer::NoCode));
        assert!(matches!(explain("0x"), Answer::NoCode));
        assert!(matches!(explain(""), Answer::NoCode));
    }

    #[test]
    fn symbols_in_part_and_in_any_case() {
        assert_eq!(known_of("qnn_op_package_error_validation_failure").code, 3110);
        assert_eq!(known_of("eunabletoload").code, 0x8000_0406);
        assert_eq!(known_of("create-from-binary").code, 5005);
        let Answer::Several(list) = explain("MEM_ALLOC") else { panic!("several symbols end so") };
        assert!(list.contains(&"QNN_GRAPH_ERROR_MEM_ALLOC") && list.contains(&"QNN_COMMON_ERROR_MEM_ALLOC"));
        assert!(matches!(explain("nothing like it"), Answer::NoCode));
    }

    #[test]
    fn small_numbers_are_those_of_the_processors_side() {
        for (word, symbol, cause) in [
            ("0x2", "ENOENT", "skel-not-found"),
            ("0xd", "EACCES", "fastrpc-permission-denied"),
            ("13", "EACCES", "fastrpc-permission-denied"),
            ("0x68", "ECONNRESET", "cdsp-ssr"),
        ] {
            let known = known_of(word);
            assert_eq!((known.meanings[0].row.symbol, &known.causes[0].id[..]), (symbol, cause), "{word}");
            assert!(known.meanings.iter().all(|meaning| meaning.row.component != "fastrpc"), "{word}");
        }
        for word in ["0x58", "0x72", "0xc", "0x80000580"] {
            assert!(!known_of(word).causes.is_empty(), "{word}");
        }
    }

    #[test]
    fn what_systems_say_when_a_process_ends_is_known() {
        for (word, symbol) in [
            ("-1073741819", "STATUS_ACCESS_VIOLATION"),
            ("3221225781", "STATUS_DLL_NOT_FOUND"),
            ("0xc000007b", "STATUS_INVALID_IMAGE_FORMAT"),
            ("0x8007007e", "ERROR_MOD_NOT_FOUND"),
            ("136", "SIGFPE"),
            ("124", "timeout"),
        ] {
            let known = known_of(word);
            assert!(known.meanings.iter().any(|meaning| meaning.row.symbol == symbol), "{word}: {:?}", known.meanings);
        }
    }

    #[test]
    fn all_meanings_of_a_shared_number_are_given() {
        let components: Vec<&str> = known_of("1002").meanings.iter().map(|meaning| meaning.row.component).collect();
        assert!(["common", "backend", "graph", "context"].iter().all(|c| components.contains(c)), "{components:?}");
        assert!(known_of("30001").meanings.len() >= 4);
    }

    #[test]
    fn causes_come_likeliest_first() {
        assert_eq!(known_of("1008").causes[0].id, "skel-not-found");
        assert_eq!(known_of("0xc26").causes[0].id, "op-dtype-unsupported");
        assert_eq!(known_of("6").causes[0].id, "skel-not-found");
        assert_eq!(known_of("6999").meanings.len(), 0);
        assert!(!known_of("6999").causes.is_empty());
    }

    #[test]
    fn unknown_numbers_are_not_given_a_meaning() {
        let Answer::UnknownNumber { component, .. } = explain("6500") else { panic!("6500 has no row") };
        assert_eq!(component, Some("graph"));
        assert!(matches!(explain("20000"), Answer::UnknownNumber { component: None, .. }));
    }
}
