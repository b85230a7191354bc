//! Findings, as a document and as text.

use crate::text::wrapped;
use serde::Serialize;
use std::fmt::Write;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Wrong, or without any effect.
    Error,
    /// Often the cause of bad accuracy or of a refusal.
    Warning,
    /// Worth knowing.
    Info,
}

/// Something about one tensor's encoding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable id of the kind.
    pub id: &'static str,
    /// The tensor; `None` for the file as a whole.
    pub tensor: Option<String>,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl Finding {
    /// An error.
    pub fn error(id: &'static str, tensor: &str, message: String, fix: impl Into<String>) -> Self {
        Self { id, tensor: Some(tensor.to_owned()), severity: Severity::Error, message, fix: fix.into() }
    }

    /// A warning.
    pub fn warning(id: &'static str, tensor: &str, message: String, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(id, tensor, message, fix) }
    }

    /// A remark.
    pub fn info(id: &'static str, tensor: &str, message: String, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Info, ..Self::error(id, tensor, message, fix) }
    }

    /// The same about the file.
    #[must_use]
    pub fn of_file(self) -> Self {
        Self { tensor: None, ..self }
    }
}

/// The document `qnnscope.encodings/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodingsDocument {
    schema: &'static str,
    findings: Vec<Finding>,
}

impl EncodingsDocument {
    /// The findings, the worst first, else in the order of the file.
    pub fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| finding.severity);
        Self { schema: "qnnscope.encodings/1", findings }
    }

    /// The findings.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// True if something is wrong.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// The findings as text, in lines of at most `width` columns.
pub fn findings_text(document: &EncodingsDocument, width: usize, nothing: &str) -> String {
    let mut out = String::new();
    for finding in &document.findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let tensor = finding.tensor.as_ref().map_or_else(String::new, |tensor| format!(" `{tensor}`"));
        let lead = format!("{severity}[{}]{tensor}: ", finding.id);
        out.push_str(&wrapped(&lead, "    ", &finding.message, width));
        if !finding.fix.is_empty() {
            out.push_str(&wrapped("    fix: ", "         ", &finding.fix, width));
        }
    }
    let count = |severity| document.findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if document.findings.is_empty() {
        out.push_str(nothing);
        out.push('\n');
    } else {
        let _ = writeln!(out, "{errors} errors, {warnings} warnings, {} remarks", count(Severity::Info));
    }
    out
}
