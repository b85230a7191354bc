//! What the end of a runner means.

use super::{Ended, Supervisor};
use crate::backends::local::link::Exit;
use crate::backends::local::process::signal_name;
use crate::event::{Event, Failure, LogLevel, RunStatus};

impl Supervisor {
    /// Reports the end of the process as a failure, if it is one. Calling it twice reports the failure once.
    pub(in crate::backends) async fn settle(&mut self, exit: Option<&Exit>) {
        // A run is complete once it has reported how it ended.
        let unfinished = !self.done || (self.source.is_some() && self.status.is_none());
        if self.ended_on_request && self.failure.is_none() && self.status.is_none() {
            let text = format!("the runner was killed in stage {}, which cannot be interrupted: stopped", self.stage);
            self.note(LogLevel::Warning, &text).await;
            self.status = Some(RunStatus::Stopped);
        }
        if (unfinished || self.killed_for.is_some()) && self.failure.is_none() && self.status.is_none() {
            let (call, message, advice) = self.describe_end(exit);
            let mut failure = Failure::new(self.stage, &call, &message);
            failure.log_tail = self.tail.lines();
            failure.hint = advice.or_else(|| crate::hints::for_failure(&failure));
            self.fail(failure).await;
        }
    }

    /// Reports the end of the run, with its failure, if any.
    pub(in crate::backends) async fn finish(mut self, exit: Option<Exit>) -> Ended {
        self.settle(exit.as_ref()).await;
        self.report_held_back(self.console.held_back()).await;
        if self.garbage > 5 {
            let count = self.garbage;
            self.send(
                crate::event::now_us(),
                Event::Lost { source: "runner".to_owned(), reason: "lines that are not frames".to_owned(), count },
            )
            .await;
        }
        let status = match (&self.failure, self.status) {
            (Some(_), _) => RunStatus::Failed,
            (None, status) => status.unwrap_or(RunStatus::Ok),
        };
        self.send(crate::event::now_us(), Event::RunFinished { status }).await;
        match self.failure {
            Some(failure) => Ended::Failed(failure),
            None => Ended::Done(self.answer),
        }
    }

    /// The call that failed, what happened, and what to do about it, if that is known here.
    fn describe_end(&self, exit: Option<&Exit>) -> (String, String, Option<String>) {
        let stage = self.stage;
        if let Some(reason) = &self.killed_for {
            return ("supervision".to_owned(), format!("the runner was stopped in stage {stage}: {reason}"), None);
        }
        match exit {
            None => ("wait".to_owned(), format!("the runner was lost in stage {stage}"), None),
            Some(Exit::Signal(number)) => {
                let name = signal_name(*number).unwrap_or("a signal");
                let text = format!("the runner was killed by signal {number} ({name}) in stage {stage}");
                (name.to_owned(), text, None)
            }
            Some(Exit::Status(code)) => {
                let code = code.map_or_else(|| "no status".to_owned(), |code| format!("status {code}"));
                let text = format!("the runner exited with {code} in stage {stage}, before it finished");
                ("exit".to_owned(), text, None)
            }
            Some(Exit::NotExecuted { status, advice }) => {
                let text = format!("the runner did not start on the device: the shell exited with status {status}");
                ("exec".to_owned(), text, Some(advice.clone()))
            }
            Some(Exit::Lost { error, advice }) => {
                let text = format!("{error}, in stage {stage}; earlier measurements are kept");
                ("adb".to_owned(), text, Some(advice.clone()))
            }
        }
    }
}
