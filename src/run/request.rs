//! The parts of a run to make.

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
    /// What is to be done.
    pub task: RunTask,
    /// Where and by what.
    pub site: Arc<Site>,
    /// The reference for judging its outputs.
    pub judging: Option<Judging>,
}
