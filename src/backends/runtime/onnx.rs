//! Finds ONNX Runtime and its QNN plug-in.
//!
//! ONNX Runtime's library is one of (first match wins):
//!
//! 1. `$QNNSCOPE_ONNXRUNTIME`: the library, its folder, or a Python's `site-packages`,
//! 2. beside the chosen runtime: in its folder, or, where that is an unpacked wheel, in `onnxruntime/capi` of the same
//!    `site-packages`,
//! 3. the one fetched by `qnnscope runtime install --onnx`.
//!
//! The plug-in is in the chosen runtime's folder, else in the `site-packages` that the variable names, else in the folder of an
//! installed runtime.

use super::install::{entries, installed_in};
use super::package::{LIBRARY, PLUGIN};
use super::platform::version_key;
use super::{Env, ONNX_WHEEL_VERSION, RuntimeDir, RuntimeError, RuntimeManifest, locate};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What runs ONNX models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OnnxKit {
    /// ONNX Runtime's library.
    pub library: PathBuf,
    /// Its QNN plug-in.
    pub plugin: PathBuf,
}

/// ONNX Runtime's library, and its installation if qnnscope installed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnnxLibrary {
    /// The library.
    pub path: PathBuf,
    /// Folder and manifest, if qnnscope installed it.
    pub installed: Option<(PathBuf, RuntimeManifest)>,
}

/// The libraries that run ONNX models on a runtime.
///
/// # Errors
/// ONNX Runtime or the plug-in is missing.
pub fn onnx_kit(runtime: &RuntimeDir, env: &Env) -> Result<OnnxKit, RuntimeError> {
    let library = onnx_library(Some(runtime), env)?.ok_or(RuntimeError::NoOnnxRuntime)?.path;
    let plugin = plugin(runtime, env).ok_or_else(|| RuntimeError::NoPlugin { dir: runtime.path.clone() })?;
    Ok(OnnxKit { library, plugin })
}

/// The plug-in for a runtime: its own, or that of an installed one, preferably of the same version.
fn plugin(runtime: &RuntimeDir, env: &Env) -> Option<PathBuf> {
    let own = runtime.path.join(PLUGIN);
    let named = env.onnxruntime.as_ref().map(|site| site.join("onnxruntime_qnn").join(PLUGIN));
    if let Some(found) = [Some(own), named].into_iter().flatten().find(|path| path.is_file()) {
        return Some(found);
    }
    let mut others = locate(None, env);
    others.sort_by_key(|other| other.version.is_none() || other.version != runtime.version);
    others.into_iter().map(|other| other.path.join(PLUGIN)).find(|path| path.is_file())
}

/// ONNX Runtime's library, if there is one.
///
/// # Errors
/// `$QNNSCOPE_ONNXRUNTIME` names a place without it.
pub fn onnx_library(runtime: Option<&RuntimeDir>, env: &Env) -> Result<Option<OnnxLibrary>, RuntimeError> {
    if let Some(place) = &env.onnxruntime {
        let found = library_at(place).or_else(|| library_in(&place.join("onnxruntime/capi")));
        let found = found.ok_or_else(|| RuntimeError::NoOnnxLibrary { path: place.clone() })?;
        return Ok(Some(OnnxLibrary { path: found, installed: None }));
    }
    let beside = runtime.and_then(|runtime| {
        let neighbour = runtime.path.parent().map(|site| site.join("onnxruntime/capi"));
        library_in(&runtime.path).or_else(|| library_in(&neighbour?))
    });
    if let Some(path) = beside {
        return Ok(Some(OnnxLibrary { path, installed: None }));
    }
    Ok(installed(env)
        .into_iter()
        .find_map(|(dir, manifest)| Some(OnnxLibrary { path: library_in(&dir)?, installed: Some((dir, manifest)) })))
}

/// The installed ones for this machine, the default version first, then the newest.
pub fn installed(env: &Env) -> Vec<(PathBuf, RuntimeManifest)> {
    let folder = env.onnxruntime_dir();
    let mut found = folder.and_then(|folder| installed_in(&folder)).unwrap_or_default();
    found.retain(|(_, manifest)| env.platform.fits_wheel_tag(&manifest.platform));
    found.sort_by_cached_key(|(path, manifest)| {
        let version = std::cmp::Reverse(version_key(&manifest.version));
        (manifest.version != ONNX_WHEEL_VERSION, version, path.clone())
    });
    found
}

/// The library itself, or the one in a folder.
fn library_at(place: &Path) -> Option<PathBuf> {
    if place.is_file() { Some(place.to_owned()) } else { library_in(place) }
}

/// The library in a folder: `libonnxruntime.so`, or with a version suffix.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = entries(folder)
        .ok()?
        .into_iter()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.strip_prefix(LIBRARY).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort_by_cached_key(|path| version_key(&path.to_string_lossy()));
    found.pop()
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn touch(path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
        path.to_owned()
    }

    #[test]
    fn the_variable_comes_first_then_the_wheel_beside_the_runtime() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = testing::env_in(dir.path());
        let site = dir.path().join("site-packages");
        let runtime = RuntimeDir {
            path: site.join("onnxruntime_qnn"),
            source: super::super::RuntimeSource::Option,
            version: Some("2.3.0".to_owned()),
            complete: true,
            libraries: Vec::new(),
        };
        assert_eq!(onnx_library(Some(&runtime), &env).unwrap(), None);
        assert!(matches!(onnx_kit(&runtime, &env), Err(RuntimeError::NoOnnxRuntime)));
        let beside = touch(&site.join("onnxruntime/capi/libonnxruntime.so.1.24.4"));
        touch(&site.join("onnxruntime/capi/libonnxruntime_providers_shared.so"));
        let found = |env: &Env| onnx_library(Some(&runtime), env).unwrap().unwrap().path;
        assert_eq!(found(&env), beside);
        assert!(matches!(onnx_kit(&runtime, &env), Err(RuntimeError::NoPlugin { .. })));
        let plugin = touch(&runtime.path.join(PLUGIN));
        assert_eq!(onnx_kit(&runtime, &env).unwrap(), OnnxKit { library: beside.clone(), plugin });
        for place in [&beside, &site] {
            env.onnxruntime = Some(place.clone());
            assert_eq!(found(&env), beside);
        }
        env.onnxruntime = Some(dir.path().join("nothing"));
        assert!(matches!(onnx_library(None, &env), Err(RuntimeError::NoOnnxLibrary { .. })));
    }
}
