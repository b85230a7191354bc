//! Installing a runtime through the library's API, with the real pip and the real wheel where possible.
//! Downloads the wheel (93 MB, from pip's cache after the first time). The disks that fill up are small ones
//! in a mount namespace, which root can always create, and other users if the system lets them.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use qnnscope::backends::runtime::{
    Consent, DEFAULT_WHEEL_VERSION, Env, InstallProgress, InstallRequest, Installed, RuntimeError, RuntimeManifest,
    choose, install, locate,
};
use tempfile::TempDir;

fn temp() -> TempDir {
    tempfile::tempdir().expect("temp dir")
}

/// The user's Python and pip settings, but no runtime and a data folder of our own.
fn env_in(data: &Path) -> Env {
    Env {
        runtime: None,
        qnn_sdk_root: None,
        qairt_sdk_root: None,
        data_dir: Some(data.to_path_buf()),
        ..Env::from_process()
    }
}

fn left_in(data: &Path) -> Vec<String> {
    fs::read_dir(data.join("runtimes"))
        .expect("readable")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name != ".lock")
        .collect()
}

/// A Python that does what `script` says. A child writes the file: while another test starts a child, a file
/// that this process has open for writing cannot be executed.
fn fake_python(dir: &Path, script: &str) -> PathBuf {
    let path = dir.join("python");
    let status = Command::new("sh")
        .args(["-c", r#"printf '%s\n' "$1" > "$2" && chmod +x "$2""#, "sh"])
        .arg(format!("#!/bin/sh\n{script}"))
        .arg(&path)
        .status()
        .expect("there is a shell");
    assert!(status.success());
    path
}

/// A wheel for this machine whose libraries unpack to `bytes` bytes.
fn wheel_of_size(dir: &Path, bytes: usize) -> PathBuf {
    let arch = std::env::consts::ARCH;
    let path = dir.join(format!("onnxruntime_qnn-2.3.0-cp312-cp312-manylinux_2_35_{arch}.whl"));
    let mut wheel = zip::ZipWriter::new(File::create(&path).expect("create"));
    let options = zip::write::SimpleFileOptions::default();
    for name in ["libQnnSystem.so", "libQnnCpu.so"] {
        wheel.start_file(format!("onnxruntime_qnn/{name}"), options).expect("entry");
        // As far as its header is concerned, the test program is a library for this machine.
        let program = std::env::current_exe().expect("we run");
        let mut content = fs::read(program).expect("readable");
        content.resize(bytes / 2, 0);
        wheel.write_all(&content).expect("content");
    }
    for (name, text) in [
        ("METADATA", "Metadata-Version: 2.1\nName: onnxruntime-qnn\nVersion: 2.3.0\n"),
        // pip requires this one too.
        ("WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n"),
    ] {
        wheel.start_file(format!("onnxruntime_qnn-2.3.0.dist-info/{name}"), options).expect("entry");
        wheel.write_all(text.as_bytes()).expect("content");
    }
    wheel.finish().expect("archive");
    path
}

fn check_real(installed: &Installed, env: &Env) {
    let manifest = RuntimeManifest::read(&installed.dir).expect("a manifest");
    assert_eq!(manifest.damaged_files(&installed.dir), Vec::<String>::new());
    let licence = installed.licence.as_deref().expect("the licence is kept");
    let text = fs::read(licence).expect("readable");
    assert!(text.starts_with(b"%PDF"), "the licence is a PDF");
    for unwanted in ["libGenie.so", "libHtpPrepare.so"] {
        assert!(!installed.dir.join(unwanted).exists(), "{unwanted}");
    }
    assert!(installed.dir.join("libonnxruntime_providers_qnn.so").exists(), "ONNX models need the plug-in");
    let chosen = choose(None, env).expect("what was installed is chosen");
    assert_eq!(chosen.path, installed.dir);
    for backend in ["system", "cpu", "htp", "gpu", "ir", "saver"] {
        assert!(chosen.library(backend).is_some(), "{backend}");
    }
}

#[test]
fn the_default_version_from_the_package_index() {
    let data = temp();
    let env = env_in(data.path());
    let request = InstallRequest::new(env.clone());
    let mut downloaded = 0;
    let mut unpacked = 0;
    let installed = install(&request, Consent::PinnedOnly, &mut |step| match step {
        InstallProgress::Downloading { done, .. } => downloaded = downloaded.max(done),
        InstallProgress::Unpacking { done, .. } => unpacked = done,
        _ => {}
    })
    .expect("installed");
    assert_eq!(installed.version, DEFAULT_WHEEL_VERSION);
    assert!(!installed.already_installed);
    assert_eq!(unpacked, installed.bytes);
    assert!(downloaded > 0, "the download was followed");
    check_real(&installed, &env);
    assert_eq!(left_in(data.path()).len(), 1);
}

#[test]
fn two_installs_at_once_from_the_package_index() {
    let data = temp();
    let env = env_in(data.path());
    let (first, second) = thread::scope(|scope| {
        let run = || {
            let request = InstallRequest::new(env.clone());
            let mut waited = false;
            let done = install(&request, Consent::PinnedOnly, &mut |step| {
                waited |= matches!(step, InstallProgress::Waiting { .. });
            });
            (done.expect("installed"), waited)
        };
        let one = scope.spawn(run);
        let two = scope.spawn(run);
        (one.join().expect("no panic"), two.join().expect("no panic"))
    });
    assert_ne!(first.0.already_installed, second.0.already_installed);
    assert_eq!(first.1, first.0.already_installed, "the second one waited");
    assert_eq!(second.1, second.0.already_installed, "the second one waited");
    check_real(&first.0, &env);
}

#[test]
fn a_version_that_does_not_exist() {
    let data = temp();
    let mut request = InstallRequest::new(env_in(data.path()));
    "9.9.9".clone_into(&mut request.version);
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("no such version");
    let RuntimeError::NoSuchVersion { available, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(available.iter().any(|one| one == DEFAULT_WHEEL_VERSION));
    assert_eq!(error.hint().as_deref(), Some("qnnscope runtime install --version 2.3.0"));
    assert!(left_in(data.path()).is_empty());
}

#[test]
fn the_real_pip_without_a_way_to_the_index() {
    let data = temp();
    let mut request = InstallRequest::new(env_in(data.path()));
    let python = request.env.python.display().to_string();
    // Nothing listens on port 9 of this machine. No cache and no local folders: the wheel must not be found
    // there either.
    request.env.python = fake_python(
        data.path(),
        &format!(
            "export PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_FIND_LINKS= PIP_EXTRA_INDEX_URL= PIP_RETRIES=1\n\
             exec '{python}' \"$@\""
        ),
    );
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("no index");
    assert!(matches!(error, RuntimeError::Network { .. }), "{error:?} {error}");
    assert!(left_in(data.path()).is_empty());
}

/// The program with its own data folder and working folder, called as by a user without a runtime.
fn qnnscope(data: &Path, work: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qnnscope"));
    for variable in ["QNNSCOPE_RUNTIME", "QNN_SDK_ROOT", "QAIRT_SDK_ROOT"] {
        command.env_remove(variable);
    }
    command.env("QNNSCOPE_DATA_DIR", data).current_dir(work).stdin(std::process::Stdio::null());
    command
}

/// Exit status and stderr.
fn end(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("qnnscope starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn python_imports_nothing_from_the_working_folder_or_the_path_variable() {
    let (data, work) = (temp(), temp());
    let mark = work.path().join("imported");
    for module in ["pip.py", "site.py", "sitecustomize.py", "usercustomize.py", "pip/__init__.py", "json.py"] {
        let path = work.path().join("modules").join(module.replace("pip/", "package/pip/"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let text = format!("open({:?}, 'a').write({module:?})\n", mark.display().to_string());
        fs::write(path, text + "print('pip 24.1 from /x (python 3.12)')\nraise SystemExit(0)\n").expect("written");
    }
    // Up to Python 3.10, only the folder it starts in and its options decide; later versions also obey this
    // variable.
    let old = fake_python(data.path(), "unset PYTHONSAFEPATH\nexec python3 \"$@\"");
    for python in [PathBuf::from("python3"), old] {
        for folder in ["modules", "modules/package"] {
            let folder = work.path().join(folder);
            for path in [None, Some(&folder)] {
                let mut command = qnnscope(data.path(), &folder);
                command.env("QNNSCOPE_PYTHON", &python).args(["runtime", "install", "--yes", "--version", "9.9.9"]);
                // Without a network the answer comes quickly; all that matters here is which pip gives it.
                command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", data.path());
                path.map(|path| command.env("PYTHONPATH", path));
                let (status, said) = end(&mut command);
                assert!(!mark.exists(), "{}: {}", python.display(), fs::read_to_string(&mark).expect("readable"));
                assert_eq!(status, Some(3), "{said}");
                assert!(said.contains("pip finds no wheel of onnxruntime-qnn==9.9.9"), "the real pip answers: {said}");
            }
        }
    }
}

#[test]
fn a_python_given_by_a_relative_path_is_found() {
    let (data, work) = (temp(), temp());
    let mark = work.path().join("started");
    fake_python(work.path(), &format!("touch '{}'\nexec python3 \"$@\"", mark.display()));
    let mut command = qnnscope(data.path(), work.path());
    command.env("QNNSCOPE_PYTHON", "./python").args(["runtime", "install", "--yes", "--version", "9.9.9"]);
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", data.path());
    let (_, said) = end(&mut command);
    assert!(mark.exists() && said.contains("pip finds no wheel of onnxruntime-qnn==9.9.9"), "{said}");
}

#[test]
fn another_index_is_asked_as_configured_and_its_wheel_needs_consent() {
    let (data, work) = (temp(), temp());
    let index = temp();
    let wheel = wheel_of_size(index.path(), 1 << 20);
    let install = |arguments: &[&str]| {
        let mut command = qnnscope(data.path(), work.path());
        command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", index.path()).args(arguments);
        end(&mut command)
    };
    // The demo's yes applies only to the libraries it was made for.
    for arguments in [&["runtime", "install"][..], &["demo", "--yes", "--json"], &["demo", "--json"]] {
        let (status, said) = install(arguments);
        assert_eq!(status, Some(3), "{arguments:?}: {said}");
        assert!(said.contains("not one published for version 2.3.0"), "{arguments:?}: {said}");
        assert!(said.contains("--yes"), "{said}");
        assert!(left_in(data.path()).is_empty());
    }
    let (status, said) = install(&["runtime", "install", "--yes"]);
    assert_eq!(status, Some(0), "{said}");
    let name = wheel.file_name().expect("a name").to_string_lossy();
    assert!(said.contains(&format!("you vouched for {name}")), "{said}");
}

#[test]
fn verify_finds_what_was_changed_after_the_install() {
    let (data, work, wheels) = (temp(), temp(), temp());
    let wheel = wheel_of_size(wheels.path(), 1 << 20);
    let call = |arguments: &[&str]| {
        let output = qnnscope(data.path(), work.path()).args(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), said)
    };
    let (status, _, said) = call(&["runtime", "verify"]);
    assert_eq!(status, Some(3), "there is none yet: {said}");
    let wheel = wheel.to_str().expect("text");
    let (status, _, said) = call(&["runtime", "install", "--wheel", wheel]);
    assert!(status == Some(3) && said.contains("add --yes"), "{said}");
    assert_eq!(call(&["runtime", "install", "--yes", "--wheel", wheel]).0, Some(0));
    let (status, out, _) = call(&["runtime", "verify"]);
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("2 files unchanged since installation") && out.contains("not known to qnnscope"), "{out}");

    let name = &left_in(data.path())[0];
    let library = data.path().join("runtimes").join(name).join("libQnnCpu.so");
    let modified = fs::metadata(&library).expect("there").modified().expect("a time");
    let mut content = fs::read(&library).expect("readable");
    *content.last_mut().expect("not empty") ^= 1;
    fs::write(&library, &content).expect("written");
    // Like an update that preserves times, or somebody hiding what was done.
    File::options().write(true).open(&library).expect("open").set_modified(modified).expect("set");
    let (status, out, _) = call(&["runtime", "verify"]);
    assert_eq!(status, Some(1), "{out}");
    assert!(out.contains("CHANGED libQnnCpu.so (SHA-256 ") && out.contains("--force --version 2.3.0"), "{out}");
    let (status, out, _) = call(&["runtime", "verify", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(status, Some(1));
    assert_eq!(document["runtimes"][0]["changed"][0]["kind"], "changed", "{document}");
}

#[test]
fn a_python_without_pip() {
    let data = temp();
    let mut request = InstallRequest::new(env_in(data.path()));
    request.env.python = fake_python(data.path(), "echo \"$0: No module named pip\" >&2\nexit 1");
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("no pip");
    assert!(matches!(error, RuntimeError::PipMissing { .. }), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("-m ensurepip")));
    assert!(left_in(data.path()).is_empty());
    assert!(locate(None, &request.env).is_empty());
}

#[test]
fn no_python_at_all() {
    let data = temp();
    let mut request = InstallRequest::new(env_in(data.path()));
    request.env.python = data.path().join("no-such-python");
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("no Python");
    assert!(matches!(error, RuntimeError::PythonMissing { .. }), "{error:?}");
    assert!(left_in(data.path()).is_empty());
}

#[test]
fn a_data_folder_that_cannot_be_made() {
    let data = temp();
    let file = data.path().join("file");
    fs::write(&file, "in the way").expect("written");
    let request = InstallRequest::new(env_in(&file));
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("a file is in the way");
    assert!(error.to_string().contains("cannot create"), "{error}");
    assert!(error.to_string().contains("file/runtimes"), "{error}");
}

/// Tells the child that it is in its own mount namespace.
const INSIDE: &str = "QNNSCOPE_TEST_NAMESPACE";

/// Runs the named test of this program again in its own user and mount namespace, where a small disk can be
/// mounted without root and disappears with the process. Returns true in that child, which then runs the
/// test.
fn in_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("the test's own program");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare (package util-linux) runs");
    assert!(
        output.status.success(),
        "in its namespace the test says:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// A small file system, unmounted at the end.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new(mib: u32) -> Self {
        let dir = temp();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(dir.path())
            .status()
            .expect("mount runs");
        assert!(status.success(), "a tmpfs can be mounted in a namespace");
        Self(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn the_disk_fills_up_while_unpacking() {
    if !in_namespace("the_disk_fills_up_while_unpacking") {
        return;
    }
    let disk = SmallDisk::new(8);
    let wheels = temp();
    let mut request = InstallRequest::new(env_in(disk.0.path()));
    request.wheel_file = Some(wheel_of_size(wheels.path(), 32 << 20));
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("8 MiB are not enough");
    let RuntimeError::DiskFull { dir, needed, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(dir, &disk.0.path().join("runtimes"));
    assert_eq!(*needed, Some(32 << 20));
    assert!(error.hint().is_some_and(|hint| hint.starts_with("free 32 MiB in ")));
    assert!(left_in(disk.0.path()).is_empty());
    // There is room again: a wheel that fits is installed.
    request.wheel_file = Some(wheel_of_size(wheels.path(), 4 << 20));
    install(&request, Consent::Given, &mut |_| {}).expect("4 MiB fit");
}

#[test]
fn the_disk_fills_up_while_downloading() {
    if !in_namespace("the_disk_fills_up_while_downloading") {
        return;
    }
    let disk = SmallDisk::new(8);
    let request = InstallRequest::new(env_in(disk.0.path()));
    let error = install(&request, Consent::Given, &mut |_| {}).expect_err("8 MiB are not enough");
    assert!(matches!(error, RuntimeError::DiskFull { .. }), "{error:?}");
    assert!(left_in(disk.0.path()).is_empty());
}

#[test]
fn the_demo_does_everything_from_nothing() {
    let data = temp();
    let mut command = Command::new(env!("CARGO_BIN_EXE_qnnscope"));
    for variable in ["QNNSCOPE_RUNTIME", "QNN_SDK_ROOT", "QAIRT_SDK_ROOT"] {
        command.env_remove(variable);
    }
    let output = command
        .args(["demo", "--json", "-n", "5"])
        .env("QNNSCOPE_DATA_DIR", data.path())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("qnnscope starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("downloading") && said.contains("Qualcomm_LICENSE.pdf"), "{said}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let runs = document["runs"].as_array().expect("runs");
    let told: Vec<_> = runs.iter().map(|run| (&run["backend"], &run["status"], &run["simulated"])).collect();
    assert_eq!(
        format!("{told:?}"),
        r#"[(String("cpu"), String("ok"), Bool(false)), (String("htp"), String("ok"), Bool(true))]"#
    );
    assert!(runs.iter().all(|run| run["ops"].as_array().is_some_and(|ops| ops.len() >= 59)));
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_or_a_whole_runtime() {
    let wheels = temp();
    let wheel = wheel_of_size(wheels.path(), 48 << 20);
    let install = |data: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qnnscope"));
        command.args(["runtime", "install", "--yes", "--wheel"]).arg(&wheel).env("QNNSCOPE_DATA_DIR", data);
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        command
    };
    let whole = |data: &Path| {
        let named: Vec<String> = left_in(data).into_iter().filter(|name| !name.starts_with(".tmp-")).collect();
        for name in &named {
            let dir = data.join("runtimes").join(name);
            let manifest = RuntimeManifest::read(&dir).expect("a folder with a name has a manifest");
            assert_eq!(manifest.damaged_files(&dir), Vec::<String>::new());
        }
        named.len()
    };
    // How long an install takes here, so that the kills are spread over all of it.
    let data = temp();
    let begun = std::time::Instant::now();
    assert!(install(data.path()).status().expect("it starts").success());
    let duration = begun.elapsed();
    assert_eq!(whole(data.path()), 1);

    const KILLS: u32 = 16;
    let mut unfinished = 0;
    let data = temp();
    fs::create_dir(data.path().join("runtimes")).expect("a folder");
    for kill in 0..KILLS {
        let mut child = install(data.path()).arg("--force").spawn().expect("it starts");
        thread::sleep(duration * kill / KILLS);
        let _ = child.kill();
        child.wait().expect("it ends");
        unfinished += usize::from(whole(data.path()) == 0);
    }
    assert!(unfinished > 0, "no kill came before the end of the first install: nothing was tested");
    // The next install cleans up what the killed ones left.
    assert!(install(data.path()).arg("--force").status().expect("it starts").success());
    assert_eq!(whole(data.path()), 1);
    assert_eq!(left_in(data.path()).len(), 1, "{:?}", left_in(data.path()));
}
