//! ONNX models through ONNX Runtime with QNN as a plug-in: the plug-in's options, which nodes it took, why it left the
//! others, and their times.
//!
//! The runner child opens the libraries ([`crate::backends::qnn::runner`]); this folder holds pure functions of their
//! output.

pub mod options;
pub mod placement;
pub mod reasons;
pub mod remedies;
pub mod times;

pub use placement::{ModelNode, place};
pub use reasons::PlacementLog;
pub use times::Times;
