//! What the real libraries can print: their messages are read from the libraries themselves, so that rules are
//! measured on the vendor's words, new releases included, without a copy of them here.

#![cfg(target_os = "linux")]

use crate::support::{repo, runtime_247, runtime_251};
use qnnscope::diagnosis::Diagnoser;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Causes of an op that a backend's validator refuses.
const OF_AN_OP: [&str; 8] = [
    "shape-mismatch",
    "op-config-inconsistent",
    "op-rank-unsupported",
    "op-dtype-unsupported",
    "op-quant-config-unsupported",
    "op-unsupported",
    "zero-size-tensor",
    "converter-dynamic-shape",
];
/// Causes of a model file that cannot be read.
const OF_A_MODEL_FILE: [&str; 4] =
    ["model-file-invalid", "context-binary-wrong-container", "model-missing", "dlc-sdk-newer"];
/// Causes of a file that cannot be written.
const OF_WRITING: [&str; 3] = ["output-folder-unusable", "disk-full", "context-serialize-failed"];

/// The printable texts of a library that hold a space.
fn texts(library: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(library).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    let parts = bytes.split(|byte| !(0x20..0x7f).contains(byte)).filter(|text| (14..300).contains(&text.len()));
    let parts = parts.map(|text| String::from_utf8_lossy(text).trim().to_owned());
    parts.filter(|text| text.contains(' ') && !text.starts_with("_Z")).collect()
}

/// The texts that all of these libraries hold.
fn shared(folder: &Path, libraries: &[&str]) -> BTreeSet<String> {
    let sets = libraries.iter().map(|library| texts(&folder.join(library)));
    sets.reduce(|all, next| all.intersection(&next).cloned().collect()).unwrap()
}

/// The message with values for its format fields.
fn filled(message: &str) -> String {
    let texts = Regex::new(r"%[-+ #0-9.*]*s").unwrap();
    let fractions = Regex::new(r"%[-+ #0-9.]*[fgeE]").unwrap();
    let numbers = Regex::new(r"%[-+ #0-9]*(hh|ll|[hlzjt])?[diuxXp]").unwrap();
    let message = texts.replace_all(message, "enc_4");
    let message = fractions.replace_all(&message, "0.5");
    numbers.replace_all(&message, "3").into_owned()
}

/// The messages, among `texts`, whose log as `log` writes it has none of these causes first.
fn not_among(causes: &[&str], texts: &[&String], log: impl Fn(&str) -> String) -> Vec<String> {
    let first = |text: &str| {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(log(&filled(text)).as_bytes());
        diagnoser.finish().causes.first().map(|cause| cause.id)
    };
    let wrong = texts.iter().map(|text| (first(text), text));
    wrong
        .filter(|(first, _)| first.is_none_or(|id| !causes.contains(&id)))
        .map(|(id, text)| format!("{id:?} {text}"))
        .collect()
}

fn matching<'t>(texts: &'t BTreeSet<String>, wanted: &str, unwanted: &str) -> Vec<&'t String> {
    let (wanted, unwanted) = (Regex::new(wanted).unwrap(), Regex::new(unwanted).unwrap());
    texts.iter().filter(|text| wanted.is_match(text) && !unwanted.is_match(text)).collect()
}

/// A run log of an op that was refused, with another reason.
fn refused(log: &str, reason: &str) -> String {
    let whole = std::fs::read_to_string(repo("tests/data/run-logs").join(log)).unwrap();
    let old = "Dimension at index 1 cannot be broadcast between in[0] (32) and in[1] (31).";
    assert!(whole.contains(old), "{log}");
    whole.replace(old, reason)
}

#[test]
fn every_reason_of_the_op_validator_is_about_the_op() {
    let reasons =
        r"(?i)\b(in|out|input|output)s?\[\d\]|\bdim\[\d\]|at (index|idx) %|^param \S+ was|^missing mandatory param";
    for (folder, libraries, least) in [
        (runtime_247(), ["libQnnCpu.so", "libQnnHtp.so", "libQnnIr.so"], 150),
        (runtime_251(), ["libQnnHtp.so", "libQnnIr.so", "libQnnSystem.so"], 180),
    ] {
        let texts = shared(&folder, &libraries);
        let reasons = matching(&texts, reasons, "^QNN_|<");
        assert!(reasons.len() >= least, "only {} reasons in {}", reasons.len(), folder.display());
        for log in ["op-shapes-cpu-error.log", "op-shapes-htp-error.log"] {
            let wrong = not_among(&OF_AN_OP, &reasons, |reason| refused(log, reason));
            assert!(wrong.is_empty(), "{} of {} with {log}:\n{}", wrong.len(), reasons.len(), wrong.join("\n"));
        }
    }
}

#[test]
fn what_is_wrong_with_a_configuration_is_told_from_the_extensions_own_words() {
    let wanted = r"(?i)not valid json|adhere to schema|schema validation failed|^(unknown|invalid)\b.{0,30}\bkey:|parse config|config parsing failed";
    for folder in [runtime_247(), runtime_251()] {
        let texts = texts(&folder.join("libQnnHtpNetRunExtensions.so"));
        let messages = matching(&texts, wanted, "provided schema");
        assert!(messages.len() >= 6, "{messages:?}");
        for tool in ["qnn-net-run", "qnn-context-binary-generator"] {
            let log = |message: &str| {
                format!(
                    "{tool} pid:12517\n     1.2ms [ ERROR ] {message}{}\n",
                    if message.ends_with(':') { " vtcm_size" } else { "" }
                )
            };
            let wrong = not_among(&["config-invalid"], &messages, log);
            assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), messages.len(), wrong.join("\n"));
        }
    }
}

#[test]
fn a_dlc_that_cannot_be_read_or_written_is_told_from_the_reader_s_own_words() {
    let reading = r"(?i)^(failed|could not|cannot|dlc)\b.*(\beocd|central directory|container\b|dlc (reader|archive)$|archive (for|into)\b)";
    let not_reading = r"(?i)finalize|based off|\bnew\b|remove|serialize|\bset\b|temp file";
    let writing = r"(?i)^failed to (write|save)\b.*(to disk|filepath)";
    for folder in [runtime_247(), runtime_251()] {
        let texts = texts(&folder.join("libQnnSystem.so"));
        let log = |message: &str| format!("qnn-context-binary-generator pid:12517\n     1.2ms [ ERROR ] {message}\n");
        let read = matching(&texts, reading, not_reading);
        let written = matching(&texts, writing, "^$");
        assert!(read.len() >= 8 && written.len() >= 4, "{read:?} {written:?}");
        for (causes, messages) in [(&OF_A_MODEL_FILE[..], read), (&OF_WRITING[..], written)] {
            let wrong = not_among(causes, &messages, log);
            assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), messages.len(), wrong.join("\n"));
        }
    }
}

/// FNV-1a, by which `vendor-messages.csv` names a message without repeating it.
fn named(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

#[test]
fn messages_whose_cause_was_written_down_keep_it() {
    let table = std::fs::read_to_string(repo("tests/data/vendor-messages.csv")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once(',').unwrap());
    let causes: BTreeMap<&str, Vec<&str>> = rows.map(|(name, causes)| (name, causes.split(' ').collect())).collect();
    let mut known: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for folder in [runtime_247(), runtime_251()] {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            let is_plugin = name.starts_with("libonnxruntime_providers");
            if is_plugin || name.starts_with("libQnn") {
                known.extend(texts(&entry).into_iter().map(|text| (named(&text), (text, is_plugin))));
            }
        }
    }
    let found: Vec<(&Vec<&str>, &(String, bool))> =
        causes.iter().filter_map(|(name, causes)| Some((causes, known.get(*name)?))).collect();
    assert!(
        found.len() * 100 >= causes.len() * 95,
        "{} of {} messages are in the libraries",
        found.len(),
        causes.len()
    );
    let mut wrong = Vec::new();
    for (causes, (text, is_plugin)) in &found {
        let log = |message: &str| {
            if *is_plugin {
                format!("2026-01-02 03:04:05.123456 [E:onnxruntime:, qnn_ep.cc:512 Compile] QNN: {message}\n")
            } else {
                format!("qnn-net-run pid:12517\n     1.2ms [ ERROR ] {message}\n")
            }
        };
        wrong.extend(not_among(causes, &[text], log).into_iter().map(|wrong| format!("{causes:?}: {wrong}")));
    }
    println!("{} of {} messages have their cause", found.len() - wrong.len(), found.len());
    assert!(wrong.len() * 100 <= found.len() * 2, "{} of {}:\n{}", wrong.len(), found.len(), wrong.join("\n"));
}
