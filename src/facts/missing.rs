//! Which libraries a local file lacks, following the dynamic linker's rules, without running any of it.

use super::elf::read_elf;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum number of files followed, so that a cycle of broken files ends.
const MOST_FILES: usize = 200;

/// Folders searched for libraries.
#[derive(Debug, Clone, Default)]
pub struct LinkSearch {
    /// Folders of `LD_LIBRARY_PATH`, searched first.
    pub folders: Vec<PathBuf>,
    /// Names in the system linker's cache.
    cached: BTreeSet<String>,
}

impl LinkSearch {
    /// The folders of `LD_LIBRARY_PATH` in `paths`, followed by the system's.
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut folders: Vec<PathBuf> = paths.iter().filter(|path| !path.as_os_str().is_empty()).cloned().collect();
        let arch = std::env::consts::ARCH;
        for folder in ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"] {
            folders.push(PathBuf::from(folder));
        }
        for base in ["/lib", "/usr/lib", "/usr/local/lib"] {
            folders.push(PathBuf::from(format!("{base}/{arch}-linux-gnu")));
        }
        Self { folders, cached: linker_cache() }
    }

    fn find(&self, name: &str, beside: &Path, runpath: &[String]) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.exists());
        }
        let origin = beside.to_string_lossy();
        let own = runpath
            .iter()
            .flat_map(|paths| paths.split(':'))
            .map(|path| PathBuf::from(path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)));
        own.chain(self.folders.iter().cloned()).map(|folder| folder.join(name)).find(|path| path.exists())
    }
}

/// The names listed by `ldconfig -p`; none if unavailable.
fn linker_cache() -> BTreeSet<String> {
    let ask = |program: &str| {
        let output = Command::new(program).arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then_some(output.stdout)
    };
    let printed = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"].into_iter().find_map(ask).unwrap_or_default();
    let text = String::from_utf8_lossy(&printed);
    text.lines().filter_map(|line| Some(line.trim().split_once(" (")?.0.to_owned())).collect()
}

/// Missing libraries that `file` or its dependencies need, each with the file that needs it.
pub fn missing_libraries(file: &Path, search: &LinkSearch) -> Vec<(String, PathBuf)> {
    let mut missing = Vec::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![file.to_owned()];
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) || seen.len() > MOST_FILES {
            continue;
        }
        let Ok(Some(facts)) = read_elf(&path) else { continue };
        // The linker resolves links before it expands $ORIGIN.
        let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let beside = real.parent().unwrap_or(Path::new("/")).to_owned();
        for name in facts.needed.unwrap_or_default() {
            match search.find(&name, &beside, &facts.runpath) {
                Some(found) => waiting.push(found),
                None if search.cached.contains(&name) || name.starts_with("ld-linux") => {}
                None if missing.iter().any(|(known, _)| *known == name) => {}
                None => missing.push((name, path.clone())),
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_lacks_nothing() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(missing_libraries(&own, &LinkSearch::new(&[])), []);
    }

    #[test]
    fn what_is_nowhere_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let build = |name: &str, more: &[&str]| {
            let path = dir.path().join(name);
            let source = dir.path().join("empty.c");
            std::fs::write(&source, "int qnnscope_test_symbol(void) { return 0; }\n").unwrap();
            let mut command = Command::new("cc");
            command.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&path).arg(&source);
            assert!(command.args(more).arg("-L").arg(dir.path()).status().unwrap().success());
            path
        };
        let gone = build("libgone_for_test.so", &[]);
        build("libmiddle.so", &["-lgone_for_test"]);
        let top = build("libtop.so", &["-lmiddle"]);
        std::fs::remove_file(gone).unwrap();
        let lacking = |folders: &[PathBuf]| -> Vec<String> {
            missing_libraries(&top, &LinkSearch::new(folders)).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(lacking(&[dir.path().to_owned()]), ["libgone_for_test.so"]);
        assert_eq!(lacking(&[]), ["libmiddle.so"]);
    }
}
