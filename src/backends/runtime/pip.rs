//! Downloads a wheel with the user's own pip, so that mirrors, proxies, credentials and hashes apply as configured.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::platform::version_key;
use super::progress::InstallProgress;
use super::{Env, RuntimeError};

/// How often the stop flag and the growing file are checked.
const POLL: Duration = Duration::from_millis(100);
/// Lines kept for a message; pip's errors are a few lines.
const KEPT_LINES: usize = 200;
/// Longer lines are cut: nobody reads them in an error message.
const MAX_LINE_BYTES: u64 = 4096;
/// pip 24.1 is the first with `--progress-bar raw`.
const RAW_PROGRESS_SINCE: [u64; 2] = [24, 1];
/// pip 20.3 is the first that knows platform tags such as `manylinux_2_35_x86_64`.
const NEW_TAGS_SINCE: [u64; 2] = [20, 3];
/// Wheels are built per Python version, but the libraries in them are the same. If there is no wheel for the
/// user's Python, pip is asked for this version's.
const OTHER_PYTHON: &str = "3.12";

/// Parameters of one download.
#[derive(Debug)]
pub struct Download<'a> {
    /// Which Python, and which machine.
    pub env: &'a Env,
    /// Package and version, in one argument.
    pub requirement: &'a str,
    /// An empty folder for pip's files; the wheel arrives in `wheel/` inside.
    pub scratch: &'a Path,
    /// Set by the caller to stop the download.
    pub cancel: &'a AtomicBool,
}

impl Download<'_> {
    /// Fetches the wheel and returns its path.
    pub fn run(&self, progress: &mut dyn FnMut(InstallProgress)) -> Result<PathBuf, RuntimeError> {
        let place = self.place();
        fs::create_dir_all(&place).map_err(|source| RuntimeError::file("create", &place, source))?;
        let pip = self.ask_version()?;
        let wanted = self.fetch(&pip, None, progress);
        let nothing_fits = matches!(wanted, Err(RuntimeError::NoWheel { .. } | RuntimeError::NoSuchVersion { .. }));
        if nothing_fits && pip.python != OTHER_PYTHON {
            // If that finds nothing either, the answer for the user's own Python is shown, unless only the
            // second names versions.
            return match self.fetch(&pip, Some(OTHER_PYTHON), progress) {
                Err(RuntimeError::NoWheel { .. }) => wanted,
                other => other,
            };
        }
        wanted
    }

    /// Asks for pip's version, which distinguishes a missing Python from a missing pip and shows which options exist.
    fn ask_version(&self) -> Result<Pip, RuntimeError> {
        let mut answer = self.talk(self.python(ISOLATED).args(["-m", "pip", "--version"]), &mut |_| {})?;
        let mut flags = ISOLATED;
        if !answer.status.success() && answer.says(NO_PIP) {
            // A pip installed only for the user is in a folder that full isolation excludes.
            answer = self.talk(self.python(WITH_USER_SITE).args(["-m", "pip", "--version"]), &mut |_| {})?;
            flags = WITH_USER_SITE;
        }
        if answer.status.success()
            && let Some(pip) = answer.lines.iter().find_map(|line| Pip::parse(line, flags))
        {
            return Ok(pip);
        }
        Err(self.explain(&answer, None, None))
    }

    /// The folder in which Python starts: private and empty, since Python searches its start folder for modules.
    fn place(&self) -> PathBuf {
        self.scratch.join("empty")
    }

    fn fetch(
        &self,
        pip: &Pip,
        python: Option<&str>,
        progress: &mut dyn FnMut(InstallProgress),
    ) -> Result<PathBuf, RuntimeError> {
        let dest = self.scratch.join("wheel");
        let temp = self.scratch.join("pip-tmp");
        for dir in [&dest, &temp] {
            fs::create_dir_all(dir).map_err(|source| RuntimeError::file("create", dir, source))?;
        }
        let raw = pip.is_at_least(RAW_PROGRESS_SINCE);
        let mut command = self.python(pip.flags);
        command
            .args(["-m", "pip", "download", "--no-deps", "--no-input"])
            .args(["--only-binary", ":all:", "--disable-pip-version-check"])
            .args(["--progress-bar", if raw { "raw" } else { "off" }])
            // Where pip keeps its partial download: on the target disk, in a folder that is removed
            // afterwards.
            .env("TMPDIR", &temp)
            .arg("--dest")
            .arg(&dest);
        if let Some(python) = python {
            command.args(["--implementation", "cp", "--python-version", python]);
        }
        command.args(["--", self.requirement]);

        let mut seen = Seen::default();
        let output = self.talk(&mut command, &mut |line| {
            if line.is_none_or(|line| seen.line(line)) {
                if !raw {
                    seen.done = largest_file(self.scratch);
                }
                progress(seen.report());
            }
        })?;
        if !output.status.success() {
            return Err(self.explain(&output, Some(pip), seen.total));
        }
        let wheels = fs::read_dir(&dest)
            .map_err(|source| RuntimeError::file("read", &dest, source))?
            .filter_map(|entry| Some(entry.ok()?.path()));
        wheels
            .into_iter()
            .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
            .ok_or_else(|| self.failed(&output))
    }

    /// Python that imports neither from the user's working folder nor from `$PYTHONPATH`: a `pip.py` there
    /// must not stand in for the user's pip. pip itself is configured as usual, by `PIP_*` and `pip.conf`.
    fn python(&self, flags: &[&str]) -> Command {
        // A relative path would be resolved from Python's start folder; a bare name is searched on `$PATH`.
        let program = match self.env.python.components().count() {
            0 | 1 => self.env.python.clone(),
            _ => std::path::absolute(&self.env.python).unwrap_or_else(|_| self.env.python.clone()),
        };
        let mut command = Command::new(program);
        command
            .args(flags)
            .arg("-u")
            .current_dir(self.place())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end, passing on its lines as they arrive, and `None` whenever nothing has
    /// arrived for a while.
    fn talk(&self, command: &mut Command, each: &mut dyn FnMut(Option<&str>)) -> Result<Output, RuntimeError> {
        let mut child = KilledOnDrop(
            command
                .spawn()
                .map_err(|source| RuntimeError::PythonMissing { python: self.env.python.clone(), source })?,
        );
        // Bounded: a flood of output waits in the pipe, not in our memory.
        let (sender, lines) = sync_channel(64);
        if let Some(stdout) = child.0.stdout.take() {
            read_lines(stdout, sender.clone());
        }
        if let Some(stderr) = child.0.stderr.take() {
            read_lines(stderr, sender);
        }
        let kept = self.collect(&lines, each)?;
        let status = child.0.wait().map_err(|source| RuntimeError::file("wait for", &self.env.python, source))?;
        Ok(Output { status, lines: kept })
    }

    fn collect(
        &self,
        lines: &Receiver<String>,
        each: &mut dyn FnMut(Option<&str>),
    ) -> Result<Vec<String>, RuntimeError> {
        let mut kept = Vec::new();
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(RuntimeError::Cancelled);
            }
            match lines.recv_timeout(POLL) {
                Ok(line) => {
                    each(Some(&line));
                    if !line.starts_with("Progress ") {
                        if kept.len() == KEPT_LINES {
                            kept.remove(0);
                        }
                        kept.push(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => each(None),
                Err(RecvTimeoutError::Disconnected) => return Ok(kept),
            }
        }
    }

    /// Why pip failed, from its output.
    fn explain(&self, output: &Output, pip: Option<&Pip>, size: Option<u64>) -> RuntimeError {
        let said = |words: &[&str]| output.says(words);
        let requirement = self.requirement.to_owned();
        if self.cancel.load(Ordering::Relaxed) || said(&["Operation cancelled by user"]) {
            RuntimeError::Cancelled
        } else if said(NO_PIP) {
            RuntimeError::PipMissing { python: self.env.python.clone() }
        } else if said(&["No space left on device", "Disk quota exceeded"]) {
            RuntimeError::DiskFull {
                operation: "download the wheel",
                dir: self.scratch.parent().unwrap_or(self.scratch).to_path_buf(),
                // pip stores the wheel twice for a short time.
                needed: size.map(|size| size.saturating_mul(2)),
            }
        } else if let Some(available) = offered_versions(&output.lines) {
            if !available.is_empty() {
                RuntimeError::NoSuchVersion { requirement, available }
            } else if said(NETWORK_WORDS) {
                RuntimeError::Network { requirement, lines: output.telling_lines() }
            } else {
                let old_pip = pip.filter(|pip| !pip.is_at_least(NEW_TAGS_SINCE));
                RuntimeError::NoWheel {
                    requirement,
                    platform: self.env.platform,
                    old_pip: old_pip.map(|pip| pip.version.clone()),
                }
            }
        } else if said(NETWORK_WORDS) {
            RuntimeError::Network { requirement, lines: output.telling_lines() }
        } else {
            self.failed(output)
        }
    }

    fn failed(&self, output: &Output) -> RuntimeError {
        RuntimeError::PipFailed {
            requirement: self.requirement.to_owned(),
            status: output.status.to_string(),
            lines: output.telling_lines(),
        }
    }
}

/// No variables, no folder of the user's own modules, no working folder.
const ISOLATED: &[&str] = &["-I"];
/// No variables; the working folder is ours.
const WITH_USER_SITE: &[&str] = &["-E"];
/// Python's message for a missing pip.
const NO_PIP: &[&str] = &["No module named pip", "No module named 'pip'"];

/// Network errors as worded by pip and its libraries.
const NETWORK_WORDS: &[&str] = &[
    "Retrying (Retry(",
    "Max retries exceeded",
    "NewConnectionError",
    "ConnectionError",
    "ProxyError",
    "SSLError",
    "ReadTimeoutError",
    "Connection to ",
    "Could not fetch URL",
];

/// The pip that was found.
#[derive(Debug, PartialEq, Eq)]
struct Pip {
    /// Such as `23.2.1`.
    version: String,
    /// The Python it runs in, such as `3.11`.
    python: String,
    /// The options with which that Python finds it.
    flags: &'static [&'static str],
}

impl Pip {
    /// Reads `pip 23.2.1 from /somewhere/pip (python 3.11)`.
    fn parse(line: &str, flags: &'static [&'static str]) -> Option<Self> {
        let (version, rest) = line.strip_prefix("pip ")?.split_once(' ')?;
        let python = rest.rsplit_once("(python ")?.1.strip_suffix(')')?;
        Some(Self { version: version.to_owned(), python: python.to_owned(), flags })
    }

    fn is_at_least(&self, version: [u64; 2]) -> bool {
        version_key(&self.version).as_slice() >= version.as_slice()
    }
}

/// A command's exit status and output.
#[derive(Debug)]
struct Output {
    status: ExitStatus,
    lines: Vec<String>,
}

impl Output {
    fn says(&self, words: &[&str]) -> bool {
        self.lines.iter().any(|line| words.iter().any(|word| line.contains(word)))
    }

    /// The error lines: pip's `ERROR:` lines, else the last ones.
    fn telling_lines(&self) -> Vec<String> {
        let mut errors: Vec<String> = self.lines.iter().filter(|line| line.starts_with("ERROR")).cloned().collect();
        if errors.is_empty() {
            errors.clone_from(&self.lines);
        }
        errors.split_off(errors.len().saturating_sub(3))
    }
}

/// A child that never outlives the install.
#[derive(Debug)]
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What pip's lines have revealed about the download so far.
#[derive(Debug, Default)]
struct Seen {
    wheel: Option<String>,
    done: u64,
    total: Option<u64>,
}

impl Seen {
    /// Processes one line; returns whether it was about the download.
    fn line(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        if let Some((done, total)) = line.strip_prefix("Progress ").and_then(|rest| rest.split_once(" of ")) {
            let Ok(done) = done.parse() else { return false };
            self.done = done;
            self.total = total.parse().ok().filter(|total| *total > 0).or(self.total);
            return true;
        }
        let Some(rest) = line.strip_prefix("Downloading ").or_else(|| line.strip_prefix("Using cached ")) else {
            return false;
        };
        let mut words = rest.split_whitespace();
        let Some(name) = words.next().and_then(|url| url.rsplit('/').next()) else {
            return false;
        };
        if name.strip_suffix(".whl").is_none() {
            // The description of the package comes first.
            return false;
        }
        self.wheel = Some(name.to_owned());
        self.total = words
            .next()
            .zip(words.next())
            .and_then(|(number, unit)| size(number.strip_prefix('(')?, unit.strip_suffix(')')?));
        true
    }

    fn report(&self) -> InstallProgress {
        InstallProgress::Downloading {
            wheel: self.wheel.clone(),
            // pip rounds the size it prints.
            done: self.total.map_or(self.done, |total| self.done.min(total)),
            total: self.total,
        }
    }
}

/// pip's sizes: decimal, one digit after the point.
fn size(number: &str, unit: &str) -> Option<u64> {
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let tenths =
        whole.parse::<u64>().ok()?.checked_mul(10)?.checked_add(tenths.parse().ok().filter(|digit| *digit < 10)?)?;
    let unit = match unit {
        "bytes" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        _ => return None,
    };
    tenths.checked_mul(unit).map(|size| size / 10)
}

/// The versions in `Could not find a version that satisfies ... (from versions: 2.3.0, 2.4.0)`, if pip printed that.
fn offered_versions(lines: &[String]) -> Option<Vec<String>> {
    let line = lines.iter().find(|line| line.contains("Could not find a version that satisfies"))?;
    let list = line.rsplit_once("(from versions: ").map_or("none", |(_, list)| list.trim_end_matches(')'));
    Some(
        list.split(',')
            .map(str::trim)
            .filter(|version| !version.is_empty() && *version != "none")
            .map(str::to_owned)
            .collect(),
    )
}

/// Size of the largest file below `dir`: the part of the wheel downloaded so far, in whichever of pip's
/// folders it is.
fn largest_file(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let meta = entry.metadata().ok()?;
            Some(if meta.is_dir() { largest_file(&entry.path()) } else { meta.len() })
        })
        .max()
        .unwrap_or(0)
}

/// Sends the lines of a pipe, without control characters, until it closes or the receiver is gone.
fn read_lines(pipe: impl Read + Send + 'static, lines: SyncSender<String>) {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut raw = Vec::new();
        loop {
            raw.clear();
            match pipe.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut raw) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line: String = String::from_utf8_lossy(&raw).chars().filter(|c| !c.is_control()).collect();
            if !line.trim().is_empty() && lines.send(line).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests;
