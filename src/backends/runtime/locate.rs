//! Finds the runtimes of this machine, in order of preference.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::install::{entries, installed_in};
use super::package::SYSTEM_LIBRARY;
use super::platform::{elf_machine, version_key};
use super::{DEFAULT_WHEEL_VERSION, Env, Platform, RuntimeError, RuntimeManifest, RuntimeSource};
use crate::facts::machine_name;

/// One folder with QNN libraries for this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuntimeDir {
    /// The folder the libraries are in.
    pub path: PathBuf,
    /// Who named it.
    pub source: RuntimeSource,
    /// Version of its wheel; `None` for an SDK.
    pub version: Option<String>,
    /// Installed runtimes: every file is complete. Others: `libQnnSystem.so` and a backend exist.
    pub complete: bool,
    /// The libraries, by name.
    pub libraries: Vec<LibraryFile>,
}

impl RuntimeDir {
    /// The library of a backend, by the names in [`LibraryFile::backend`].
    pub fn library(&self, backend: &str) -> Option<&LibraryFile> {
        self.libraries.iter().find(|library| library.backend == Some(backend))
    }
}

/// One `libQnn*.so`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LibraryFile {
    /// File name.
    pub name: String,
    /// `cpu`, `htp`, `gpu`, `system`, `ir` or `saver`; `None` for helpers we do not open.
    pub backend: Option<&'static str>,
    /// Where it is.
    pub path: PathBuf,
}

impl LibraryFile {
    fn new(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        if !name.starts_with("libQnn") || path.extension()? != "so" || !path.is_file() {
            return None;
        }
        let backend = match name.as_str() {
            "libQnnCpu.so" => Some("cpu"),
            "libQnnHtp.so" => Some("htp"),
            "libQnnGpu.so" => Some("gpu"),
            SYSTEM_LIBRARY => Some("system"),
            "libQnnIr.so" => Some("ir"),
            "libQnnSaver.so" => Some("saver"),
            _ => None,
        };
        Some(Self { name, backend, path })
    }
}

/// The result of a search.
#[derive(Debug)]
pub struct Survey {
    /// The runtimes, best first.
    pub runtimes: Vec<RuntimeDir>,
    /// Named places without a runtime for this machine, in the same order, and damaged installs.
    pub problems: Vec<RuntimeError>,
}

/// Every runtime, best first: `explicit`, `$QNNSCOPE_RUNTIME`, `$QNN_SDK_ROOT`, `$QAIRT_SDK_ROOT`, then the
/// installed ones: the default version first, then the newest.
///
/// A place may be the folder of the libraries, an SDK, or the folder of an unpacked wheel.
pub fn locate(explicit: Option<&Path>, env: &Env) -> Vec<RuntimeDir> {
    survey(explicit, env).runtimes
}

/// Like [`locate`], plus the problems of places that were left out.
pub fn survey(explicit: Option<&Path>, env: &Env) -> Survey {
    let mut survey = Survey { runtimes: Vec::new(), problems: Vec::new() };
    for (path, source) in named_places(explicit, env) {
        match inspect(path, source, env.platform) {
            // Both SDK variables often point to the same SDK.
            Ok(found) if survey.runtimes.iter().any(|one| one.path == found.path) => {}
            Ok(found) => survey.runtimes.push(found),
            Err(problem) => survey.problems.push(problem),
        }
    }
    let installed = installed(env).unwrap_or_else(|problem| {
        survey.problems.push(problem);
        Vec::new()
    });
    for (path, manifest) in installed {
        let missing = manifest.damaged_files(&path);
        let complete = missing.is_empty();
        if !complete {
            survey.problems.push(RuntimeError::Incomplete {
                dir: path.clone(),
                version: manifest.version.clone(),
                missing,
            });
        }
        if survey.runtimes.iter().any(|one| one.path == path) {
            continue;
        }
        let libraries = match libraries_in(&path) {
            Ok(libraries) => libraries,
            Err(problem) => {
                survey.problems.push(problem);
                continue;
            }
        };
        survey.runtimes.push(RuntimeDir {
            libraries,
            path,
            source: RuntimeSource::Installed,
            version: Some(manifest.version),
            complete,
        });
    }
    survey
}

/// The runtime to use: the first complete one.
///
/// A runtime named with `explicit` or `$QNNSCOPE_RUNTIME` is used or is an error; another runtime never silently
/// takes its place.
pub fn choose(explicit: Option<&Path>, env: &Env) -> Result<RuntimeDir, RuntimeError> {
    let strict = named_places(explicit, env)
        .into_iter()
        .find(|(_, source)| matches!(source, RuntimeSource::Option | RuntimeSource::Variable));
    if let Some((path, source)) = strict {
        return inspect(path, source, env.platform);
    }
    let Survey { runtimes, problems } = survey(explicit, env);
    if let Some(found) = runtimes.into_iter().find(|found| found.complete) {
        return Ok(found);
    }
    let mut looked: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for (name, value) in [
        ("QNNSCOPE_RUNTIME", &env.runtime),
        ("QNN_SDK_ROOT", &env.qnn_sdk_root),
        ("QAIRT_SDK_ROOT", &env.qairt_sdk_root),
    ] {
        if value.is_none() {
            looked.push(format!("{name} (not set)"));
        }
    }
    if let Ok(dir) = env.runtimes_dir() {
        looked.push(format!("{} (nothing installed)", dir.display()));
    }
    // An unreadable place may still have one.
    let is_reason = |problem: &RuntimeError| {
        matches!(problem, RuntimeError::Incomplete { .. } | RuntimeError::Io { .. } | RuntimeError::Denied { .. })
    };
    Err(problems.into_iter().find(is_reason).unwrap_or(RuntimeError::NotFound { looked }))
}

fn named_places<'a>(explicit: Option<&'a Path>, env: &'a Env) -> Vec<(&'a Path, RuntimeSource)> {
    [
        (explicit, RuntimeSource::Option),
        (env.runtime.as_deref(), RuntimeSource::Variable),
        (env.qnn_sdk_root.as_deref(), RuntimeSource::QnnSdk),
        (env.qairt_sdk_root.as_deref(), RuntimeSource::QairtSdk),
    ]
    .into_iter()
    .filter_map(|(path, source)| Some((path?, source)))
    .collect()
}

/// The installed runtimes for this machine; a home folder may be shared with other machines.
fn installed(env: &Env) -> Result<Vec<(PathBuf, RuntimeManifest)>, RuntimeError> {
    // Without a data folder nothing is installed.
    let mut found = env.runtimes_dir().map_or_else(|_| Ok(Vec::new()), |dir| installed_in(&dir))?;
    found.retain(|(_, manifest)| env.platform.fits_wheel_tag(&manifest.platform));
    found.sort_by_cached_key(|(path, manifest)| {
        (manifest.version != DEFAULT_WHEEL_VERSION, Reverse(version_key(&manifest.version)), path.clone())
    });
    Ok(found)
}

/// What a named place has for this machine.
fn inspect(path: &Path, source: RuntimeSource, platform: Platform) -> Result<RuntimeDir, RuntimeError> {
    let nothing = |detail: String| RuntimeError::NoLibraries { path: path.to_path_buf(), origin: source, detail };
    match fs::metadata(path) {
        Err(error) => return Err(nothing(error.to_string())),
        Ok(meta) if !meta.is_dir() => return Err(nothing("it is not a folder".to_owned())),
        Ok(_) => {}
    }
    let targets = sdk_targets(path)?;
    let fitting = fitting_targets(&targets, platform);
    let places = std::iter::once(path.to_path_buf())
        .chain(fitting.iter().map(|name| path.join("lib").join(name)))
        .chain([path.join("onnxruntime_qnn")]);
    let mut first = None;
    for dir in places {
        let libraries = libraries_in(&dir)?;
        if !libraries.is_empty() {
            first = Some((dir, libraries));
            break;
        }
    }
    let Some((dir, libraries)) = first else {
        let wanted: Vec<String> =
            platform.sdk_targets().iter().map(|name| format!(", lib/{name}*/libQnn*.so")).collect();
        let mut detail = format!("looked for libQnn*.so{}, onnxruntime_qnn/libQnn*.so", wanted.concat());
        if !targets.is_empty() {
            detail.push_str("; there is only lib/ for ");
            detail.push_str(&targets.join(", "));
        }
        return Err(nothing(detail));
    };

    let sample = libraries
        .iter()
        .find(|library| library.backend == Some("system"))
        .or_else(|| libraries.iter().find(|library| library.backend.is_some()))
        .or(libraries.first());
    if let Some(sample) = sample {
        let machine = elf_machine(&sample.path).map_err(|source| RuntimeError::file("read", &sample.path, source))?;
        if !machine.is_some_and(|machine| platform.fits_machine(machine)) {
            return Err(RuntimeError::WrongMachine {
                library: sample.path.clone(),
                origin: source,
                found: match machine {
                    Some(_) => format!("built for {}", machine_name(machine)),
                    None => machine_name(None),
                },
                platform,
            });
        }
    }
    let manifest = RuntimeManifest::read(&dir);
    let has =
        |names: &[&str]| libraries.iter().any(|library| library.backend.is_some_and(|name| names.contains(&name)));
    Ok(RuntimeDir {
        complete: match &manifest {
            Some(manifest) => manifest.damaged_files(&dir).is_empty(),
            None => has(&["system"]) && has(&["cpu", "htp", "gpu"]),
        },
        version: manifest.map(|manifest| manifest.version).or_else(|| unpacked_version(&dir)),
        source,
        libraries,
        path: dir,
    })
}

/// The QNN libraries in a folder, by name.
fn libraries_in(dir: &Path) -> Result<Vec<LibraryFile>, RuntimeError> {
    let mut libraries: Vec<LibraryFile> =
        entries(dir)?.into_iter().filter_map(|entry| LibraryFile::new(entry.path())).collect();
    libraries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(libraries)
}

/// The folders below `lib/` of an SDK with QNN libraries, for any machine.
fn sdk_targets(root: &Path) -> Result<Vec<String>, RuntimeError> {
    let mut names = Vec::new();
    for entry in entries(&root.join("lib"))? {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !libraries_in(&entry.path())?.is_empty() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Those for this machine: the better family first, then the newest compiler.
fn fitting_targets(targets: &[String], platform: Platform) -> Vec<&str> {
    let family = |name: &str| {
        let mut families = platform.sdk_targets().iter();
        families.position(|family| name.starts_with(family))
    };
    let mut fitting: Vec<&str> = targets.iter().map(String::as_str).filter(|name| family(name).is_some()).collect();
    fitting.sort_by_key(|name| (family(name), Reverse(version_key(name))));
    fitting
}

/// The version of a manually unpacked wheel: in the name of a folder beside the libraries' folder.
fn unpacked_version(dir: &Path) -> Option<String> {
    fs::read_dir(dir.parent()?).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).find_map(|name| {
        let version = name.strip_prefix("onnxruntime_qnn-")?.strip_suffix(".dist-info")?;
        Some(version.to_owned())
    })
}

#[cfg(test)]
mod tests;
