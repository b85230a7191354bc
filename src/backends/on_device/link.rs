//! What a run does when it loses the link to its device: reports it and waits.

use super::OnDeviceError;
use crate::devices::{Device, DeviceError, DeviceState};
use crate::event::{DeviceChange, Event, LogLevel, LogLine, LogSource, RunId};
use crate::session::Source;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long to wait for a lost device.
pub const RETURN_LIMIT: Duration = Duration::from_mins(2);
/// How often to look for it.
const RETURN_POLL: Duration = Duration::from_millis(500);
/// Time a returned device gets to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Retries a step of a run until it works or fails for a reason other than the link; waits while the link is lost. (A
/// function taking a closure would create futures that cannot be sent to another thread.)
macro_rules! persist {
    ($link:expr, $attempt:expr) => {
        loop {
            match $attempt {
                Ok(done) => break Ok(done),
                Err(error) => {
                    if let Err(error) = $link.outlive(error.into()).await {
                        break Err(error);
                    }
                }
            }
        }
    };
}
pub(crate) use persist;

/// A device whose link may break during a run.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// The device.
    pub device: &'a Device,
    /// Its model, for display.
    pub model: Option<&'a str>,
    /// Where events go.
    pub source: &'a Source,
    /// The run they belong to, if any.
    pub run: Option<RunId>,
}

impl Link<'_> {
    /// Reports the lost link and waits for the device. False if it did not come back in time, or if the user does not
    /// want to wait.
    pub async fn wait_for_return(&self, error: &DeviceError, stop: Option<&watch::Receiver<bool>>) -> bool {
        let id = self.device.id();
        self.note(LogLevel::Error, &error.to_string()).await;
        self.note(LogLevel::Warning, &format!("waiting up to {} s for {id} to come back", RETURN_LIMIT.as_secs()))
            .await;
        self.tell(DeviceState::Offline).await;
        let deadline = Instant::now() + RETURN_LIMIT;
        while Instant::now() < deadline && !stop.is_some_and(|stop| *stop.borrow()) {
            tokio::time::sleep(RETURN_POLL).await;
            if self.device.revive().await.is_err() {
                continue;
            }
            if self.device.run_within("true", "looking for it", ANSWER_LIMIT).await.is_ok() {
                self.tell(DeviceState::Device).await;
                self.note(LogLevel::Warning, &format!("{id} is back")).await;
                return true;
            }
        }
        false
    }

    /// After a failed step of a run: if the link broke, waits for the device, so that the step can be
    /// retried.
    ///
    /// # Errors
    /// The failure, if it was not the link's, or if the device did not come back.
    pub async fn outlive(&self, error: OnDeviceError) -> Result<(), OnDeviceError> {
        match error {
            OnDeviceError::Device(error) if error.is_link() => {
                if self.wait_for_return(&error, None).await {
                    return Ok(());
                }
                Err(OnDeviceError::Gone { error, advice: gone_advice() })
            }
            error => Err(error),
        }
    }

    async fn tell(&self, state: DeviceState) {
        let (id, model) = (self.device.id().to_owned(), self.model.map(ToOwned::to_owned));
        self.source.send(None, Event::DeviceChanged(DeviceChange { id, state, model })).await;
    }

    async fn note(&self, level: LogLevel, text: &str) {
        self.source.send(self.run, Event::Log(LogLine::new(level, LogSource::Qnnscope, text))).await;
    }
}

/// Advice for a device that did not come back.
pub fn gone_advice() -> String {
    format!(
        "check the cable or the network and run again; the device did not come back within {} s; earlier measurements are kept",
        RETURN_LIMIT.as_secs()
    )
}
