//! Installs a runtime: takes a wheel from pip or a file, unpacks and checks its libraries, and puts them in place with
//! one rename.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;

use super::consent::{Consent, Unpinned};
use super::package::SYSTEM_LIBRARY;
use super::pins::{is_pinned_version, pinned};
use super::pip::Download;
use super::platform::{elf_machine, is_version, version_key};
use super::progress::InstallProgress;
use super::verify::{Depth, changed_files};
use super::wheel::{Wheel, WheelName, sha256};
use super::{Env, MANIFEST_SCHEMA, ManifestFile, Package, RuntimeError, RuntimeManifest};
use crate::facts::machine_name;

/// Name prefix of incomplete folders.
const TEMP_PREFIX: &str = ".tmp-";
const LOCK_FILE: &str = ".lock";
/// How often a waiting install checks whether the other one is done.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// What to install.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// What is installed.
    pub package: Package,
    /// Version of the wheel. Ignored if `wheel_file` is given.
    pub version: String,
    /// A local wheel, instead of one from pip.
    pub wheel_file: Option<PathBuf>,
    /// Reinstall even if this version is installed and intact.
    pub force: bool,
    /// Where to install, and with which Python.
    pub env: Env,
    /// Set to `true` from another thread, or by a signal, to stop: the install cleans up and returns
    /// [`RuntimeError::Cancelled`].
    pub cancel: Arc<AtomicBool>,
}

impl InstallRequest {
    /// A request for the default version of QNN's libraries, from pip.
    pub fn new(env: Env) -> Self {
        Self::of(Package::Qnn, env)
    }

    /// A request for the default version of a package, from pip.
    pub fn of(package: Package, env: Env) -> Self {
        Self {
            package,
            version: package.default_version().to_owned(),
            wheel_file: None,
            force: false,
            env,
            cancel: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// An installed runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installed {
    /// Its folder.
    pub dir: PathBuf,
    /// Version of its wheel.
    pub version: String,
    /// File name of that wheel.
    pub wheel: String,
    /// Number of files, without the manifest.
    pub files: usize,
    /// Size of those files.
    pub bytes: u64,
    /// The licence of the libraries.
    pub licence: Option<PathBuf>,
    /// Whether qnnscope knew the wheel's checksum; otherwise the user consented.
    pub pinned: bool,
    /// It was already installed and nothing was done.
    pub already_installed: bool,
}

impl Installed {
    fn new(dir: PathBuf, manifest: RuntimeManifest, already_installed: bool) -> Self {
        Self {
            files: manifest.files.len(),
            bytes: manifest.total_bytes(),
            pinned: manifest.pinned,
            licence: manifest.licence.map(|name| dir.join(name)),
            version: manifest.version,
            wheel: manifest.wheel,
            dir,
            already_installed,
        }
    }
}

/// Installs a runtime unless already installed.
///
/// Two installs into one data folder take turns; the second finds what the first installed. However this ends, no
/// half-installed runtime is left that `locate` would list. A wheel whose checksum qnnscope does not know is
/// unpacked only with `consent`.
pub fn install(
    request: &InstallRequest,
    consent: Consent<'_>,
    progress: &mut dyn FnMut(InstallProgress),
) -> Result<Installed, RuntimeError> {
    if request.wheel_file.is_none() && !is_version(&request.version) {
        return Err(RuntimeError::BadVersion { version: request.version.clone() });
    }
    let runtimes = request.env.folder_of(request.package)?;
    if let Some(found) = already_installed(request, &runtimes) {
        return Ok(found);
    }
    if request.wheel_file.is_none() && !is_pinned_version(request.package, &request.version) && consent.is_refused() {
        // Known before anything is fetched.
        return Err(Unpinned::version(request.package, &request.version).refused(&consent));
    }
    fs::create_dir_all(&runtimes).map_err(|source| RuntimeError::file("create", &runtimes, source))?;
    let _lock = take_lock(&runtimes, &request.cancel, progress)?;
    if let Some(found) = already_installed(request, &runtimes) {
        return Ok(found);
    }
    remove_stale(&runtimes);
    let stage = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .tempdir_in(&runtimes)
        .map_err(|source| RuntimeError::file("create a folder in", &runtimes, source))?;
    let job = Job { request, runtimes: &runtimes, stage: &stage };
    let path = match &request.wheel_file {
        Some(file) => file.clone(),
        None => job.download(progress)?,
    };
    job.install_wheel(&path, consent, progress)
}

/// The runtimes in a folder with a manifest, intact or damaged.
///
/// # Errors
/// The folder exists but cannot be read.
pub fn installed_in(runtimes: &Path) -> Result<Vec<(PathBuf, RuntimeManifest)>, RuntimeError> {
    let installed = |entry: fs::DirEntry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let dir = entry.path();
        let manifest = RuntimeManifest::read(&dir)?;
        (!hidden).then_some((dir, manifest))
    };
    Ok(entries(runtimes)?.into_iter().filter_map(installed).collect())
}

/// The contents of a folder; nothing if it does not exist.
pub fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, RuntimeError> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect);
    match listed {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        listed => listed.map_err(|source| RuntimeError::file("read", folder, source)),
    }
}

/// The intact runtime of the requested version, if any. A wheel file is compared later, by content.
fn already_installed(request: &InstallRequest, runtimes: &Path) -> Option<Installed> {
    if request.force || request.wheel_file.is_some() {
        return None;
    }
    let wanted = release(&request.version);
    installed_in(runtimes)
        // An unreadable one is reinstalled, which reports the reason if that fails too.
        .unwrap_or_default()
        .into_iter()
        .find(|(dir, manifest)| {
            release(&manifest.version) == wanted
                && request.env.platform.fits_wheel_tag(&manifest.platform)
                && changed_files(dir, manifest, Depth::Quick).is_empty()
        })
        .map(|(dir, manifest)| Installed::new(dir, manifest, true))
}

/// Normalises version texts for comparison: `2.3` is `2.3.0`, but `2.3.0rc1` is neither.
fn release(version: &str) -> (Vec<u64>, String) {
    let letters = version.chars().filter(char::is_ascii_alphabetic).collect();
    (version_key(version), letters)
}

/// Takes the lock of the runtimes folder. It is released when the file is closed, even by a crash.
fn take_lock(
    runtimes: &Path,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(InstallProgress),
) -> Result<File, RuntimeError> {
    let path = runtimes.join(LOCK_FILE);
    let failed = |source| RuntimeError::file("lock", &path, source);
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(RuntimeError::Cancelled);
        }
        if !told {
            progress(InstallProgress::Waiting { lock: path.clone() });
            told = true;
        }
        std::thread::sleep(LOCK_POLL);
    }
}

/// Removes leftovers of killed installs. We hold the lock, so nobody is using them. Anything that cannot be
/// removed merely takes up space.
fn remove_stale(runtimes: &Path) {
    let Ok(entries) = fs::read_dir(runtimes) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX) {
            // Fails on a link without following it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// One install in progress, with the lock held.
struct Job<'a> {
    request: &'a InstallRequest,
    runtimes: &'a Path,
    stage: &'a TempDir,
}

impl Job<'_> {
    fn download(&self, progress: &mut dyn FnMut(InstallProgress)) -> Result<PathBuf, RuntimeError> {
        let requirement = format!("{}=={}", self.request.package.name(), self.request.version);
        progress(InstallProgress::Asking { requirement: requirement.clone() });
        Download {
            env: &self.request.env,
            requirement: &requirement,
            scratch: self.stage.path(),
            cancel: &self.request.cancel,
        }
        .run(progress)
    }

    fn install_wheel(
        &self,
        path: &Path,
        mut consent: Consent<'_>,
        progress: &mut dyn FnMut(InstallProgress),
    ) -> Result<Installed, RuntimeError> {
        let name = WheelName::parse(path)?;
        let platform = self.request.env.platform;
        let other_platform = |found: String| RuntimeError::OtherPlatform { wheel: path.to_path_buf(), found, platform };
        if !platform.fits_wheel_tag(&name.platform) {
            return Err(other_platform(format!("it is for {}", name.platform)));
        }
        let target = self.runtimes.join(name.dir_name());
        let (file, sum) = self.hash(path, progress)?;
        let is_pinned = pinned(self.request.package, &name.version, &name.platform, &sum).is_some();
        if !self.request.force
            && let Some(manifest) = RuntimeManifest::read(&target)
            && manifest.sha256 == sum
            && changed_files(&target, &manifest, Depth::Quick).is_empty()
        {
            return Ok(Installed::new(target, manifest, true));
        }
        if !is_pinned {
            let unpinned = Unpinned::wheel(self.request.package, &name, &sum, self.request.wheel_file.is_some());
            if !consent.is_given(&unpinned) {
                return Err(unpinned.refused(&consent));
            }
        }
        let mut wheel = Wheel::open(path, file, self.request.package)?;
        wheel.check_package(&name)?;

        let dir = self.stage.path().join("runtime");
        fs::create_dir(&dir).map_err(|source| RuntimeError::file("create", &dir, source))?;
        let files = self.unpack(&mut wheel, &dir, progress)?;
        let name_of_library = wheel.library().unwrap_or(SYSTEM_LIBRARY).to_owned();
        let library = dir.join(&name_of_library);
        let machine = elf_machine(&library).map_err(|source| RuntimeError::file("read", &library, source))?;
        if !machine.is_some_and(|machine| platform.fits_machine(machine)) {
            let machine = machine_name(machine);
            return Err(other_platform(format!("its {name_of_library} is {machine}")));
        }
        let manifest = RuntimeManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            wheel: name.file,
            version: name.version,
            platform: name.platform,
            sha256: sum,
            pinned: is_pinned,
            files,
            licence: wheel.licence(),
        };
        manifest.write(&dir).map_err(|error| self.on_our_disk(error, wheel.unpacked_bytes()))?;
        sync_dir(&dir)?;
        self.check_stop()?;
        self.put_in_place(&dir, &target)?;
        Ok(Installed::new(target, manifest, false))
    }

    /// Opens the wheel once, so that what is hashed is what is unpacked.
    fn hash(&self, path: &Path, progress: &mut dyn FnMut(InstallProgress)) -> Result<(File, String), RuntimeError> {
        let failed = |source| RuntimeError::file("open", path, source);
        let mut file = File::open(path).map_err(failed)?;
        let total = file.metadata().map_err(failed)?.len();
        let mut done = 0;
        let sum = sha256(&mut file, path, &mut |count| {
            done += count;
            progress(InstallProgress::Hashing { done, total });
            self.check_stop()
        })?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok((file, sum))
    }

    fn unpack(
        &self,
        wheel: &mut Wheel,
        dir: &Path,
        progress: &mut dyn FnMut(InstallProgress),
    ) -> Result<Vec<ManifestFile>, RuntimeError> {
        let total = wheel.unpacked_bytes();
        let mut done = 0;
        wheel
            .unpack(dir, &mut |count| {
                done += count;
                progress(InstallProgress::Unpacking { done, total });
                self.check_stop()
            })
            .map_err(|error| self.on_our_disk(error, total))
    }

    /// Adds the required space to a disk-full error, and names a folder that will still exist when the
    /// message is read.
    fn on_our_disk(&self, error: RuntimeError, needed: u64) -> RuntimeError {
        match error {
            RuntimeError::DiskFull { .. } => RuntimeError::DiskFull {
                operation: "unpack the wheel",
                dir: self.runtimes.to_path_buf(),
                needed: Some(needed),
            },
            other => other,
        }
    }

    fn check_stop(&self) -> Result<(), RuntimeError> {
        if self.request.cancel.load(Ordering::Relaxed) { Err(RuntimeError::Cancelled) } else { Ok(()) }
    }

    /// The rename that makes the runtime appear. If a damaged or reinstalled runtime is in the way, its
    /// folder moves into the stage and is removed with it.
    fn put_in_place(&self, dir: &Path, target: &Path) -> Result<(), RuntimeError> {
        let failed = |source| RuntimeError::file("put in place", target, source);
        let old = self.stage.path().join("old");
        let replaced = match fs::rename(target, &old) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        if let Err(error) = fs::rename(dir, target) {
            if replaced {
                // Best effort: the first failure is the one to report.
                let _ = fs::rename(&old, target);
            }
            return Err(failed(error));
        }
        sync_dir(self.runtimes)
    }
}

/// Waits until a folder's entries are on disk.
fn sync_dir(dir: &Path) -> Result<(), RuntimeError> {
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|source| RuntimeError::file("write", dir, source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
