//! The op at which one of our runs stopped.

use super::preflight::TensorRow;
use serde::Serialize;

/// An op that a backend refused or could not build.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// Its graph; empty if unknown.
    pub graph: String,
    /// Its name.
    pub name: String,
    /// Its type; empty if unknown.
    #[serde(rename = "type")]
    pub op_type: String,
    /// The offending tensor.
    pub tensor: Option<TensorRow>,
    /// Why, in one sentence.
    pub reason: String,
    /// How to fix it.
    pub remedy: Option<String>,
    /// Id of the cause in the catalogue, if the reason leaves no doubt.
    #[serde(skip)]
    pub(super) cause: Option<&'static str>,
    /// The backend gave no reason: the cause is the most likely one for this op.
    #[serde(skip)]
    pub(super) is_guess: bool,
}

impl Fault {
    /// The op as users name it: ``op `conv1` (Conv2d)``.
    pub fn op_text(&self) -> String {
        match self.op_type.as_str() {
            "" => format!("op `{}`", self.name),
            op_type => format!("op `{}` ({op_type})", self.name),
        }
    }

    /// Op and reason.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.op_text(), self.reason)
    }
}
