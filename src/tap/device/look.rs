//! Examines a program on a device: its processor and C library, and what keeps the tap out of it.

use super::DeviceTapError;
use crate::backends::on_device::names::machine;
use crate::devices::{Device, quote};
use crate::event::{DeviceFacts, clean_text};
use crate::facts::machine_name;
use crate::facts::{ElfFacts, loader_in, parse_header};

/// Bytes read from the start of a file: its headers, the name of its loader, a script's first line.
const HEAD: usize = 64 << 10;
/// Maximum depth of scripts that are run by scripts.
const MOST_SCRIPTS: usize = 4;
const NO_FILE: i32 = 44;
const NO_PROGRAM: i32 = 45;

/// The C library of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Libc {
    /// GNU's.
    Gnu,
    /// Android's.
    Bionic,
    /// Another one (musl).
    Other,
}

/// A program on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its full path.
    pub path: String,
    /// The file finally executed: the program's, or the script's interpreter.
    pub file: String,
    /// Its processor, by Rust's target name.
    pub machine: String,
    /// Its C library.
    pub libc: Libc,
    /// Why nothing can be loaded into it, worded to follow the file's name.
    pub barrier: Option<String>,
}

/// Examines the program with this name, looked up as a shell in `base` would.
pub async fn look(device: &Device, facts: &DeviceFacts, base: &str, program: &str) -> Result<Found, DeviceTapError> {
    let first = read(device, base, program).await?;
    let (path, mut read_file) = (first.path.clone(), first);
    for _ in 0..MOST_SCRIPTS {
        let Some(next) = interpreter(&read_file.head) else { break };
        match read(device, base, &next).await {
            Ok(next) => read_file = next,
            // A file that cannot be examined is left to the device.
            Err(DeviceTapError::NoProgram { .. } | DeviceTapError::NotExecutable { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(judged(path, &read_file, &facts.os, &facts.abi))
}

/// A file's start and rights, as read.
struct ReadFile {
    path: String,
    /// Mode, owner and group of the file.
    rights: Option<[u32; 3]>,
    /// User and group of the shell.
    shell: Option<[u32; 2]>,
    head: Vec<u8>,
}

async fn read(device: &Device, base: &str, name: &str) -> Result<ReadFile, DeviceTapError> {
    let script = format!(
        "cd {base}\np={name}\ncase $p in */*) ;; *) IFS=:; for d in $PATH; do [ -f \"$d/$p\" ] && [ -x \"$d/$p\" ] && p=$d/$p && \
         break; done; unset IFS;; esac\n[ -f \"$p\" ] || exit {NO_FILE}\n[ -x \"$p\" ] || exit {NO_PROGRAM}\ncase $p in /*) ;; *) \
         p=$PWD/${{p#./}};; esac\necho \"$p\"\necho \"$(stat -L -c '%a %u %g' \"$p\" 2>/dev/null)\"\necho \"$(id -u) $(id -g)\"\nhead \
         -c {HEAD} \"$p\" 2>/dev/null\ntrue",
        base = quote(base),
        name = quote(name)
    );
    let output = device.run(&script, "looking at the program").await?;
    let (program, id) = (clean_text(name), device.id().to_owned());
    match output.status {
        NO_FILE => return Err(DeviceTapError::NoProgram { program, device: id }),
        NO_PROGRAM => return Err(DeviceTapError::NotExecutable { program, device: id }),
        _ => {}
    }
    let mut parts = output.bytes.splitn(4, |byte| *byte == b'\n');
    let mut line = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (path, rights, shell) = (line(), line(), line());
    let head = parts.next().unwrap_or_default().to_vec();
    if !path.starts_with('/') {
        return Err(DeviceTapError::NoProgram { program, device: id });
    }
    let mut rights = rights.split(' ');
    let mode = rights.next().and_then(|mode| u32::from_str_radix(mode, 8).ok());
    let owners = numbers(rights);
    let rights = mode.zip(owners).map(|(mode, [user, group])| [mode, user, group]);
    Ok(ReadFile { path, rights, shell: numbers(shell.split(' ')), head })
}

fn numbers<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<[u32; 2]> {
    Some([words.next()?.trim().parse().ok()?, words.next()?.trim().parse().ok()?])
}

/// A script's interpreter, from its first line; `None` if not a script.
fn interpreter(head: &[u8]) -> Option<String> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    if word.ends_with(b"/env") {
        // Skips options of env, and variables it sets.
        word = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    }
    Some(String::from_utf8_lossy(word).into_owned())
}

fn judged(path: String, read: &ReadFile, os: &str, abi: &str) -> Found {
    let android = os.starts_with("Android");
    let elf: Option<ElfFacts> = parse_header(&read.head);
    let loader = loader_in(&read.head);
    let libc = match &loader {
        Some(loader) if loader.contains("/ld-musl") => Libc::Other,
        Some(loader) if loader.contains("/ld-") => Libc::Gnu,
        Some(loader) if loader.rsplit('/').next().is_some_and(|name| name.starts_with("linker")) => Libc::Bionic,
        Some(_) => Libc::Other,
        None if android => Libc::Bionic,
        None => Libc::Gnu,
    };
    let of_device = machine(abi).to_owned();
    let machine = elf.as_ref().map_or(of_device, |elf| machine_name(Some(elf.machine)));
    let barrier = match (&elf, read.rights, read.shell) {
        (Some(elf), ..) if !elf.is_64 => Some("is a 32-bit program: there is no tap for those".to_owned()),
        (Some(_), ..) if loader.is_none() => Some("is statically linked: nothing can be loaded into it".to_owned()),
        (Some(_), ..) if libc == Libc::Other => {
            Some("uses neither Android's nor GNU's C library: no tap library fits it".to_owned())
        }
        (_, Some([mode, user, group]), Some([own, own_group]))
            if (mode & 0o4000 != 0 && user != own) || (mode & 0o2010 == 0o2010 && group != own_group) =>
        {
            Some("runs with another user's or group's rights, so the system loads nothing into it".to_owned())
        }
        _ => None,
    };
    Found { path, file: read.path.clone(), machine, libc, barrier }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_phone(path: &str, read: &ReadFile) -> Found {
        judged(path.to_owned(), read, "Android 14", "arm64-v8a")
    }

    #[test]
    fn scripts_name_what_runs_them() {
        for (head, runs) in [
            (&b"#!/system/bin/sh -e\necho"[..], Some("/system/bin/sh")),
            (b"#! /usr/bin/env -S A=1 python3 -u\n", Some("python3")),
            (b"#!\n", None),
            (b"\x7fELF", None),
            (b"", None),
        ] {
            assert_eq!(interpreter(head).as_deref(), runs);
        }
    }

    #[test]
    fn a_program_of_this_machine_is_known_for_what_it_is() {
        let mut head = std::fs::read("/proc/self/exe").unwrap();
        head.truncate(HEAD);
        let mut file = ReadFile {
            path: "/data/local/tmp/app".to_owned(),
            rights: Some([0o755, 0, 0]),
            shell: Some([2000, 2000]),
            head,
        };
        let found = of_phone("/data/local/tmp/app", &file);
        assert_eq!((found.machine.as_str(), found.libc), (std::env::consts::ARCH, Libc::Gnu));
        assert_eq!(found.barrier, None);
        file.rights = Some([0o4755, 0, 0]);
        let barrier = of_phone("", &file).barrier.unwrap();
        assert!(barrier.contains("another user's"), "{barrier}");
        file.shell = Some([0, 0]);
        assert_eq!(of_phone("", &file).barrier, None, "the shell is that user");
        // Nothing can be read, so the program is assumed to be of the device's own kind.
        file.head = Vec::new();
        let found = of_phone("", &file);
        assert_eq!((found.machine.as_str(), found.libc, found.barrier), ("aarch64", Libc::Bionic, None));
    }
}
