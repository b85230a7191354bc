//! Recommended backend: the end of a report on several runs, and the `qnnscope.recommend/1` document.

use crate::analysis::compare::{GraphFacts, Side};
use crate::analysis::recommend::{RecommendTarget, Recommendation, measured};
use crate::devices::soc_by_part;
use crate::event::clean_text;
use crate::store::{Run, Store};
use crate::text::{bytes_text, count_text, counted, wrapped};
use serde::Serialize;
use std::fmt::Write;

/// Width of the text, characters.
const WIDTH: usize = 80;

/// The recommendation for a session with several runs; `None` if there is nothing to choose (one backend in
/// rounds or at several rates), or while a run is active.
pub fn recommendation(store: &Store) -> Option<Recommendation> {
    let runs = store.runs();
    if runs.len() < 2 || runs.iter().any(|run| !run.is_ended()) {
        return None;
    }
    let runs: Vec<&Run> = runs.iter().collect();
    let sides: Vec<Side> = runs.iter().map(|run| Side::of(store, run)).collect();
    of_sides(store, &runs, &sides)
}

/// The recommendation for these runs of a session, whose columns are `sides`.
pub fn of_sides(store: &Store, runs: &[&Run], sides: &[Side]) -> Option<Recommendation> {
    let part = runs.iter().find_map(|run| store.device(&run.plan.device)?.soc.as_deref());
    let target = RecommendTarget { soc: part.and_then(soc_by_part) };
    let constraints = runs.first().map(|run| (&run.plan.constraints).into()).unwrap_or_default();
    measured(sides, &[], target, &constraints)
}

/// The answer of `qnnscope recommend` for a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecommendDocument {
    schema: &'static str,
    model: String,
    graph: GraphFacts,
    soc: Option<String>,
    recommendation: Recommendation,
}

impl RecommendDocument {
    /// The document.
    pub fn new(model: &str, graph: GraphFacts, soc: Option<&str>, recommendation: Recommendation) -> Self {
        Self {
            schema: "qnnscope.recommend/1",
            model: clean_text(model),
            graph,
            soc: soc.map(ToOwned::to_owned),
            recommendation,
        }
    }
}

/// The document as text.
pub fn recommend_text(document: &RecommendDocument) -> String {
    let facts = &document.graph;
    let mut out = String::new();
    let _ = writeln!(out, "{}", document.model);
    let about = format!(
        "{}, {} MACs, {} of constants, {}; for {}",
        counted(facts.ops as u64, "op"),
        count_text(facts.macs as f64),
        bytes_text(facts.parameter_bytes as f64),
        facts.arithmetic.label(),
        document.soc.as_deref().unwrap_or("an unknown SoC")
    );
    out.push_str(&wrapped("  ", "  ", &about, WIDTH));
    out.push('\n');
    out.push_str(&recommendation_text(&document.recommendation));
    out
}

/// A recommendation as text, 80 columns wide.
pub fn recommendation_text(recommendation: &Recommendation) -> String {
    let mut out = String::new();
    let mut put = |indent: &str, text: &str| {
        out.push_str(&wrapped(indent, &" ".repeat(indent.chars().count()), &clean_text(text), WIDTH));
    };
    put("which backend?  ", &recommendation.summary);
    for candidate in &recommendation.candidates {
        let column = candidate.column.map_or_else(String::new, |column| format!("{} ", column + 1));
        let score = match (candidate.eligible, candidate.score) {
            (false, _) => "  no".to_owned(),
            (true, Some(score)) => format!("{score:>4.0}"),
            (true, None) => "   –".to_owned(),
        };
        put(&format!("  {column}{:<4}{score}  ", candidate.backend.name()), &candidate.reasons.join("; "));
    }
    for change in &recommendation.would_change {
        put("  would change it: ", change);
    }
    for wanted in &recommendation.to_measure {
        put("  to be measured:  ", wanted);
    }
    out
}
