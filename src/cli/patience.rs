//! Waiting for an answer without progress to show: reports what it is waiting for, and only waits for a
//! limited time.

use super::{CliError, options, say, setup};
use crate::backends::local::Limits;
use std::time::{Duration, Instant};

/// Time before reporting what it is waiting for.
const SILENT: Duration = Duration::from_secs(2);
/// Interval at which the report is repeated.
const AGAIN: Duration = Duration::from_secs(30);
/// Margin by which a runner's own limit exceeds ours, so that our message, which names the right option,
/// comes first.
const LATER: Duration = Duration::from_secs(5);

/// How long an answer may take.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Patience {
    /// Time limit for an answer, such as 30, 30s or 5m
    #[arg(long, value_name = "TIME", default_value = "300", value_parser = options::seconds)]
    timeout: f64,
}

impl Patience {
    /// Limit in seconds; unlimited if `None`.
    pub fn of(timeout: Option<f64>) -> Self {
        Self { timeout: timeout.unwrap_or(f64::INFINITY) }
    }

    /// Limits of a queried runner.
    pub fn limits(self) -> Limits {
        let stage_timeout = self.limit().map_or(Limits::default().stage_timeout, |limit| limit + LATER);
        Limits { stage_timeout, memory_bytes: options::free_memory_share() }
    }

    /// `None` without a limit.
    fn limit(self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.timeout).ok()
    }

    /// Waits for `work` on its own runtime. If that takes long, reports `what` on stderr, unless it is empty
    /// (if a terminal already shows it). A signal or the limit drops the work, including the runner and
    /// everything it started.
    ///
    /// # Errors
    /// [`CliError::TimedOut`], [`CliError::Interrupted`], or the error of the work.
    pub fn wait<T, E: Into<CliError>>(
        self,
        what: impl Fn() -> String,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CliError> {
        setup::block_on_until_stopped(async {
            let begun = Instant::now();
            let notes = async {
                tokio::time::sleep(SILENT).await;
                loop {
                    let (what, waited) = (what(), begun.elapsed().as_secs());
                    let limit = self.limit().map_or_else(String::new, |_| format!(" of at most {} s", self.timeout));
                    if !what.is_empty() {
                        say(&format!("waiting for {what}: {waited} s{limit} (--timeout)"));
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            };
            let over = async {
                match self.limit() {
                    Some(limit) => tokio::time::sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                result = work => result.map_err(Into::into),
                () = over => {
                    let what = Some(what()).filter(|what| !what.is_empty());
                    let what = what.unwrap_or_else(|| "what was asked".to_owned());
                    Err(CliError::TimedOut { what, seconds: self.timeout })
                }
                () = notes => Err(CliError::Interrupted),
            }
        })
    }
}
