//! Prepares a tapped program on a device: examines it, and provides the tap, folders and variables.

use super::DeviceTapError;
use super::app::App;
use super::library::{LibrarySearch, locate};
use super::look::{Found, Libc, look};
use super::script::{STDIN, SWAPPED, TOLD, TapPlace, copies};
use crate::backends::on_device::clock::WallClock;
use crate::backends::on_device::deploy::remote_root;
use crate::backends::on_device::link::{Link, persist};
use crate::backends::on_device::tenants::{self, Claim};
use crate::backends::on_device::{OnDeviceError, around};
use crate::devices::{Device, DeviceError, confounds, quote};
use crate::event::{DeviceFacts, Event, LogLevel, LogLine, LogSource, clean_text};
use crate::probes::{CounterOptions, DeviceProbe};
use crate::session::Source;
use crate::tap::library::FILE;
use crate::tap::program::Variables;
use qnnscope_core::tap::{REAL_VARIABLE, SINK_VARIABLE};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Backends the tap can replace.
const BACKENDS: [&str; 3] = ["libQnnHtp.so", "libQnnCpu.so", "libQnnGpu.so"];

/// The program whose processes apps are.
const APP_PROCESS: &str = "/system/bin/app_process64";

/// What to tap, and how.
#[derive(Debug, Clone, Default)]
pub struct DeviceTapOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// A debuggable app instead of a program.
    pub package: Option<String>,
    /// Folder on the device whose backends the tap replaces.
    pub swap: Option<String>,
    /// Variables of the program.
    pub env: Vec<(String, String)>,
    /// Settings for the tap.
    pub variables: Variables,
    /// Where to look for the tap's library.
    pub library: LibrarySearch,
    /// A file for the program's standard input, which is empty otherwise.
    pub input: Option<PathBuf>,
    /// Device counters to sample meanwhile.
    pub counters: CounterOptions,
}

/// A program on a device, ready to start.
pub struct DeviceTap {
    pub(super) device: Device,
    pub(super) model: Option<String>,
    pub(super) source: Source,
    pub(super) found: Found,
    pub(super) app: Option<App>,
    pub(super) place: TapPlace,
    /// The script that starts it, once.
    pub(super) start: String,
    /// The tap is loaded only when the program opens a backend.
    pub(super) is_swapped: bool,
    pub(super) claim: Claim,
    pub(super) clock: WallClock,
    pub(super) probe: Option<DeviceProbe>,
}

impl DeviceTap {
    /// Examines device and program, and sends what is needed there.
    pub async fn prepare(device: &Device, options: &DeviceTapOptions, source: &Source) -> Result<Self, DeviceTapError> {
        let first = Link { device, model: None, source, run: None };
        let facts = persist!(first, device.describe().await)?;
        describe(device, &facts, source).await;
        let link = Link { model: facts.model.as_deref(), ..first };
        let root = persist!(link, remote_root(device).await)?;
        for confound in persist!(link, tenants::tidy(device, &root).await)? {
            note(source, LogLevel::Warning, &format!("{}; {}", confound.observation, confound.advice)).await;
        }
        let base = root.rsplit_once('/').map_or("/", |(base, _)| base).to_owned();
        let app = match &options.package {
            Some(package) => Some(persisting(link, async || App::find(device, package).await).await?),
            None => None,
        };
        let program = if app.is_some() { APP_PROCESS } else { options.command.first().map_or("", String::as_str) };
        let mut found = persisting(link, async || look(device, &facts, &base, program).await).await?;
        let guesses = match &app {
            Some(app) => app.libraries.clone(),
            None => guesses(&found, options),
        };
        if let Some(app) = &app {
            found.path.clone_from(&app.package);
        }
        let (mut files, mut swap) = (BTreeMap::new(), None);
        if found.barrier.is_none() {
            files.insert(FILE.to_owned(), locate(&options.library, &found)?);
            let named = options.swap.as_deref();
            swap = persisting(link, async || real_folder(device, named, &guesses, &found).await).await?;
        }
        let claim = around::send_files(link, &files, false).await?;
        let place = match &app {
            Some(app) => app.place(),
            None => TapPlace { folder: claim.folder().to_owned(), app: None },
        };
        let mut variables = if found.barrier.is_none() { of_tap(&place, options, swap.as_ref()) } else { Vec::new() };
        let known = |name: &str| variables.iter().any(|(known, _)| known == name);
        let more: Vec<_> = options.env.iter().filter(|(name, _)| !known(name)).cloned().collect();
        variables.extend(more);
        let backends = swap.as_ref().map_or(&[][..], |(_, names)| names.as_slice());
        let start = match &app {
            Some(app) => {
                let furnish = async || app.furnish(device, claim.folder(), backends, &variables).await;
                if let Err(error) = persisting(link, furnish).await {
                    app.remove(device).await;
                    return Err(error);
                }
                app.start()
            }
            None => {
                persist!(link, furnish(device, &place, backends).await)?;
                if let Some(input) = &options.input {
                    let to = format!("{}/{STDIN}", place.folder);
                    persist!(link, device.push(input, &to, Arc::new(|_| ())).await)?;
                }
                place.start(&base, &variables, &options.command, options.input.is_some())
            }
        };
        let mut probe = None;
        let clock = around::sample(link, facts.root, &options.counters, &mut probe).await?;
        Ok(Self {
            device: device.clone(),
            model: facts.model.clone(),
            source: source.clone(),
            found,
            app,
            place,
            start,
            is_swapped: swap.is_some(),
            claim,
            clock,
            probe,
        })
    }
}

/// Retries an operation until it completes without losing the link.
async fn persisting<T>(
    link: Link<'_>,
    attempt: impl AsyncFn() -> Result<T, DeviceTapError>,
) -> Result<T, DeviceTapError> {
    loop {
        match attempt().await {
            Err(DeviceTapError::Device(error)) if error.is_link() => link.outlive(OnDeviceError::Device(error)).await?,
            done => return done,
        }
    }
}

/// Puts what is known about the device on the stream.
async fn describe(device: &Device, facts: &DeviceFacts, source: &Source) {
    source.send(None, Event::DeviceSeen(device.identity(facts))).await;
    source.send(None, Event::DeviceDescribed(Box::new(facts.clone()))).await;
    for confound in confounds(facts) {
        note(source, LogLevel::Warning, &format!("{}; {}", confound.observation, confound.advice)).await;
    }
}

async fn note(source: &Source, level: LogLevel, text: &str) {
    source.send(None, Event::Log(LogLine::new(level, LogSource::Qnnscope, text))).await;
}

/// Folders that may contain the program's backends: on Android, programs usually keep them in their own
/// folder, or name a folder in `LD_LIBRARY_PATH`.
fn guesses(found: &Found, options: &DeviceTapOptions) -> Vec<String> {
    let beside = found.path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let variable = options.env.iter().find(|(name, _)| name == "LD_LIBRARY_PATH");
    let said = variable.into_iter().flat_map(|(_, value)| value.split(':')).map(ToOwned::to_owned);
    said.chain(beside).filter(|folder| !folder.is_empty()).collect()
}

/// The folder with the real backends, and which of them it has, if the tap is to take their place: where the
/// user asks for it, and where the tap cannot get in any other way.
async fn real_folder(
    device: &Device,
    named: Option<&str>,
    guesses: &[String],
    found: &Found,
) -> Result<Option<(String, Vec<String>)>, DeviceTapError> {
    if named.is_none() && found.libc == Libc::Gnu {
        return Ok(None);
    }
    let named_folder = named.map(|named| vec![named.to_owned()]);
    let folders = named_folder.as_deref().unwrap_or(guesses);
    for folder in folders {
        let script = format!("cd {} 2>/dev/null && pwd && ls {} 2>/dev/null; true", quote(folder), BACKENDS.join(" "));
        let text = device.run(&script, "looking for the program's backends").await?.text();
        let mut lines = text.lines().map(str::trim);
        let Some(folder) = lines.next().filter(|line| line.starts_with('/')) else { continue };
        let there: Vec<String> = lines.filter(|line| BACKENDS.contains(line)).map(ToOwned::to_owned).collect();
        if !there.is_empty() {
            return Ok(Some((folder.to_owned(), there)));
        }
    }
    let device = device.id().to_owned();
    Err(match named {
        Some(folder) => DeviceTapError::NoBackends { folder: clean_text(folder), device, names: BACKENDS.join(", ") },
        None => DeviceTapError::NoFolder { program: clean_text(&found.path), device },
    })
}

/// Creates the folders the tap needs: one to write to, and one that contains the tap under the names of the
/// backends. These are copies, because a loader treats two links as one library.
async fn furnish(device: &Device, place: &TapPlace, backends: &[String]) -> Result<(), DeviceError> {
    let script = place.inside(&format!("mkdir -p {TOLD} {SWAPPED}{}", copies(backends)));
    device.run_ok(&script, "making the tap's folders").await.map(drop)
}

/// The variables that get the tap into the program and configure it. The user's own values are appended.
fn of_tap(place: &TapPlace, options: &DeviceTapOptions, swap: Option<&(String, Vec<String>)>) -> Vec<(String, String)> {
    let folder = &place.folder;
    let behind = |own: String, name: &str| match options.env.iter().find(|(known, _)| known == name) {
        Some((_, value)) if !value.is_empty() => format!("{own}:{value}"),
        _ => own,
    };
    let mut variables = vec![(SINK_VARIABLE.to_owned(), format!("dir:{folder}/{TOLD}"))];
    for (name, value) in options.variables.iter() {
        variables.push((name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    }
    match swap {
        Some((real, _)) => {
            let path = behind(format!("{folder}/{SWAPPED}:{real}"), "LD_LIBRARY_PATH");
            variables.push(("LD_LIBRARY_PATH".to_owned(), path));
            variables.push((REAL_VARIABLE.to_owned(), real.clone()));
        }
        None => variables.push(("LD_PRELOAD".to_owned(), behind(format!("{folder}/{FILE}"), "LD_PRELOAD"))),
    }
    variables
}
