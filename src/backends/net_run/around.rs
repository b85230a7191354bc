//! What happens around every run on a device: the device is described, and files are sent.

use super::NetRunError;
use super::deploy::{Deployed, Tell, deploy};
use super::kit::Kit;
use crate::devices::{Device, DeviceError, confounds};
use crate::event::{DeviceFacts, Event, LogLevel, LogLine, LogSource, RunId};
use crate::session::Source;
use std::sync::Arc;

/// Describes the device, on the stream too, with what may disturb the run.
pub async fn describe(device: &Device, source: &Source, run: RunId) -> Result<DeviceFacts, DeviceError> {
    let facts = device.describe().await?;
    source.send(Some(run), Event::DeviceSeen(device.identity(&facts))).await;
    source.send(Some(run), Event::DeviceDescribed(Box::new(facts.clone()))).await;
    let disturbing = confounds(&facts);
    for confound in &disturbing {
        let text = format!("{}; {}", confound.observation, confound.advice);
        note(source, run, LogLevel::Warning, &text).await;
    }
    source.send(Some(run), Event::ConfoundsFound(disturbing)).await;
    Ok(facts)
}

/// Sends what is missing of the files of a run, and tells of it on the stream.
pub async fn send_files(device: &Device, files: &Kit, source: &Source, run: RunId) -> Result<Deployed, NetRunError> {
    let tell: Tell = {
        let source = source.clone();
        Arc::new(move |transfer| {
            source.offer(Some(run), Event::FilesSent(transfer));
        })
    };
    let deployed = deploy(device, files, &tell).await?;
    let text = format!(
        "sent {} files ({} bytes) to {}; {} ({} bytes) were there already",
        deployed.sent.0, deployed.sent.1, deployed.folder, deployed.kept.0, deployed.kept.1
    );
    note(source, run, LogLevel::Info, &text).await;
    Ok(deployed)
}

async fn note(source: &Source, run: RunId, level: LogLevel, text: &str) {
    source.send(Some(run), Event::Log(LogLine::new(level, LogSource::Qnnscope, text))).await;
}
