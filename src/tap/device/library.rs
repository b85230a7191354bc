//! Finds the tap library for a program on a device.

use super::DeviceTapError;
use super::look::{Found, Libc};
use crate::event::clean_text;
use crate::facts::machine_name;
use crate::facts::{is_glibc, read_elf};
use crate::tap::library::{FILE, VARIABLE, find};
use std::path::{Path, PathBuf};

/// Where to look for the library.
#[derive(Debug, Clone, Default)]
pub struct LibrarySearch {
    /// The library named by the user.
    pub named: Option<PathBuf>,
    /// The runner named by the user: a library built for the same device may be beside it.
    pub runner: Option<PathBuf>,
    /// The data folder, searched for `runners/TARGET/`.
    pub data_dir: Option<PathBuf>,
}

/// What a library is built for.
#[derive(PartialEq, Eq)]
struct Kind {
    machine: String,
    libc: Libc,
}

impl Kind {
    fn label(&self) -> String {
        let libc = match self.libc {
            Libc::Gnu => "GNU's C library",
            Libc::Bionic => "Android's C library",
            Libc::Other => "another C library",
        };
        format!("for {} and {libc}", self.machine)
    }

    /// `None` unless it is a 64-bit library.
    fn of(path: &Path) -> Option<Self> {
        let facts = read_elf(path).ok()??;
        let needed = facts.needed.unwrap_or_default();
        let libc = if is_glibc(&needed) {
            Libc::Gnu
        } else if needed.iter().any(|name| name == "libc.so") {
            Libc::Bionic
        } else {
            Libc::Other
        };
        facts.is_64.then(|| Self { machine: machine_name(Some(facts.machine)), libc })
    }
}

/// Finds the library for a program: the named one, one beside the named runner, one in the data folder, or
/// this machine's, if it fits.
pub fn locate(search: &LibrarySearch, found: &Found) -> Result<PathBuf, DeviceTapError> {
    let needed = Kind { machine: found.machine.clone(), libc: found.libc };
    let program = clean_text(&found.path);
    if let Some(path) = &search.named {
        return match Kind::of(path) {
            Some(kind) if kind == needed => Ok(path.clone()),
            kind => Err(DeviceTapError::WrongLibrary {
                path: path.clone(),
                program,
                found: kind.map_or_else(|| "not a readable 64-bit library".to_owned(), |kind| kind.label()),
                needed: needed.label(),
            }),
        };
    }
    let mut looked = vec!["--tap-library is not given".to_owned()];
    let beside = search.runner.as_deref().and_then(Path::parent);
    let mut places: Vec<PathBuf> =
        beside.iter().flat_map(|folder| [folder.join(FILE), folder.join("deps").join(FILE)]).collect();
    let system = if found.libc == Libc::Bionic { "linux-android" } else { "unknown-linux-gnu" };
    let kept = search.data_dir.as_ref().map(|dir| dir.join("runners").join(format!("{}-{system}", found.machine)));
    places.extend(kept.map(|folder| folder.join(FILE)));
    // This machine's own is the last resort.
    places.extend(find(None).ok());
    for path in places {
        let shown = clean_text(&path.to_string_lossy());
        match Kind::of(&path) {
            Some(kind) if kind == needed => return Ok(path),
            Some(kind) => looked.push(format!("{shown} is {}", kind.label())),
            None if path.exists() => looked.push(format!("{shown} is not a readable 64-bit library")),
            None => looked.push(format!("{shown} is not there")),
        }
    }
    if std::env::var_os(VARIABLE).is_none() {
        looked.push(format!("${VARIABLE} is not set"));
    }
    Err(DeviceTapError::NoLibrary { program, needed: needed.label(), looked })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(libc: Libc) -> Found {
        Found {
            path: "/data/local/tmp/app".to_owned(),
            file: "/data/local/tmp/app".to_owned(),
            machine: std::env::consts::ARCH.to_owned(),
            libc,
            barrier: None,
        }
    }

    #[test]
    fn a_library_for_another_system_is_refused_by_name() {
        let own = std::env::current_exe().unwrap();
        let named = LibrarySearch { named: Some(own.clone()), ..LibrarySearch::default() };
        assert_eq!(locate(&named, &found(Libc::Gnu)).unwrap(), own, "a file for GNU's C library");
        let refused = locate(&named, &found(Libc::Bionic)).unwrap_err();
        assert!(refused.is_bad_input(), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("GNU's C library") && text.contains("Android's C library"), "{text}");
    }

    #[test]
    fn every_place_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let search = LibrarySearch {
            named: None,
            runner: Some(folder.path().join("bin/qnnscope")),
            data_dir: Some(folder.path().join("data")),
        };
        let error = locate(&search, &found(Libc::Bionic)).unwrap_err();
        let (text, target) = (error.to_string(), format!("runners/{}-linux-android/{FILE}", std::env::consts::ARCH));
        for part in ["--tap-library", "bin/libqnnscope_tap.so", "bin/deps/libqnnscope_tap.so", target.as_str()] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(error.is_missing() && error.advice().unwrap().contains("cargo ndk"));
    }
}
