//! Checks that a device can start the files to be sent (machine, loader, needed libraries) before anything is
//! sent.

use crate::backends::on_device::OnDeviceError;
use crate::backends::on_device::kit::Kit;
use crate::devices::{Device, quote};
use crate::event::clean_text;
use crate::facts::{ElfFacts, Wanted, absent, is_glibc, loader, own_folders, parse_header, read_elf};
use object::elf;
use std::path::Path;

/// The device's own programs show what its processor and kernel execute, whatever its properties say.
const OWN_PROGRAM: &str = "head -c 64 /proc/self/exe 2>/dev/null | od -An -v -tx1";

/// Checks a program for the device, and the kit's libraries in `libraries`, which it opens. Files that are not ELF
/// (scripts) pass.
///
/// # Errors
/// What the device cannot start, and why; or the device does not answer.
pub async fn check(
    device: &Device,
    kit: &Kit,
    program: &str,
    libraries: &[&str],
    searched: &[String],
) -> Result<(), OnDeviceError> {
    let Some(path) = kit.get(program) else { return Ok(()) };
    let own = own_program(device).await?;
    let files = std::iter::once(path).chain(libraries.iter().filter_map(|name| kit.get(*name)));
    for file in files {
        if let (Some(own), Some(found)) = (&own, facts_of(file).await)
            && !runs(own, &found)
        {
            return Err(OnDeviceError::WrongMachine {
                file: file.clone(),
                device: device.id().to_owned(),
                found: found.label(),
                needed: own.label(),
            });
        }
    }
    let Some(program) = facts_of(path).await else { return Ok(()) };
    let unreadable = |source| OnDeviceError::Io { action: format!("read {}", path.display()), source };
    if let Some(loader) = loader(path).map_err(unreadable)?
        && device.run(&format!("[ -e {} ]", quote(&loader)), "looking for the loader of programs").await?.status != 0
    {
        let (device, loader) = (device.id().to_owned(), clean_text(&loader));
        return Err(OnDeviceError::NoLoader { file: path.clone(), device, loader });
    }
    let needed = program.needed.clone().unwrap_or_default();
    let glibc = is_glibc(&needed);
    let wanted: Vec<Wanted> = needed
        .into_iter()
        .filter(|name| !kit.contains_key(name) && !name.starts_with("ld-linux"))
        .map(|name| Wanted {
            name,
            by: path.display().to_string(),
            own_folders: own_folders(&program.runpath, "./program"),
            glibc,
            is_64: program.is_64,
        })
        .collect();
    let gone = absent(device, &wanted, searched).await?.unwrap_or_default();
    if gone.is_empty() {
        return Ok(());
    }
    let names = gone.into_iter().map(|(name, _)| clean_text(&name)).collect();
    Err(OnDeviceError::NoNeeded { file: path.clone(), device: device.id().to_owned(), names })
}

/// Header of one of the device's own programs; `None` if not readable.
async fn own_program(device: &Device) -> Result<Option<ElfFacts>, OnDeviceError> {
    let output = device.run(OWN_PROGRAM, "looking at its programs").await?;
    let bytes: Vec<u8> =
        output.text().split_whitespace().filter_map(|word| u8::from_str_radix(word, 16).ok()).collect();
    Ok(parse_header(&bytes))
}

async fn facts_of(path: &Path) -> Option<ElfFacts> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_elf(&path).ok().flatten()).await.ok().flatten()
}

/// Whether a device whose own programs are `own` executes `found`. A 32-bit system may still execute 64-bit programs of
/// its architecture; their loader is checked separately.
fn runs(own: &ElfFacts, found: &ElfFacts) -> bool {
    own.machine == found.machine || matches!((own.machine, found.machine), (elf::EM_ARM, elf::EM_AARCH64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kit(name: &str, path: &Path) -> Kit {
        Kit::from([(name.to_owned(), path.to_owned())])
    }

    #[tokio::test]
    async fn this_program_runs_here_and_one_for_another_processor_does_not() {
        let device = Device::local();
        let own = std::env::current_exe().unwrap();
        check(&device, &kit("tool", &own), "tool", &[], &[]).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = std::fs::read(&own).unwrap();
        // The machine of the ELF header: 243 is RISC-V.
        (bytes[18], bytes[19]) = (243, 0);
        bytes.truncate(1 << 20);
        let other = folder.path().join("other");
        std::fs::write(&other, bytes).unwrap();
        let refused = check(&device, &kit("tool", &other), "tool", &[], &[]).await.unwrap_err();
        assert!(matches!(refused, OnDeviceError::WrongMachine { .. }), "{refused}");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        check(&device, &kit("tool", &script), "tool", &[], &[]).await.unwrap();
    }
}
