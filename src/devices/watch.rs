//! Tracks devices as they come and go.

use super::DeviceState;
use super::adb::{AdbServer, AdbTransport, Attached};
use super::device::Device;
use super::error::DeviceError;
use crate::event::{DeviceChange, Event, LogLevel, LogLine, LogSource};
use crate::session::Source;
use std::time::Duration;

/// How often the server is queried. Its own `track-devices` reports an offline device late: adb 29 does so when it
/// tries to reconnect, ten seconds after the link was lost.
const POLL: Duration = Duration::from_millis(500);

/// Puts every change of the attached devices on the stream, with a description of those that are ready, until
/// dropped. With `start`, starts the server if it is not running, and again if it ends; a failure is reported
/// once. Without it, only uses a server that is already running.
pub async fn watch(server: AdbServer, source: Source, start: bool) {
    let mut known: Vec<Attached> = Vec::new();
    let mut told = String::new();
    loop {
        let error = match follow(server, &source, &mut known, start).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        // Without a server nothing is known about the devices any more.
        for device in std::mem::take(&mut known) {
            tell(&source, &Attached { state: DeviceState::Gone, ..device }).await;
        }
        let text = error.to_string();
        if text != told {
            let advice = error.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
            if start {
                let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &format!("{text}{advice}"));
                source.send(None, Event::Log(line)).await;
            }
            source.send(None, Event::AdbLost { reason: text.clone(), advice: error.advice() }).await;
            told = text;
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn follow(
    server: AdbServer,
    source: &Source,
    known: &mut Vec<Attached>,
    start: bool,
) -> Result<std::convert::Infallible, DeviceError> {
    if start {
        server.ensure().await?;
    }
    let mut now = server.devices().await?;
    source.send(None, Event::AdbFound { server: server.to_string() }).await;
    loop {
        for device in &now {
            let before = known.iter().find(|before| before.serial == device.serial);
            if before.map(|before| &before.state) == Some(&device.state) {
                continue;
            }
            tell(source, device).await;
            if device.state.is_ready() {
                // A phone takes most of a second to answer; the next change must not wait for it.
                let device = Device::new(AdbTransport::new(server, &device.serial));
                tokio::spawn(describe(device, source.clone()));
            }
        }
        for gone in known.iter().filter(|before| !now.iter().any(|device| device.serial == before.serial)) {
            tell(source, &Attached { state: DeviceState::Gone, ..gone.clone() }).await;
        }
        *known = now;
        tokio::time::sleep(POLL).await;
        now = server.devices().await?;
    }
}

async fn tell(source: &Source, device: &Attached) {
    let change = DeviceChange { id: device.serial.clone(), state: device.state.clone(), model: device.model.clone() };
    source.send(None, Event::DeviceChanged(change)).await;
}

async fn describe(device: Device, source: Source) {
    match device.describe().await {
        Ok(facts) => {
            source.send(None, Event::DeviceSeen(device.identity(&facts))).await;
            source.send(None, Event::DeviceDescribed(Box::new(facts))).await;
        }
        // It is gone again, which the tracker reports.
        Err(error) if error.is_link() => {}
        Err(error) => {
            let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &error.to_string());
            source.send(None, Event::Log(line)).await;
        }
    }
}
