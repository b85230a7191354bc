//! Orchestration: making runs launch by launch, the pause before each launch, checks after a failure, and
//! queries about a model without running it.

mod after_failure;
mod asked;
mod conductor;
mod cool_down;
mod identity;
mod judging;
mod lane;
mod launches;
mod onnx_preflight;
mod preflight;
mod request;
mod site;

pub use after_failure::after_failure;
pub use conductor::{Conductor, Order};
pub use judging::Judging;
pub use onnx_preflight::OnnxPreflight;
pub use preflight::Preflight;
pub use request::RunRequest;
pub use site::Site;
