//! Tries a library in its own child.

use super::process::RunnerError;
use super::supervise::{Ended, Limits, ask};
use crate::backends::qnn::runner::{Frame, ProbeAnswer, ProbeTask, Task};
use std::path::Path;
use std::time::Duration;

/// Time limit for one library.
const LIMIT: Duration = Duration::from_secs(30);

/// Opens a QNN library in a child with working folder `scratch`, and returns its self-description, or why it does not
/// load.
///
/// # Errors
/// The child could not be started.
pub async fn probe_library(
    library: &Path,
    scratch: &Path,
    memory_bytes: Option<u64>,
) -> Result<ProbeAnswer, RunnerError> {
    let library = std::path::absolute(library).unwrap_or_else(|_| library.to_owned());
    let scratch = scratch.to_owned();
    let limits = Limits { stage_timeout: LIMIT, memory_bytes };
    let failed = |message: String| ProbeAnswer { error: Some(message), ..ProbeAnswer::default() };
    Ok(match ask(&Task::Probe(ProbeTask { library, scratch }), limits).await? {
        Ended::Done(Some(Frame::Probed(answer))) => answer,
        Ended::Failed(failure) => failed(failure.message),
        Ended::Done(_) => failed("the runner did not answer".to_owned()),
    })
}
