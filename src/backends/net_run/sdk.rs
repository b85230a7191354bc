//! The user's SDK: its tools and libraries for a device.

use super::NetRunError;
use crate::backends::Backend;
use crate::backends::runtime::{Env, elf_machine, version_key};
use crate::event::DeviceFacts;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const TOOL: &str = "qnn-net-run";

/// Root of an SDK that has the tool for some target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    /// Root folder.
    pub root: PathBuf,
}

/// What an SDK has for one kind of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name of the folder, such as `aarch64-android`.
    pub name: String,
    root: PathBuf,
}

impl Sdk {
    /// The SDK that `--runtime` names, else `$QNN_SDK_ROOT`, else `$QAIRT_SDK_ROOT`.
    pub fn locate(option: Option<&Path>, env: &Env) -> Result<Self, NetRunError> {
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
        Err(NetRunError::NoSdk { looked })
    }

    /// The tools for a device.
    pub fn target(&self, facts: &DeviceFacts) -> Result<Target, NetRunError> {
        let wanted = wanted(facts);
        let mut found: Vec<String> = targets(&self.root)
            .into_iter()
            .filter(|name| wanted.iter().any(|wanted| name.starts_with(wanted)))
            .collect();
        // Several generations of one tool chain may be there; the newest one fits newest systems.
        found.sort_by_key(|name| {
            (wanted.iter().position(|wanted| name.starts_with(wanted)), std::cmp::Reverse(version_key(name)))
        });
        match found.into_iter().next() {
            Some(name) => Ok(Target { name, root: self.root.clone() }),
            None => Err(NetRunError::NoTarget {
                root: self.root.clone(),
                device: format!("{} ({}, {})", facts.id, facts.os, facts.abi),
                wanted: wanted.iter().map(|name| format!("bin/{name}*/{TOOL}")).collect(),
            }),
        }
    }
}

impl Target {
    /// The tool.
    pub fn tool(&self) -> PathBuf {
        self.root.join("bin").join(&self.name).join(TOOL)
    }

    /// True where the HTP library only emulates the hardware: it is for a processor that no Snapdragon has.
    pub fn is_emulated(&self) -> bool {
        let machine = self.library(Backend::Htp.library()).and_then(|path| elf_machine(&path).ok().flatten());
        matches!(machine, Some(object::elf::EM_X86_64 | object::elf::EM_386))
    }

    /// Folder of the libraries.
    pub fn libraries(&self) -> PathBuf {
        self.root.join("lib").join(&self.name)
    }

    /// A library of the target, if it is there.
    pub fn library(&self, name: &str) -> Option<PathBuf> {
        Some(self.libraries().join(name)).filter(|path| path.is_file())
    }

    /// A library that has to be there.
    pub fn needed(&self, name: &str, why: &str) -> Result<PathBuf, NetRunError> {
        let missing = || NetRunError::NoFile {
            root: self.root.clone(),
            file: format!("lib/{}/{name}", self.name),
            why: why.to_owned(),
        };
        self.library(name).ok_or_else(missing)
    }

    /// The DSP's side of the HTP backend for an architecture, such as 75.
    pub fn skel(&self, arch: u32) -> Result<PathBuf, NetRunError> {
        let file = format!("lib/hexagon-v{arch}/unsigned/libQnnHtpV{arch}Skel.so");
        let path = self.root.join(&file);
        let why = format!("the DSP (v{arch}) runs");
        if path.is_file() { Ok(path) } else { Err(NetRunError::NoFile { root: self.root.clone(), file, why }) }
    }
}

/// Targets of an SDK that have the tool.
fn targets(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("bin")).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.path().join(TOOL).is_file());
    names.filter_map(|entry| entry.file_name().into_string().ok()).collect()
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
