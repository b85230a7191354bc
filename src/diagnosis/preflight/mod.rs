//! Checks before a run: whether backends support each op of a model, whether HTP compiles it for a SoC, and
//! whether its encodings make sense. Pure functions of what the runners answered; nothing here asks a
//! backend.

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

/// A backend's answer about the ops.
#[derive(Debug)]
pub struct BackendAnswer {
    /// Backend.
    pub backend: Backend,
    /// The hardware that it was to answer for, if it distinguishes hardware.
    pub target: Option<Target>,
    /// Whether the user named this backend.
    pub named: bool,
    /// Its answer, or why there is none.
    pub answer: Result<Box<Asked>, Box<Failure>>,
}

/// The result of compiling for one SoC, or of loading a context binary.
#[derive(Debug)]
pub struct CompileAnswer {
    /// The hardware.
    pub target: Target,
    /// The result, or why there is none.
    pub answer: Result<Box<Compiled>, Box<Failure>>,
    /// The relevant part of the log: errors, and the lines for which [`matters`] is true.
    pub lines: Vec<(LogLevel, String)>,
}

/// A model that was read without a backend, or why that failed.
pub type Read = Result<(Box<ModelInfo>, Vec<Graph>), Box<Failure>>;

/// All answers in a check.
#[derive(Debug)]
pub struct Answers {
    /// About the ops.
    pub backends: Vec<BackendAnswer>,
    /// About compiling.
    pub compiled: Vec<CompileAnswer>,
    /// The model, if no backend answered.
    pub read: Option<Read>,
}

/// True if the failure means that the backend could not be asked, as opposed to having answered no.
fn cannot_be_asked(failure: &Failure) -> bool {
    let unknown_soc = failure.call == "deviceCreate" && failure.code == Some(14001);
    failure.missing || failure.call == "backendCreate" || unknown_soc
}
