//! Contents of the context binaries that processes load: the tap keeps a copy, or the two ends of a large
//! one, and QNN's system library reads it here, in a confined child. None of that happens in the program.

use crate::backends::local::{Ended, Limits, Scratch, ask};
use crate::backends::qnn::runner::{Frame, InspectTask, Task};
use crate::event::{BinaryRead, Event, TapRecord, TapSeen, clean_text};
use crate::session::Source;
use qnnscope_core::tap::Binary;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Largest file read from a process; the tap keeps less than that of a binary.
pub(super) const LARGEST_COPY: u64 = 32 << 20;
/// Largest binary read: the child holds all of it in memory, with the missing part as zeros.
const LARGEST: u64 = 4 << 30;
/// Maximum number of binaries remembered per session.
const MOST: usize = 256;
/// Time limit for reading one binary.
const LIMIT: Duration = Duration::from_secs(30);
/// Time limit for reading those that are left when the program ends.
const LAST_LIMIT: Duration = Duration::from_mins(1);
/// The library that reads them.
const SYSTEM: &str = "libQnnSystem.so";

/// A binary waiting to be read.
#[derive(Debug, Clone)]
struct Job {
    key: u64,
    bytes: u64,
    is_whole: bool,
    /// The copy: as long as the binary, with a hole where nothing was kept.
    copy: PathBuf,
    /// Folder of the backend that loaded it, on this machine.
    runtime: Option<PathBuf>,
    /// Processes that loaded it.
    processes: Vec<u32>,
}

#[derive(Debug, Default)]
struct State {
    /// The binaries waiting; the first one is being read.
    waiting: VecDeque<Job>,
    read: HashMap<(u64, u64), BinaryRead>,
    copies: Option<Scratch>,
}

/// The binaries of a session.
#[derive(Debug)]
pub(super) struct Binaries {
    state: Mutex<State>,
    news: Notify,
    /// Where the system library is, if the program's own is not available.
    runtime: Option<PathBuf>,
}

/// Whether a file is one that the tap wrote with a binary.
pub(super) fn is_copy(name: &str) -> bool {
    let Some((pid, key)) = name.strip_suffix(".binary").and_then(|name| name.split_once('.')) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(pid) && is_number(key)
}

/// Takes the copy that a local process left in `folder`. The process may name any file: anything but a copy
/// in that folder is left alone.
pub(super) fn take(binary: &Binary, folder: Option<&Path>) -> Result<Vec<u8>, String> {
    let path = match &binary.file {
        Some(file) => Path::new(file),
        None => return Err(binary.reason.clone().unwrap_or_else(|| "it was not kept".to_owned())),
    };
    let is_ours = path.parent().is_some_and(|parent| Some(parent) == folder)
        && path.file_name().is_some_and(|name| is_copy(&name.to_string_lossy()))
        && std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_ours {
        return Err("its copy is missing from the tap's folder".to_owned());
    }
    let bytes = crate::files::read_at_most(path, LARGEST_COPY);
    let _ = std::fs::remove_file(path);
    bytes.map_err(|error| format!("its copy cannot be read: {error}"))
}

impl Binaries {
    /// An empty collection. `runtime` has the system library for programs whose own is not available.
    pub fn new(runtime: Option<PathBuf>) -> Self {
        Self { state: Mutex::default(), news: Notify::new(), runtime }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a process's binary as kept, or why it was not kept. `library` is the backend's, if on this
    /// machine.
    pub fn submit(
        &self,
        process: u32,
        binary: &Binary,
        kept: Result<Vec<u8>, String>,
        library: Option<&Path>,
    ) -> Option<BinaryRead> {
        let id = (binary.key, binary.bytes);
        let mut state = self.state();
        if let Some(read) = state.read.get(&id) {
            return Some(read.clone());
        }
        if let Some(job) = state.waiting.iter_mut().find(|job| (job.key, job.bytes) == id) {
            job.processes.push(process);
            return None;
        }
        let failed = |reason: String| Some(BinaryRead { reason: Some(reason), ..unknown(binary.key) });
        if state.read.len() + state.waiting.len() >= MOST {
            return failed(format!("the program loaded more than {MOST} context binaries"));
        }
        let copied = kept.and_then(|bytes| {
            let name = format!("{}-{}", binary.key, binary.bytes);
            state.copy(&name, binary, &bytes)
        });
        match copied {
            Ok(copy) => {
                let runtime = library.and_then(Path::parent).map(ToOwned::to_owned);
                let is_whole = binary.head == binary.bytes;
                let processes = vec![process];
                let job = Job { key: binary.key, bytes: binary.bytes, is_whole, copy, runtime, processes };
                state.waiting.push_back(job);
                self.news.notify_one();
                None
            }
            Err(reason) => failed(reason),
        }
    }

    /// Reads binaries as they come; never ends.
    pub async fn read_as_they_come(&self, source: &Source) {
        loop {
            self.read_waiting(source).await;
            self.news.notified().await;
        }
    }

    /// Reads those that are left when the program has ended. Ctrl-C stops this.
    pub async fn finish(&self, source: &Source) {
        if self.state().waiting.is_empty() {
            return;
        }
        let reason = tokio::select! {
            () = self.read_waiting(source) => return,
            () = tokio::time::sleep(LAST_LIMIT) => format!("it was not read within {} s", LAST_LIMIT.as_secs()),
            _ = tokio::signal::ctrl_c() => "Ctrl-C skipped reading it".to_owned(),
        };
        let left = std::mem::take(&mut self.state().waiting);
        for job in left {
            tell(source, &job, &BinaryRead { reason: Some(reason.clone()), ..unknown(job.key) }).await;
        }
    }

    async fn read_waiting(&self, source: &Source) {
        loop {
            // It stays in the queue until it has been read, since this may be cancelled midway.
            let Some(job) = self.state().waiting.front().cloned() else { return };
            let read = self.read(&job).await;
            let done = {
                let mut state = self.state();
                state.read.insert((job.key, job.bytes), read.clone());
                state.waiting.pop_front()
            };
            let _ = std::fs::remove_file(&job.copy);
            tell(source, &done.unwrap_or(job), &read).await;
        }
    }

    async fn read(&self, job: &Job) -> BinaryRead {
        let unread = |reason: String| BinaryRead { reason: Some(reason), ..unknown(job.key) };
        let places = [job.runtime.as_ref(), self.runtime.as_ref()];
        let Some(runtime) = places.into_iter().flatten().find(|folder| folder.join(SYSTEM).is_file()) else {
            let beside = job.runtime.as_ref().map_or_else(String::new, |folder| {
                format!("beside the program's backend ({}), and ", clean_text(&folder.to_string_lossy()))
            });
            return unread(format!(
                "{SYSTEM}, which reads context binaries, is not {beside}in an installed runtime: name one with --runtime"
            ));
        };
        let task = Task::Inspect(InspectTask {
            runtime_dir: runtime.clone(),
            model: job.copy.clone(),
            allow_unknown_runtime: true,
        });
        let memory_bytes = Some(job.bytes.saturating_add(1 << 30));
        let answer = Box::pin(ask(&task, Limits { stage_timeout: LIMIT, memory_bytes })).await;
        let model = match answer {
            Ok(Ended::Done(Some(Frame::Inspected { model, .. }))) => model,
            Ok(Ended::Failed(failure)) => {
                // The copy's name means nothing to users.
                let copy = job.copy.to_string_lossy();
                return unread(failure.message.replace(&*copy, "it"));
            }
            Ok(Ended::Done(_)) => return unread("the runner did not answer".to_owned()),
            Err(error) => return unread(error.to_string()),
        };
        BinaryRead {
            sha256: job.is_whole.then(|| model.sha256.clone()),
            runtime: Some(clean_text(&runtime.to_string_lossy())),
            reason: model
                .context_binary
                .is_none()
                .then(|| format!("it is not a context binary but a {}", model.format.label())),
            info: model.context_binary,
            ..unknown(job.key)
        }
    }
}

impl State {
    /// Writes a copy with the binary's full length.
    fn copy(&mut self, name: &str, binary: &Binary, bytes: &[u8]) -> Result<PathBuf, String> {
        if binary.bytes > LARGEST {
            return Err(format!("it has more than {} GiB", LARGEST >> 30));
        }
        let parts =
            binary.head.checked_add(binary.tail).filter(|parts| *parts <= binary.bytes && *parts == bytes.len() as u64);
        if parts.is_none() {
            return Err("its copy does not have the size the tap reported".to_owned());
        }
        let head = usize::try_from(binary.head).unwrap_or(0);
        let written = || -> io::Result<PathBuf> {
            let copies = match &mut self.copies {
                Some(copies) => copies,
                none => none.insert(Scratch::new()?),
            };
            let path = copies.path().join(name);
            let mut file = File::create_new(&path)?;
            file.set_len(binary.bytes)?;
            file.write_all(&bytes[..head])?;
            file.seek(SeekFrom::Start(binary.bytes - binary.tail))?;
            file.write_all(&bytes[head..])?;
            Ok(path)
        }();
        written.map_err(|error| format!("its copy cannot be written: {error}"))
    }
}

fn unknown(key: u64) -> BinaryRead {
    BinaryRead { key, sha256: None, runtime: None, info: None, reason: None }
}

async fn tell(source: &Source, job: &Job, read: &BinaryRead) {
    for process in &job.processes {
        say(source, *process, read.clone()).await;
    }
}

/// Reports what is in a process's binary.
pub(super) async fn say(source: &Source, process: u32, read: BinaryRead) {
    let seen = TapSeen::BinaryRead(Box::new(read));
    source.send(None, Event::Tap(Box::new(TapRecord { process: Some(process), seen }))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(file: Option<&Path>, bytes: u64, head: u64, tail: u64) -> Binary {
        let file = file.map(|file| file.to_str().unwrap().to_owned());
        Binary { t_ns: 0, key: 7, provider: 0, bytes, file, head, tail, reason: Some("no room".to_owned()) }
    }

    #[test]
    fn only_a_copy_in_its_place_is_taken_away() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, foreign) = (folder.path().join("12.7.binary"), other.path().join("12.7.binary"));
        let odd = folder.path().join("notes.binary");
        for path in [&path, &foreign, &odd] {
            std::fs::write(path, "abc").unwrap();
        }
        let link = folder.path().join("13.7.binary");
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        for path in [&foreign, &odd, &link, &folder.path().join("14.7.binary"), &folder.path().join("../12.7.binary")] {
            assert!(take(&binary(Some(path), 3, 3, 0), Some(folder.path())).is_err(), "{}", path.display());
        }
        assert!(take(&binary(Some(&path), 3, 3, 0), None).is_err());
        assert!([&path, &foreign, &odd, &link].iter().all(|path| path.exists()));
        assert_eq!(take(&binary(Some(&path), 3, 3, 0), Some(folder.path())), Ok(b"abc".to_vec()));
        assert!(!path.exists());
        assert_eq!(take(&binary(None, 3, 3, 0), Some(folder.path())), Err("no room".to_owned()));
    }

    #[test]
    fn a_copy_is_as_long_as_the_binary_whatever_is_claimed_of_it() {
        let binaries = Binaries::new(None);
        let refused = |binary: &Binary, bytes: &[u8]| {
            let read = binaries.submit(0, binary, Ok(bytes.to_vec()), None);
            read.and_then(|read| read.reason).unwrap()
        };
        assert!(refused(&binary(None, 10, 4, 3), b"12345678").contains("does not have the size"));
        assert!(refused(&binary(None, 6, 4, 3), b"1234567").contains("does not have the size"));
        assert!(refused(&binary(None, 9, u64::MAX, 2), b"1").contains("does not have the size"));
        assert!(refused(&binary(None, u64::MAX, 4, 3), b"1234567").contains("4 GiB"));
        assert_eq!(binaries.submit(0, &binary(None, 10, 4, 3), Ok(b"1234567".to_vec()), None), None);
        assert_eq!(binaries.submit(1, &binary(None, 10, 4, 3), Err("gone".to_owned()), None), None, "it waits already");
        let job = binaries.state().waiting[0].clone();
        assert_eq!(std::fs::read(&job.copy).unwrap(), b"1234\x00\x00\x00567");
        assert_eq!((job.processes, job.is_whole), (vec![0, 1], false));
    }
}
