//! The structure of a rule. Parsing is strict: an unknown word is an error.

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
    /// Name, stable across versions.
    pub id: String,
    /// One sentence; `{share}` and `{layers}` are replaced by what was found.
    pub title: String,
    /// Backends it applies to.
    pub backends: Vec<Backend>,
    /// Whether it applies to a simulated run, which has no clocks, transport or heat.
    pub on_simulator: bool,
    /// Requirements on the run.
    #[serde(default)]
    pub when: When,
    /// The layers it concerns, as alternatives.
    #[serde(default)]
    pub layers: Vec<OpTest>,
    /// Requirements on all of these layers together.
    #[serde(default)]
    pub together: Together,
    /// What to do.
    #[serde(rename = "do")]
    pub action: String,
    /// Why that helps.
    pub why: String,
    /// How much effort it takes.
    pub effort: Effort,
    /// Time that it may save, if a bound is known.
    pub gain: Option<Gain>,
    /// How much it matters if no gain is known.
    #[serde(default = "info")]
    pub severity: Severity,
    /// Ready to copy; a snippet with an unknown placeholder is left out.
    #[serde(default)]
    pub snippets: Vec<String>,
    /// Where it comes from.
    pub source: String,
}

fn info() -> Severity {
    Severity::Info
}

/// Requirements on the run; all that are given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    /// Conditions that must hold.
    #[serde(default)]
    pub is: Vec<Condition>,
    /// Conditions that must not hold.
    #[serde(default)]
    pub not: Vec<Condition>,
    /// Figures that must be within limits; an unknown figure is not.
    #[serde(default)]
    pub figure: BTreeMap<Figure, Range>,
    /// Other layers that must be within limits.
    #[serde(default)]
    pub layers: Vec<Others>,
    /// At least one of these must hold.
    #[serde(default)]
    pub any: Vec<When>,
    /// Figures that are reported if known.
    #[serde(default)]
    pub tell: Vec<Figure>,
}

/// Layers that a rule does not concern, but that must be present, or few.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Others {
    /// What they are called in the evidence, such as `matrix ops`.
    pub called: String,
    /// Which layers.
    pub which: OpTest,
    /// Limits on all of them together.
    pub together: Together,
}

/// Limits on a set of layers together.
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

/// Requirements on an op; all that are given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpTest {
    /// One of these kinds.
    #[serde(default)]
    pub kind: Kinds,
    /// Properties it must have.
    #[serde(default)]
    pub is: Vec<Property>,
    /// Properties it must lack.
    #[serde(default)]
    pub not: Vec<Property>,
    /// Measures that must be within limits; one that the op does not have is not.
    #[serde(default)]
    pub measure: BTreeMap<Measure, Range>,
    /// An op whose output it reads.
    pub reads: Option<Box<OpTest>>,
    /// An op that reads its output.
    pub read_by: Option<Box<OpTest>>,
    /// A chain: an op that reads its output, one that reads that one's, and so on; all of them are involved.
    #[serde(default)]
    pub then: Vec<OpTest>,
}

/// Time that a change may save.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gain {
    /// The time it is a share of.
    pub of: GainOf,
    /// Lowest and highest share of it, 0 to 1.
    pub part: [f64; 2],
    /// Weights each layer's time by this measure (a share).
    pub by: Option<Measure>,
}

/// The time that a gain is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainOf {
    /// The time of the layers involved.
    Layers,
    /// The time between the caller and the accelerator: the RPC time without the accelerator's.
    Transport,
    /// The time on this side of the RPC.
    Host,
}
