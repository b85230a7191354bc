//! The history: every session is kept in the data folder, with an index to find it again.
//!
//! | file of `sessions/` | what |
//! |---|---|
//! | `ID.jsonl.zst` | a session, as `--record` writes it |
//! | `ID.json` | name, tags and note that the user gave it, if any |
//! | `index.sqlite` | what lists and filters need; made again from the other files whenever it is missing or damaged |

mod entry;
mod error;
mod filter;
mod index;
mod limits;
mod marks;
mod pick;
mod reference;

pub use entry::{Entry, RunEntry, State};
pub use error::HistoryError;
pub use filter::{Filter, moment_us};
pub use limits::{Limits, config_path};
pub use marks::Marks;
pub use reference::resolve;

use crate::files::Guard;
use crate::session::Recorder;
use crate::store::Store;
use index::Index;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Folder within the data folder.
const FOLDER: &str = "sessions";
/// Ending of session files.
const ENDING: &str = ".jsonl.zst";
/// Maximum time from creating a file to its first record.
const BIRTH: std::time::Duration = std::time::Duration::from_mins(1);
/// Maximum number of sessions that may begin within one second.
const TRIES: u32 = 100;

/// The kept sessions of a data folder.
#[derive(Debug)]
pub struct History {
    folder: PathBuf,
}

impl History {
    /// The history in a data folder, which need not exist yet.
    pub fn of(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(FOLDER) }
    }

    /// Starts recording a session that begins now; `epoch_us` is the wall-clock time in microseconds.
    ///
    /// # Errors
    /// The folder cannot be created or written to.
    pub fn begin(&self, epoch_us: u64) -> Result<Recorder, HistoryError> {
        self.make_folder()?;
        let stamp = entry::stamp(epoch_us);
        for number in 1..TRIES {
            let id = if number == 1 { stamp.clone() } else { format!("{stamp}-{number}") };
            let path = self.file(&id);
            // Whoever creates the file owns the name.
            match File::create_new(&path) {
                Ok(_) => return Recorder::create_as("the history's", &path, &Guard::new(false)).map_err(Into::into),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(HistoryError::Io { action: "write", path, source }),
            }
        }
        Err(HistoryError::TooMany { stamp })
    }

    /// Lists a finished session with its results, or drops it if nothing ran; then drops the oldest sessions
    /// beyond the limits.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn end(&self, file: &Path, store: &Store, limits: Limits) -> Result<(), HistoryError> {
        let Some(id) = id_of(file) else { return Ok(()) };
        if store.runs().is_empty() && store.tapped().is_none() {
            return remove(file);
        }
        let mut index = Index::open(&self.folder)?;
        index.put(&Entry::of(&id, size(file), State::Whole, Marks::default(), store))?;
        for old in limits.beyond(&index.entries(&Filter::default())?) {
            self.delete_from(&mut index, &old)?;
        }
        Ok(())
    }

    /// The sessions that pass a filter, newest first.
    ///
    /// # Errors
    /// The index cannot be read or created.
    pub fn entries(&self, filter: &Filter) -> Result<Vec<Entry>, HistoryError> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        self.synced()?.entries(filter)
    }

    /// Where the sessions are kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds a session by its id, the start of its id, its name, `last`, or `last~N`: the N-th before the
    /// last one.
    ///
    /// # Errors
    /// There is no such session, or more than one.
    pub fn find(&self, reference: &str) -> Result<Entry, HistoryError> {
        // Accepts the `@` that marks a session where files are named.
        let reference = reference.strip_prefix('@').unwrap_or(reference);
        pick::pick(self.entries(&Filter::default())?, reference)
    }

    /// The file of a session.
    pub fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{ENDING}"))
    }

    /// Changes the name, tags and note of a session. The session's own file is used, even if the index is out
    /// of date.
    ///
    /// # Errors
    /// They cannot be read or written, a name is taken or means something else, or a text is too long.
    pub fn mark(&self, entry: &mut Entry, change: impl FnOnce(&mut Marks)) -> Result<(), HistoryError> {
        let mut marks = Marks::read(&self.folder, &entry.id)?;
        change(&mut marks);
        let marks = marks.cleaned();
        if let Some(fault) = marks.fault() {
            return Err(HistoryError::BadMarks(fault));
        }
        if let Some(name) = &marks.name {
            let is_taken = |other: &Entry| other.id != entry.id && other.marks.name.as_ref() == Some(name);
            if let Some(other) = self.entries(&Filter::default())?.into_iter().find(is_taken) {
                return Err(HistoryError::NameTaken { id: other.id, name: name.clone() });
            }
        }
        marks.write(&self.folder, &entry.id)?;
        (entry.marks, entry.marks_error) = (marks, None);
        Index::open(&self.folder)?.put(entry)
    }

    /// Deletes a session and everything that belongs to it.
    ///
    /// # Errors
    /// It is being recorded, or cannot be removed.
    pub fn delete(&self, entry: &Entry) -> Result<(), HistoryError> {
        if entry.state == State::Recording {
            return Err(HistoryError::Recording { id: entry.id.clone() });
        }
        self.delete_from(&mut Index::open(&self.folder)?, entry)
    }

    fn delete_from(&self, index: &mut Index, entry: &Entry) -> Result<(), HistoryError> {
        let file = self.file(&entry.id);
        // Another process may have been faster.
        remove(&file)?;
        Marks::remove(&self.folder, &entry.id)?;
        index.remove(&entry.id)
    }

    /// The index, brought up to date: sessions only in the folder are read and added, those only in the index
    /// are dropped.
    fn synced(&self) -> Result<Index, HistoryError> {
        let mut index = Index::open(&self.folder)?;
        let mut known = index.files()?;
        let listed =
            std::fs::read_dir(&self.folder).map_err(|source| HistoryError::io("read", &self.folder, source))?;
        for file in listed.flatten().map(|file| file.path()) {
            // A pipe would block everything.
            let Some(id) = id_of(&file).filter(|_| file.is_file()) else { continue };
            let bytes = size(&file);
            if known.remove(&id) == Some(Some(bytes)) {
                continue;
            }
            if bytes == 0 && is_abandoned(&file) {
                remove(&file)?;
                continue;
            }
            // An unreadable file must not hide the others.
            let (marks, error) = match Marks::read(&self.folder, &id) {
                Ok(marks) => (marks, None),
                Err(error) => (Marks::default(), Some(error.to_string())),
            };
            let entry = Entry::read(&id, &file, &marks).unwrap_or_else(|_| Entry::unreadable(&id, &file, marks));
            index.put(&entry.with_marks_error(error))?;
        }
        for id in known.into_keys() {
            index.remove(&id)?;
        }
        Ok(index)
    }

    fn make_folder(&self) -> Result<(), HistoryError> {
        let failed = |source| HistoryError::io("make", &self.folder, source);
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Sessions contain logs and file names, which concern only the user.
            std::fs::set_permissions(&self.folder, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(())
    }
}

/// The id of a session's file; `None` for other files.
fn id_of(file: &Path) -> Option<String> {
    Some(file.file_name()?.to_str()?.strip_suffix(ENDING)?.to_owned())
}

fn remove(file: &Path) -> Result<(), HistoryError> {
    match std::fs::remove_file(file) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(HistoryError::io("remove", file, source)),
        _ => Ok(()),
    }
}

/// True while another process, or another recorder in this one, is writing the file.
#[cfg(unix)]
fn is_being_written(file: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let locked = |file: File| flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK);
    File::open(file).is_ok_and(locked)
}

#[cfg(not(unix))]
fn is_being_written(_: &Path) -> bool {
    false
}

/// True for an empty file that was not created just now: its creator died before the first record.
fn is_abandoned(file: &Path) -> bool {
    let age = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > BIRTH) && !is_being_written(file)
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len())
}
