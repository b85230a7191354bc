//! Determines from a program's file, before it starts, whether a preloaded library can get into it at all.

use crate::facts::{loader, parse_header};
use crate::files::open_regular;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Longest `#!` line.
const LINE: u64 = 4096;
/// Maximum depth of scripts that are run by scripts.
const MOST_SCRIPTS: usize = 4;

/// Why the tap cannot get into a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Barrier {
    /// The file concerned: the program, or its interpreter.
    pub file: PathBuf,
    /// Why, worded to follow the file's name.
    pub reason: String,
    /// What to do instead.
    pub advice: &'static str,
    /// True if the loader would merely complain about the library.
    pub refuses: bool,
}

const LINK: &str = "link the program dynamically, against the GNU C library";
const RIGHTS: &str = "run the program with your own rights";
const SAME: &str = "build qnnscope's tap for that architecture, or tap a program of this architecture";

/// What keeps the tap out of `program`, which is looked up as the shell would; `None` if there is no known
/// barrier.
pub fn barrier(program: &OsStr) -> Option<Barrier> {
    let mut file = resolve(program)?;
    for _ in 0..MOST_SCRIPTS {
        match kind(&file)? {
            Kind::Script(next) => file = next,
            Kind::Other => break,
        }
    }
    of_binary(&file)
}

/// The file a command's name refers to.
fn resolve(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let is_program =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(is_program)
}

/// What kind of file this is to the system.
enum Kind {
    /// A script, and its interpreter.
    Script(PathBuf),
    Other,
}

/// The kind of a file; `None` if it, or its interpreter, cannot be determined.
fn kind(file: &Path) -> Option<Kind> {
    let mut head = Vec::new();
    open_regular(file).ok()?.take(LINE).read_to_end(&mut head).ok()?;
    let Some(line) = head.strip_prefix(b"#!") else { return Some(Kind::Other) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let os = |word: &[u8]| OsString::from_vec(word.to_vec());
    let first = words.next()?;
    if !first.ends_with(b"/env") {
        return Some(Kind::Script(PathBuf::from(os(first))));
    }
    // Skips options of env, and variables it sets.
    let command = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    resolve(&os(command)).map(Kind::Script)
}

fn of_binary(file: &Path) -> Option<Barrier> {
    let found = |reason: String, advice, refuses| Some(Barrier { file: file.to_owned(), reason, advice, refuses });
    let mut head = Vec::new();
    open_regular(file).ok()?.take(LINE).read_to_end(&mut head).ok()?;
    let elf = parse_header(&head)?;
    let own = File::open("/proc/self/exe").ok().and_then(|exe| {
        let mut head = Vec::new();
        exe.take(LINE).read_to_end(&mut head).ok()?;
        parse_header(&head)
    })?;
    if (elf.is_64, elf.machine) != (own.is_64, own.machine) {
        return found(format!("is a {} program, the tap is {}", elf.label(), own.label()), SAME, true);
    }
    match loader(file).ok()? {
        None => return found("is statically linked: nothing can be loaded into it".to_owned(), LINK, true),
        Some(loader) if loader.contains("ld-musl") => {
            return found("uses musl, the tap the GNU C library".to_owned(), LINK, true);
        }
        Some(_) => {}
    }
    let meta = std::fs::metadata(file).ok()?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if (meta.mode() & 0o4000 != 0 && meta.uid() != user) || (meta.mode() & 0o2010 == 0o2010 && meta.gid() != group) {
        return found(
            "runs with another user's or group's rights, so the system loads nothing into it".to_owned(),
            RIGHTS,
            false,
        );
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if user != 0 && rustix::fs::getxattr(file, "security.capability", &mut [0_u8; 64]).is_ok_and(|size| size > 0) {
        return found("has file capabilities, so the system loads nothing into it".to_owned(), RIGHTS, false);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(dir: &Path, name: &str, line: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, format!("{line}\necho hello\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// This program's file with its machine changed.
    fn foreign(dir: &Path) -> PathBuf {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        bytes.truncate(1 << 16);
        let machine: u16 = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        let path = dir.join("foreign");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn scripts_are_judged_by_what_runs_them() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(barrier(OsStr::new("sh")), None);
        assert_eq!(barrier(script(dir.path(), "a", "#!/bin/sh -e").as_os_str()), None);
        assert_eq!(barrier(script(dir.path(), "b", "#!/usr/bin/env -S A=1 sh -e").as_os_str()), None);
        let other = foreign(dir.path());
        let through = script(dir.path(), "c", &format!("#! {}", other.display()));
        let barrier = barrier(through.as_os_str()).unwrap();
        assert_eq!(barrier.file, other);
        assert!(barrier.reason.contains("the tap is 64-bit") && barrier.refuses, "{barrier:?}");
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_system() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(barrier(OsStr::new("/nowhere/program")), None);
        assert_eq!(barrier(OsStr::new("no-such-program-anywhere")), None);
        let itself = dir.path().join("loop");
        script(dir.path(), "loop", &format!("#!{}", itself.display()));
        assert_eq!(barrier(itself.as_os_str()), None);
    }
}
