//! Errors of commands: what failed, why, what to do next, and the exit status.

use super::{BAD_INPUT, FAILED, INTERRUPTED, MISSING};
use crate::accuracy::AccuracyError;
use crate::app::AppError;
use crate::backends::device_runner::DeviceRunnerError;
use crate::backends::local::RunnerError;
use crate::backends::on_device::OnDeviceError;
use crate::backends::profile_log::ProfileLogError;
use crate::backends::runtime::RuntimeError;
use crate::backends::settings::SettingError;
use crate::convert::ConvertError;
use crate::dataset::DatasetError;
use crate::devices::DeviceError;
use crate::diagnosis::UserCausesError;
use crate::encodings::EncodingError;
use crate::event::{Failure, clean_text};
use crate::files::OutputError;
use crate::history::HistoryError;
use crate::models::FormatError;
use crate::models::source::SourceError;
use crate::probes::CustomError;
use crate::report::comparison::LoadError;
use crate::report::export::ExportError;
use crate::session::RecordError;
use std::fmt::Write;
use thiserror::Error;

/// Why a command ended without doing its job.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CliError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("gave up after {seconds} s of waiting for {what}")]
    TimedOut { what: String, seconds: f64 },
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error(transparent)]
    Accuracy(#[from] AccuracyError),
    #[error(transparent)]
    Encodings(#[from] EncodingError),
    #[error(transparent)]
    Truth(#[from] crate::truth::TruthError),
    #[error(transparent)]
    Convert(#[from] ConvertError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{path}: {source}")]
    ProfileLog { path: String, source: ProfileLogError },
    #[error(transparent)]
    NetRun(#[from] OnDeviceError),
    #[error(transparent)]
    DeviceRunner(#[from] DeviceRunnerError),
    #[error(transparent)]
    Counters(#[from] CustomError),
    #[error(transparent)]
    Causes(#[from] UserCausesError),
    #[error(transparent)]
    Compare(#[from] LoadError),
    #[error("cannot make the report: {source}")]
    Export { source: ExportError },
    #[cfg(unix)]
    #[error(transparent)]
    Tap(#[from] crate::tap::ServeError),
    #[cfg(unix)]
    #[error(transparent)]
    Program(#[from] crate::tap::ProgramError),
    #[cfg(unix)]
    #[error(transparent)]
    DeviceTap(#[from] crate::tap::device::DeviceTapError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error("{0}")]
    Usage(String),
    #[error("{message}")]
    Missing { message: String, hint: String },
    #[error("cannot {action}: {source}")]
    Io { action: String, source: std::io::Error },
    #[error("{}", .0.message)]
    Failure(Box<Failure>),
    #[error("stopped")]
    Interrupted,
}

impl CliError {
    /// The exit status: 1 failed, 2 bad input, 3 missing, 130 stopped.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Runtime(RuntimeError::Cancelled) | Self::Interrupted => INTERRUPTED,
            Self::Runtime(
                RuntimeError::BadVersion { .. } | RuntimeError::NotAWheel { .. } | RuntimeError::OtherPackage { .. },
            )
            | Self::App(AppError::Keymap(_) | AppError::Theme(_))
            | Self::Format(_)
            | Self::Source(_)
            | Self::Setting(_)
            | Self::Usage(_)
            | Self::ProfileLog {
                source:
                    ProfileLogError::NotALog { .. } | ProfileLogError::Damaged { .. } | ProfileLogError::TooManyNames { .. },
                ..
            }
            | Self::Output(_)
            | Self::Encodings(_)
            | Self::Truth(_)
            | Self::Counters(_)
            | Self::Causes(_)
            | Self::Compare(_)
            | Self::Export { source: ExportError::Nothing { .. } | ExportError::Load(_) }
            | Self::Device(DeviceError::ServerAddress { .. } | DeviceError::Ambiguous { .. })
            | Self::Runner(RunnerError::Request { .. }) => BAD_INPUT,
            Self::History(error) if error.is_bad_input() => BAD_INPUT,
            Self::Accuracy(error) if error.is_bad_input() => BAD_INPUT,
            Self::Accuracy(error) if error.failure().is_some_and(|failure| failure.missing) => MISSING,
            Self::Accuracy(error) if error.device().is_some_and(DeviceRunnerError::is_missing) => MISSING,
            Self::Failure(failure) if failure.bad_input => BAD_INPUT,
            Self::Failure(failure) if failure.missing => MISSING,
            Self::Convert(error) if error.is_bad_input() => BAD_INPUT,
            Self::Convert(error) if error.is_missing() => MISSING,
            Self::NetRun(error) if error.is_bad_input() => BAD_INPUT,
            Self::NetRun(error) if error.is_missing() => MISSING,
            Self::DeviceRunner(error) if error.is_bad_input() => BAD_INPUT,
            Self::DeviceRunner(error) if error.is_missing() => MISSING,
            Self::Device(error) if error.is_link() || matches!(error, DeviceError::NoAdb) => MISSING,
            Self::Runtime(_) | Self::Missing { .. } => MISSING,
            #[cfg(unix)]
            Self::Program(crate::tap::ProgramError::Start { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                MISSING
            }
            #[cfg(unix)]
            Self::Tap(crate::tap::ServeError::Taken(_)) => BAD_INPUT,
            #[cfg(unix)]
            Self::DeviceTap(error) if error.is_bad_input() => BAD_INPUT,
            #[cfg(unix)]
            Self::DeviceTap(error) if error.is_missing() => MISSING,
            #[cfg(unix)]
            Self::Tap(_) | Self::Program(_) | Self::DeviceTap(_) => FAILED,
            Self::Runner(_)
            | Self::Accuracy(_)
            | Self::Record(_)
            | Self::History(_)
            | Self::Dataset(_)
            | Self::TimedOut { .. }
            | Self::App(_)
            | Self::Convert(_)
            | Self::Device(_)
            | Self::NetRun(_)
            | Self::DeviceRunner(_)
            | Self::Export { .. }
            | Self::Io { .. }
            | Self::ProfileLog { .. }
            | Self::Failure(_) => FAILED,
        }
    }

    /// `error: …`, its causes, and `next: …`. Control characters are removed from file names and vendor
    /// texts.
    pub fn render(&self) -> String {
        self.lines().lines().map(|line| clean_text(line) + "\n").collect()
    }

    fn lines(&self) -> String {
        // A line within a file name must not look like one of our own.
        let one = |error: &dyn std::fmt::Display| error.to_string().replace(['\r', '\n'], "\n    ");
        let mut text = format!("error: {}\n", one(self));
        let mut source = std::error::Error::source(self);
        let mut said = self.to_string();
        while let Some(error) = source {
            let cause = error.to_string();
            if !said.contains(&cause) {
                let _ = writeln!(text, "  because: {}", one(&cause));
            }
            said.push_str(&cause);
            source = error.source();
        }
        if let Some(hint) = self.hint() {
            let _ = writeln!(text, "  next: {hint}");
        }
        if let Self::Failure(failure) = self {
            for line in failure.log_tail.iter().rev().take(5).rev() {
                let _ = writeln!(text, "  log: {line}");
            }
        }
        text
    }

    /// What to do next, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Runtime(error) => error.hint(),
            Self::Device(error) => error.advice(),
            Self::Convert(error) => error.advice(),
            Self::NetRun(error) => error.advice(),
            Self::DeviceRunner(error) => error.advice(),
            #[cfg(unix)]
            Self::DeviceTap(error) => error.advice(),
            Self::Output(error) => error.advice().map(ToOwned::to_owned),
            Self::Source(error) => error.advice().map(ToOwned::to_owned),
            Self::Compare(error) => error.advice().map(ToOwned::to_owned),
            Self::Dataset(error) => error.advice().map(ToOwned::to_owned),
            Self::History(error) => error.advice().map(ToOwned::to_owned),
            Self::Record(_) => Some("the figures are complete; free some space and record again".to_owned()),
            Self::TimedOut { .. } => Some("allow more time with --timeout".to_owned()),
            Self::Missing { hint, .. } => Some(hint.clone()),
            Self::Failure(failure) => failure.hint.clone(),
            Self::Accuracy(error) => {
                error.failure().and_then(|failure| failure.hint.clone()).or_else(|| error.device()?.advice())
            }
            _ => None,
        }
    }
}
