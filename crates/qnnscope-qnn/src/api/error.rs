//! Errors of the QNN libraries.

use crate::errors;
use std::path::PathBuf;
use thiserror::Error;

/// A call, library or version that failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum QnnError {
    #[error("{call} failed with {code}{}", describe(*code, call, text.as_deref()))]
    Call { call: &'static str, code: u64, text: Option<String> },
    #[error("cannot open {path}: {reason}")]
    Open { path: PathBuf, reason: String },
    #[error("{path} has no {symbol}: not a QNN library of the expected kind")]
    Symbol { path: PathBuf, symbol: &'static str },
    #[error("{path} offers no interface provider")]
    NoProvider { path: PathBuf },
    #[error(
        "{path} speaks QNN core API {major}.{minor}, which this version of qnnscope does not know; \
         --allow-unknown-runtime runs it anyway"
    )]
    UnknownVersion { path: PathBuf, major: u32, minor: u32 },
    #[error("{path} has no {function} (slot {slot} of its function table is empty)")]
    MissingFunction { path: PathBuf, function: &'static str, slot: usize },
    #[error("QnnModel_composeGraphs failed with model error {code}")]
    ModelCompose { code: u32 },
    #[error("{what}")]
    Unexpected { what: String },
}

impl QnnError {
    /// The call that failed.
    pub fn call(&self) -> &'static str {
        match self {
            Self::Call { call, .. } => call,
            Self::Open { .. } => "dlopen",
            Self::Symbol { symbol, .. } => symbol,
            Self::NoProvider { .. } | Self::UnknownVersion { .. } => "QnnInterface_getProviders",
            Self::MissingFunction { function, .. } => function,
            Self::ModelCompose { .. } => "QnnModel_composeGraphs",
            Self::Unexpected { .. } => "qnnscope",
        }
    }

    /// Low 16 bits of the returned value, if a QNN call failed.
    pub fn code(&self) -> Option<u64> {
        match self {
            Self::Call { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Symbol of the code.
    pub fn symbol(&self) -> Option<&'static str> {
        errors::lookup(self.code()?, self.call()).map(|row| row.symbol)
    }
}

/// ` (SYMBOL: meaning; the library says: text)`.
fn describe(code: u64, call: &str, text: Option<&str>) -> String {
    let mut parts = Vec::new();
    if let Some(row) = errors::lookup(code, call) {
        parts.push(format!("{}: {}", row.symbol, row.meaning));
    }
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        parts.push(format!("the library says: {text}"));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}
