//! The QNN libraries for this machine, and which of their backends load.

use super::Doctor;
use super::item::Item;
use super::start::advice_for;
use crate::backends::Backend;
use crate::backends::local::probe_library;
use crate::backends::qnn::runner::{NoDevice, ProbeAnswer};
use crate::backends::runtime::{
    Depth, LibraryFile, RuntimeDir, RuntimeError, RuntimeManifest, changed_in, choose, onnx_kit, survey,
};
use crate::diagnosis::Diagnoser;
use crate::event::{Sandbox, SandboxState};
use crate::facts::{LinkSearch, missing_libraries, read_elf};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Libraries tried in parallel: each takes a process and a hundred megabytes.
const AT_ONCE: usize = 3;
/// Maximum number of runtimes whose libraries are tried.
const MOST_RUNTIMES: usize = 3;
/// What to do if there is none.
const INSTALL: &str = "`qnnscope runtime install` installs one";

/// The libraries for ONNX models. Everything else works without them.
fn onnx(chosen: &RuntimeDir, doctor: &Doctor) -> Item {
    let what = "ONNX Runtime, for ONNX models";
    match onnx_kit(chosen, &doctor.env) {
        Ok(kit) => Item::ok("onnx-runtime", what, format!("{} with {}", kit.library.display(), kit.plugin.display())),
        // Only needed for ONNX models.
        Err(error @ RuntimeError::NoOnnxRuntime) => {
            Item::ok("onnx-runtime", what, format!("{error}; `qnnscope runtime install --onnx` installs it"))
        }
        Err(error) => Item::warning("onnx-runtime", what, error.to_string(), error.hint().unwrap_or_default()),
    }
}

/// Examines every runtime; also returns which backends of the chosen one load.
pub async fn examine(doctor: &Doctor) -> (Vec<Item>, Vec<&'static str>) {
    let found = survey(doctor.runtime.as_deref(), &doctor.env);
    let mut items = Vec::new();
    for (index, problem) in found.problems.iter().enumerate() {
        let id = format!("place-{index}");
        items.push(Item::warning(&id, "not a runtime", problem.to_string(), problem.hint().unwrap_or_default()));
    }
    let chosen = match choose(doctor.runtime.as_deref(), &doctor.env) {
        Ok(chosen) => chosen,
        Err(error) => {
            let fix = error.hint().unwrap_or_else(|| INSTALL.to_owned());
            items.push(Item::problem("runtime", "QNN libraries", error.to_string(), fix));
            return (items, Vec::new());
        }
    };
    items.push(onnx(&chosen, doctor));
    let scratch = match crate::files::private_folder() {
        Ok(scratch) => scratch,
        Err(error) => {
            let detail = format!("no temporary folder to load libraries in: {error}");
            items.push(Item::problem("runtime", "QNN libraries", detail, "free space in the temporary folder"));
            return (items, Vec::new());
        }
    };
    let others = found.runtimes.iter().filter(|runtime| runtime.path != chosen.path).take(MOST_RUNTIMES - 1);
    let runtimes: Vec<&RuntimeDir> = std::iter::once(&chosen).chain(others).collect();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut tries = Vec::new();
    for (index, runtime) in runtimes.iter().enumerate() {
        for library in runtime.libraries.iter().filter(|library| is_tried(library)) {
            let (library, scratch, permits) = (library.clone(), scratch.path().to_owned(), permits.clone());
            let memory = doctor.memory_bytes;
            tries.push((index, tokio::spawn(async move { attempt(library, &scratch, &permits, memory).await })));
        }
    }
    let mut attempts = Vec::new();
    for (index, attempt) in tries {
        if let Ok(Some(attempt)) = attempt.await {
            attempts.push((index, attempt));
        }
    }
    let mut loading = Vec::new();
    for (index, runtime) in runtimes.iter().enumerate() {
        let of_it: Vec<&Attempt> = attempts.iter().filter(|(at, _)| *at == index).map(|(_, attempt)| attempt).collect();
        items.push(runtime_line(index, runtime, &of_it));
        items.extend(files_line(index, runtime));
        for attempt in of_it {
            let item = library_line(index, attempt);
            let works = attempt.answer.error.is_none() && attempt.answer.device.is_none();
            if index == 0 && works && attempt.name != "system" {
                loading.push(attempt.name);
            }
            items.push(item);
        }
        if index == 0 {
            items.extend(absent(runtime));
        }
    }
    items.extend(attempts.first().map(|(_, attempt)| sandbox_line(&attempt.answer.sandbox)));
    // Without the system library, neither DLCs nor context binaries can be read; model libraries still run.
    (items, loading)
}

/// A library that was tried.
struct Attempt {
    name: &'static str,
    path: PathBuf,
    answer: ProbeAnswer,
    /// Missing libraries, if it did not load.
    missing: Vec<String>,
    /// True for a file shorter than its headers claim.
    is_cut: bool,
}

fn is_tried(library: &LibraryFile) -> bool {
    matches!(library.backend, Some("cpu" | "htp" | "gpu" | "system"))
}

async fn attempt(library: LibraryFile, scratch: &Path, permits: &Semaphore, memory: Option<u64>) -> Option<Attempt> {
    let _permit = permits.acquire().await.ok()?;
    let answer = probe_library(&library.path, scratch, memory)
        .await
        .unwrap_or_else(|error| ProbeAnswer { error: Some(error.to_string()), ..ProbeAnswer::default() });
    let path = library.path.clone();
    let (missing, is_cut) = if answer.error.is_some() {
        tokio::task::spawn_blocking(move || why_not(&path)).await.unwrap_or_default()
    } else {
        Default::default()
    };
    Some(Attempt { name: library.backend?, path: library.path, answer, missing, is_cut })
}

/// What a library that does not load is missing, and whether it is truncated.
fn why_not(path: &Path) -> (Vec<String>, bool) {
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let is_cut = match read_elf(path) {
        Ok(Some(elf)) => elf.needs_bytes.is_some_and(|needs| needs > bytes),
        Ok(None) => true,
        Err(_) => false,
    };
    // The child that tries a library searches that library's folder first.
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        path.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&own)).collect();
    let missing = missing_libraries(path, &LinkSearch::new(&folders));
    (missing.into_iter().map(|(name, _)| name).collect(), is_cut)
}

fn runtime_line(index: usize, runtime: &RuntimeDir, tried: &[&Attempt]) -> Item {
    let build =
        tried.iter().find_map(|attempt| attempt.answer.build_id.clone()).unwrap_or_else(|| "build unknown".to_owned());
    let api = tried.iter().find_map(|attempt| attempt.answer.core_api.clone());
    let api = api.map_or_else(String::new, |api| format!(", core API {api}"));
    let used = if index == 0 { "used: " } else { "also there: " };
    let detail = format!("{used}{} ({}), {build}{api}", runtime.path.display(), runtime.source);
    let id = if index == 0 { "runtime".to_owned() } else { format!("runtime-{index}") };
    Item::ok(&id, "QNN libraries", detail)
}

/// Whether the files match their installation; `None` without a manifest.
fn files_line(index: usize, runtime: &RuntimeDir) -> Option<Item> {
    let manifest = RuntimeManifest::read(&runtime.path)?;
    let id = if index == 0 { "files".to_owned() } else { format!("files-{index}") };
    let what = "installed files";
    let changed = changed_in(&runtime.path, Depth::Quick);
    if changed.is_empty() {
        let count = manifest.files.len();
        let origin = if manifest.pinned { ", from a wheel with a known checksum" } else { "" };
        return Some(Item::ok(&id, what, format!("{count} files unchanged since installation{origin}")));
    }
    let names: Vec<String> = changed.iter().map(ToString::to_string).collect();
    let fix = format!(
        "find out what changed them (`qnnscope runtime verify`), or reinstall: `qnnscope runtime install --force \
         --version {}`",
        manifest.version
    );
    Some(Item::warning(&id, what, format!("changed since installation: {}", names.join(", ")), fix))
}

/// The sandbox for libraries and models.
fn sandbox_line(sandbox: &Sandbox) -> Item {
    let (id, what) = ("sandbox", "sandbox of runners");
    match sandbox.state {
        SandboxState::Enforced => Item::ok(id, what, sandbox.summary()),
        SandboxState::Off => Item::ok(id, what, "off (--no-sandbox)"),
        SandboxState::Partial | SandboxState::Unavailable => {
            let fix =
                "inspect and check other people's models on a newer kernel with Landlock, or on a separate machine";
            Item::warning(id, what, sandbox.summary(), fix)
        }
    }
}

fn library_line(index: usize, attempt: &Attempt) -> Item {
    let id = if index == 0 { attempt.name.to_owned() } else { format!("{}-{index}", attempt.name) };
    let what = if attempt.name == "system" { "system library".to_owned() } else { format!("{} backend", attempt.name) };
    let Some(error) = &attempt.answer.error else {
        if let Some(none) = &attempt.answer.device {
            let (detail, fix) = no_device(none);
            return if index == 0 {
                Item::problem(&id, &what, detail, fix)
            } else {
                Item::warning(&id, &what, detail, fix)
            };
        }
        let api = attempt.answer.backend_api.as_ref().map_or_else(String::new, |api| format!(", API {api}"));
        return Item::ok(&id, &what, format!("loads{api}"));
    };
    let shown = attempt.path.display();
    let is_pc = matches!(std::env::consts::ARCH, "x86_64" | "x86");
    if attempt.name == "gpu" && is_pc && !attempt.is_cut && attempt.missing.is_empty() {
        let said = error.split(" (").next().unwrap_or(error);
        let fix = "run it on a device: it needs an Adreno GPU";
        return Item::warning(&id, &what, format!("no Adreno on this machine: {said}"), fix);
    }
    let (detail, fix) = if attempt.is_cut {
        (format!("{shown} is truncated or not a library"), "reinstall the libraries".to_owned())
    } else if attempt.missing.is_empty() {
        (format!("does not load: {error}"), "use a runtime with a library for this machine".to_owned())
    } else {
        (format!("does not load: {} is missing", attempt.missing.join(", ")), advice_for(&attempt.missing))
    };
    // Defects of the other runtimes block nothing.
    if index == 0 { Item::problem(&id, &what, detail, fix) } else { Item::warning(&id, &what, detail, fix) }
}

/// Why a backend that loads creates no device, according to its own messages.
fn no_device(none: &NoDevice) -> (String, String) {
    let mut diagnoser = Diagnoser::new();
    diagnoser.taught_by(None);
    for (line, number) in none.log.iter().map(String::as_str).chain([none.error.as_str()]).zip(1..) {
        diagnoser.feed_line(number, line.as_bytes());
    }
    let diagnosis = diagnoser.finish();
    let said = none.log.first().map_or_else(String::new, |line| format!("; it first logged: {}", line.trim()));
    match diagnosis.causes.first() {
        Some(finding) => {
            let title = &finding.cause().title;
            (format!("loads but creates no device: {title} ({}{said})", none.error), finding.fix().to_owned())
        }
        None => {
            let fix = "run a model on it with --log-level verbose: qnnscope then diagnoses the run on this machine";
            (format!("loads but creates no device: {}{said}", none.error), fix.to_owned())
        }
    }
}

/// Backends without a library in the runtime.
fn absent(runtime: &RuntimeDir) -> Vec<Item> {
    let missing = Backend::ALL.into_iter().filter(|backend| runtime.library(backend.name()).is_none());
    missing
        .map(|backend| {
            let fix = "use a runtime that has it: `qnnscope runtime list` shows the installed ones";
            let what = format!("{backend} backend");
            Item::warning(backend.name(), &what, format!("this runtime has no {}", backend.library()), fix)
        })
        .collect()
}
