//! `qnnscope inspect` for models before conversion: needs neither runtime nor runner.

use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, OK};
use crate::event::clean_text;
use crate::files::{Guard, Kind, OutputError, Replacement, sha256_hex};
use crate::models::read_source;
use crate::models::source::{EmbeddedContext, SourceError, SourceFile, SourceFormat, SourceModel};
use crate::report::{SourceDocument, source_text};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum length of a file name made from a binary's name, bytes.
const MOST_NAME: usize = 120;

/// Reads the model and prints its contents; extracts its context binaries if requested.
pub fn inspect(job: Job, json: bool, patience: Patience) -> Result<u8, CliError> {
    let path = clean_text(&job.model.to_string_lossy());
    let what = || format!("this machine to read {path}");
    let document = patience.wait(what, Worker::start(job)?)?;
    if json {
        print_json(&document)?;
    } else {
        print(&source_text(&document))?;
    }
    Ok(OK)
}

/// The work, done off the thread that handles signals.
pub struct Job {
    /// The model.
    pub model: PathBuf,
    /// Its format.
    pub format: SourceFormat,
    /// Sizes of free dimensions, by name.
    pub dimensions: Vec<(String, u64)>,
    /// Folder to extract its context binaries to.
    pub extract: Option<PathBuf>,
    /// Whether these may overwrite files that qnnscope did not write.
    pub force: bool,
    /// Cancels the job.
    pub stop: Arc<AtomicBool>,
}

impl Job {
    fn run(&self) -> Result<SourceDocument, CliError> {
        let model = read_source(&self.model, self.format, &self.dimensions)?;
        let io = |source| SourceError::Io { path: self.model.clone(), source };
        let file = Stoppable { inner: File::open(&self.model).map_err(io)?, stop: &self.stop };
        let (sha256, _) = sha256_hex(file).map_err(io)?;
        let extracted = match &self.extract {
            Some(folder) => self.extract(&model, folder)?,
            None => Vec::new(),
        };
        Ok(SourceDocument::new(model, sha256, &extracted))
    }

    /// Writes the context binaries into `folder`; missing ones are skipped.
    fn extract(&self, model: &SourceModel, folder: &Path) -> Result<Vec<Option<PathBuf>>, CliError> {
        if let Some(absent) = model.contexts.first().filter(|_| model.contexts.iter().all(|one| one.problem.is_some()))
        {
            let reason = absent.problem.clone().map_or_else(String::new, |problem| format!("is not there: {problem}"));
            return Err(SourceError::Context { path: self.model.clone(), name: absent.name.clone(), reason }.into());
        }
        if model.contexts.is_empty() {
            let text =
                format!("{} carries no QNN context binary to extract", clean_text(&self.model.to_string_lossy()));
            return Err(CliError::Usage(text));
        }
        let mut guard = Guard::new(self.force);
        guard.reads("the model", &self.model);
        model
            .external_files
            .iter()
            .for_each(|external| guard.reads("its data", &self.model.with_file_name(&external.file)));
        model.contexts.iter().for_each(|context| guard.reads("the context binary", &context.file));
        std::fs::create_dir_all(folder).map_err(|source| OutputError::Io {
            option: "--extract",
            path: folder.to_owned(),
            source,
        })?;
        let mut taken = HashSet::new();
        let targets: Vec<Option<PathBuf>> = model
            .contexts
            .iter()
            .map(|context| context.problem.is_none().then(|| folder.join(file_name(&context.name, &mut taken))))
            .collect();
        // Check all before writing the first.
        for target in targets.iter().flatten() {
            guard.claim("--extract", target, Kind::Context)?;
        }
        for (context, target) in model.contexts.iter().zip(&targets) {
            if let Some(target) = target {
                self.write(context, target)?;
            }
        }
        Ok(targets)
    }

    fn write(&self, context: &EmbeddedContext, target: &Path) -> Result<(), CliError> {
        let held = SourceFile::open(&context.file, "context binary")?;
        let failed = |source| OutputError::Io { option: "--extract", path: target.to_owned(), source };
        let replacement = Replacement::begin(target).map_err(failed)?;
        let mut out = Stoppable { inner: File::create(replacement.path()).map_err(failed)?, stop: &self.stop };
        held.copy(context.span, &mut out)?;
        out.flush().map_err(failed)?;
        replacement.commit().map_err(failed)?;
        Ok(())
    }
}

/// A unique file name for the binary called `name`, valid on other systems too.
fn file_name(name: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let plain: String = name.chars().map(plain).take(MOST_NAME).collect();
    let stem = match plain.trim_start_matches('.').trim_end_matches(".bin") {
        "" => "context",
        stem => stem,
    };
    let numbers = std::iter::once(String::new()).chain((2..).map(|number| format!("-{number}")));
    // Some file systems ignore case.
    let free = numbers.map(|number| format!("{stem}{number}.bin")).find(|file| taken.insert(file.to_ascii_lowercase()));
    free.unwrap_or_else(|| stem.to_owned())
}

/// A stream that fails once stopped.
struct Stoppable<'a, T> {
    inner: T,
    stop: &'a AtomicBool,
}

impl<T> Stoppable<'_, T> {
    fn check(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(io::Error::other("stopped")) } else { Ok(()) }
    }
}

impl<T: Read> Read for Stoppable<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.read(buffer)
    }
}

impl<T: Write> Write for Stoppable<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Maximum wait for a job to stop: it checks after every megabyte.
const STOPPING: Duration = Duration::from_secs(2);

/// The job's thread. Dropping it stops the job and waits until no partial file is left.
struct Worker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < STOPPING {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Worker {
    /// Starts the job and returns a future of its outcome.
    fn start(job: Job) -> Result<impl Future<Output = Result<SourceDocument, CliError>>, CliError> {
        let (tell, told) = tokio::sync::oneshot::channel();
        let stop = Arc::clone(&job.stop);
        let thread = std::thread::Builder::new()
            .name("inspect".to_owned())
            .spawn(move || drop(tell.send(job.run())))
            .map_err(|source| CliError::Io { action: "start a thread".to_owned(), source })?;
        let worker = Self { stop, thread };
        Ok(async move {
            let _worker = worker;
            told.await.unwrap_or(Err(CliError::Interrupted))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_binaries_become_names_of_files() {
        let mut taken = HashSet::new();
        let mut of = |name: &str| file_name(name, &mut taken);
        assert_eq!(of("qnn_partition_0"), "qnn_partition_0.bin");
        assert_eq!(of("../../etc/passwd"), "_.._etc_passwd.bin");
        assert_eq!(of("QNN_partition_0"), "QNN_partition_0-2.bin");
        assert_eq!(of("a b\u{1b}[31m"), "a_b__31m.bin");
        assert_eq!(of(""), "context.bin");
        assert_eq!(of("x.bin"), "x.bin");
        assert_eq!(of(&"n".repeat(500)).len(), MOST_NAME + 4);
    }
}
