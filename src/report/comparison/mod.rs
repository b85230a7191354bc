//! `qnnscope compare`: runs from session and result files side by side.

mod differences;
mod document;
mod error;
mod file;
mod history;
mod load;
mod outputs;
mod program;
mod result_file;
mod tables;
mod text;

pub(super) use differences::short;
pub use document::{COMPARE_SCHEMA, CompareDocument};
pub use error::LoadError;
pub use history::with_history;
pub use load::{Named, load};
pub use outputs::accuracies;
pub use result_file::{DocumentFile, read_document, seekable};
pub use tables::value_text;
pub use text::comparison_text;

use crate::analysis::compare::{CompareOptions, Comparison, LayerSort, Side, compare};
use crate::analysis::recommend::{Constraints, RecommendTarget, Recommendation, measured};
use crate::devices::soc_by_part;

/// Options of a comparison.
#[derive(Debug, Clone, Default)]
pub struct ComparisonOptions {
    /// The baseline column, from 0.
    pub baseline: Option<usize>,
    /// Column whose outputs the others are compared with, from 0; `None` for the baseline.
    pub reference: Option<usize>,
    /// Order of the layers.
    pub sort: LayerSort,
    /// Maximum number of layers to show; `None` for all.
    pub layers: Option<usize>,
    /// The user's constraints.
    pub constraints: Constraints,
}

/// All results of a comparison.
#[derive(Debug, Clone)]
pub struct ComparisonReport {
    /// The runs.
    pub sides: Vec<Side>,
    /// Their comparison.
    pub comparison: Comparison,
    /// The column that outputs were compared with.
    pub reference: usize,
    /// Similarity of outputs, or why there is none; `None` if there is nothing to report.
    pub accuracy: Vec<Option<outputs::Known>>,
    /// The recommended backend.
    pub recommendation: Option<Recommendation>,
    /// Number of layers to show.
    pub shown_layers: usize,
}

impl ComparisonReport {
    /// Compares runs and reads their saved outputs if they still exist.
    pub fn new(sides: Vec<Side>, asked: &ComparisonOptions) -> Self {
        let mut options = CompareOptions { baseline: asked.baseline, sort: asked.sort, accuracy: Vec::new() };
        let measured_first = sides.iter().position(Side::is_measured).unwrap_or(0);
        let reference = asked.reference.or(asked.baseline).unwrap_or(measured_first);
        let accuracy = accuracies(&sides, reference);
        options.accuracy =
            accuracy.iter().map(|known| known.as_ref().and_then(|known| known.as_ref().ok()).cloned()).collect();
        let comparison = compare(&sides, &options);
        let soc = sides.iter().find_map(|side| soc_by_part(side.device_model.as_deref()?));
        // What another tool measured, and how, is not known well enough to base a choice on.
        let own = sides.iter().all(|side| side.mode.origin.is_none());
        let recommendation =
            own.then(|| measured(&sides, &options.accuracy, RecommendTarget { soc }, &asked.constraints)).flatten();
        let shown_layers = asked.layers.unwrap_or(comparison.layers.len());
        Self { sides, comparison, reference, accuracy, recommendation, shown_layers }
    }
}
