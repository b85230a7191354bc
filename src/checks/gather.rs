//! Gathers what the checks look at: one look at the device, headers and build ids of the few libraries that matter, the model's
//! own words. What cannot be told stays unknown with its reason.

use super::scene::{About, FileFacts, Read, Scene, numbered};
use crate::backends::Backend;
use crate::devices::{Device, Root};
use crate::facts::{
    DSP_FOLDERS, DspLook, LIBRARY_FOLDERS, LinkSearch, build_id_of, context_text, details, look, missing_libraries,
    read_elf,
};
use crate::models::{ModelFormat, identify_for};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Libraries of which header and build id are read.
const NAMES: [&str; 7] = [
    "libQnnHtp.so",
    "libQnnHtpPrepare.so",
    "libQnnSystem.so",
    "libQnnHtpNetRunExtensions.so",
    "libQnnCpu.so",
    "libQnnGpu.so",
    "libQnnModelDlc.so",
];

/// Looks at `device` (this machine too) and at the files of this machine that were sent to it.
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
    // Files of this machine: off the event loop, since libraries have a hundred megabytes.
    let told = tokio::task::spawn_blocking(move || {
        let missing = is_here.then(|| missing_here(&about, &files));
        (model_text(&about), model_kind(&about), missing)
    });
    if let Ok((context, kind, missing)) = told.await {
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
        // A device that does not answer here leaves these files unread; the checks say so.
        let told = details(device, &there).await.unwrap_or_default();
        read.extend(told.into_iter().map(|(path, (elf, build))| (path, Read { elf, build })));
    }
    read
}

/// The file of this machine that a file on the device is, where that is known: it was sent, and it still has its size.
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

/// The libraries of the run for this machine's processor.
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

/// On a device: the names that the sent libraries need, each looked for in the folders of libraries.
async fn missing_there(scene: &Scene, device: &Device) -> Option<Vec<(String, String)>> {
    let DspLook { .. } = scene.look.as_ref().ok()?;
    let mut wanted: BTreeMap<String, String> = BTreeMap::new();
    for (path, read) in &scene.read {
        let Some(elf) = read.elf.as_ref().filter(|elf| elf.machine != object::elf::EM_HEXAGON) else { continue };
        for name in elf.needed.iter().flatten() {
            wanted.entry(name.clone()).or_insert_with(|| path.clone());
        }
    }
    if wanted.is_empty() {
        return None;
    }
    let runtime =
        ["/apex/com.android.runtime/lib64/bionic", "/apex/com.android.art/lib64", "/lib/aarch64-linux-gnu", "/lib"];
    let folders = scene.about.library_folders.iter().map(String::as_str).chain(LIBRARY_FOLDERS).chain(runtime);
    let folders: Vec<String> = folders.map(crate::devices::quote).collect();
    let names: Vec<&String> = wanted.keys().take(64).collect();
    let words: Vec<String> = names.iter().map(|name| crate::devices::quote(name)).collect();
    let script = format!(
        "for n in {}; do f=0; for d in {}; do [ -e \"$d/$n\" ] && f=1 && break; done; echo $f; done; true",
        words.join(" "),
        folders.join(" ")
    );
    let output = device.run_ok(&script, "looking for needed libraries").await.ok()?.text();
    let answers: Vec<&str> = output.lines().map(str::trim).collect();
    if answers.len() != names.len() {
        return None;
    }
    let gone = names.into_iter().zip(answers).filter(|(_, answer)| *answer == "0");
    Some(gone.map(|(name, _)| (name.clone(), wanted[name].clone())).collect())
}

fn model_path(about: &About) -> Option<PathBuf> {
    let path = about.model.as_ref().map(|model| model.path.clone()).or_else(|| about.model_path.clone())?;
    Some(PathBuf::from(path)).filter(|path| path.is_file())
}

fn model_text(about: &About) -> Option<crate::facts::ContextText> {
    let is_context = about.model.as_ref().is_none_or(|model| model.format == ModelFormat::ContextBinary);
    context_text(&model_path(about).filter(|_| is_context)?).ok()
}

fn model_kind(about: &About) -> Option<Result<ModelFormat, String>> {
    let machine = about.facts.as_ref().map_or(std::env::consts::ARCH, |facts| match facts.abi.as_str() {
        "arm64-v8a" | "arm64" => "aarch64",
        other => other,
    });
    Some(identify_for(&model_path(about)?, machine).map_err(|error| error.to_string()))
}
