//! Systems without a way to confine a runner.

use crate::backends::qnn::runner::protocol::Task;
use crate::event::{Sandbox, SandboxState};

/// Makes a runner confine itself. If unset, it does not.
pub const SCRATCH_VARIABLE: &str = "QNNSCOPE_SCRATCH";

/// Reports that there is no confinement.
pub fn enter(_task: &Task) -> Sandbox {
    if std::env::var_os(SCRATCH_VARIABLE).is_none() {
        return Sandbox::default();
    }
    Sandbox {
        state: SandboxState::Unavailable,
        missing: vec!["this system has no Landlock".to_owned()],
        ..Sandbox::default()
    }
}
