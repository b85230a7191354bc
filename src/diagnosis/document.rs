//! The `qnnscope.diagnosis/1` and `qnnscope.explain/1` documents.

use super::catalogue::{Cause, Check, Place};
use super::explain::{Answer, Explanation};
use super::finding::{Diagnosis, Evidence, Finding};
use serde::Serialize;

/// A diagnosis as JSON.
#[derive(Debug, Serialize)]
pub struct DiagnosisDocument<'a> {
    schema: &'static str,
    /// Lines and bytes looked at.
    lines: u64,
    bytes: u64,
    causes: Vec<CauseRow<'a>>,
}

#[derive(Debug, Serialize)]
struct CauseRow<'a> {
    id: &'a str,
    aliases: &'a [String],
    title: &'a str,
    confidence: f64,
    confirmed: Option<bool>,
    stage: &'a str,
    codes: &'a [&'static str],
    evidence: &'a [Evidence],
    why: &'a str,
    fix: &'a str,
    confirm: Vec<CheckRow<'a>>,
}

#[derive(Debug, Serialize)]
struct CheckRow<'a> {
    id: &'a str,
    what: &'a str,
    on: Place,
    command: &'a str,
}

impl<'a> DiagnosisDocument<'a> {
    /// The document of a diagnosis.
    pub fn new(diagnosis: &'a Diagnosis) -> Self {
        Self {
            schema: "qnnscope.diagnosis/1",
            lines: diagnosis.lines,
            bytes: diagnosis.bytes,
            causes: diagnosis.causes.iter().map(CauseRow::new).collect(),
        }
    }
}

impl<'a> CauseRow<'a> {
    fn new(finding: &'a Finding) -> Self {
        let cause = finding.cause();
        Self {
            id: &cause.id,
            aliases: &cause.aliases,
            title: &cause.title,
            confidence: finding.confidence,
            confirmed: finding.confirmed,
            stage: &cause.stage,
            codes: &finding.codes,
            evidence: &finding.evidence,
            why: &cause.why,
            fix: &cause.fix,
            confirm: checks(&cause.confirm),
        }
    }
}

fn checks(checks: &[Check]) -> Vec<CheckRow<'_>> {
    checks.iter().map(|Check { id, what, on, command }| CheckRow { id, what, on: *on, command }).collect()
}

/// Explanations as JSON.
#[derive(Debug, Serialize)]
pub struct ExplainDocument<'a> {
    schema: &'static str,
    codes: Vec<CodeRow<'a>>,
}

#[derive(Debug, Serialize)]
struct CodeRow<'a> {
    asked: &'a str,
    known: bool,
    code: Option<u64>,
    hex: Option<String>,
    /// Component whose range an unknown number lies in.
    range: Option<&'static str>,
    note: Option<&'static str>,
    says: Option<&'static str>,
    meanings: Vec<MeaningRow>,
    causes: Vec<KnownCause<'a>>,
    candidates: &'a [&'static str],
}

#[derive(Debug, Serialize)]
struct MeaningRow {
    component: &'static str,
    symbol: &'static str,
    meaning: &'static str,
    calls: &'static str,
    stages: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct KnownCause<'a> {
    id: &'a str,
    title: &'a str,
    stage: &'a str,
    why: &'a str,
    fix: &'a str,
    confirm: Vec<CheckRow<'a>>,
}

impl<'a> ExplainDocument<'a> {
    /// The document of what was asked and answered.
    pub fn new(answers: &'a [(String, Answer)]) -> Self {
        Self {
            schema: "qnnscope.explain/1",
            codes: answers.iter().map(|(asked, answer)| CodeRow::new(asked, answer)).collect(),
        }
    }
}

impl<'a> CodeRow<'a> {
    fn new(asked: &'a str, answer: &'a Answer) -> Self {
        let unknown = Self {
            asked,
            known: false,
            code: None,
            hex: None,
            range: None,
            note: None,
            says: None,
            meanings: Vec::new(),
            causes: Vec::new(),
            candidates: &[],
        };
        match answer {
            Answer::Known(Explanation { code, meanings, says, causes, note }) => Self {
                known: true,
                code: Some(*code),
                hex: Some(format!("{code:#x}")),
                note: *note,
                says: *says,
                meanings: meanings.iter().map(MeaningRow::new).collect(),
                causes: causes.iter().map(|cause| KnownCause::new(cause)).collect(),
                ..unknown
            },
            Answer::Several(candidates) => Self { candidates, ..unknown },
            Answer::UnknownNumber { code, component } => {
                Self { code: Some(*code), hex: Some(format!("{code:#x}")), range: *component, ..unknown }
            }
            Answer::NoCode => unknown,
        }
    }
}

impl MeaningRow {
    fn new(meaning: &super::explain::Meaning) -> Self {
        Self {
            component: meaning.row.component,
            symbol: meaning.row.symbol,
            meaning: meaning.row.meaning,
            calls: meaning.calls,
            stages: meaning.stages.iter().map(|stage| stage.name()).collect(),
        }
    }
}

impl<'a> KnownCause<'a> {
    fn new(cause: &'a Cause) -> Self {
        let Cause { id, title, stage, why, fix, .. } = cause;
        Self { id, title, stage, why, fix, confirm: checks(&cause.confirm) }
    }
}
