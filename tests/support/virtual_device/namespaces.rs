//! The Linux namespaces of one device, which its shells enter: its own processes, mounts, users and time
//! since boot.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BOOT: &str = include_str!("boot.sh");

/// What a user has to do if namespaces are not permitted.
const PERMIT: &str = "The virtual device needs unprivileged user namespaces (or root), and PID, mount and time namespaces \
                      (Linux 5.6). To permit them: `sysctl -w kernel.unprivileged_userns_clone=1` (Debian), `sysctl -w \
                      kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu 23.10 and later); in a container, run it with \
                      --privileged, because a masked /proc cannot be mounted again.";

/// What the namespaces are built from.
pub struct Layout<'a> {
    /// Becomes `/`.
    pub tree: &'a Path,
    /// Files laid over those with the same names in `/proc`.
    pub proc: &'a Path,
    /// The shell's path as seen in the tree.
    pub shell: &'a str,
    /// A folder in the tree that gets a file system of this many bytes.
    pub limited: Option<(&'a str, u64)>,
    /// Initial value of `/proc/uptime`, seconds.
    pub uptime_s: i64,
}

/// Running namespaces; killed on drop, with everything in them.
pub struct Namespaces {
    keeper: Child,
    init: Pid,
    root: OwnedFd,
}

impl Namespaces {
    /// Boots the device.
    pub fn boot(layout: &Layout) -> Self {
        let offset = layout.uptime_s - host_uptime_s();
        let (limited, size) = layout.limited.unwrap_or(("", 0));
        let mut keeper = Command::new(tool("unshare"))
            .args(["--user", "--map-root-user", "--mount", "--pid", "--time", "--boottime", &offset.to_string()])
            .args(["--fork", "--kill-child=KILL", "sh", "-c", BOOT, "boot"])
            .args([layout.tree, layout.proc])
            .args([limited, &size.to_string(), layout.shell])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("unshare (apt-get install util-linux): {error}"));
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(pid) = line.trim().strip_prefix("ready ").and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw)
        else {
            let mut complaint = String::new();
            let _ = keeper.stderr.take().unwrap().read_to_string(&mut complaint);
            let _ = keeper.wait();
            panic!("the device's namespaces could not be made: {}\n{PERMIT}", complaint.trim());
        };
        let root = rustix::fs::open(
            format!("/proc/{}/root", pid.as_raw_nonzero()),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap_or_else(|error| panic!("the device's root folder: {error}"));
        Self { keeper, init: pid, root }
    }

    /// A handle for the device's `/`, with its mounts.
    pub fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// A command inside the device, as the leader of its own session. Users other than 0 have no
    /// capabilities.
    pub fn command(&self, uid: u32, program: &str) -> Command {
        let mut command = Command::new(tool("nsenter"));
        command.env_clear().args(["--target", &self.init.as_raw_nonzero().to_string()]);
        command.args(["--user", "--mount", "--pid", "--time", "--wd", "--preserve-credentials", "--"]);
        if uid != 0 {
            command.args(["/usr/bin/unshare", "--user"]);
            command.args([format!("--map-user={uid}"), format!("--map-group={uid}"), "--".to_owned()]);
        }
        command.args(["/usr/bin/setsid", program]);
        command
    }

    /// Kills all processes of the device and waits until they are gone.
    pub fn kill(&mut self) {
        // The keeper is init's parent and has not been waited for, so the pid still means init.
        if let Ok(None) = self.keeper.try_wait() {
            let _ = kill_process(self.init, Signal::KILL);
        }
        let _ = self.keeper.wait();
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends `SIGHUP` to the shell behind `entered`, a running command from [`Namespaces::command`], and only to
/// it, as adbd does. If the command has not forked yet, waits for that.
pub fn hang_up(entered: u32) {
    let children = format!("/proc/{entered}/task/{entered}/children");
    for _ in 0..1000 {
        let Ok(text) = std::fs::read_to_string(&children) else { return };
        if let Some(shell) = text.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw) {
            let _ = kill_process(shell, Signal::HUP);
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Full path of a program on this machine.
pub fn tool(name: &str) -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path)
        .chain(extra)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{name} is missing; run ./test.sh, or: apt-get install adb mksh toybox util-linux"))
}

/// Whole seconds since this machine started.
fn host_uptime_s() -> i64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap()
}

/// The environment that adbd gives its shells.
pub fn environment<'a>(android: bool) -> &'a [(&'a str, &'a str)] {
    if android {
        &[
            ("ANDROID_DATA", "/data"),
            ("ANDROID_ROOT", "/system"),
            ("HOME", "/"),
            ("HOSTNAME", "localhost"),
            ("LOGNAME", "shell"),
            ("PATH", "/product/bin:/system/bin:/system/xbin:/vendor/bin"),
            ("SHELL", "/system/bin/sh"),
            ("TMPDIR", "/data/local/tmp"),
            ("USER", "shell"),
        ]
    } else {
        &[
            ("HOME", "/home/root"),
            ("LOGNAME", "root"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
            ("SHELL", "/bin/sh"),
            ("USER", "root"),
        ]
    }
}

/// Whether bytes from the wire can be a program's argument.
pub fn is_argument(text: &OsStr) -> bool {
    !text.as_encoded_bytes().contains(&0)
}
