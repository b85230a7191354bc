//! Gathers the facts for the checks: one query of the device, headers and build ids of the few relevant
//! libraries, the model's metadata. Whatever cannot be determined stays unknown, along with the reason.

use super::libraries::machine;
use super::scene::{About, FileFacts, Read, Scene, numbered};
use crate::backends::Backend;
use crate::devices::{Device, Root};
use crate::facts::{
    DSP_FOLDERS, DspLook, ElfFacts, LIBRARY_FOLDERS, LinkSearch, Wanted, absent, build_id_of, context_text, details,
    is_glibc, look, missing_libraries, own_folders, read_elf,
};
use crate::models::{ModelFormat, dlc_sdk_version, identify_for};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Libraries whose header and build id are read.
const NAMES: [&str; 7] = [
    "libQnnHtp.so",
    "libQnnHtpPrepare.so",
    "libQnnSystem.so",
    "libQnnHtpNetRunExtensions.so",
    "libQnnCpu.so",
    "libQnnGpu.so",
    "libQnnModelDlc.so",
];

/// Maximum number of needed libraries searched for on a device.
const MOST_WANTED: usize = 64;

/// Examines `device` (possibly this machine) and the local files sent to it.
pub async fn gather(about: About, device: &Device) -> Scene {
    let mut folders: Vec<String> = Vec::new();
    let named = about.folder.iter().chain(&about.library_folders).cloned().chain(about.dsp_folders());
    let usual = LIBRARY_FOLDERS.iter().chain(&DSP_FOLDERS).map(|&folder| folder.to_owned());
    for folder in named.chain(usual) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let root = about.facts.as_ref().map_or(Root::None, |facts| facts.root);
    let looked = look(device, &folders, about.folder.as_deref(), root, about.since_s).await;
    let mut scene = Scene {
        look: looked.map_err(|error| error.to_string()),
        is_pc: matches!(std::env::consts::ARCH, "x86_64" | "x86"),
        ..Scene::new(about)
    };
    scene.read = read(&scene, device).await;
    let about = scene.about.clone();
    let is_here = scene.about.is_here;
    let files = own_files(&scene);
    // Local files are read off the event loop, since libraries have a hundred megabytes.
    let told = tokio::task::spawn_blocking(move || {
        let missing = is_here.then(|| missing_here(&about, &files));
        (model_text(&about), model_kind(&about), dlc_maker(&about), tool_build(&about), missing)
    });
    if let Ok((context, kind, dlc_maker, tool, missing)) = told.await {
        scene.dlc_maker = dlc_maker;
        scene.tool = tool;
        scene.context = context;
        scene.model_kind = kind;
        scene.missing = missing;
    }
    if !is_here {
        scene.missing = missing_there(&scene, device).await;
    }
    scene
}

/// Whether a library's header and build id are worth reading.
fn matters(name: &str) -> bool {
    NAMES.contains(&name) || numbered(name, "Stub.so").is_some() || numbered(name, "Skel.so").is_some()
}

async fn read(scene: &Scene, device: &Device) -> BTreeMap<String, Read> {
    let Ok(look) = &scene.look else { return BTreeMap::new() };
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for (folder, file) in look.files(matters).filter(|(_, file)| file.readable) {
        let path = format!("{folder}/{}", file.name);
        match origin(scene, folder, &file.name, file.bytes) {
            Some(from) => here.push((path, from)),
            None => there.push((path, file.bytes)),
        }
    }
    let mut read = tokio::task::spawn_blocking(move || {
        let told = |(path, from): (String, PathBuf)| {
            let elf = read_elf(&from).ok()?;
            Some((path, Read { elf, build: build_id_of(&from).ok().flatten() }))
        };
        here.into_iter().filter_map(told).collect::<BTreeMap<_, _>>()
    })
    .await
    .unwrap_or_default();
    if !there.is_empty() {
        // If the device does not answer here, these files stay unread, and the checks say so.
        let told = details(device, &there).await.unwrap_or_default();
        read.extend(told.into_iter().map(|(path, (elf, build))| (path, Read { elf, build })));
    }
    read
}

/// The local file that a file on the device was sent from, if known and still of the same size.
fn origin(scene: &Scene, folder: &str, name: &str, bytes: u64) -> Option<PathBuf> {
    if scene.about.is_here {
        return Some(Path::new(folder).join(name));
    }
    if scene.about.folder.as_deref() != Some(folder) {
        return None;
    }
    let placed = scene.about.placed.iter().find(|file| file.name == name)?;
    let path = PathBuf::from(&placed.from);
    std::fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes).then_some(path)
}

/// The run's libraries for this machine's CPU.
fn own_files(scene: &Scene) -> Vec<PathBuf> {
    let library = |name: &str| scene.library(name).map(|file: FileFacts| PathBuf::from(file.path));
    let backend = scene.about.backend.map(Backend::library);
    let names: Vec<&str> = backend.map_or_else(|| NAMES.to_vec(), |backend| vec![backend, "libQnnSystem.so"]);
    names.into_iter().filter_map(library).collect()
}

fn missing_here(about: &About, files: &[PathBuf]) -> Vec<(String, String)> {
    let folders: Vec<PathBuf> = about.library_folders.iter().map(PathBuf::from).collect();
    let search = LinkSearch::new(&folders);
    let mut missing: Vec<(String, String)> = Vec::new();
    for file in files {
        for (name, by) in missing_libraries(file, &search) {
            if !missing.iter().any(|(known, _)| *known == name) {
                missing.push((name, by.display().to_string()));
            }
        }
    }
    missing
}

/// On a device: libraries that the sent files for its CPU need and its loader does not find.
async fn missing_there(scene: &Scene, device: &Device) -> Option<Vec<(String, String)>> {
    let DspLook { .. } = scene.look.as_ref().ok()?;
    let own = machine(scene).map(|(machine, _)| machine);
    let mut wanted: Vec<Wanted> = Vec::new();
    for (path, read) in &scene.read {
        // What a library for another CPU needs is irrelevant: the loader does not get that far.
        let is_own = |elf: &&ElfFacts| own.map_or(elf.machine != object::elf::EM_HEXAGON, |own| elf.machine == own);
        let Some(elf) = read.elf.as_ref().filter(is_own) else { continue };
        let needed = elf.needed.clone().unwrap_or_default();
        let glibc = is_glibc(&needed);
        for name in needed.into_iter().filter(|name| !name.starts_with("ld-linux")) {
            if wanted.len() < MOST_WANTED && !wanted.iter().any(|known| known.name == name) {
                let own_folders = own_folders(&elf.runpath, path);
                wanted.push(Wanted { name, by: path.clone(), own_folders, glibc, is_64: elf.is_64 });
            }
        }
    }
    if wanted.is_empty() {
        return None;
    }
    absent(device, &wanted, &scene.about.library_folders).await.ok().flatten()
}

fn model_path(about: &About) -> Option<PathBuf> {
    let path = about.model.as_ref().map(|model| model.path.clone()).or_else(|| about.model_path.clone())?;
    Some(PathBuf::from(path)).filter(|path| path.is_file())
}

fn model_text(about: &About) -> Option<crate::facts::ContextText> {
    let is_context = about.model.as_ref().is_none_or(|model| model.format == ModelFormat::ContextBinary);
    context_text(&model_path(about).filter(|_| is_context)?).ok()
}

/// Version of the SDK that created a DLC.
fn dlc_maker(about: &About) -> Option<String> {
    let is_dlc = about.model.as_ref().is_none_or(|model| model.format == ModelFormat::Dlc);
    dlc_sdk_version(&model_path(about).filter(|_| is_dlc)?)
}

/// Build of the tool that was sent.
fn tool_build(about: &About) -> Option<crate::facts::BuildId> {
    let tool = about.placed.iter().find(|file| file.name == "qnn-net-run")?;
    build_id_of(Path::new(&tool.from)).ok().flatten()
}

fn model_kind(about: &About) -> Option<Result<ModelFormat, String>> {
    let machine = about.facts.as_ref().map_or(std::env::consts::ARCH, |facts| match facts.abi.as_str() {
        "arm64-v8a" | "arm64" => "aarch64",
        other => other,
    });
    Some(identify_for(&model_path(about)?, machine).map_err(|error| error.to_string()))
}
