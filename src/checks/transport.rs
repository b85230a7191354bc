//! Checks of the path to the DSP: skel, stub, search path, build ids, FastRPC.

use super::scene::{FileFacts, Scene, numbered};
use super::verdict::CheckVerdict;
use crate::facts::{BuildId, Listing};

/// A verdict in either case; `Err` ends a check early.
type Checked = Result<CheckVerdict, CheckVerdict>;

fn either(told: Checked) -> CheckVerdict {
    told.unwrap_or_else(|verdict| verdict)
}

fn arch(scene: &Scene) -> Result<u32, CheckVerdict> {
    scene.about.arch().ok_or_else(|| CheckVerdict::unknown("the Hexagon architecture of this device is unknown"))
}

/// Entries of `ADSP_LIBRARY_PATH` that contain colons.
fn colons(scene: &Scene) -> Vec<String> {
    let path = scene.about.dsp_path.as_deref().unwrap_or_default();
    path.split(';').filter(|entry| entry.contains(':')).map(ToOwned::to_owned).collect()
}

fn folders(scene: &Scene) -> String {
    let folders = scene.about.dsp_folders();
    let mut shown = folders.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    if folders.len() > 4 {
        shown += ", ...";
    }
    shown
}

/// Skels that the DSP would find, by architecture, with their location.
fn skels(scene: &Scene) -> Vec<(u32, FileFacts)> {
    let mut found = Vec::new();
    for folder in scene.dsp_folders() {
        for file in folder.files() {
            if let (Some(arch), Some(facts)) = (numbered(&file.name, "Skel.so"), scene.file(folder, &file.name)) {
                found.push((arch, facts));
            }
        }
    }
    found
}

/// The problem with a file, if any.
fn damage(file: &FileFacts) -> Option<String> {
    let path = &file.path;
    if !file.readable {
        return Some(format!("this user may not read {path}"));
    }
    if file.bytes == 0 {
        return Some(format!("{path} has 0 bytes"));
    }
    if !file.was_read {
        return None;
    }
    let Some(elf) = &file.elf else { return Some(format!("{path} is not an ELF file")) };
    let needs = elf.needs_bytes.filter(|needs| *needs > file.bytes)?;
    Some(format!("{path} is truncated: it has {} of {needs} bytes", file.bytes))
}

/// Whether the skel for this DSP is where `ADSP_LIBRARY_PATH` points.
pub fn skel_files(scene: &Scene) -> CheckVerdict {
    either(try_skel_files(scene))
}

fn try_skel_files(scene: &Scene) -> Checked {
    scene.look()?;
    let arch = arch(scene)?;
    let name = format!("libQnnHtpV{arch}Skel.so");
    if let Some(file) = scene.on_dsp_path(&name) {
        return Ok(match damage(&file) {
            Some(damage) => CheckVerdict::confirms(damage),
            None => CheckVerdict::refutes(format!("{} exists and is readable", file.path)),
        });
    }
    if !colons(scene).is_empty() {
        return Ok(CheckVerdict::neutral(format!(
            "{name} is in no folder of ADSP_LIBRARY_PATH, whose entries contain colons"
        )));
    }
    let others = skels(scene);
    if let Some((other, file)) = others.first() {
        return Ok(CheckVerdict::neutral(format!("{name} is not there; {} is, for v{other}", file.path)));
    }
    let first = scene.dsp_folders().into_iter().next();
    match first.map(|folder| &folder.listing) {
        None => Ok(CheckVerdict::unknown("the folders of ADSP_LIBRARY_PATH are unknown")),
        Some(Listing::Refused) => Ok(CheckVerdict::unknown(format!("listing {} is not permitted", folders(scene)))),
        Some(_) if scene.about.dsp_path.is_none() => {
            let text = format!("{name} is in none of {}; the value of ADSP_LIBRARY_PATH is unknown", folders(scene));
            Ok(if scene.about.folder.is_some() { CheckVerdict::confirms(text) } else { CheckVerdict::unknown(text) })
        }
        Some(_) => {
            let unlisted = scene.unlisted();
            let rest = if unlisted.is_empty() {
                String::new()
            } else {
                format!(" (listing {} is not permitted)", unlisted.join(", "))
            };
            Ok(CheckVerdict::confirms(format!(
                "{name} is in none of the folders of ADSP_LIBRARY_PATH: {}{rest}",
                folders(scene)
            )))
        }
    }
}

/// Whether the existing skel is for this DSP.
pub fn skel_arch(scene: &Scene) -> CheckVerdict {
    either(try_skel_arch(scene))
}

fn try_skel_arch(scene: &Scene) -> Checked {
    scene.look()?;
    let arch = arch(scene)?;
    let name = format!("libQnnHtpV{arch}Skel.so");
    if let Some(file) = scene.on_dsp_path(&name) {
        return Ok(match file.elf.as_ref() {
            None => CheckVerdict::unknown(format!("the header of {} could not be read as ELF", file.path)),
            Some(elf) => match elf.hexagon_arch() {
                Some(found) if found == arch => {
                    CheckVerdict::refutes(format!("{} is for v{arch}, as this DSP is", file.path))
                }
                Some(found) => CheckVerdict::confirms(format!(
                    "{} is named for v{arch}, but its ELF header says v{found}",
                    file.path
                )),
                None => CheckVerdict::confirms(format!("{} is not a Hexagon file: {}", file.path, elf.label())),
            },
        });
    }
    let others = skels(scene);
    if others.is_empty() {
        return Ok(CheckVerdict::neutral("there is no skel for any architecture"));
    }
    let names: Vec<String> = others.iter().map(|(other, file)| format!("{} (v{other})", file.path)).collect();
    Ok(CheckVerdict::confirms(format!("this DSP is v{arch}, and only {} is present", names.join(", "))))
}

/// Whether the stub is where the process searches.
pub fn stub_files(scene: &Scene) -> CheckVerdict {
    either(try_stub_files(scene))
}

fn try_stub_files(scene: &Scene) -> Checked {
    let look = scene.look()?;
    let arch = arch(scene)?;
    let name = format!("libQnnHtpV{arch}Stub.so");
    if let Some(file) = scene.library(&name) {
        return Ok(match damage(&file) {
            Some(damage) => CheckVerdict::confirms(damage),
            None => CheckVerdict::refutes(format!("{} exists and is readable", file.path)),
        });
    }
    let folders = &scene.about.library_folders;
    if folders.is_empty() || folders.iter().all(|path| look.folder(path).is_none_or(|f| f.listing == Listing::Refused))
    {
        return Ok(CheckVerdict::unknown("the folders the process searched are unknown"));
    }
    Ok(CheckVerdict::confirms(format!("{name} is in none of {}", folders.join(", "))))
}

/// Whether `ADSP_LIBRARY_PATH` is separated by semicolons.
pub fn adsp_path(scene: &Scene) -> CheckVerdict {
    let Some(path) = &scene.about.dsp_path else {
        return CheckVerdict::unknown("the process's ADSP_LIBRARY_PATH is unknown");
    };
    let entries = colons(scene);
    let Some(entry) = entries.first() else {
        return CheckVerdict::refutes(format!("ADSP_LIBRARY_PATH has no colon: {path}"));
    };
    let found = scene.about.arch().and_then(|arch| scene.on_dsp_path(&format!("libQnnHtpV{arch}Skel.so")));
    match found {
        Some(file) => {
            CheckVerdict::neutral(format!("an entry contains colons ({entry}), but {} is found anyway", file.path))
        }
        None => CheckVerdict::confirms(format!(
            "ADSP_LIBRARY_PATH has the entry {entry}, which the DSP reads as one folder name"
        )),
    }
}

/// Whether `ADSP_LIBRARY_PATH` is set at all.
pub fn adsp_path_set(scene: &Scene) -> CheckVerdict {
    match scene.about.dsp_path.as_deref() {
        None => CheckVerdict::unknown("the process's ADSP_LIBRARY_PATH is unknown"),
        Some("") => CheckVerdict::confirms("ADSP_LIBRARY_PATH is not set"),
        Some(path) => CheckVerdict::neutral(format!("ADSP_LIBRARY_PATH is {path}")),
    }
}

/// The libraries that must come from the same build, with their build ids.
fn builds(scene: &Scene) -> Vec<(String, BuildId)> {
    let mut names = vec!["libQnnHtp.so".to_owned(), "libQnnHtpPrepare.so".to_owned(), "libQnnSystem.so".to_owned()];
    names.extend(scene.about.arch().map(|arch| format!("libQnnHtpV{arch}Stub.so")));
    let mut found: Vec<(String, BuildId)> =
        names.into_iter().filter_map(|name| Some((name.clone(), scene.library(&name)?.build?))).collect();
    if let Some(name) = scene.about.arch().map(|arch| format!("libQnnHtpV{arch}Skel.so"))
        && let Some(build) = scene.on_dsp_path(&name).and_then(|file| file.build)
    {
        found.push((name, build));
    }
    found
}

/// Whether backend, stub, skel, prepare and system libraries come from the same build.
pub fn build_ids(scene: &Scene) -> CheckVerdict {
    if let Err(unknown) = scene.look() {
        return unknown;
    }
    let found = builds(scene);
    let Some((_, first)) = found.first().filter(|_| found.len() > 1) else {
        return CheckVerdict::unknown("fewer than two libraries report their build id");
    };
    if found.iter().all(|(_, build)| build == first) {
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        return CheckVerdict::refutes(format!("all are of {first}: {}", names.join(", ")));
    }
    let told: Vec<String> = found.iter().map(|(name, build)| format!("{name} {build}")).collect();
    CheckVerdict::confirms(format!("the builds differ: {}", told.join(", ")))
}

/// Whether the extensions library and the backend come from the same build.
pub fn extension_builds(scene: &Scene) -> CheckVerdict {
    let build = |name: &str| scene.library(name).and_then(|file| file.build);
    match (build("libQnnHtpNetRunExtensions.so"), build("libQnnHtp.so")) {
        (Some(extension), Some(backend)) if extension == backend => {
            CheckVerdict::refutes(format!("both are of {backend}"))
        }
        (Some(extension), Some(backend)) => {
            CheckVerdict::confirms(format!("libQnnHtpNetRunExtensions.so is of {extension}, libQnnHtp.so of {backend}"))
        }
        _ => CheckVerdict::unknown("one of the two libraries does not report its build id"),
    }
}

/// Whether the system's libraries take precedence over those sent.
pub fn vendor_files(scene: &Scene) -> CheckVerdict {
    either(try_vendor_files(scene))
}

fn try_vendor_files(scene: &Scene) -> Checked {
    let look = scene.dsp()?;
    let Some(folder) = &scene.about.folder else {
        return Ok(CheckVerdict::unknown("the folder of the libraries is unknown"));
    };
    let own = |path: &str| path.starts_with(&format!("{folder}/"));
    let arch = arch(scene)?;
    let libraries = [format!("libQnnHtpV{arch}Stub.so"), "libQnnHtp.so".to_owned(), "libQnnSystem.so".to_owned()];
    let loaded = libraries.iter().filter_map(|name| scene.library(name));
    let skel = scene.on_dsp_path(&format!("libQnnHtpV{arch}Skel.so"));
    let foreign: Vec<FileFacts> = loaded.chain(skel).filter(|file| !own(&file.path)).collect();
    if let Some(first) = foreign.first() {
        let paths: Vec<&str> = foreign.iter().map(|file| file.path.as_str()).collect();
        let build = first.build.as_ref().map_or_else(String::new, |build| format!(" ({build})"));
        return Ok(CheckVerdict::confirms(format!(
            "the system's own {}{build} is found first, not the one in {folder}",
            paths.join(", ")
        )));
    }
    let vendor: Vec<String> = look
        .files(|name| name.starts_with("libQnn"))
        .filter(|(path, _)| *path != folder)
        .map(|(path, file)| format!("{path}/{}", file.name))
        .take(4)
        .collect();
    Ok(CheckVerdict::refutes(if vendor.is_empty() {
        "the system's search paths have no QNN libraries".to_owned()
    } else {
        format!("{folder} comes before {}", vendor.join(", "))
    }))
}

/// Whether the DSP's own C++ runtime is where the skel looks for it.
pub fn dsp_libcxx(scene: &Scene) -> CheckVerdict {
    either(try_dsp_libcxx(scene))
}

fn try_dsp_libcxx(scene: &Scene) -> Checked {
    let look = scene.dsp()?;
    if look.files(|name| name.starts_with("libcdsprpc.so")).next().is_none() {
        return Ok(CheckVerdict::unknown("without libcdsprpc.so the DSP was never asked to load anything"));
    }
    let arch = arch(scene)?;
    let skel = scene.on_dsp_path(&format!("libQnnHtpV{arch}Skel.so"));
    let Some(skel) = skel else { return Ok(CheckVerdict::unknown("the skel that would need it is missing")) };
    let Some(needed) = skel.elf.as_ref().and_then(|elf| elf.needed.as_ref()) else {
        return Ok(CheckVerdict::unknown(format!("what {} needs could not be read", skel.path)));
    };
    let wanted: Vec<&String> = needed.iter().filter(|name| name.starts_with("libc++")).collect();
    if wanted.is_empty() {
        return Ok(CheckVerdict::refutes(format!("{} needs no C++ runtime of the DSP", skel.path)));
    }
    let missing: Vec<&str> =
        wanted.into_iter().filter(|name| scene.on_dsp_path(name).is_none()).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(CheckVerdict::refutes("the C++ runtime that the skel needs is in a searched folder"));
    }
    let unlisted = scene.unlisted();
    Ok(if unlisted.is_empty() {
        CheckVerdict::confirms(format!(
            "{} is in none of the folders of ADSP_LIBRARY_PATH: {}",
            missing.join(", "),
            folders(scene)
        ))
    } else {
        CheckVerdict::unknown(format!(
            "{} was not found, but listing {} is not permitted",
            missing.join(", "),
            unlisted.join(", ")
        ))
    })
}

/// Whether the FastRPC client library is present.
pub fn find_cdsprpc(scene: &Scene) -> CheckVerdict {
    let look = match scene.dsp() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    let found: Vec<String> = look
        .files(|name| name.starts_with("libcdsprpc.so"))
        .map(|(folder, file)| format!("{folder}/{}", file.name))
        .collect();
    if !found.is_empty() {
        return CheckVerdict::refutes(format!("it exists: {}", found.join(", ")));
    }
    let refused: Vec<&str> = look
        .folders
        .iter()
        .filter(|folder| folder.listing == Listing::Refused && folder.path.contains("lib64"))
        .map(|folder| folder.path.as_str())
        .collect();
    if refused.is_empty() {
        CheckVerdict::confirms("no library folder has libcdsprpc.so")
    } else {
        CheckVerdict::unknown(format!("listing {} is not permitted", refused.join(", ")))
    }
}

/// Whether the user may open the DSP's nodes.
pub fn nodes(scene: &Scene) -> CheckVerdict {
    let look = match scene.dsp() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    let compute: Vec<_> = look.nodes.iter().filter(|node| node.is_compute()).collect();
    if compute.is_empty() {
        return CheckVerdict::neutral("there is no node of the compute DSP in /dev (fastrpc-cdsp, adsprpc-smd)");
    }
    let open: Vec<&str> = compute.iter().filter(|node| node.readable).map(|node| node.path.as_str()).collect();
    if open.is_empty() {
        let shown: Vec<&str> = compute.iter().map(|node| node.shown.as_str()).collect();
        return CheckVerdict::confirms(format!("this user may open none of them: {}", shown.join("; ")));
    }
    // The mode alone does not show whether SELinux allows it.
    CheckVerdict::neutral(format!("this user may open {}", open.join(", ")))
}

/// Whether SELinux denied something related to the DSP.
pub fn denials(scene: &Scene) -> CheckVerdict {
    let look = match scene.dsp() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    match &look.denials {
        Some(lines) if !lines.is_empty() && look.selinux.as_deref() == Some("Permissive") => {
            CheckVerdict::neutral(format!("SELinux is permissive and only logged it: {}", lines[lines.len() - 1]))
        }
        Some(lines) if !lines.is_empty() => {
            CheckVerdict::confirms(format!("SELinux denied it: {}", lines[lines.len() - 1]))
        }
        Some(_) => CheckVerdict::neutral("the logs since then have no denial about the DSP"),
        None => CheckVerdict::unknown("neither the kernel log nor logcat is readable here"),
    }
}

/// Whether the compute DSP is running.
pub fn remoteproc(scene: &Scene) -> CheckVerdict {
    let look = match scene.dsp() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    let Some(cdsp) = look.remoteprocs.iter().find(|remote| remote.is_compute()) else {
        return if look.remoteproc_refused {
            CheckVerdict::unknown("this user may not read the state of the remote processors")
        } else {
            CheckVerdict::unknown("the kernel lists no remote processor named cdsp")
        };
    };
    if cdsp.state == "running" || cdsp.state == "attached" {
        return CheckVerdict::neutral(format!("the compute DSP is {}", cdsp.state));
    }
    CheckVerdict::confirms(format!("the compute DSP ({}) is {}, not running", cdsp.name, cdsp.state))
}

/// Whether HTP runs on this SoC's DSP.
pub fn htp_arch(scene: &Scene) -> CheckVerdict {
    match arch(scene) {
        Ok(arch) if arch < 68 => CheckVerdict::confirms(format!("this SoC has Hexagon v{arch}; HTP starts at v68")),
        Ok(arch) => CheckVerdict::refutes(format!("this SoC has Hexagon v{arch}")),
        Err(unknown) => unknown,
    }
}

/// Whether the compute DSP has crashed since the run began.
pub fn crashes(scene: &Scene) -> CheckVerdict {
    let look = match scene.dsp() {
        Ok(look) => look,
        Err(unknown) => return unknown,
    };
    match &look.crashes {
        Some(lines) => match lines.iter().rev().find(|line| line.to_lowercase().contains("crash")) {
            Some(line) => CheckVerdict::confirms(format!("the kernel reported it: {line}")),
            None => CheckVerdict::neutral("the kernel reports no cdsp crash since then"),
        },
        None => CheckVerdict::unknown("this user may not read the kernel log"),
    }
}
