//! Checks of libraries: present, for this CPU, with their dependencies.

use super::scene::{FileFacts, Scene};
use super::verdict::CheckVerdict;
use crate::backends::Backend;
use crate::facts::Listing;
use object::elf;

/// The QNN libraries for the CPU side that the process finds: those of the backend, if it is known.
fn own_side(scene: &Scene) -> Vec<FileFacts> {
    let names = match scene.about.backend {
        Some(Backend::Htp) => vec!["libQnnHtp.so", "libQnnSystem.so", "libQnnHtpPrepare.so", "libQnnModelDlc.so"],
        Some(backend) => vec![backend.library(), "libQnnSystem.so", "libQnnModelDlc.so"],
        None => vec![
            "libQnnCpu.so",
            "libQnnGpu.so",
            "libQnnHtp.so",
            "libQnnSystem.so",
            "libQnnHtpPrepare.so",
            "libQnnModelDlc.so",
        ],
    };
    let is_htp = scene.about.backend.is_none_or(|backend| backend == Backend::Htp);
    let stub = scene.about.arch().filter(|_| is_htp).map(|arch| format!("libQnnHtpV{arch}Stub.so"));
    names.into_iter().map(ToOwned::to_owned).chain(stub).filter_map(|name| scene.library(&name)).collect()
}

/// Whether a library with this name is present.
fn there(scene: &Scene, name: &str) -> CheckVerdict {
    let look = match scene.look() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    match scene.library(name) {
        Some(file) if !file.readable => CheckVerdict::confirms(format!("this user may not read {}", file.path)),
        Some(file) if file.bytes == 0 => CheckVerdict::confirms(format!("{} has 0 bytes", file.path)),
        Some(file) => CheckVerdict::refutes(format!("{} exists and is readable", file.path)),
        None => {
            let folders = &scene.about.library_folders;
            let listed = |path: &String| look.folder(path).is_some_and(|folder| folder.listing != Listing::Refused);
            if folders.iter().any(listed) {
                CheckVerdict::confirms(format!("{name} is in none of {}", folders.join(", ")))
            } else {
                CheckVerdict::unknown("the folders the process searched are unknown")
            }
        }
    }
}

/// Whether the backend's library is in the folder.
pub fn backend_file(scene: &Scene) -> CheckVerdict {
    match scene.about.backend {
        Some(backend) => there(scene, backend.library()),
        None => CheckVerdict::unknown("the requested backend is unknown"),
    }
}

/// Whether the library that compiles graphs on a device is there.
pub fn prepare_file(scene: &Scene) -> CheckVerdict {
    if scene.about.backend.is_some_and(|backend| backend != Backend::Htp) {
        return CheckVerdict::refutes("only HTP needs libQnnHtpPrepare.so");
    }
    there(scene, "libQnnHtpPrepare.so")
}

/// Whether the libraries are for this CPU.
pub fn elf_header(scene: &Scene) -> CheckVerdict {
    if let Err(unknown) = scene.look() {
        return unknown;
    }
    if let Some(unlike) = unlike(scene) {
        return CheckVerdict::confirms(unlike);
    }
    let read = own_side(scene).into_iter().filter(|file| file.was_read).count();
    match machine(scene) {
        _ if read == 0 => CheckVerdict::unknown("none of the libraries could be read"),
        None => CheckVerdict::unknown("the CPU architecture of this device is unknown"),
        Some((_, name)) => CheckVerdict::refutes(format!("all {read} libraries are for {name}")),
    }
}

/// Evidence that a library is not for this CPU.
fn unlike(scene: &Scene) -> Option<String> {
    let files: Vec<FileFacts> = own_side(scene).into_iter().filter(|file| file.was_read).collect();
    for file in &files {
        match &file.elf {
            None => return Some(format!("{} is not an ELF file", file.path)),
            Some(elf) if elf.machine == elf::EM_HEXAGON => {
                return Some(format!("{} is for the DSP ({})", file.path, elf.label()));
            }
            Some(_) => {}
        }
    }
    let (machine, name) = machine(scene)?;
    let other = |file: &FileFacts| {
        let elf = file.elf.as_ref().filter(|elf| elf.machine != machine)?;
        Some(format!("{} is {}; the device is {name}", file.path, elf.label()))
    };
    files.iter().find_map(other)
}

/// ELF machine of the CPU, and its name.
pub(super) fn machine(scene: &Scene) -> Option<(elf::Machine, String)> {
    let told = scene.about.facts.as_ref().map(|facts| facts.abi.clone());
    let name = told.or_else(|| scene.look.as_ref().ok()?.machine.clone())?;
    let machine = match name.as_str() {
        "arm64-v8a" | "arm64" | "aarch64" => elf::EM_AARCH64,
        "x86_64" | "amd64" => elf::EM_X86_64,
        "armeabi-v7a" | "armv7l" | "arm" => elf::EM_ARM,
        _ => return None,
    };
    Some((machine, name))
}

/// Whether the missing library is the C++ runtime.
pub fn needed_libcxx(scene: &Scene) -> CheckVerdict {
    needed(scene, |name| name.starts_with("libc++"), "the C++ runtime is present")
}

/// Whether any needed library is missing.
pub fn needed_any(scene: &Scene) -> CheckVerdict {
    needed(scene, |_| true, "every library that the QNN libraries need is present")
}

fn needed(scene: &Scene, wanted: impl Fn(&str) -> bool, all_there: &str) -> CheckVerdict {
    if let Some(unlike) = unlike(scene) {
        return CheckVerdict::neutral(format!("{unlike}, so its dependencies explain nothing"));
    }
    let Some(missing) = &scene.missing else {
        return CheckVerdict::unknown("the libraries' dependencies could not be resolved");
    };
    let missing: Vec<String> =
        missing.iter().filter(|(name, _)| wanted(name)).map(|(name, by)| format!("{name}, needed by {by}")).collect();
    if missing.is_empty() {
        CheckVerdict::refutes(all_there)
    } else {
        CheckVerdict::confirms(format!("missing: {}", missing.join("; ")))
    }
}

/// Whether this machine is a PC, which has no Adreno.
pub fn pc_machine(scene: &Scene) -> CheckVerdict {
    match (scene.about.is_here, scene.is_pc) {
        (true, true) => CheckVerdict::confirms(format!("this machine is a PC ({})", std::env::consts::ARCH)),
        (true, false) => CheckVerdict::refutes(format!("this machine's CPU is {}", std::env::consts::ARCH)),
        (false, _) => CheckVerdict::refutes("it ran on a device"),
    }
}

/// Whether the Windows catalogue files lie beside the skels: each `libQnnHtpV73Skel.so` needs a
/// `libqnnhtpv73.cat`, with the stub and the backend in the same folder.
pub fn windows_files(scene: &Scene) -> CheckVerdict {
    let look = match scene.look() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    let Some(folder) = scene.about.folder.as_deref().and_then(|path| look.folder(path)) else {
        return CheckVerdict::unknown("name the folder of QnnHtp.dll with --files DIR");
    };
    let names: Vec<String> = folder.files().iter().map(|file| file.name.to_lowercase()).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    let skels: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("libqnnhtpv")?.strip_suffix("skel.so")?.parse().ok())
        .collect();
    if !has("qnnhtp.dll") && skels.is_empty() {
        return CheckVerdict::unknown(format!("{} has neither QnnHtp.dll nor a skel", folder.path));
    }
    let mut missing = Vec::new();
    if !has("qnnhtp.dll") {
        missing.push("QnnHtp.dll".to_owned());
    }
    if skels.is_empty() {
        missing.push("libQnnHtpV*Skel.so".to_owned());
    }
    for arch in &skels {
        for name in [format!("libqnnhtpv{arch}.cat"), format!("QnnHtpV{arch}Stub.dll")] {
            if !has(&name.to_lowercase()) {
                missing.push(name);
            }
        }
    }
    if missing.is_empty() {
        CheckVerdict::refutes(format!("QnnHtp.dll, stub, skel and .cat are together in {}", folder.path))
    } else {
        CheckVerdict::confirms(format!("{} lacks {}", folder.path, missing.join(", ")))
    }
}
