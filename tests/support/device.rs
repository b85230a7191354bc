//! A device under a real adb server, and an SDK whose qnn-net-run is the stand-in.

use super::virtual_device::{AdbServer, Options, Snapshot, VirtualDevice};
use super::{Done, Qnnscope, Running, runtime_247};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A folder laid out like the vendor's SDK: the stand-in for the tool, the real libraries, and files with the
/// right names for the DSP's side, which no library on an x86_64 machine opens.
pub struct Sdk {
    folder: TempDir,
}

impl Sdk {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tool = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples/qnn_net_run");
        assert!(tool.exists(), "{} is missing; build it with: cargo build --examples", tool.display());
        for target in ["aarch64-android", "aarch64-oe-linux-gcc11.2"] {
            let (bin, lib) = (folder.path().join("bin").join(target), folder.path().join("lib").join(target));
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::create_dir_all(&lib).unwrap();
            symlink(&tool, bin.join("qnn-net-run")).unwrap();
            for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
                if entry.file_name().to_string_lossy().contains(".so") {
                    symlink(entry.path(), lib.join(entry.file_name())).unwrap();
                }
            }
            for name in ["libQnnModelDlc.so", "libQnnHtpPrepare.so"] {
                std::fs::write(lib.join(name), name).unwrap();
            }
            for arch in [68, 73, 75] {
                std::fs::write(lib.join(format!("libQnnHtpV{arch}Stub.so")), "stub").unwrap();
            }
        }
        for arch in [68, 73, 75] {
            let skels = folder.path().join(format!("lib/hexagon-v{arch}/unsigned"));
            std::fs::create_dir_all(&skels).unwrap();
            std::fs::write(skels.join(format!("libQnnHtpV{arch}Skel.so")), format!("skel {arch}")).unwrap();
        }
        Self { folder }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces a file of the SDK with an executable one.
    pub fn replace(&self, path: &str, content: &[u8]) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Never through a link, since that points to the real libraries.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
}

/// A device, its server, and an SDK.
pub struct Bench {
    pub device: VirtualDevice,
    pub server: AdbServer,
    pub sdk: Sdk,
}

impl Bench {
    pub fn new(snapshot: Snapshot) -> Self {
        Self::with(snapshot, Options::default())
    }

    pub fn with(snapshot: Snapshot, options: Options) -> Self {
        let bench =
            Self { device: VirtualDevice::start(snapshot, options), server: AdbServer::start(), sdk: Sdk::new() };
        bench.server.connect(&bench.device);
        bench
    }

    /// The program with this server, this SDK, and a runtime for this machine.
    pub fn qnnscope(&self) -> Qnnscope {
        Qnnscope::on(&runtime_247())
            .env("QNN_SDK_ROOT", self.sdk.root())
            .arg("--adb-server")
            .arg(format!("127.0.0.1:{}", self.server.port()))
            .within(Duration::from_secs(180))
    }

    /// The program on the device.
    pub fn on_device(&self) -> Qnnscope {
        self.qnnscope().arg("--device").arg(self.device.serial())
    }

    /// Runs the model; records the session beside the result.
    pub fn run(&self, model: &Path, flags: &str) -> Recorded {
        self.start(model, flags).wait()
    }

    /// The same, while it runs.
    pub fn start(&self, model: &Path, flags: &str) -> Recording {
        Recording::of(self.on_device(), &[model], flags)
    }

    /// Adds a line to the device's log, stamped a minute from now on the device's clock: anything older than
    /// a run is not counted as its own.
    pub fn log_in_the_run(&self, line: &str) {
        let stamp = self.shell("date -d @$(($(date +%s) + 60)) '+%m-%d %H:%M:%S.000'");
        self.device.log(&format!("{}  {line}", stamp.trim()));
    }

    /// Standard output of a command in the device's shell.
    pub fn shell(&self, command: &str) -> String {
        let output = self.server.on(&self.device, ["shell", command]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The tool's processes that are left on the device.
    pub fn tools_left(&self) -> String {
        self.shell("for p in /proc/[0-9]*; do c=$(cat $p/cmdline 2>/dev/null | tr '\\0' ' '); case $c in ./qnn-net-run*) echo \"$c\";; esac; done")
    }
}

/// A run in progress.
pub struct Recording {
    pub running: Running,
    session: PathBuf,
}

impl Recording {
    /// A run of these models by a call that is set up for it.
    pub fn of(call: Qnnscope, models: &[&Path], flags: &str) -> Self {
        let session = call.home().join("session.jsonl");
        let call = call.arg("run").args(models).arg("--json").arg("--record").arg(&session).flags(flags);
        Self { running: call.start(), session }
    }

    /// Records of the session so far.
    pub fn records(&self) -> Vec<Value> {
        records(&self.session)
    }

    /// Events of the session so far.
    pub fn events(&self) -> Vec<Value> {
        events(&self.session)
    }

    /// Waits until there is an event of this kind that satisfies `wanted`.
    #[track_caller]
    pub fn until(&self, kind: &str, wanted: impl Fn(&Value) -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(120);
        while !self.events().iter().any(|event| event.get(kind).is_some_and(&wanted)) {
            assert!(std::time::Instant::now() < deadline, "no such {kind}: {:#?}", self.events().last());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    pub fn wait(self) -> Recorded {
        let done = self.running.wait();
        Recorded { events: events(&self.session), done, session: self.session }
    }
}

/// A finished run.
pub struct Recorded {
    pub done: Done,
    pub events: Vec<Value>,
    pub session: PathBuf,
}

impl Recorded {
    /// All records of the session.
    pub fn records(&self) -> Vec<Value> {
        records(&self.session)
    }

    /// The result document's only run.
    #[track_caller]
    pub fn result(&self) -> Value {
        self.done.first_run()
    }

    /// Payloads of all events of a kind.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter_map(|event| event.get(kind)).collect()
    }

    /// Starts of all inferences in the order of the session, microseconds of the host's clock.
    pub fn starts_us(&self) -> Vec<u64> {
        let batches = self.all("inferences");
        batches.iter().flat_map(|batch| batch["start_us"].as_array().unwrap()).map(|us| us.as_u64().unwrap()).collect()
    }

    /// Texts of the log.
    pub fn log(&self) -> Vec<String> {
        self.all("log").iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    }

    /// True if a line of the log contains this.
    pub fn logged(&self, text: &str) -> bool {
        self.log().iter().any(|line| line.contains(text))
    }
}

fn events(session: &Path) -> Vec<Value> {
    records(session).into_iter().map(|mut record| record["event"].take()).collect()
}

fn records(session: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(session).unwrap_or_default();
    // The last line may be incomplete.
    text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
}
