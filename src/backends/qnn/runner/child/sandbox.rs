//! Confines this process before it loads any vendor or model code: a library's constructors run as soon as it
//! is opened, with all of the user's rights.
//!
//! Landlock restricts the calling thread and those it starts later, so this runs before any other thread exists.

use crate::backends::qnn::runner::protocol::Task;
use crate::backends::qnn::runner::run_task::{OnnxTask, RunTask};
use crate::event::{Sandbox, SandboxState};
use crate::models::read_source;
use crate::models::source::SourceFormat;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::thread::CapabilitySet;
use std::path::{Path, PathBuf};

/// Makes a runner confine itself, and names the folder it may write to. If unset, it does not.
pub const SCRATCH_VARIABLE: &str = "QNNSCOPE_SCRATCH";

/// What is requested; older kernels enforce what they know.
const WANTED: ABI = ABI::V6;

/// Folders with the system's libraries and data, including Nix, Guix and Android. Home folders, `/etc` as a whole,
/// `/run`, `/var` and `/tmp` are not among them.
const SYSTEM: [&str; 20] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/system",
    "/system_ext",
    "/vendor",
    "/odm",
    "/product",
    "/apex",
    "/linkerconfig",
    "/proc",
    "/sys",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf.d",
    "/etc/OpenCL",
    "/etc/localtime",
    "/etc/alternatives",
];

/// Devices without hardware behind them.
const PLAIN_DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Name prefixes of devices below `/dev` for DSP, GPU and shared memory of a Snapdragon.
const HARDWARE: [&str; 12] = [
    "adsprpc",
    "cdsprpc",
    "fastrpc",
    "dma_heap",
    "ion",
    "kgsl",
    "dri",
    "ashmem",
    "binder",
    "hwbinder",
    "vndbinder",
    "mali",
];

/// Maximum number of shared libraries beside a model library that it may load.
const MOST_SIBLINGS: usize = 256;

/// Confines this process to what the task needs, as far as the kernel can, and returns how far that went.
pub fn enter(task: &Task) -> Sandbox {
    let Some(scratch) = std::env::var_os(SCRATCH_VARIABLE).filter(|value| !value.is_empty()) else {
        return Sandbox::default();
    };
    let mut sandbox = match restrict(task, Path::new(&scratch)) {
        Ok(status) => report(status.landlock, status.no_new_privs),
        Err(error) => Sandbox {
            state: SandboxState::Unavailable,
            missing: vec![format!("Landlock failed: {error}")],
            ..Sandbox::default()
        },
    };
    if let Err(error) = drop_capabilities() {
        sandbox.missing.push(format!("cannot drop root's capabilities: {error}"));
        if sandbox.state == SandboxState::Enforced {
            sandbox.state = SandboxState::Partial;
        }
    }
    sandbox
}

/// Drops root's capabilities beyond files: some let a process read others regardless of Landlock. Other users' files,
/// including devices, stay accessible as far as Landlock allows, and so do priorities.
fn drop_capabilities() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    let kept = CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::SYS_NICE
        | CapabilitySet::IPC_LOCK;
    if kept.contains(sets.permitted) {
        return Ok(());
    }
    sets.permitted &= kept;
    sets.effective &= kept;
    sets.inheritable = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, sets)
}

fn restrict(task: &Task, scratch: &Path) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Rules {
        rules: Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(WANTED))?
            .handle_access(AccessNet::from_all(WANTED))?
            .scope(Scope::from_all(WANTED))?
            .create()?,
    };
    // Programs cannot be started from anywhere: read access is enough to open a library.
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    let folder = AccessFs::from_all(WANTED) & !AccessFs::Execute;
    let file = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    for path in SYSTEM {
        rules = rules.allow(path, read);
    }
    for path in PLAIN_DEVICES {
        rules = rules.allow(path, file);
    }
    for path in hardware() {
        rules = rules.allow(path, device);
    }
    for path in readable(task) {
        rules = rules.allow(path, read);
    }
    rules = rules.allow(scratch, folder);
    match task {
        Task::Run(task) => {
            if let Some(dir) = &task.save_outputs {
                // A rule needs an existing file. If it cannot be created, saving reports that.
                let _ = std::fs::create_dir_all(dir);
                rules = rules.allow(dir, folder);
            }
            for path in [&task.profile_log, &task.staged_context].into_iter().flatten() {
                let _ = std::fs::OpenOptions::new().append(true).create(true).open(path);
                rules = rules.allow(path, file);
            }
            // Pipes and devices are written to directly, and so is a file in a folder where none can be created.
            let as_it_is = |path: &&PathBuf| task.staged_context.is_none() && path.exists();
            if let Some(path) = task.save_context.as_ref().filter(as_it_is) {
                rules = rules.allow(path, file);
            }
        }
        Task::Probe(task) => rules = rules.allow(&task.scratch, folder),
        Task::Tensors(task) => rules = rules.allow(&task.exchange, folder),
        Task::Convert(task) => rules = rules.allow(&task.out_dir, folder),
        Task::Inspect(_) | Task::Check(_) => {}
    }
    rules.rules.restrict_self()
}

/// Rules under construction.
struct Rules {
    rules: RulesetCreated,
}

impl Rules {
    /// Allows `access` to everything at and below `path`. A missing path needs no rule, and one that cannot have a rule
    /// (a pipe is not on disk, and Landlock does not block it) must not prevent the other rules: whoever brings a model
    /// may have put it there.
    fn allow(mut self, path: impl AsRef<Path>, access: impl Into<BitFlags<AccessFs>>) -> Self {
        if let Ok(at) = PathFd::new(path.as_ref()) {
            let _ = (&mut self.rules).add_rule(PathBeneath::new(at, access.into()));
        }
        self
    }
}

/// Devices of this machine that a backend may need.
fn hardware() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            HARDWARE.iter().any(|start| name.starts_with(start))
        })
        .map(|entry| entry.path())
        .collect()
}

/// Files and folders the task reads.
fn readable(task: &Task) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut runtime = |dir: &Path| {
        // Libraries may be links to their installation.
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        paths.extend(links.map(|entry| entry.path()));
        paths.push(dir.to_owned());
        paths.extend(libs_of(dir));
    };
    let model = match task {
        Task::Run(task) => {
            runtime(&task.runtime_dir);
            Some(&task.model)
        }
        Task::Inspect(task) => {
            runtime(&task.runtime_dir);
            Some(&task.model)
        }
        Task::Check(task) => {
            runtime(&task.runtime_dir);
            Some(&task.model)
        }
        Task::Tensors(task) => {
            runtime(&task.runtime_dir);
            Some(&task.model)
        }
        Task::Convert(task) => {
            runtime(&task.run.runtime_dir);
            Some(&task.run.model)
        }
        Task::Probe(task) => {
            if let Some(dir) = task.library.parent() {
                runtime(dir);
            }
            None
        }
    };
    if let Some(model) = model {
        paths.push(model.clone());
        paths.extend(siblings(model));
    }
    let run = match task {
        Task::Run(task) => Some(&**task),
        Task::Convert(task) => Some(&task.run),
        Task::Inspect(_) | Task::Probe(_) | Task::Check(_) | Task::Tensors(_) => None,
    };
    if let Some(task) = run {
        paths.extend(inputs(task));
        if let Some(onnx) = &task.onnx {
            paths.extend(onnx_folders(&task.model, onnx));
        }
    }
    if let Task::Tensors(task) = task
        && let Some(onnx) = &task.onnx
    {
        paths.extend(onnx_folders(&task.model, onnx));
    }
    for (variable, separator) in [("LD_LIBRARY_PATH", ':'), ("ADSP_LIBRARY_PATH", ';')] {
        let value = std::env::var(variable).unwrap_or_default();
        // An empty entry means the working folder, for the loader too.
        let entries = value.split(separator).map(|entry| if entry.is_empty() { "." } else { entry });
        paths.extend(entries.filter(|_| !value.is_empty()).map(PathBuf::from));
    }
    paths
}

/// Where a wheel is unpacked as it is, the libraries' dependencies are in a folder beside theirs.
fn libs_of(folder: &Path) -> Option<PathBuf> {
    let mut libs = folder.file_name()?.to_owned();
    libs.push(".libs");
    Some(folder.with_file_name(libs))
}

/// Files named by an ONNX model: weights, compiled contexts. If it cannot be read, the run reports why, and
/// needs none of them.
fn files_beside(model: &Path) -> Vec<PathBuf> {
    let Ok(source) = read_source(model, SourceFormat::Onnx, &[]) else { return Vec::new() };
    let folder = model.parent().unwrap_or(Path::new(""));
    let weights = source.external_files.iter().map(|file| folder.join(&file.file));
    weights.chain(source.contexts.iter().map(|context| context.file.clone())).collect()
}

/// Folders of ONNX Runtime and its plug-in, and files beside the model.
fn onnx_folders(model: &Path, onnx: &OnnxTask) -> Vec<PathBuf> {
    let mut paths = vec![onnx.library.clone(), onnx.plugin.clone()];
    for library in [&onnx.library, &onnx.plugin] {
        let Some(folder) = library.parent() else { continue };
        paths.push(folder.to_owned());
        paths.extend(libs_of(folder));
    }
    paths.extend(files_beside(model));
    paths
}

/// Shared libraries beside a model library, which may be linked to them. Symbolic links count only as names of such
/// files: one from an archive may point anywhere.
fn siblings(model: &Path) -> Vec<PathBuf> {
    let is_shared = |path: &Path| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.ends_with(".so") || name.contains(".so.")
        })
    };
    if !is_shared(model) {
        return Vec::new();
    }
    let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(real) = folder.canonicalize() else { return Vec::new() };
    let stays = |path: &PathBuf| path.canonicalize().is_ok_and(|to| to.is_file() && to.parent() == Some(&*real));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_shared(path)).filter(stays).take(MOST_SIBLINGS).collect()
}

/// Input files, and those named by an input list.
fn inputs(task: &RunTask) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = task.inputs.iter().map(|input| input.path.clone()).collect();
    if let Some(list) = &task.input_list {
        paths.extend(super::inputs::listed(list));
        paths.push(list.clone());
    }
    paths
}

/// Which of the requested restrictions this kernel enforces.
fn report(landlock: LandlockStatus, no_new_privileges: bool) -> Sandbox {
    let abi = match landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => ABI::Unsupported,
    };
    let mut missing = Vec::new();
    match landlock {
        LandlockStatus::NotImplemented => {
            missing.push("this kernel has no Landlock (Linux 5.13 and later do)".to_owned());
        }
        LandlockStatus::NotEnabled => {
            missing.push("Landlock is not enabled (kernel option lsm=landlock,...)".to_owned());
        }
        LandlockStatus::Available { .. } => {
            // Each with the first ABI version that covers it, and the kernel that introduced that version.
            for (since, what) in [
                (ABI::V3, "files can be truncated (Linux 6.2 prevents it)"),
                (ABI::V4, "TCP is not restricted (Linux 6.7 does)"),
                (ABI::V5, "device commands are not restricted (Linux 6.10 does)"),
                (ABI::V6, "signals are not restricted (Linux 6.12 does)"),
            ] {
                if abi < since {
                    missing.push(what.to_owned());
                }
            }
        }
    }
    if !no_new_privileges {
        missing.push("no_new_privs is not set".to_owned());
    }
    let files = abi >= ABI::V1;
    Sandbox {
        state: match (files, missing.is_empty()) {
            (true, true) => SandboxState::Enforced,
            (true, false) => SandboxState::Partial,
            (false, _) => SandboxState::Unavailable,
        },
        landlock_abi: files.then_some(abi as u32),
        files,
        tcp: abi >= ABI::V4,
        signals: abi >= ABI::V6,
        no_new_privileges,
        missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_kernels_are_told_by_what_they_lack() {
        let on = |abi| report(LandlockStatus::Available { effective_abi: abi, kernel_abi: None }, true);
        let whole = on(WANTED);
        assert_eq!((whole.state, whole.missing.len()), (SandboxState::Enforced, 0));
        assert!(whole.files && whole.tcp && whole.signals);
        let old = on(ABI::V3);
        assert_eq!((old.state, old.landlock_abi), (SandboxState::Partial, Some(3)));
        assert!(old.files && !old.tcp && !old.signals);
        assert!(old.summary().contains("TCP is not restricted (Linux 6.7 does)"), "{}", old.summary());
        for (status, says) in
            [(LandlockStatus::NotImplemented, "has no Landlock"), (LandlockStatus::NotEnabled, "not enabled")]
        {
            let none = report(status, true);
            assert_eq!((none.state, none.landlock_abi, none.files), (SandboxState::Unavailable, None, false));
            assert!(none.summary().contains(says), "{}", none.summary());
        }
        assert!(report(LandlockStatus::NotImplemented, false).summary().contains("no_new_privs is not set"));
    }

    #[test]
    fn only_files_that_an_onnx_model_names_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.onnx");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx");
        std::fs::copy(data.join("external.onnx"), &model).unwrap();
        assert!(files_beside(&model).is_empty(), "its weights are not there");
        for name in ["external.data", "secret.txt"] {
            std::fs::write(dir.path().join(name), vec![0; 256 * 256 * 4]).unwrap();
        }
        assert_eq!(files_beside(&model), [dir.path().join("external.data")]);
        assert!(files_beside(&data.join("whole.onnx")).is_empty() && files_beside(&dir.path().join("none")).is_empty());
    }

    #[test]
    fn only_libraries_beside_a_library_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["model.so", "libhelp.so.1", "secret.txt", "model.dlc"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let mut names: Vec<_> = siblings(&dir.path().join("model.so"));
        names.sort();
        assert_eq!(names, ["libhelp.so.1", "model.so"].map(|name| dir.path().join(name)));
        // Links that lead outside the folder are not followed; those within it are.
        for (link, to) in [
            ("root.so", "/"),
            ("stdout.so", "/proc/self/fd/1"),
            ("host.so", "/etc/hostname"),
            ("libhelp.so", "libhelp.so.1"),
        ] {
            std::os::unix::fs::symlink(to, dir.path().join(link)).unwrap();
        }
        let mut names: Vec<_> = siblings(&dir.path().join("model.so"));
        names.sort();
        assert_eq!(names, ["libhelp.so", "libhelp.so.1", "model.so"].map(|name| dir.path().join(name)));
        assert!(siblings(&dir.path().join("model.dlc")).is_empty());
    }
}
