//! Files that take their time: a FIFO, and a thread that answers its readers.

use super::tree::Tree;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often to check for a reader.
const POLL: Duration = Duration::from_millis(1);

/// Answers readers of one path until dropped.
pub struct SlowFile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SlowFile {
    /// From now on, each reader of `path` waits for `delay` and then gets `text`. Readers that open the file
    /// within the same millisecond may share an answer, since only one of them gets it.
    pub fn start(tree: &Arc<Tree>, path: &str, delay: Duration, text: &str) -> Self {
        assert!(!path.starts_with("/proc/"), "a file laid over /proc cannot be replaced");
        let stop = Arc::new(AtomicBool::new(false));
        let (file, text) = (tree.host_path(path), text.to_owned());
        tree.put_fifo(&file);
        let (tree, stopped) = (tree.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // Succeeds only while a reader has it open.
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let Ok(writer) = openat(CWD, &file, flags, Mode::empty()) else {
                    std::thread::sleep(POLL);
                    continue;
                };
                // The next reader must wait again instead of finding this one's answer.
                tree.put_fifo(&file);
                let text = text.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(delay);
                    // The reader may have been killed in the meantime.
                    let _ = File::from(writer).write_all(text.as_bytes());
                });
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for SlowFile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
