//! How each line was read, for `diagnose --explain`.

use super::evidence::{Evidence, excerpt};
use super::statements::{Level, Statement, Statements, decode, lexicon};
use serde::Serialize;

/// Most lines that are kept.
const KEPT: usize = 200;

/// What the lines state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The first lines, in the order of the log.
    pub lines: Vec<Stated>,
    /// Number of lines beyond those.
    pub more: u64,
}

/// What one line states.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stated {
    /// The line.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Who speaks, if the line says so.
    pub who: Vec<&'static str>,
    /// `missing: model, input`, in the lexicon's words.
    pub states: Vec<String>,
    /// `0x80000406 = AEE_EUNABLETOLOAD (FastRPC)`.
    pub codes: Vec<String>,
    /// Why it does not count, if so.
    pub left_out: Option<&'static str>,
}

impl Trace {
    /// Marks a line that does not count because the text is a document.
    pub(super) fn set_aside(&mut self, evidence: &Evidence) {
        const WHY: &str = "a line of a document";
        if let Some(line) = self.lines.iter_mut().find(|line| line.evidence.line == evidence.line) {
            line.left_out = Some(WHY);
        } else if self.lines.len() < KEPT {
            let (who, states, codes) = Default::default();
            self.lines.push(Stated { evidence: evidence.clone(), who, states, codes, left_out: Some(WHY) });
            self.lines.sort_by_key(|line| line.evidence.line);
        }
    }

    /// Records a line that was read.
    pub(super) fn note(&mut self, number: u64, line: &[u8], harmless: bool) {
        let statements = Statements::of(line);
        let codes = decode(line);
        if statements.list.is_empty() && codes.is_empty() {
            return;
        }
        if self.lines.len() >= KEPT {
            self.more += 1;
            return;
        }
        let lexicon = lexicon();
        let left_out = match statements.level {
            _ if harmless => Some("known to be harmless"),
            Level::Info | Level::Debug => Some("only informs"),
            _ => None,
        };
        self.lines.push(Stated {
            evidence: Evidence { line: number, text: excerpt(line) },
            who: statements.who.iter().map(|class| lexicon.who_name(class)).collect(),
            states: statements.list.iter().map(Statement::shown).collect(),
            codes: codes.iter().map(|code| format!("{} = {} ({})", code.text, code.symbol, code.space)).collect(),
            left_out,
        });
    }
}
