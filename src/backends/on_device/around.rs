//! The work around every run on a device: describes the device and sends files.

use super::clock::WallClock;
use super::deploy::{Tell, deploy, remote_root};
use super::environment::search_paths;
use super::kit::Kit;
use super::link::{Link, persist};
use super::tenants::Claim;
use super::{OnDeviceError, tenants};
use crate::devices::{Device, DeviceError, Root, confounds};
use crate::event::{Confound, DeviceFacts, Event, LogLevel, LogLine, LogSource, PlacedFile, Placement, RunId};
use crate::probes::{CounterOptions, DeviceProbe};
use crate::session::Source;
use std::sync::Arc;

/// Describes the device, also on the stream, with what may disturb the run; removes leftovers of finished runs. If the
/// link is lost meanwhile, waits for it.
pub async fn describe(device: &Device, source: &Source, run: RunId) -> Result<DeviceFacts, OnDeviceError> {
    let link = Link { device, model: None, source, run: Some(run) };
    let facts = persist!(link, device.describe().await)?;
    source.send(Some(run), Event::DeviceSeen(device.identity(&facts))).await;
    source.send(Some(run), Event::DeviceDescribed(Box::new(facts.clone()))).await;
    let mut disturbing = confounds(&facts);
    disturbing.extend(scheduler_class(&facts));
    disturbing.extend(persist!(link, tidied(device).await)?);
    for confound in &disturbing {
        let text = format!("{}; {}", confound.observation, confound.advice);
        note(source, Some(run), LogLevel::Warning, &text).await;
    }
    source.send(Some(run), Event::ConfoundsFound(disturbing)).await;
    Ok(facts)
}

/// Without root, the run has the priority of the adb shell, not that of a foreground app.
fn scheduler_class(facts: &DeviceFacts) -> Option<Confound> {
    (!facts.root.is_available()).then(|| Confound {
        id: "scheduler_class".to_owned(),
        observation: "the run has the priority of the adb shell (nice 0), not that of a foreground app (-10)"
            .to_owned(),
        advice: "qnnscope raises it on rooted devices; compare only runs of equal priority".to_owned(),
    })
}

/// Starts sampling the device's counters unless already running, and aligns its clock. If the link is lost meanwhile,
/// waits for it.
pub async fn sample(
    link: Link<'_>,
    root: Root,
    counters: &CounterOptions,
    probe: &mut Option<DeviceProbe>,
) -> Result<WallClock, OnDeviceError> {
    persist!(link, started(link, root, counters, probe).await)
}

async fn started(
    link: Link<'_>,
    root: Root,
    counters: &CounterOptions,
    probe: &mut Option<DeviceProbe>,
) -> Result<WallClock, DeviceError> {
    match probe {
        Some(probe) => probe.revive(),
        None => *probe = DeviceProbe::start(link.device, root, counters, link.source).await?,
    }
    WallClock::align(link.device).await
}

/// Removes leftovers of finished runs; reports active ones.
async fn tidied(device: &Device) -> Result<Vec<Confound>, DeviceError> {
    tenants::tidy(device, &remote_root(device).await?).await
}

/// Another run that started after this one is reported at the end, so that neither run takes its figures for
/// undisturbed.
pub async fn tell_visitor(claim: &Claim, source: &Source, run: RunId) {
    // A device that is gone by now cannot answer.
    if let Ok(Some(confound)) = claim.visitor().await {
        note(source, Some(run), LogLevel::Warning, &format!("{}; {}", confound.observation, confound.advice)).await;
        source.send(Some(run), Event::ConfoundsFound(vec![confound])).await;
    }
}

/// Sends the missing files of a run, reporting it on the stream together with the paths its process will search. If the
/// link is lost meanwhile, waits for it.
pub async fn send_files(link: Link<'_>, files: &Kit, vendor_libraries: bool) -> Result<Claim, OnDeviceError> {
    let Link { device, source, run, .. } = link;
    let tell: Tell = {
        let source = source.clone();
        Arc::new(move |transfer| {
            source.offer(run, Event::FilesSent(transfer));
        })
    };
    let deployed = persist!(link, deploy(device, files, &tell).await)?;
    let claim = Claim::new(device, &deployed.folder);
    let text = format!(
        "sent {} files ({} bytes) to {}; {} ({} bytes) were already there",
        deployed.sent.0, deployed.sent.1, deployed.folder, deployed.kept.0, deployed.kept.1
    );
    note(source, run, LogLevel::Info, &text).await;
    let (library_path, dsp_path) = search_paths(&deployed.folder, vendor_libraries);
    let placed = |(name, from): (&String, &std::path::PathBuf)| PlacedFile {
        name: name.clone(),
        from: crate::event::clean_text(&from.to_string_lossy()),
    };
    let files = files.iter().map(placed).collect();
    let placement = Placement { folder: deployed.folder.clone(), library_path, dsp_path, files };
    source.send(run, Event::RunPlaced(Box::new(placement))).await;
    Ok(claim)
}

async fn note(source: &Source, run: Option<RunId>, level: LogLevel, text: &str) {
    source.send(run, Event::Log(LogLine::new(level, LogSource::Qnnscope, text))).await;
}
