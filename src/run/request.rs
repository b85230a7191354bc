//! Everything needed to make a run.

use super::judging::Judging;
use super::site::Site;
use crate::backends::qnn::runner::RunTask;
use crate::event::RunPlan;
use std::sync::Arc;

/// A run to make: what goes on the stream, what to do, and where.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// For the stream.
    pub plan: RunPlan,
    /// What to do.
    pub task: RunTask,
    /// Where to run, and with which driver.
    pub site: Arc<Site>,
    /// The reference for judging its outputs.
    pub judging: Option<Judging>,
}
