//! The real adb server on a port of its own.

use super::VirtualDevice;
use super::listener::free_port;
use super::namespaces::tool;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for the server or for a device's state.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest that a single adb call may take, seconds.
const LIMIT_S: u32 = 120;
/// Exit code of `timeout` if the command took too long.
const TIMED_OUT: i32 = 124;

/// A running adb server with its own port and keys; ended on drop, together with everything it started.
pub struct AdbServer {
    port: u16,
    /// Ends the server when its standard input closes, which also happens if the test is killed.
    keeper: Child,
    home: TempDir,
}

impl AdbServer {
    /// Starts a server and waits until it answers.
    pub fn start() -> Self {
        let adb = tool("adb");
        let home = tempfile::Builder::new().prefix("adb-server-").tempdir().unwrap();
        // Another test may take the port between its release here and the server's bind; the server then
        // ends, and another port is tried.
        for _ in 0..5 {
            let (port, reserved) = free_port();
            drop(reserved);
            let mut keeper = Command::new("sh")
                .args(["-c", "\"$@\" </dev/null & read -r never; kill -KILL $!; wait", "keeper"])
                .arg(&adb)
                .args(["-P", &port.to_string(), "nodaemon", "server"])
                .envs(environment(&home))
                .env_remove("ADB_SERVER_SOCKET")
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE / 5 {
                if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                    let server = Self { port, keeper, home };
                    let version = server.adb(["version"]);
                    assert!(version.status.success(), "{version:?}");
                    return server;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
        panic!("the adb server ({}) does not start", adb.display());
    }

    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The `adb` program, set up for this server, without a time limit.
    pub fn command(&self) -> Command {
        let mut command = Command::new(tool("adb"));
        command.args(["-P", &self.port.to_string()]).envs(environment(&self.home));
        for name in ["ADB_SERVER_SOCKET", "ANDROID_SERIAL", "ADB_TRACE", "ADB_VENDOR_KEYS"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs `adb` with arguments to its end.
    pub fn adb<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        let adb = self.command();
        let mut limited = Command::new(tool("timeout"));
        limited.args(["--kill-after=1", &LIMIT_S.to_string()]).arg(adb.get_program()).args(adb.get_args()).args(args);
        for (name, value) in adb.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let output = limited.stdin(Stdio::null()).output().unwrap();
        assert_ne!(output.status.code(), Some(TIMED_OUT), "{limited:?} took more than {LIMIT_S} s: {output:?}");
        output
    }

    /// Runs `adb -s DEVICE` with arguments.
    pub fn on<S: AsRef<OsStr>>(&self, device: &VirtualDevice, args: impl IntoIterator<Item = S>) -> Output {
        let words = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.adb(["-s".into(), device.serial().into()].into_iter().chain(words))
    }

    /// Connects the device and waits until it can be used.
    pub fn connect(&self, device: &VirtualDevice) {
        let answer = self.adb(["connect", &device.serial()]);
        self.wait_for(device, "device", &String::from_utf8_lossy(&answer.stdout));
    }

    /// What `adb devices` shows for the device; `None` if it is not listed.
    pub fn state(&self, device: &VirtualDevice) -> Option<String> {
        let list = self.adb(["devices"]);
        let serial = device.serial();
        String::from_utf8_lossy(&list.stdout)
            .lines()
            .find_map(|line| Some(line.strip_prefix(&serial)?.trim().to_owned()))
    }

    /// Waits until `adb devices` shows the device in a state; on failure, the message includes `why`.
    pub fn wait_for(&self, device: &VirtualDevice, state: &str, why: &str) {
        let begun = Instant::now();
        loop {
            let seen = self.state(device);
            if seen.as_deref() == Some(state) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{} is {seen:?} and not {state}; {why}", device.serial());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The folder with this server's keys, which takes the place of the user's home.
    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }
}

impl Drop for AdbServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Keeps the user's own adb out of it: keys, log, and no search for devices nearby.
fn environment(home: &TempDir) -> [(&'static str, std::ffi::OsString); 5] {
    let path = home.path().as_os_str();
    [
        ("HOME", path.to_owned()),
        ("ANDROID_USER_HOME", path.to_owned()),
        ("ANDROID_SDK_HOME", path.to_owned()),
        ("TMPDIR", path.to_owned()),
        ("ADB_MDNS_AUTO_CONNECT", "0".into()),
    ]
}
