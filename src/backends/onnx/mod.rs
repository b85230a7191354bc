//! ONNX models through ONNX Runtime with QNN as a plug-in: what the plug-in is told, which nodes it took, why it left the
//! others, and what each of them took.
//!
//! The runner child opens the libraries ([`crate::backends::qnn::runner`]); what is here are pure functions of what they say.

pub mod options;
pub mod placement;
pub mod reasons;
pub mod remedies;
pub mod times;

pub use placement::{ModelNode, place};
pub use reasons::PlacementLog;
pub use times::Times;
