//! The op at which a run of ours stopped.

use super::preflight::TensorRow;
use serde::Serialize;

/// An op that a backend did not take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// Its graph; empty where it is not known.
    pub graph: String,
    /// Its name.
    pub name: String,
    /// Its type; empty where it is not known.
    #[serde(rename = "type")]
    pub op_type: String,
    /// The tensor at fault.
    pub tensor: Option<TensorRow>,
    /// Why, in one sentence.
    pub reason: String,
    /// What to do.
    pub remedy: Option<String>,
    /// Id of the cause in the catalogue, where the reason leaves no doubt.
    #[serde(skip)]
    pub(super) cause: Option<&'static str>,
    /// The backend gave no reason: the cause is what speaks most against the op.
    #[serde(skip)]
    pub(super) is_guess: bool,
}

impl Fault {
    /// The op as people name it: ``op `conv1` (Conv2d)``.
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
