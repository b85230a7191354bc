//! The `qnnscope.diagnosis/1` and `qnnscope.explain/1` documents.

use super::cases::NearCase;
use super::catalogue::{Cause, Check, CheckPlace};
use super::evidence::{Evidence, Sign};
use super::explain::{Answer, Explanation};
use super::finding::{Diagnosis, Finding};
use super::platform::Platform;
use super::progress::Unexplained;
use super::similar::Similar;
use super::statements::Decoded;
use super::trace::{Stated, Trace};
use crate::event::CheckOutcome;
use serde::Serialize;

/// A diagnosis as JSON.
#[derive(Debug, Serialize)]
pub struct DiagnosisDocument {
    schema: &'static str,
    /// Lines and bytes read.
    lines: u64,
    bytes: u64,
    platform: Option<Platform>,
    causes: Vec<CauseRow>,
    unexplained: Option<UnexplainedRow>,
    similar: Vec<SimilarRow>,
    collect: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceRow>,
}

/// What is known when no cause is well founded.
#[derive(Debug, Serialize)]
struct UnexplainedRow {
    first: Evidence,
    who: Option<&'static str>,
    states: Vec<String>,
    codes: Vec<DecodedRow>,
    went_well: Vec<StepRow>,
    collect: Vec<&'static str>,
    nearest: Vec<NearRow>,
}

#[derive(Debug, Serialize)]
struct DecodedRow {
    text: String,
    space: &'static str,
    value: u64,
    symbol: &'static str,
    meaning: &'static str,
}

#[derive(Debug, Serialize)]
struct StepRow {
    what: &'static str,
    line: u64,
}

#[derive(Debug, Serialize)]
struct NearRow {
    id: &'static str,
    cause: &'static str,
    agree: Vec<&'static str>,
    states: &'static [String],
    solved: &'static str,
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct SimilarRow {
    cause: &'static str,
    title: &'static str,
    words: Vec<&'static str>,
    source: Option<&'static str>,
}

/// What `--explain` adds.
#[derive(Debug, Serialize)]
struct TraceRow {
    causes: Vec<WeighedRow>,
    lines: Vec<Stated>,
    more: u64,
}

#[derive(Debug, Serialize)]
struct WeighedRow {
    id: &'static str,
    confidence: f64,
    signs: Vec<Sign>,
    lowered: Vec<LoweredRow>,
}

#[derive(Debug, Serialize)]
struct LoweredRow {
    why: &'static str,
    part: f64,
}

impl UnexplainedRow {
    fn new(unexplained: &Unexplained) -> Self {
        let code = |code: &Decoded| DecodedRow {
            text: code.text.clone(),
            space: code.space,
            value: code.value,
            symbol: code.symbol,
            meaning: code.meaning,
        };
        let near = |near: &NearCase| NearRow {
            id: &near.case.id,
            cause: &near.case.cause,
            agree: near.agree.clone(),
            states: &near.case.states,
            solved: &near.case.solved,
            source: &near.case.source,
        };
        let steps = unexplained.went_well.iter();
        Self {
            first: unexplained.first.clone(),
            who: unexplained.who,
            states: unexplained.states.clone(),
            codes: unexplained.codes.iter().map(code).collect(),
            went_well: steps.map(|(what, line)| StepRow { what, line: line.line }).collect(),
            collect: unexplained.collect.clone(),
            nearest: unexplained.nearest.iter().map(near).collect(),
        }
    }
}

impl SimilarRow {
    fn new(similar: &Similar) -> Self {
        let Similar { cause, words, source } = similar;
        Self { cause: &cause.id, title: &cause.title, words: words.clone(), source: *source }
    }
}

impl TraceRow {
    fn new(trace: &Trace, diagnosis: &Diagnosis) -> Self {
        let weighed = |finding: &Finding| WeighedRow {
            id: finding.id,
            confidence: finding.confidence,
            signs: finding.signs.clone(),
            lowered: finding.lowered.iter().map(|&(why, part)| LoweredRow { why, part }).collect(),
        };
        Self { causes: diagnosis.causes.iter().map(weighed).collect(), lines: trace.lines.clone(), more: trace.more }
    }
}

/// A cause as JSON, also used in the documents of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseRow {
    id: &'static str,
    aliases: &'static [String],
    title: &'static str,
    confidence: f64,
    /// No rule knows it: only its words are those of known logs of this cause.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_words: bool,
    confirmed: Option<bool>,
    stage: &'static str,
    codes: Vec<&'static str>,
    evidence: Vec<Evidence>,
    why: &'static str,
    fix: &'static str,
    remedy: Option<String>,
    /// How to fix it on the system that the log comes from, in order.
    steps: &'static [String],
    confirm: Vec<ConfirmRow>,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct ConfirmRow {
    #[serde(flatten)]
    check: CheckRow<'static>,
    outcome: Option<CheckOutcome>,
    detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct CheckRow<'a> {
    id: &'a str,
    what: &'a str,
    on: CheckPlace,
    command: &'a str,
}

impl DiagnosisDocument {
    /// The document for a diagnosis.
    pub fn new(diagnosis: &Diagnosis) -> Self {
        Self {
            schema: "qnnscope.diagnosis/1",
            lines: diagnosis.lines,
            bytes: diagnosis.bytes,
            platform: diagnosis.platform,
            causes: diagnosis.causes.iter().map(CauseRow::new).collect(),
            unexplained: diagnosis.unexplained.as_ref().map(UnexplainedRow::new),
            similar: diagnosis.similar.iter().map(SimilarRow::new).collect(),
            collect: diagnosis.collect.clone(),
            trace: diagnosis.trace.as_ref().map(|trace| TraceRow::new(trace, diagnosis)),
        }
    }
}

impl CauseRow {
    /// The row for a finding.
    pub fn new(finding: &Finding) -> Self {
        let cause = finding.cause();
        Self {
            id: &cause.id,
            aliases: &cause.aliases,
            title: &cause.title,
            confidence: finding.confidence,
            by_words: finding.is_by_words(),
            confirmed: finding.confirmed,
            stage: &cause.stage,
            codes: finding.codes.clone(),
            evidence: finding.evidence.clone(),
            why: &cause.why,
            fix: &cause.fix,
            remedy: finding.remedy.clone(),
            steps: finding.steps,
            confirm: cause.confirm.iter().map(|check| ConfirmRow::new(check, finding)).collect(),
        }
    }
}

impl ConfirmRow {
    fn new(check: &'static Check, finding: &Finding) -> Self {
        let result = finding.results.iter().find(|result| result.check == check.id);
        Self {
            check: CheckRow::new(check),
            outcome: result.map(|result| result.outcome),
            detail: result.map(|result| result.detail.clone()),
        }
    }
}

fn checks(checks: &[Check]) -> Vec<CheckRow<'_>> {
    checks.iter().map(CheckRow::new).collect()
}

impl<'a> CheckRow<'a> {
    fn new(Check { id, what, on, command }: &'a Check) -> Self {
        Self { id, what, on: *on, command }
    }
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
    /// Component whose range contains the unknown number.
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
    /// The document for the given questions and answers.
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
