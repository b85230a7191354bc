//! Checks of context binaries against the device and the runtime.

use super::scene::Scene;
use super::verdict::CheckVerdict;
use crate::backends::Backend;
use crate::facts::{BuildId, build_id_in, release};
use crate::models::ModelFormat;

/// Architecture that the binary was made for.
fn binary_arch(scene: &Scene) -> Option<u32> {
    let info = scene.about.model.as_ref().and_then(|model| model.context_binary.as_ref());
    info.and_then(|info| info.hexagon_arch).or(scene.context.as_ref().and_then(|text| text.arch))
}

/// Whether the binary's architecture is above the device's.
pub fn arch(scene: &Scene) -> CheckVerdict {
    let Some(binary) = binary_arch(scene) else {
        return CheckVerdict::unknown("the context binary does not record its architecture");
    };
    let Some(device) = scene.about.arch() else {
        return CheckVerdict::unknown(format!("the binary is for v{binary}; the device's architecture is unknown"));
    };
    if binary > device {
        CheckVerdict::confirms(format!("the binary is for Hexagon v{binary}, this device has v{device}"))
    } else {
        CheckVerdict::refutes(format!("the binary is for Hexagon v{binary}, which runs on this device's v{device}"))
    }
}

/// Whether the binary was made for another SoC. That alone prevents nothing: binaries often run on other SoCs
/// of the same architecture.
pub fn soc(scene: &Scene) -> CheckVerdict {
    let Some(made_for) = scene.context.as_ref().and_then(|text| text.soc.as_deref()) else {
        return CheckVerdict::unknown("the context binary does not record its SoC");
    };
    match scene.about.facts.as_ref().and_then(|facts| facts.soc.part.as_deref()) {
        Some(part) => CheckVerdict::neutral(format!("the binary was made for {made_for}; this device is {part}")),
        None => CheckVerdict::unknown(format!("the binary was made for {made_for}; the device's SoC is unknown")),
    }
}

/// Whether the binary requires more VTCM than the SoC has.
pub fn vtcm(scene: &Scene) -> CheckVerdict {
    let info = scene.about.model.as_ref().and_then(|model| model.context_binary.as_ref());
    let told = info.and_then(|info| info.graphs.iter().filter_map(|graph| graph.vtcm_bytes).max());
    let text = scene.context.as_ref().and_then(|text| text.vtcm_mb).map(|mb| u64::from(mb) << 20);
    let Some(wanted) = told.filter(|bytes| *bytes > 0).or(text) else {
        return CheckVerdict::unknown("the context binary does not record its VTCM");
    };
    let wanted_mb = wanted.div_ceil(1 << 20);
    match scene.about.facts.as_ref().and_then(|facts| facts.soc.vtcm_mb) {
        Some(there) if wanted_mb > u64::from(there) => {
            CheckVerdict::confirms(format!("the binary needs {wanted_mb} MB of VTCM, this SoC has {there} MB"))
        }
        Some(there) => {
            CheckVerdict::refutes(format!("the binary needs {wanted_mb} MB of VTCM, this SoC has {there} MB"))
        }
        None => {
            CheckVerdict::unknown(format!("the binary needs {wanted_mb} MB of VTCM; how much this SoC has is unknown"))
        }
    }
}

/// Whether the runtime is older than the SDK that wrote the binary.
pub fn writer(scene: &Scene) -> CheckVerdict {
    let info = scene.about.model.as_ref().and_then(|model| model.context_binary.as_ref());
    let told = info.and_then(|info| build_id_in(info.build_id.as_bytes()));
    let Some(writer) = told.or_else(|| scene.context.as_ref()?.writer.clone()) else {
        return CheckVerdict::unknown("the context binary does not record the SDK that wrote it");
    };
    let Some(runtime) = runtime(scene) else {
        return CheckVerdict::unknown(format!("{writer} wrote the binary; the runtime's build is unknown"));
    };
    if writer.release > runtime.release {
        CheckVerdict::confirms(format!("{writer} wrote the binary, the older {runtime} is running"))
    } else {
        CheckVerdict::refutes(format!("{writer} wrote the binary, {runtime} is running"))
    }
}

fn runtime(scene: &Scene) -> Option<BuildId> {
    let loaded = scene.about.runtime_build.as_deref().and_then(|build| build_id_in(build.as_bytes()));
    // A binary with a Hexagon architecture is for HTP.
    let backend = scene.about.backend.or_else(|| binary_arch(scene).map(|_| Backend::Htp));
    loaded.or_else(|| scene.library(backend?.library())?.build)
}

/// Whether the runtime that reads the DLC is older than its writer.
pub fn dlc_maker(scene: &Scene) -> CheckVerdict {
    let Some(maker) = &scene.dlc_maker else {
        return CheckVerdict::unknown("the DLC does not record its SDK, or there is no DLC to read");
    };
    let library = |name: &str| Some((name.to_owned(), scene.library(name)?.build?));
    let tool = scene.tool.clone().map(|build| ("qnn-net-run".to_owned(), build));
    let backend = scene.about.backend.and_then(|backend| library(backend.library()));
    let readers = [tool, library("libQnnModelDlc.so"), library("libQnnSystem.so"), backend];
    let oldest = readers.into_iter().flatten().min_by_key(|(_, build)| build.release);
    let runtime = || Some(("the runtime".to_owned(), runtime(scene)?));
    let (Some((reader, build)), Some(made)) = (oldest.or_else(runtime), release(maker)) else {
        return CheckVerdict::unknown(format!("SDK {maker} made the DLC; the build that reads it is unknown"));
    };
    let text = format!("SDK {maker} made the DLC, {reader} is {build}");
    if made > build.release { CheckVerdict::confirms(text) } else { CheckVerdict::refutes(text) }
}

/// Whether the file is a context binary at all.
pub fn container(scene: &Scene) -> CheckVerdict {
    match &scene.model_kind {
        None => CheckVerdict::unknown("the model file is unknown or cannot be read here"),
        Some(Ok(ModelFormat::ContextBinary)) => CheckVerdict::neutral("it starts like a context binary"),
        Some(Ok(format)) => CheckVerdict::confirms(format!("the file is a {}", format.label())),
        Some(Err(reason)) => CheckVerdict::confirms(reason),
    }
}

/// Whether the file is shorter than its header says.
pub fn whole(scene: &Scene) -> CheckVerdict {
    match &scene.context {
        Some(text) => match text.needs_bytes {
            Some(needs) if needs > text.bytes => {
                CheckVerdict::confirms(format!("the file is truncated: it has {} of {needs} bytes", text.bytes))
            }
            Some(needs) => CheckVerdict::neutral(format!("the file has the {needs} bytes that its header names")),
            None => CheckVerdict::unknown("the file does not tell how long it has to be"),
        },
        None => CheckVerdict::unknown("the model file is unknown or cannot be read here"),
    }
}
