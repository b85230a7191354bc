//! The user's SDK: its tools and libraries for a device.

use super::OnDeviceError;
use crate::backends::Backend;
use crate::backends::runtime::{Env, elf_machine, version_key};
use crate::event::DeviceFacts;
use crate::facts::machine_name;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const TOOL: &str = "qnn-net-run";

/// Root of an SDK with the tool for some target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    /// Root folder.
    pub root: PathBuf,
}

/// What an SDK has for one kind of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryTarget {
    /// Name of the folder, such as `aarch64-android`.
    pub name: String,
    root: PathBuf,
    /// Libraries of the device and its DSP, if not laid out like an SDK: all in the root.
    flat: bool,
}

impl Sdk {
    /// The SDK named by `--runtime`, else `$QNN_SDK_ROOT`, else `$QAIRT_SDK_ROOT`.
    pub fn locate(option: Option<&Path>, env: &Env) -> Result<Self, OnDeviceError> {
        let places = [
            ("--runtime", option),
            ("$QNN_SDK_ROOT", env.qnn_sdk_root.as_deref()),
            ("$QAIRT_SDK_ROOT", env.qairt_sdk_root.as_deref()),
        ];
        let mut looked = Vec::new();
        for (name, place) in places {
            match place {
                Some(root) if !targets(root).is_empty() => return Ok(Self { root: root.to_owned() }),
                Some(root) => looked.push(format!("{name} is {}, which has no bin/*/{TOOL}", root.display())),
                None => looked.push(format!("{name} is not set")),
            }
        }
        Err(OnDeviceError::NoSdk { looked })
    }

    /// Where its tools and libraries are.
    pub fn folders(&self) -> [PathBuf; 2] {
        [self.root.join("bin"), self.root.join("lib")]
    }

    /// The tools for a device.
    pub fn target(&self, facts: &DeviceFacts) -> Result<LibraryTarget, OnDeviceError> {
        let wanted = wanted(facts);
        match best_first(targets(&self.root), wanted).into_iter().next() {
            Some(name) => Ok(LibraryTarget { name, root: self.root.clone(), flat: false }),
            None => Err(OnDeviceError::NoTarget {
                root: self.root.clone(),
                device: format!("{} ({}, {})", facts.id, facts.os, facts.abi),
                wanted: wanted.iter().map(|name| format!("bin/{name}*/{TOOL}")).collect(),
            }),
        }
    }
}

impl LibraryTarget {
    /// The libraries for a device in a place named by the user: those of an SDK, with or without its tools, or of a
    /// plain folder. `None` if it has none for this device's system and processor (`aarch64`, `x86_64`).
    pub fn of_libraries(place: &Path, facts: &DeviceFacts, machine: &str) -> Option<Self> {
        let entries = std::fs::read_dir(place.join("lib")).into_iter().flatten().flatten();
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let in_sdk = best_first(names, wanted(facts)).into_iter();
        let candidates = in_sdk.map(|name| Self { name, root: place.to_owned(), flat: false }).chain([Self {
            name: String::new(),
            root: place.to_owned(),
            flat: true,
        }]);
        candidates.into_iter().find(|target| {
            let names = Backend::ALL.iter().map(|backend| backend.library()).chain(["libQnnSystem.so"]);
            let mut there = names.filter_map(|name| target.library(name));
            there.any(|path| machine_name(elf_machine(&path).ok().flatten()) == machine)
        })
    }

    /// The tool.
    pub fn tool(&self) -> PathBuf {
        self.root.join("bin").join(&self.name).join(TOOL)
    }

    /// True if the HTP library only emulates the hardware: it is built for a processor no Snapdragon has.
    pub fn is_emulated(&self) -> bool {
        let machine = self.library(Backend::Htp.library()).and_then(|path| elf_machine(&path).ok().flatten());
        matches!(machine, Some(object::elf::EM_X86_64 | object::elf::EM_386))
    }

    /// Folder of all libraries, including the DSP's.
    pub fn folder(&self) -> PathBuf {
        if self.flat { self.root.clone() } else { self.root.join("lib") }
    }

    /// Folder of the libraries.
    pub fn libraries(&self) -> PathBuf {
        if self.flat { self.root.clone() } else { self.root.join("lib").join(&self.name) }
    }

    /// A library of the target, if present.
    pub fn library(&self, name: &str) -> Option<PathBuf> {
        Some(self.libraries().join(name)).filter(|path| path.is_file())
    }

    /// A library that must be present.
    pub fn needed(&self, name: &str, why: &str) -> Result<PathBuf, OnDeviceError> {
        let missing = || OnDeviceError::NoFile {
            root: self.root.clone(),
            file: if self.flat { name.to_owned() } else { format!("lib/{}/{name}", self.name) },
            why: why.to_owned(),
        };
        self.library(name).ok_or_else(missing)
    }

    /// The DSP's side of the HTP backend for an architecture, such as 75.
    pub fn skel(&self, arch: u32) -> Result<PathBuf, OnDeviceError> {
        let name = format!("libQnnHtpV{arch}Skel.so");
        let file = if self.flat { name } else { format!("lib/hexagon-v{arch}/unsigned/{name}") };
        let path = self.root.join(&file);
        let why = format!("the DSP (v{arch}) runs");
        if path.is_file() { Ok(path) } else { Err(OnDeviceError::NoFile { root: self.root.clone(), file, why }) }
    }
}

/// Targets of an SDK with the tool.
fn targets(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("bin")).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.path().join(TOOL).is_file());
    names.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Names with the given prefix. There may be several generations of one toolchain; the newest one fits the newest
/// systems.
fn best_first(mut names: Vec<String>, wanted: &[&str]) -> Vec<String> {
    let place = |name: &str| wanted.iter().position(|wanted| name.starts_with(wanted));
    names.retain(|name| place(name).is_some());
    names.sort_by_key(|name| (place(name), std::cmp::Reverse(version_key(name))));
    names
}

/// Names of targets for a device, best first.
fn wanted(facts: &DeviceFacts) -> &'static [&'static str] {
    let android = facts.os.starts_with("Android");
    match (android, facts.abi.as_str()) {
        (true, _) => &["aarch64-android"],
        (false, "aarch64" | "arm64") => &["aarch64-oe-linux-gcc", "aarch64-ubuntu-gcc"],
        (false, _) => &["x86_64-linux-clang"],
    }
}
