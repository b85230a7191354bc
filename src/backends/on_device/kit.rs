//! Which files of the SDK a run needs on the device.

use super::OnDeviceError;
use super::sdk::{LibraryTarget, TOOL};
use crate::backends::Backend;
use crate::backends::settings::Resolved;
use crate::devices::socs_by_model;
use crate::event::DeviceFacts;
use crate::facts::read_elf;
use crate::models::ModelFormat;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Library that reads DLCs and context binaries.
const SYSTEM_LIBRARY: &str = "libQnnSystem.so";
/// Library passed to qnn-net-run as the model if the real one is a DLC.
pub const DLC_LIBRARY: &str = "libQnnModelDlc.so";
/// Library that reads the HTP configuration.
pub const HTP_EXTENSIONS: &str = "libQnnHtpNetRunExtensions.so";

/// Files by their name on the device.
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
    /// True if there is an HTP configuration for qnn-net-run.
    pub configured: bool,
    /// False if the HTP is only emulated.
    pub has_dsp: bool,
}

/// The tool, the libraries that this backend, this model and this DSP need, and the SDK libraries that those
/// are linked with.
pub fn kit(target: &LibraryTarget, needs: Needs) -> Result<Kit, OnDeviceError> {
    let mut kit = backend_libraries(target, needs)?;
    kit.insert(TOOL.to_owned(), target.tool());
    if needs.format == ModelFormat::Dlc {
        kit.insert(DLC_LIBRARY.to_owned(), target.needed(DLC_LIBRARY, "composes DLCs")?);
    }
    if needs.backend == Backend::Htp && needs.configured {
        kit.insert(HTP_EXTENSIONS.to_owned(), target.needed(HTP_EXTENSIONS, "reads the HTP configuration")?);
    }
    add_linked(&mut kit, target);
    Ok(kit)
}

/// The libraries qnnscope's own runner needs: like [`kit`], without the tool and what only the tool opens.
pub fn runner_libraries(target: &LibraryTarget, needs: Needs) -> Result<Kit, OnDeviceError> {
    let mut kit = backend_libraries(target, needs)?;
    add_linked(&mut kit, target);
    Ok(kit)
}

/// The libraries that an inspection needs: any available backend of `names`, for its function table, and the system
/// library.
pub fn inspection_libraries(target: &LibraryTarget, names: &[&str]) -> Result<Kit, OnDeviceError> {
    let why = "reads DLCs and context binaries";
    let mut kit = Kit::from([(SYSTEM_LIBRARY.to_owned(), target.needed(SYSTEM_LIBRARY, why)?)]);
    match names.iter().find_map(|name| Some(((*name).to_owned(), target.library(name)?))) {
        Some((name, path)) => {
            kit.insert(name, path);
        }
        None => {
            target.needed(Backend::Cpu.library(), "tells the size of its function table")?;
        }
    }
    add_linked(&mut kit, target);
    Ok(kit)
}

fn backend_libraries(target: &LibraryTarget, needs: Needs) -> Result<Kit, OnDeviceError> {
    let mut kit = Kit::new();
    let mut add = |name: &str, why: &str| -> Result<(), OnDeviceError> {
        kit.insert(name.to_owned(), target.needed(name, why)?);
        Ok(())
    };
    add(needs.backend.library(), &format!("is the {} backend", needs.backend))?;
    if needs.format != ModelFormat::ModelLibrary {
        add(SYSTEM_LIBRARY, "reads DLCs and context binaries")?;
    }
    // An emulated HTP has neither a DSP nor a separate compiler.
    if needs.backend == Backend::Htp && needs.has_dsp {
        if needs.format != ModelFormat::ContextBinary {
            add("libQnnHtpPrepare.so", "compiles graphs on the device")?;
        }
        if let Some(arch) = needs.arch {
            add(&format!("libQnnHtpV{arch}Stub.so"), &format!("speaks to the DSP (v{arch})"))?;
            kit.insert(format!("libQnnHtpV{arch}Skel.so"), target.skel(arch)?);
        }
    }
    Ok(kit)
}

/// The Hexagon architecture for which to send files; `None` for other backends.
pub fn hexagon_arch(backend: Backend, resolved: &Resolved, facts: &DeviceFacts) -> Result<Option<u32>, OnDeviceError> {
    if backend != Backend::Htp {
        return Ok(None);
    }
    let asked = resolved.arch.or_else(|| {
        let model = resolved.soc_model?;
        socs_by_model(model).find_map(|soc| soc.arch)
    });
    let known = facts.soc.hexagon_arch.as_deref().and_then(|arch| arch.strip_prefix('v')?.parse().ok());
    match known.or(asked) {
        Some(arch) if arch < 68 => Err(OnDeviceError::NoHtp { device: facts.id.clone(), arch: format!("v{arch}") }),
        Some(arch) => Ok(Some(arch)),
        None => Err(OnDeviceError::NoArch {
            device: facts.id.clone(),
            soc: facts.soc.part.clone().unwrap_or_else(|| "unknown".to_owned()),
        }),
    }
}

/// Adds the files' linked libraries if the SDK has them; the rest belongs to the system.
fn add_linked(kit: &mut Kit, target: &LibraryTarget) {
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

/// Names of a file's linked libraries; none if it is not readable as ELF.
fn linked(path: &Path) -> Vec<String> {
    read_elf(path).ok().flatten().and_then(|facts| facts.needed).unwrap_or_default()
}
