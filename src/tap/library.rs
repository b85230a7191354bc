//! Finds the tap library that matches this program.

use crate::facts::{ElfFacts, read_elf};
use crate::files::open_regular;
use object::{Object, ObjectSymbol, ReadCache};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the library's file.
pub const FILE: &str = "libqnnscope_tap.so";
/// Symbol that identifies the library: nothing else is loaded into programs.
const MARK: &str = "qnnscope_tap_mark";
/// Variable that names another library.
pub const VARIABLE: &str = "QNNSCOPE_TAP_LIBRARY";

/// There is no tap library.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// The named library does not exist.
    #[error("there is no tap library at {0}")]
    NotThere(PathBuf),
    /// The named file is something else.
    #[error("{0} is not the tap library: {1}")]
    NotATap(PathBuf, String),
    /// None was named, and there is none beside qnnscope.
    #[error("{FILE} is neither beside this program nor in deps/ beside it ({0})")]
    NotFound(PathBuf),
}

/// Finds the library: the one named (by an option, or the variable), or the one beside this program or where
/// cargo builds it.
///
/// # Errors
/// It does not exist, or is not a tap library for this machine.
pub fn find(named: Option<&Path>) -> Result<PathBuf, LibraryError> {
    let of_variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = named.map(ToOwned::to_owned).or(of_variable) {
        let Some(path) = named.canonicalize().ok().filter(|path| path.is_file()) else {
            return Err(LibraryError::NotThere(named));
        };
        return match fault(&path) {
            Some(reason) => Err(LibraryError::NotATap(named, reason)),
            None => Ok(path),
        };
    }
    let folder = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned())).unwrap_or_default();
    let places = [folder.join(FILE), folder.join("deps").join(FILE)];
    places.into_iter().find(|path| path.is_file()).ok_or(LibraryError::NotFound(folder))
}

/// Why a file is not the tap for programs of this machine.
fn fault(path: &Path) -> Option<String> {
    let facts = match read_elf(path) {
        Err(error) => return Some(format!("it cannot be read: {error}")),
        Ok(None) => return Some("it is not a shared library".to_owned()),
        Ok(Some(facts)) => facts,
    };
    let same = |own: &ElfFacts| (own.is_64, own.machine) == (facts.is_64, facts.machine);
    if let Ok(Some(own)) = read_elf(Path::new("/proc/self/exe"))
        && !same(&own)
    {
        return Some(format!("it is for {}, and this machine is {}", facts.label(), own.label()));
    }
    let marked = open_regular(path).is_ok_and(|file| {
        let cache = ReadCache::new(file);
        let file = object::File::parse(&cache);
        file.is_ok_and(|file| file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(MARK)))
    });
    (!marked).then(|| format!("it does not export {MARK}, as the {FILE} of qnnscope does"))
}

/// The value of `LD_PRELOAD`, with the library in front of what is already there. The loader splits the value
/// at blanks and colons, so a path that contains one is reached through a link in `folder`.
///
/// # Errors
/// The link cannot be created.
pub fn preload(library: &Path, folder: &Path, old: Option<&OsStr>) -> std::io::Result<OsString> {
    let mut value = if library.to_string_lossy().contains([' ', ':']) {
        let link = folder.join(FILE);
        std::os::unix::fs::symlink(library, &link)?;
        link.into_os_string()
    } else {
        library.as_os_str().to_owned()
    };
    if let Some(old) = old.filter(|old| !old.is_empty()) {
        value.push(":");
        value.push(old);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays() {
        let dir = tempfile::tempdir().unwrap();
        let plain = preload(Path::new("/a/t.so"), dir.path(), Some(OsStr::new("x.so y.so"))).unwrap();
        assert_eq!(plain, "/a/t.so:x.so y.so");
        assert_eq!(preload(Path::new("/a/t.so"), dir.path(), Some(OsStr::new(""))).unwrap(), "/a/t.so");
        let odd = dir.path().join("with blank.so");
        std::fs::write(&odd, "x").unwrap();
        let through = preload(&odd, dir.path(), None).unwrap();
        assert!(!through.to_string_lossy().contains(' '));
        assert_eq!(std::fs::read(Path::new(&through)).unwrap(), b"x");
    }

    #[test]
    fn a_library_that_was_named_is_the_only_one() {
        let missing = Path::new("/nowhere/tap.so");
        assert!(matches!(find(Some(missing)), Err(LibraryError::NotThere(path)) if path == missing));
    }

    #[test]
    fn only_a_tap_of_this_machine_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other.so");
        let mut own = std::fs::read("/proc/self/exe").unwrap();
        let refused = |bytes: &[u8], words: &str| {
            std::fs::write(&other, bytes).unwrap();
            let error = find(Some(&other)).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        };
        refused(b"not a library", "not a shared library");
        refused(&own, "does not export qnnscope_tap_mark");
        own.truncate(1 << 16);
        own[18..20].copy_from_slice(&if cfg!(target_arch = "x86_64") { 183u16 } else { 62 }.to_le_bytes());
        refused(&own, "and this machine is 64-bit");
    }
}
