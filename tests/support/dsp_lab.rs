//! A Snapdragon board without the hardware: the real HTP libraries for Linux on aarch64, under an emulated
//! processor, take the way to the DSP, where a stand-in for the FastRPC library answers as each case
//! requires. Messages and codes are the vendor's; only what is behind them is ours. No DSP computes anything.

use super::python_packages;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const EMULATOR: &str = "qemu-aarch64-static";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// What the board's programs are linked with, as installed by Debian's cross packages.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";
const INSTALL: &str = "run ./test.sh, or: apt-get install qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
                       libstdc++6-arm64-cross";

/// Lays the board's files over those of this machine, and runs the remaining arguments. The files that
/// identify the processor are in folders where nothing can be created, so these are covered, together with
/// whatever else is needed from them.
const ENTER: &str = r#"
set -e
mount -t tmpfs none "$1"
mkdir "$1/system"
mount --rbind /sys/devices/system "$1/system"
if [ -n "$2" ]; then mkdir "$1/soc0"; echo "$2" >"$1/soc0/soc_id"; fi
printf 'processor\t: 0\nCPU implementer\t: 0x51\nCPU architecture: 8\n' >"$1/cpuinfo"
mount --bind "$1/cpuinfo" /proc/cpuinfo
mount --rbind "$1" /sys/devices
shift 2
exec "$@"
"#;

/// Each emulated process occupies a core, so those of one test program wait for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A release of the libraries, and the programs that run on it.
pub struct Lab {
    dir: tempfile::TempDir,
    libraries: PathBuf,
    other: PathBuf,
    build: String,
}

/// Version of the wheel with QAIRT 2.47.
pub const V247: &str = "2.3.0";
/// Version of the wheel with QAIRT 2.51.
pub const V251: &str = "2.7.0";

/// How a case differs from a healthy board.
#[derive(Default)]
pub struct Case<'a> {
    /// SoC number; a v79 part by default.
    pub soc_id: Option<&'a str>,
    /// What the stand-in fails to do: `STAND_IN_FAILS` of `dsp/cdsprpc.c`.
    pub fails: &'a str,
    /// The build id that the DSP's side claims; that of the libraries by default.
    pub skel_build: Option<&'a str>,
    /// Libraries that are missing.
    pub without: &'a [&'a str],
    /// Libraries with other contents.
    pub replaced: &'a [(&'a str, &'a Path)],
    /// What the board runs once it has a device.
    pub work: Work<'a>,
    /// Flags of `models/odd_graph.c` that build another model.
    pub model: &'a [&'a str],
    /// Whether it first requests burst power.
    pub votes: bool,
    /// Accelerator time, wait for VTCM and power-up time of each inference, microseconds; the profile's
    /// figures for them are printed.
    pub times_us: Option<[u32; 3]>,
    /// The inference, counted from 1, from which the accelerator takes twice as long.
    pub slow_from: Option<u32>,
    /// Seconds after which the host is killed; by default as many as a healthy run could need.
    pub patience_s: Option<u32>,
}

/// What a board does.
#[derive(Default, Clone, Copy)]
pub enum Work<'a> {
    /// Creates a device, nothing more.
    #[default]
    Device,
    /// Composes, finalizes and executes a model this many times, which takes seconds, and saves the context
    /// to this path, if any.
    Model(u32, Option<&'a Path>),
    /// Loads a context binary of the same model, and executes it this many times.
    Binary(&'a Path, u32),
}

impl Lab {
    /// A lab with the libraries of a wheel: [`V247`] or [`V251`].
    #[track_caller]
    pub fn new(wheel: &str) -> Self {
        let of = |wheel| python_packages(&format!("aarch64-{wheel}"), "onnxruntime_qnn").join("onnxruntime_qnn");
        let (libraries, other) = (of(wheel), of(if wheel == V247 { V251 } else { V247 }));
        for program in [EMULATOR, COMPILER] {
            let found = Command::new(program).arg("--version").output();
            assert!(found.is_ok_and(|output| output.status.success()), "{program} is missing: {INSTALL}");
        }
        let dir = tempfile::tempdir().unwrap();
        let source = |name: &str| super::repo("tests").join(name);
        compile(&source("support/dsp/host.c"), &dir.path().join("host"), &[]);
        compile(&source("support/dsp/cdsprpc.c"), &dir.path().join("libcdsprpc.so"), &["-shared", "-fPIC"]);
        compile_model(&dir.path().join("libmodel.so"), &[]);
        let build = qnnscope::facts::build_id_of(&libraries.join("libQnnHtp.so")).unwrap().unwrap().to_string();
        Self { dir, libraries, other, build }
    }

    /// Folder with the release's libraries.
    pub fn libraries(&self) -> &Path {
        &self.libraries
    }

    /// Folder with the other release's libraries.
    pub fn other(&self) -> &Path {
        &self.other
    }

    /// The stand-in for the FastRPC library.
    pub fn client(&self) -> PathBuf {
        self.dir.path().join("libcdsprpc.so")
    }

    /// A board's console log.
    #[track_caller]
    pub fn log(&self, case: &Case<'_>) -> String {
        self.ended(case).0
    }

    /// A board's console log, and the exit status of its program as a shell counts it.
    #[track_caller]
    pub fn ended(&self, case: &Case<'_>) -> (String, i32) {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let board = tempfile::tempdir().unwrap();
        let opt = board.path().join("opt");
        std::fs::create_dir(&opt).unwrap();
        for entry in std::fs::read_dir(&self.libraries).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".so") {
                std::os::unix::fs::symlink(entry.path(), opt.join(&name)).unwrap();
            }
        }
        std::os::unix::fs::symlink(self.dir.path().join("libcdsprpc.so"), opt.join("libcdsprpc.so")).unwrap();
        for name in case.without {
            std::fs::remove_file(opt.join(name)).unwrap();
        }
        for (name, contents) in case.replaced {
            let _ = std::fs::remove_file(opt.join(name));
            std::fs::copy(contents, opt.join(name)).unwrap();
        }
        let soc = case.soc_id.unwrap_or("618");
        let arch = match soc {
            "497" | "498" => "68",
            "534" | "555" | "603" | "667" => "73",
            "557" | "674" | "675" => "75",
            _ => "79",
        };
        let cover = board.path().join("cover");
        std::fs::create_dir(&cover).unwrap();
        let mut command = Command::new("timeout");
        command.arg(case.patience_s.unwrap_or(300).to_string());
        command.args(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ENTER, "board"]);
        command.arg(&cover).arg(soc).arg(EMULATOR).arg(self.dir.path().join("host"));
        command.arg(opt.join("libQnnHtp.so")).arg("2");
        match case.work {
            Work::Device => {}
            Work::Model(count, save) => {
                let mut model = self.dir.path().join("libmodel.so");
                if !case.model.is_empty() {
                    model = board.path().join("libmodel.so");
                    compile_model(&model, case.model);
                }
                command.arg(model).arg(count.to_string()).args(save);
            }
            Work::Binary(binary, count) => {
                command.arg("binary").arg(binary).arg(count.to_string());
            }
        }
        command.env("QEMU_LD_PREFIX", SYSROOT).env("LD_LIBRARY_PATH", &opt).env("ADSP_LIBRARY_PATH", &opt);
        command.env("STAND_IN_BUILD", case.skel_build.unwrap_or(&self.build));
        command.env("STAND_IN_ARCH", arch).env("STAND_IN_FAILS", case.fails);
        if case.votes {
            command.env("HOST_VOTES", "1");
        }
        if let Some(times) = case.times_us {
            let numbers = times.into_iter().chain(case.slow_from).map(|number| number.to_string());
            command.env("STAND_IN_TIMES", numbers.collect::<Vec<_>>().join(",")).env("HOST_PROFILE", "1");
        }
        let output = command.output().unwrap_or_else(|error| panic!("unshare (apt-get install util-linux): {error}"));
        let console = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(console.contains("backend build id"), "the board did not come up: {console}{complaint}");
        // `timeout` ends itself in the same way as its program ended.
        let by_signal = || output.status.signal().map(|signal| 128 + signal);
        (console + &complaint, output.status.code().or_else(by_signal).unwrap_or(-1))
    }
}

#[track_caller]
fn compile_model(out: &Path, flags: &[&str]) {
    let all = [&["-shared", "-fPIC", "-Wno-unused-function"], flags].concat();
    compile(&super::repo("tests").join("models/odd_graph.c"), out, &all);
}

#[track_caller]
fn compile(source: &Path, out: &Path, flags: &[&str]) {
    let output = Command::new(COMPILER)
        .args(["-O1", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-o")
        .args([out, source])
        .arg("-ldl")
        .output()
        .unwrap_or_else(|error| panic!("{COMPILER}: {error}; {INSTALL}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
