//! Decides which files a command may write: none that it reads, none twice, and none that somebody else made.
//!
//! Files are compared by device and inode, so that links and other spellings of a name cannot hide them.

use super::error::OutputError;
use super::maker::Kind;
use super::output::{OutputFile, is_stream};
use super::read_text_at_most;
use super::whole::{real_path, write_whole};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// File that marks a folder of saved outputs as ours, since raw numbers do not identify their writer.
const FOLDER_MARK: &str = ".qnnscope-outputs";
/// Largest input list whose files are examined.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Device and inode; nothing where the system has no such numbers.
type Id = Option<(u64, u64)>;

/// A file that a command reads or writes.
#[derive(Debug, Clone)]
struct Known {
    id: Id,
    real: PathBuf,
    role: &'static str,
    path: PathBuf,
}

/// Knows the files of a command, and decides about each file that it wants to write.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    known: Vec<Known>,
    force: bool,
}

impl Guard {
    /// A guard that knows no files yet. With `force`, foreign files may be overwritten, but never files that
    /// the command reads.
    pub fn new(force: bool) -> Self {
        let mut guard = Self { known: Vec::new(), force };
        if let Ok(program) = std::env::current_exe() {
            guard.reads("qnnscope", &program);
        }
        guard
    }

    /// Registers `path` as read; `role` names it in messages, such as "the model". A missing file cannot be
    /// overwritten, so it is ignored.
    pub fn reads(&mut self, role: &'static str, path: &Path) {
        if let (Ok(metadata), Ok(real)) = (std::fs::metadata(path), path.canonicalize())
            && metadata.is_file()
        {
            self.known.push(Known { id: id(&metadata), real, role, path: path.to_owned() });
        }
    }

    /// Registers every file in this folder as read.
    pub fn reads_folder(&mut self, role: &'static str, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            self.reads(role, &entry.path());
        }
    }

    /// Registers every file in this folder and below as read, down to the depth at which an SDK keeps its
    /// libraries.
    pub fn reads_tree(&mut self, role: &'static str, folder: &Path) {
        self.reads_below(role, folder, 4);
    }

    fn reads_below(&mut self, role: &'static str, folder: &Path, levels: usize) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && levels > 0 => self.reads_below(role, &entry.path(), levels - 1),
                _ => self.reads(role, &entry.path()),
            }
        }
    }

    /// Registers an input list, in qnn-net-run's format, and the files it names, as read.
    pub fn reads_list(&mut self, list: &Path) {
        self.reads("the input list", list);
        // A pipe can be read only once, and the runner does that.
        if !list.is_file() {
            return;
        }
        // An unreadable list is reported where it is needed.
        let text = read_text_at_most(list, MAX_LIST_BYTES).unwrap_or_default();
        for cell in
            text.lines().filter(|line| !line.trim_start().starts_with(['#', '%'])).flat_map(str::split_whitespace)
        {
            self.reads("the input", Path::new(cell.split_once(":=").map_or(cell, |(_, file)| file)));
        }
    }

    /// Registers the files behind this process's output streams, if any.
    pub fn prints(&mut self) {
        for (role, stream) in [("standard output", "/dev/stdout"), ("standard error", "/dev/stderr")] {
            self.reads(role, Path::new(stream));
        }
    }

    /// Refuses a file that must not be written; otherwise registers it as written by `option`.
    pub fn claim(&mut self, option: &'static str, path: &Path, kind: Kind) -> Result<(), OutputError> {
        if is_stream(path) {
            return Ok(());
        }
        let real = self.clear(option, path)?;
        let io = |source| OutputError::Io { option, path: path.to_owned(), source };
        let metadata = match std::fs::metadata(&real) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io(error)),
        };
        if let Some(metadata) = &metadata {
            if metadata.is_dir() {
                return Err(io(io::ErrorKind::IsADirectory.into()));
            }
            if !metadata.is_file() {
                return Ok(());
            }
            self.check_maker(option, path, metadata, kind)?;
        }
        let id = metadata.as_ref().and_then(id);
        self.known.push(Known { id, real, role: option, path: path.to_owned() });
        Ok(())
    }

    /// Refuses a file that is read, or written by another option; returns the file behind the name.
    pub fn clear(&self, option: &'static str, path: &Path) -> Result<PathBuf, OutputError> {
        // A name that ends in `/` is a folder, even if it does not exist yet.
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(OutputError::Io { option, path: path.to_owned(), source: io::ErrorKind::IsADirectory.into() });
        }
        let real = real_path(path).map_err(|source| OutputError::Io { option, path: path.to_owned(), source })?;
        let id = std::fs::metadata(&real).ok().filter(Metadata::is_file).as_ref().and_then(id);
        match self.known.iter().find(|known| known.real == real || (id.is_some() && known.id == id)) {
            None => Ok(real),
            Some(known) => {
                Err(OutputError::Clash { option, path: path.to_owned(), role: known.role, other: known.path.clone() })
            }
        }
    }

    /// Refuses an output folder with foreign outputs.
    pub fn check_folder(&self, option: &'static str, folder: &Path) -> Result<(), OutputError> {
        let io = |source| OutputError::Io { option, path: folder.to_owned(), source };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io(error)),
        };
        if self.force || folder.join(FOLDER_MARK).exists() {
            return Ok(());
        }
        for entry in entries {
            let entry = entry.map_err(io)?;
            let is_result = entry.file_name().to_str().is_some_and(|name| name.starts_with("Result_"));
            // A folder that cannot be read may hold anything.
            if is_result && std::fs::read_dir(entry.path()).map_or(true, |mut files| files.next().is_some()) {
                let reason = "the outputs in it were not saved by qnnscope";
                return Err(OutputError::Foreign { option, path: folder.to_owned(), reason });
            }
        }
        Ok(())
    }

    /// Opens a file for writing in place, and locks it; its content is kept.
    pub fn open(&self, option: &'static str, path: &Path, kind: Kind) -> Result<OutputFile, OutputError> {
        if is_stream(path) {
            return OutputFile::stream(path).map_err(|source| OutputError::Io {
                option,
                path: path.to_owned(),
                source,
            });
        }
        let real = self.clear(option, path)?;
        let output = OutputFile::open(option, path, real)?;
        let metadata = output.metadata().map_err(|source| OutputError::Io { option, path: path.to_owned(), source })?;
        if metadata.is_file() {
            self.check_maker(option, path, &metadata, kind)?;
        }
        Ok(output)
    }

    fn check_maker(
        &self,
        option: &'static str,
        path: &Path,
        metadata: &Metadata,
        kind: Kind,
    ) -> Result<(), OutputError> {
        if self.force || metadata.len() == 0 {
            return Ok(());
        }
        // An unreadable file cannot be recognised as ours.
        if File::open(path).and_then(|file| kind.is_ours(file)).unwrap_or(false) {
            return Ok(());
        }
        Err(OutputError::Foreign { option, path: path.to_owned(), reason: kind.expected() })
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn id(metadata: &Metadata) -> Id {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn id(_: &Metadata) -> Id {
    None
}

/// Creates a folder for saved outputs, marked as ours for later runs.
pub fn make_output_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mark = folder.join(FOLDER_MARK);
    if mark.exists() {
        return Ok(());
    }
    write_whole(&mark, concat!("outputs saved by qnnscope ", env!("CARGO_PKG_VERSION"), "\n").as_bytes())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[track_caller]
    fn refused(result: Result<(), OutputError>, words: &str) {
        let text = result.expect_err("refused").to_string();
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn what_is_read_is_never_written_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("model"), "m").unwrap();
        std::fs::create_dir(at("sub")).unwrap();
        symlink("model", at("link")).unwrap();
        std::fs::hard_link(at("model"), at("hard")).unwrap();
        let mut guard = Guard::new(true);
        guard.reads("the model", &at("model"));
        for name in ["model", "link", "hard", "sub/../model"] {
            refused(guard.claim("--record", &at(name), Kind::Session), "overwrite the model");
            assert!(guard.open("--record", &at(name), Kind::Session).is_err(), "{name}");
        }
        assert_eq!(std::fs::read(at("model")).unwrap(), b"m");
    }

    #[test]
    fn no_two_options_write_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink("new", at("link")).unwrap();
        let mut guard = Guard::new(false);
        guard.claim("--record", &at("new"), Kind::Session).unwrap();
        refused(guard.claim("--save-context", &at("link"), Kind::Context), "overwrite --record");
        guard.claim("--save-context", &at("other"), Kind::Context).unwrap();
        for _ in 0..2 {
            guard.claim("--save-profile-log", Path::new("/dev/null"), Kind::ProfileLog).unwrap();
        }
        assert!(!at("new").exists() && !at("other").exists(), "nothing is touched");
    }

    #[test]
    fn files_of_others_are_kept_unless_forced() {
        let dir = tempfile::tempdir().unwrap();
        let (notes, empty) = (dir.path().join("notes"), dir.path().join("empty"));
        std::fs::write(&notes, "mine").unwrap();
        std::fs::write(&empty, "").unwrap();
        for kind in [Kind::Session, Kind::Context, Kind::ProfileLog] {
            refused(Guard::new(false).claim("--record", &notes, kind), kind.expected());
            Guard::new(false).claim("--record", &empty, kind).unwrap();
            Guard::new(true).claim("--record", &notes, kind).unwrap();
        }
        refused(Guard::new(false).claim("--record", dir.path(), Kind::Session), "directory");
    }

    #[test]
    fn outputs_of_others_are_kept_unless_forced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        let check = |force| Guard::new(force).check_folder("--save-outputs", &folder);
        check(false).unwrap();
        std::fs::create_dir_all(folder.join("Result_0")).unwrap();
        check(false).unwrap();
        std::fs::write(folder.join("Result_0/golden.raw"), "g").unwrap();
        refused(check(false), "not saved by qnnscope");
        check(true).unwrap();
        make_output_folder(&folder).unwrap();
        check(false).unwrap();
    }

    #[test]
    fn an_open_file_belongs_to_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let guard = Guard::new(false);
        let first = guard.open("--record", &path, Kind::Session).unwrap();
        let second = guard.open("--record", &path, Kind::Session);
        assert!(matches!(second, Err(OutputError::Busy { .. })), "{second:?}");
        drop(first);
        guard.open("--record", &path, Kind::Session).unwrap();
    }

    #[test]
    fn files_of_a_list_are_inputs() {
        let dir = tempfile::tempdir().unwrap();
        let (list, data) = (dir.path().join("list"), dir.path().join("x.raw"));
        std::fs::write(&data, "d").unwrap();
        std::fs::write(&list, format!("# a list\nx:={}\n", data.display())).unwrap();
        let mut guard = Guard::new(true);
        guard.reads_list(&list);
        refused(guard.claim("--record", &data, Kind::Session), "the input");
        refused(guard.claim("--record", &list, Kind::Session), "the input list");
    }
}
