//! Which files of the SDK a run needs on the device.

use super::NetRunError;
use super::sdk::{TOOL, Target};
use crate::backends::Backend;
use crate::models::ModelFormat;
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Library that qnn-net-run takes for a model when the real one is a DLC.
pub const DLC_LIBRARY: &str = "libQnnModelDlc.so";
/// Library that reads the HTP configuration.
pub const HTP_EXTENSIONS: &str = "libQnnHtpNetRunExtensions.so";

/// Files by the name they have on the device.
pub type Kit = BTreeMap<String, PathBuf>;

/// What decides which files are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Backend.
    pub backend: Backend,
    /// Format of the model.
    pub format: ModelFormat,
    /// Hexagon architecture, such as 75; HTP only.
    pub arch: Option<u32>,
    /// True if there is an HTP configuration.
    pub configured: bool,
}

/// The tool, and the libraries that this backend, this model and this DSP need, with the libraries of the SDK that those
/// are linked with.
pub fn kit(target: &Target, needs: Needs) -> Result<Kit, NetRunError> {
    let mut kit = Kit::from([(TOOL.to_owned(), target.tool())]);
    let mut add = |name: &str, why: &str| -> Result<(), NetRunError> {
        kit.insert(name.to_owned(), target.needed(name, why)?);
        Ok(())
    };
    add(needs.backend.library(), &format!("is the {} backend", needs.backend))?;
    let prepared = needs.format == ModelFormat::ContextBinary;
    if needs.format != ModelFormat::ModelLibrary {
        add("libQnnSystem.so", "reads DLCs and context binaries")?;
    }
    if needs.format == ModelFormat::Dlc {
        add(DLC_LIBRARY, "composes DLCs")?;
    }
    if needs.backend == Backend::Htp {
        if !prepared {
            add("libQnnHtpPrepare.so", "compiles graphs on the device")?;
        }
        if needs.configured {
            add(HTP_EXTENSIONS, "reads the HTP configuration")?;
        }
        if let Some(arch) = needs.arch {
            add(&format!("libQnnHtpV{arch}Stub.so"), &format!("speaks to the DSP (v{arch})"))?;
            kit.insert(format!("libQnnHtpV{arch}Skel.so"), target.skel(arch)?);
        }
    }
    add_linked(&mut kit, target);
    Ok(kit)
}

/// Adds what the files are linked with, where the SDK brings it; the rest is the system's.
fn add_linked(kit: &mut Kit, target: &Target) {
    let mut waiting: Vec<PathBuf> = kit.values().cloned().collect();
    while let Some(path) = waiting.pop() {
        for name in linked(&path) {
            if let Some(library) = target.library(&name).filter(|_| !kit.contains_key(&name)) {
                waiting.push(library.clone());
                kit.insert(name, library);
            }
        }
    }
}

/// Names of the libraries that a file is linked with; none for one that cannot be read as ELF.
fn linked(path: &Path) -> Vec<String> {
    let Ok(data) = std::fs::read(path) else { return Vec::new() };
    names(&data).unwrap_or_default()
}

fn names(data: &[u8]) -> Option<Vec<String>> {
    let file = ElfFile64::<object::Endianness>::parse(data).ok()?;
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, data).ok()?;
    let (dynamic, strings) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, strings).ok()?;
    let needed = dynamic.iter().filter(|entry| entry.d_tag(endian) == object::elf::DT_NEEDED);
    let name = |entry: &object::elf::Dyn64<_>| entry.string(endian, strings).ok();
    Some(needed.filter_map(name).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
