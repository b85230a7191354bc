//! Numbers that a line calls an error, each in its code space.

use crate::backends::errors;
use crate::diagnosis::numbers;

/// A number with its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// As written in the line.
    pub text: String,
    /// The space: `QNN`, `FastRPC`, `errno`, ...
    pub space: &'static str,
    /// The number in that space.
    pub value: u64,
    /// Its symbol in that space.
    pub symbol: &'static str,
    /// Its meaning, in our own words.
    pub meaning: &'static str,
}

/// A row of a small space.
type Row = (u64, &'static str, &'static str);

/// Codes that Windows uses as the exit status of a process that it terminated.
const NTSTATUS: [Row; 13] = [
    (0xc000_0005, "STATUS_ACCESS_VIOLATION", "the process read or wrote memory that is not its own: a crash"),
    (0xc000_0017, "STATUS_NO_MEMORY", "no memory"),
    (0xc000_001d, "STATUS_ILLEGAL_INSTRUCTION", "an instruction that this processor does not have"),
    (0xc000_007b, "STATUS_INVALID_IMAGE_FORMAT", "a DLL for another processor (x64 and arm64 mixed)"),
    (0xc000_0094, "STATUS_INTEGER_DIVIDE_BY_ZERO", "a division by zero"),
    (0xc000_00fd, "STATUS_STACK_OVERFLOW", "the stack overflowed"),
    (0xc000_0135, "STATUS_DLL_NOT_FOUND", "a DLL that the program needs was not found"),
    (0xc000_0138, "STATUS_ORDINAL_NOT_FOUND", "a DLL of another version was found"),
    (0xc000_0139, "STATUS_ENTRYPOINT_NOT_FOUND", "a DLL of another version was found: it lacks a function"),
    (0xc000_0142, "STATUS_DLL_INIT_FAILED", "a DLL could not be initialised"),
    (0xc000_013a, "STATUS_CONTROL_C_EXIT", "ended with Ctrl-C"),
    (0xc000_0374, "STATUS_HEAP_CORRUPTION", "the heap was damaged: a crash"),
    (0xc000_0409, "STATUS_STACK_BUFFER_OVERRUN", "the program ended itself (abort)"),
];

/// Errors from Windows' loader and file system.
const WINDOWS: [Row; 11] = [
    (2, "ERROR_FILE_NOT_FOUND", "no such file"),
    (3, "ERROR_PATH_NOT_FOUND", "no such folder"),
    (5, "ERROR_ACCESS_DENIED", "access denied"),
    (8, "ERROR_NOT_ENOUGH_MEMORY", "no memory"),
    (14, "ERROR_OUTOFMEMORY", "no memory"),
    (112, "ERROR_DISK_FULL", "the disk is full"),
    (126, "ERROR_MOD_NOT_FOUND", "the DLL, or one that it needs, was not found"),
    (127, "ERROR_PROC_NOT_FOUND", "the DLL lacks a function: it is of another version"),
    (193, "ERROR_BAD_EXE_FORMAT", "the DLL is for another processor"),
    (1114, "ERROR_DLL_INIT_FAILED", "the DLL could not be initialised"),
    (1455, "ERROR_COMMITMENT_LIMIT", "the paging file is too small"),
];

/// Linux error numbers.
const ERRNO: [Row; 22] = [
    (1, "EPERM", "operation not permitted"),
    (2, "ENOENT", "no such file or folder"),
    (5, "EIO", "input or output failed"),
    (7, "E2BIG", "too many arguments"),
    (8, "ENOEXEC", "no program of this machine"),
    (9, "EBADF", "no open file"),
    (11, "EAGAIN", "try again"),
    (12, "ENOMEM", "no memory"),
    (13, "EACCES", "permission denied"),
    (14, "EFAULT", "bad address"),
    (16, "EBUSY", "device or resource busy"),
    (19, "ENODEV", "no such device"),
    (22, "EINVAL", "invalid argument"),
    (24, "EMFILE", "too many open files"),
    (25, "ENOTTY", "the device does not know this request"),
    (28, "ENOSPC", "no space left"),
    (30, "EROFS", "a file system that may only be read"),
    (32, "EPIPE", "the other side is gone"),
    (71, "EPROTO", "protocol error"),
    (104, "ECONNRESET", "connection reset"),
    (110, "ETIMEDOUT", "timed out"),
    (111, "ECONNREFUSED", "connection refused"),
];

/// Signals that terminate a process.
const SIGNALS: [Row; 12] = [
    (1, "SIGHUP", "the terminal went away"),
    (2, "SIGINT", "ended with Ctrl-C"),
    (4, "SIGILL", "an instruction that this processor does not have"),
    (5, "SIGTRAP", "a trap"),
    (6, "SIGABRT", "the program ended itself (abort)"),
    (7, "SIGBUS", "a memory mapping lost its file or is not aligned"),
    (8, "SIGFPE", "a division by zero; qnn-net-run: an input file of the wrong size"),
    (9, "SIGKILL", "killed from outside: often for lack of memory"),
    (11, "SIGSEGV", "a crash: memory that is not the process's own"),
    (13, "SIGPIPE", "the reader of its output is gone"),
    (15, "SIGTERM", "ended from outside: a time limit, or somebody"),
    (31, "SIGSYS", "a system call that a sandbox forbids"),
];

/// Exit statuses of shells and of `timeout`.
const EXITS: [Row; 4] = [
    (124, "timeout", "the time limit of `timeout` ended it"),
    (126, "not executable", "found, and not executable: permission, or for another machine"),
    (127, "not found", "the command, or its loader, was not found; or a handler of the program's own"),
    (134, "SIGABRT", "the program ended itself (abort)"),
];

/// Status codes of ONNX Runtime.
const ORT: [Row; 12] = [
    (1, "FAIL", "failed"),
    (2, "INVALID_ARGUMENT", "an argument, input name or shape is wrong"),
    (3, "NO_SUCHFILE", "no such file"),
    (4, "NO_MODEL", "no model was loaded"),
    (5, "ENGINE_ERROR", "the engine failed"),
    (6, "RUNTIME_EXCEPTION", "a node threw while it ran"),
    (7, "INVALID_PROTOBUF", "the model file does not parse"),
    (8, "MODEL_LOADED", "a model is loaded already"),
    (9, "NOT_IMPLEMENTED", "no kernel for a node"),
    (10, "INVALID_GRAPH", "the graph is not valid"),
    (11, "EP_FAIL", "the execution provider failed: its own message is before this one"),
    (12, "MODEL_LOAD_CANCELED", "loading was stopped"),
];

/// Errors from ExecuTorch's runtime.
const EXECUTORCH: [Row; 17] = [
    (0x1, "Internal", "an internal error, as a delegate gives it"),
    (0x2, "InvalidState", "called in the wrong state"),
    (0x10, "NotSupported", "not supported"),
    (0x11, "NotImplemented", "not implemented"),
    (0x12, "InvalidArgument", "an argument or input does not fit"),
    (0x13, "InvalidType", "a value of another type"),
    (0x14, "OperatorMissing", "the runner was built without a kernel that the program needs"),
    (0x20, "NotFound", "the backend or the file is not there: often a runner built without the QNN backend"),
    (0x21, "MemoryAllocationFailed", "no memory"),
    (0x22, "AccessFailed", "the file cannot be read"),
    (0x23, "InvalidProgram", "no program file of this version"),
    (0x24, "InvalidExternalData", "the external data does not fit"),
    (0x25, "OutOfResources", "no resources left"),
    (
        0x30,
        "DelegateInvalidCompatibility",
        "the program was compiled for another version of the delegate or another SoC",
    ),
    (0x31, "DelegateMemoryAllocationFailed", "no memory in the delegate"),
    (0x32, "DelegateInvalidHandle", "the delegate could not be initialised"),
    (0x3, "EndOfMethod", "the method has ended"),
];

/// Status numbers of Android's own libraries besides those of errno.
const ANDROID: [Row; 5] = [
    (0x8000_0000, "UNKNOWN_ERROR", "unknown error"),
    (0x8000_0001, "BAD_TYPE", "a value of another type"),
    (0x8000_0002, "FAILED_TRANSACTION", "the call to another process failed"),
    (0x8000_0007, "FDS_NOT_ALLOWED", "files must not be handed over here"),
    (0x8000_0008, "UNEXPECTED_NULL", "null where none may be"),
];

/// The row for a number, if there is one.
fn row(rows: &[Row], value: u64) -> Option<Row> {
    rows.iter().find(|row| row.0 == value).copied()
}

/// The meaning of an exit status, or of a number from Windows, a shell or a kernel; for `explain`.
pub fn of_systems(value: u64) -> Vec<Decoded> {
    let text = || value.to_string();
    let low = value & 0xffff_ffff;
    let widened = value == low || value >> 32 == 0xffff_ffff;
    let make = |space, row: Row| Decoded { text: text(), space, value: row.0, symbol: row.1, meaning: row.2 };
    let mut list = Vec::new();
    if widened {
        list.extend(row(&NTSTATUS, low).map(|row| make("Windows NTSTATUS", row)));
        if low >> 16 == 0x8007 {
            list.extend(row(&WINDOWS, low & 0xffff).map(|row| make("Windows", row)));
        }
        list.extend(row(&ANDROID, low).map(|row| make("Android", row)));
    }
    if (129..160).contains(&value) {
        list.extend(
            row(&SIGNALS, value - 128).map(|(_, symbol, meaning)| make("exit status", (value, symbol, meaning))),
        );
    } else if (100..200).contains(&value) {
        list.extend(row(&EXITS, value).map(|row| make("exit status", row)));
        if list.is_empty() {
            list.extend(row(&WINDOWS, value).map(|row| make("Windows", row)));
        }
    }
    list
}

/// Every number that the line calls an error and that some space knows.
pub fn decode(line: &[u8]) -> Vec<Decoded> {
    let lower = line.to_ascii_lowercase();
    let has = |word: &str| memchr::memmem::find(&lower, word.as_bytes()).is_some();
    let mut list: Vec<Decoded> = Vec::new();
    for number in Number::all(line) {
        let before = &lower[number.start.saturating_sub(24)..number.start];
        let after_word = |words: &[&str]| {
            let text = before.trim_ascii_end();
            let text = text.strip_suffix(b"code").unwrap_or(text).trim_ascii_end();
            let text = text.strip_suffix(b"status").unwrap_or(text).trim_ascii_end();
            let kept = text.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |at| at + 1);
            words.iter().any(|word| text[..kept].ends_with(word.as_bytes()))
        };
        let value = number.value;
        let low = value & 0xffff_ffff;
        let widened = value == low || value >> 32 == 0xffff_ffff;
        let decoded =
            if has("onnxruntimeerror]") && !number.is_hex && memchr::memmem::find(before, b"error] :").is_some() {
                row(&ORT, value).map(|row| ("ONNX Runtime", row))
            } else if after_word(&["signal", "by signal"]) && value < 64 {
                row(&SIGNALS, value).map(|row| ("signal", row))
            } else if widened && (0xc000_0000..0xd000_0000).contains(&low) {
                row(&NTSTATUS, low).map(|row| ("Windows NTSTATUS", row))
            } else if widened && low >> 16 == 0x8007 {
                row(&WINDOWS, low & 0xffff).map(|row| ("Windows", row))
            } else if widened && (errors::FASTRPC_BASE..errors::FASTRPC_BASE + 0x400).contains(&low) {
                errors::rows(low).find(errors::is_fastrpc).map(|row| ("FastRPC", (low, row.symbol, row.meaning)))
            } else if after_word(&["exit", "exited", "exited with", "exit with", "returncode", "return"])
                && (100..160).contains(&value)
            {
                of_systems(value).into_iter().next().map(|code| (code.space, (value, code.symbol, code.meaning)))
            } else if !numbers::is_error(line, number.start, number.end) {
                None
            } else if has("executorch") && !has("<e>") && number.is_hex && value < 0x40 {
                row(&EXECUTORCH, value).map(|row| ("ExecuTorch", row))
            } else if (has("loadlibrary") || has(".dll") || has("getlasterror") || has("win32")) && value < 2000 {
                row(&WINDOWS, value).map(|row| ("Windows", row))
            } else if value >> 32 == 0xffff_ffff && value.wrapping_neg() < 200 {
                row(&ERRNO, value.wrapping_neg()).map(|row| ("errno", row))
            } else if value < 200
                && (has("errno") || has("fastrpc") || has("adsprpc") || has("rpc") || has("ioctl") || has("qnn_open"))
            {
                row(&ERRNO, value).map(|row| ("errno", row))
            } else if (1000..=0xffff).contains(&value) {
                errors::rows(value)
                    .find(|row| !errors::is_fastrpc(row))
                    .map(|row| ("QNN", (value, row.symbol, row.meaning)))
            } else {
                None
            };
        if let Some((space, (value, symbol, meaning))) = decoded
            && !list.iter().any(|code| code.space == space && code.value == value)
        {
            let text = String::from_utf8_lossy(&line[number.start..number.end]).into_owned();
            list.push(Decoded { text, space, value, symbol, meaning });
        }
    }
    list
}

/// A number in a line, decimal or hexadecimal; negative ones as 64-bit two's complement.
struct Number {
    start: usize,
    end: usize,
    value: u64,
    is_hex: bool,
}

impl Number {
    fn all(line: &[u8]) -> Vec<Self> {
        let mut list = Vec::new();
        let mut at = 0;
        while at < line.len() && list.len() < 64 {
            if !line[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let digits_at = at;
            let is_hex = line[at] == b'0' && line.get(at + 1).is_some_and(|c| c | 0x20 == b'x');
            let digits = if is_hex { at + 2 } else { at };
            let is_digit = |c: &u8| if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
            let end = digits + line[digits..].iter().take_while(|c| is_digit(c)).count();
            at = end.max(digits_at + 1);
            let before = digits_at.checked_sub(1).map(|at| line[at]);
            let negative = before == Some(b'-');
            let outside = if negative { digits_at.checked_sub(2).map(|at| line[at]) } else { before };
            let part = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'/'));
            let point = line.get(end) == Some(&b'.') && line.get(end + 1).is_some_and(u8::is_ascii_digit);
            let letter = line.get(end).is_some_and(|c| c.is_ascii_alphabetic() || *c == b'_');
            if part(outside) || point || letter {
                continue;
            }
            let text = std::str::from_utf8(&line[digits..end]).unwrap_or_default();
            let Ok(value) = u64::from_str_radix(text, if is_hex { 16 } else { 10 }) else { continue };
            let value = if negative { value.wrapping_neg() } else { value };
            list.push(Self { start: digits_at, end, value, is_hex });
        }
        list
    }
}
