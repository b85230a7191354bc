//! Runs the real program with a hard time limit, and finds processes that it left behind.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest that a single call of the program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How often to check for something that is waited for.
const POLL: Duration = Duration::from_millis(5);

/// A call of the program, with its own data folder and working directory.
pub struct Qnnscope {
    command: Command,
    home: TempDir,
    limit: Duration,
    default_launches: bool,
    input: Stdio,
}

impl Qnnscope {
    /// A call without any runtime.
    pub fn without_runtime() -> Self {
        Self::program(Path::new(env!("CARGO_BIN_EXE_qnnscope")))
    }

    /// A call of another program in the package.
    pub fn program(path: &Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(path);
        for name in ["QNNSCOPE_RUNTIME", "QNN_SDK_ROOT", "QAIRT_SDK_ROOT", "QNNSCOPE_RUNNER", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        command.env("QNNSCOPE_DATA_DIR", home.path()).env("HOME", home.path()).current_dir(home.path());
        Self { command, home, limit: LIMIT, default_launches: false, input: Stdio::null() }
    }

    /// A call with the runtime in `dir`.
    pub fn on(dir: &Path) -> Self {
        let mut call = Self::without_runtime();
        call.command.arg("--runtime").arg(dir);
        call
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Adds arguments separated by blanks.
    pub fn flags(mut self, flags: &str) -> Self {
        self.command.args(flags.split_whitespace());
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets another working directory, one of the test's own.
    pub fn within_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets what the program reads; otherwise its input is empty.
    pub fn reading(mut self, input: impl Into<Stdio>) -> Self {
        self.input = input.into();
        self
    }

    /// Gives runs as many launches as they have for users. Otherwise they have one, unless the flags say
    /// differently: a test that is not about launches should not take three times as long.
    pub fn with_default_launches(mut self) -> Self {
        self.default_launches = true;
        self
    }

    fn says_launches(&self) -> bool {
        let flags = ["--launches", "--interleave", "--sustained"];
        self.default_launches
            || !self.command.get_args().any(|arg| arg == "run")
            || self.command.get_args().any(|arg| flags.iter().any(|flag| arg.to_string_lossy().starts_with(flag)))
    }

    /// The working directory; removed when the call's result is dropped.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// `run MODEL --json` with few iterations, unless the caller's flags, which come later, say otherwise.
    pub fn run_json(self, model: &Path, flags: &str) -> Done {
        self.arg("run").arg(model).arg("--json").flags(flags).finish()
    }

    /// Starts the program.
    pub fn start(mut self) -> Running {
        if self.command.get_program() == env!("CARGO_BIN_EXE_qnnscope") && !self.says_launches() {
            self.command.args(["--launches", "1"]);
        }
        self.command.stdin(self.input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let stdout = Drain::new(child.stdout.take().unwrap());
        let stderr = Drain::new(child.stderr.take().unwrap());
        Running { child, home: self.home, deadline: Instant::now() + self.limit, stdout, stderr }
    }

    /// Runs the program to its end.
    pub fn finish(self) -> Done {
        self.start().wait()
    }
}

/// Reads a pipe to its end on its own thread; what has arrived so far can be examined.
struct Drain {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Drain {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = bytes.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                shared.lock().unwrap().extend(&buffer[..count]);
            }
        });
        Self { bytes, thread }
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// The running program.
pub struct Running {
    child: Child,
    home: TempDir,
    deadline: Instant,
    stdout: Drain,
    stderr: Drain,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits until `ready` returns something; panics at the time limit, or if the program ends first.
    pub fn until<T>(&mut self, what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(value) = ready() {
                return value;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("ended with {status} before {what}");
            }
            if Instant::now() > self.deadline {
                self.kill();
                panic!("no {what} in time");
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until the program has printed this on stderr.
    pub fn until_said(&mut self, text: &str) {
        let bytes = self.stderr.bytes.clone();
        self.until(text, || String::from_utf8_lossy(&bytes.lock().unwrap()).contains(text).then_some(()));
    }

    /// Waits until the program has printed this on stdout.
    pub fn until_printed(&mut self, text: &str) {
        let bytes = self.stdout.bytes.clone();
        self.until(text, || String::from_utf8_lossy(&bytes.lock().unwrap()).contains(text).then_some(()));
    }

    /// Waits for the runner process, and returns its id.
    pub fn runner(&mut self) -> u32 {
        let pid = self.pid();
        self.until("a runner", || children_of(pid).first().copied())
    }

    /// Waits for the end; kills it and panics at the time limit.
    pub fn wait(mut self) -> Done {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > self.deadline {
                self.kill();
                panic!("hangs; stderr: {}", String::from_utf8_lossy(&self.stderr.so_far()));
            }
            std::thread::sleep(POLL);
        };
        // A grandchild that outlives the program may hold the pipes open; that must be detected, not waited
        // for.
        let late = Instant::now() + Duration::from_secs(5);
        while !(self.stdout.is_finished() && self.stderr.is_finished()) {
            if Instant::now() > late {
                let left = processes_in(self.home.path());
                left.iter().for_each(|&pid| send(pid, Signal::KILL));
                panic!("ended with {status}, but processes {left:?} still hold its output");
            }
            std::thread::sleep(POLL);
        }
        Done {
            status,
            stdout: self.stdout.so_far(),
            stderr: String::from_utf8_lossy(&self.stderr.so_far()).into_owned(),
            home: self.home,
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        processes_in(self.home.path()).iter().for_each(|&pid| send(pid, Signal::KILL));
    }
}

/// The result of a call.
pub struct Done {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
    home: TempDir,
}

impl Done {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by signal {:?}: {}", self.status.signal(), self.stderr))
    }

    /// Fails, showing all output, if the exit status is another one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// All of stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in stdout {:?}, stderr {}", self.text(), self.stderr))
    }

    /// The first run of the document.
    #[track_caller]
    pub fn first_run(&self) -> Value {
        self.json()["runs"][0].clone()
    }

    /// Fails if a process started for this call still exists shortly after its end.
    #[track_caller]
    pub fn leaves_nothing_behind(self) -> Self {
        none_left(self.home.path());
        self
    }
}

/// Fails unless every process started with this data folder ends within five seconds.
#[track_caller]
pub fn none_left(home: &Path) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = processes_in(home);
        if left.is_empty() {
            return;
        }
        if Instant::now() > deadline {
            let names: Vec<String> = left.iter().map(|pid| format!("{pid} {}", command_line(*pid))).collect();
            left.iter().for_each(|&pid| send(pid, Signal::KILL));
            panic!("left behind: {names:?}");
        }
        std::thread::sleep(POLL);
    }
}

pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    let _ = kill_process(pid, signal);
}

/// Living processes (zombies do not count) whose data folder is `home`.
pub fn processes_in(home: &Path) -> Vec<u32> {
    let mark = format!("QNNSCOPE_DATA_DIR={}", home.display());
    all_processes()
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
        })
        .collect()
}

/// Direct children of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything; state and parent follow its last parenthesis.
        let mut rest = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let state = rest.next();
        state != Some("Z") && rest.next() == Some(&parent.to_string())
    };
    all_processes().filter(is_child).collect()
}

fn all_processes() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// Where a file written by a call is found in its output folder.
pub fn result_file(outputs: &Path, index: usize, name: &str) -> PathBuf {
    outputs.join(format!("Result_{index}")).join(name)
}
