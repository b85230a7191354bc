//! Runs a program with the tap in it, and reads what the tap reports.

#![allow(clippy::unwrap_used, dead_code, reason = "a test fails by panicking, and not every one needs all of this")]

use qnnscope_core::tap::{Execution, TapMessage, unread};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The library, where cargo builds it.
pub fn tap_library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let library = deps.join("libqnnscope_tap.so");
    assert!(library.exists(), "{} is missing: `cargo build -p qnnscope-tap` makes it", library.display());
    library
}

/// Folder of a runtime that `./test.sh` installs.
pub fn runtime(version: &str) -> PathBuf {
    let root = std::env::var_os("QNNSCOPE_TEST_RUNTIMES")
        .map_or_else(|| workspace().join("target/test-runtimes"), PathBuf::from);
    let found = std::fs::read_dir(root.join("runtimes")).ok().and_then(|folders| {
        folders.flatten().map(|folder| folder.path()).find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{version}-")))
        })
    });
    found.unwrap_or_else(|| {
        panic!("runtime {version} is not below {}: run ./test.sh, which installs it", root.display())
    })
}

/// What one run reported, by connection.
#[derive(Default)]
pub struct Told {
    pub connections: Vec<Vec<TapMessage>>,
}

impl Told {
    pub fn all(&self) -> impl Iterator<Item = &TapMessage> {
        self.connections.iter().flatten()
    }

    pub fn executions(&self) -> Vec<Execution> {
        let some = |message: &TapMessage| match message {
            TapMessage::Executions(some) => some.clone(),
            _ => Vec::new(),
        };
        self.all().flat_map(some).collect()
    }

    /// Calls that ended, by name.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for message in self.all() {
            if let TapMessage::Ended(call) = message {
                *calls.entry(call.call.clone()).or_default() += 1;
            }
        }
        calls
    }

    pub fn count(&self, is: impl Fn(&TapMessage) -> bool) -> usize {
        self.all().filter(|message| is(message)).count()
    }

    pub fn lost(&self) -> Vec<&TapMessage> {
        self.all().filter(|message| matches!(message, TapMessage::Lost { .. })).collect()
    }
}

/// A program's run.
pub struct Run {
    pub output: Output,
    pub told: Told,
}

impl Run {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }
}

/// Reads until a connection ends, then what its process left in its ring file.
pub fn serve(stream: UnixStream) -> Vec<TapMessage> {
    let mut messages = Vec::new();
    let mut ring = None;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        // The last line of a killed process may be incomplete.
        let Ok(message) = serde_json::from_str(&line) else { break };
        if let TapMessage::Hello(process) = &message {
            ring = process.ring.clone().or(ring);
        }
        messages.push(message);
    }
    if let Some(bytes) = ring.and_then(|ring| std::fs::read(ring).ok()) {
        let last = messages.iter().rev().find_map(|message| match message {
            TapMessage::Executions(some) => Some(some.clone()),
            _ => None,
        });
        let last = last.unwrap_or_default();
        let left = unread(&bytes).into_iter().filter(|execution| !last.contains(execution)).collect();
        messages.push(TapMessage::Executions(left));
    }
    messages
}

/// Runs a program with the tap in it.
pub fn tapped(mut command: Command, variables: &[(&str, &str)]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("tap");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let connections = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::new(Mutex::new(None));
    let server = {
        let (connections, ended) = (connections.clone(), ended.clone());
        std::thread::spawn(move || {
            let mut readers = Vec::new();
            loop {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(false).unwrap();
                        let connections: Arc<Mutex<Vec<Vec<TapMessage>>>> = connections.clone();
                        readers.push(std::thread::spawn(move || connections.lock().unwrap().push(serve(stream))));
                    }
                    Err(_)
                        if ended
                            .lock()
                            .unwrap()
                            .is_some_and(|at: Instant| at.elapsed() > Duration::from_millis(50)) =>
                    {
                        break;
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
            for reader in readers {
                reader.join().unwrap();
            }
        })
    };
    command.env("QNNSCOPE_TAP", format!("unix:{}", socket.display())).envs(variables.iter().copied());
    let output = command.output().unwrap();
    *ended.lock().unwrap() = Some(Instant::now());
    server.join().unwrap();
    let connections = std::mem::take(&mut *connections.lock().unwrap());
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        // Copies of context binaries are meant for whoever reads the messages; here nobody fetches them.
        .filter(|name| !name.to_string_lossy().ends_with(".binary"))
        .collect();
    assert!(left.len() <= 3, "sockets and rings of killed processes only: {left:?}");
    Run { output, told: Told { connections } }
}
