//! What a rule is made of. Everything is read strictly: a word that does not exist is an error.

use super::condition::Condition;
use super::figure::Figure;
use super::kind::Kinds;
use super::measure::Measure;
use super::property::Property;
use super::range::Range;
use crate::analysis::{Effort, Severity};
use crate::backends::Backend;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// Name that stays the same over versions.
    pub id: String,
    /// One sentence; `{share}` and `{layers}` stand for what was found.
    pub title: String,
    /// Backends it is about.
    pub backends: Vec<Backend>,
    /// Whether a simulated run can show it. Clocks, transport and heat cannot.
    pub on_simulator: bool,
    /// What must hold of the run.
    #[serde(default)]
    pub when: When,
    /// The layers it is about: alternatives.
    #[serde(default)]
    pub layers: Vec<OpTest>,
    /// What must hold of these layers together.
    #[serde(default)]
    pub together: Together,
    /// What to do.
    #[serde(rename = "do")]
    pub action: String,
    /// Why that helps.
    pub why: String,
    /// What it takes.
    pub effort: Effort,
    /// Time that it may save, where a bound is known.
    pub gain: Option<Gain>,
    /// How much it matters where no gain is known.
    #[serde(default = "info")]
    pub severity: Severity,
    /// Ready to copy; one with a placeholder that is not known is left out.
    #[serde(default)]
    pub snippets: Vec<String>,
    /// Where it comes from.
    pub source: String,
}

fn info() -> Severity {
    Severity::Info
}

/// What must hold of the run: all that is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    /// Conditions that hold.
    #[serde(default)]
    pub is: Vec<Condition>,
    /// Conditions that do not.
    #[serde(default)]
    pub not: Vec<Condition>,
    /// Figures within limits; one that is not known is not.
    #[serde(default)]
    pub figure: BTreeMap<Figure, Range>,
    /// Other layers within limits.
    #[serde(default)]
    pub layers: Vec<Others>,
    /// At least one of these.
    #[serde(default)]
    pub any: Vec<When>,
    /// Figures that are told where they are known.
    #[serde(default)]
    pub tell: Vec<Figure>,
}

/// Layers that a rule is not about, but that must be there, or few.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Others {
    /// What they are called in the evidence, such as `matrix ops`.
    pub called: String,
    /// Which.
    pub which: OpTest,
    /// Limits of all of them together.
    pub together: Together,
}

/// Limits of layers together.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Together {
    /// Their number.
    #[serde(default)]
    pub count: Range,
    /// Their share of the op times.
    #[serde(default)]
    pub share: Range,
}

/// What must hold of an op: all that is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpTest {
    /// One of these kinds.
    #[serde(default)]
    pub kind: Kinds,
    /// Properties it has.
    #[serde(default)]
    pub is: Vec<Property>,
    /// Properties it has not.
    #[serde(default)]
    pub not: Vec<Property>,
    /// Measures within limits; one that does not exist is not.
    #[serde(default)]
    pub measure: BTreeMap<Measure, Range>,
    /// An op of which it reads an output.
    pub reads: Option<Box<OpTest>>,
    /// An op that reads its output.
    pub read_by: Option<Box<OpTest>>,
    /// A chain: what reads it, what reads that, and so on; all of them are involved.
    #[serde(default)]
    pub then: Vec<OpTest>,
}

/// Time that a change may save.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gain {
    /// Of which time.
    pub of: GainOf,
    /// Lowest and highest part of it, 0 to 1.
    pub part: [f64; 2],
    /// Each layer's time counts by this measure (a share) only.
    pub by: Option<Measure>,
}

/// The time that a gain is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainOf {
    /// That of the layers involved.
    Layers,
    /// Between the caller and the accelerator: the RPC time without the accelerator's.
    Transport,
    /// On this side of the RPC.
    Host,
}
