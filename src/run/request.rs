//! What a run to be made is made of.

use super::judging::Judging;
use super::site::Site;
use crate::backends::qnn::runner::RunTask;
use crate::event::RunPlan;
use std::sync::Arc;

/// A run to be made: what is told on the stream, what is to be done, and where.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// For the stream.
    pub plan: RunPlan,
    /// What is to be done.
    pub task: RunTask,
    /// Where and by what.
    pub site: Arc<Site>,
    /// What its outputs are judged by.
    pub judging: Option<Judging>,
}
