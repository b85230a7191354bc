//! Before a run: whether backends take each op of a model, whether HTP compiles it for a SoC, and whether its encodings make
//! sense. Pure functions of what runners answered; nothing here asks anybody.

mod binary;
mod compile_log;
mod compiled;
mod datatypes;
mod document;
mod nodes;
mod ops;
mod quantization;
mod reason;
mod remedies;
mod sensitive;
mod target;
mod text;

pub use compile_log::matters;
pub(super) use compile_log::{Why, why_not_built};
pub use document::{BackendRow, CheckDocument, State, Verdict};
pub use nodes::{NodesAnswer, NodesDocument, NodesModel, nodes_text};
pub use ops::TensorRow;
pub(super) use reason::{Kind, Reason, reason};
pub(super) use remedies::remedy;
pub use target::{DEFAULT_SOC, Origin, Target, TargetError};
pub use text::check_text;

use crate::backends::Backend;
use crate::backends::qnn::runner::{Asked, Compiled};
use crate::event::{Failure, LogLevel, ModelInfo};
use crate::models::Graph;

/// What a backend answered when it was asked about the ops.
#[derive(Debug)]
pub struct BackendAnswer {
    /// Backend.
    pub backend: Backend,
    /// The hardware that it was to answer for, where it tells kinds of hardware apart.
    pub target: Option<Target>,
    /// Whether the user named this backend.
    pub named: bool,
    /// Its answer, or why there is none.
    pub answer: Result<Box<Asked>, Box<Failure>>,
}

/// What came of compiling for one SoC, or of loading a context binary.
#[derive(Debug)]
pub struct CompileAnswer {
    /// The hardware.
    pub target: Target,
    /// What came of it, or why nothing did.
    pub answer: Result<Box<Compiled>, Box<Failure>>,
    /// The log, as far as it matters: errors, and the lines that [`matters`] names.
    pub lines: Vec<(LogLevel, String)>,
}

/// A model as it was read without a backend, or why that failed.
pub type Read = Result<(Box<ModelInfo>, Vec<Graph>), Box<Failure>>;

/// All answers of a check.
#[derive(Debug)]
pub struct Answers {
    /// About the ops.
    pub backends: Vec<BackendAnswer>,
    /// About compiling.
    pub compiled: Vec<CompileAnswer>,
    /// The model, where no backend answered.
    pub read: Option<Read>,
}

/// True where a failure means that a backend could not be asked, as opposed to an answer that is no.
fn cannot_be_asked(failure: &Failure) -> bool {
    let unknown_soc = failure.call == "deviceCreate" && failure.code == Some(14001);
    failure.missing || failure.call == "backendCreate" || unknown_soc
}
