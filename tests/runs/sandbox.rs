//! What code of a model or of the vendor can do on this machine: a library whose constructor tries
//! everything, opened by every command that opens libraries.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::{Qnnscope, demo_int8, model_library, repo, runtime_247};
use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether this kernel can enforce everything; otherwise the program has to report that it cannot.
fn kernel_confines() -> bool {
    let ask = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V6))?
            .handle_access(AccessNet::from_all(ABI::V6))?
            .scope(Scope::from_all(ABI::V6))?
            .create()
    };
    ask().is_ok()
}

/// A model library that, as soon as it is opened, tries what it should not be able to do, prints the errno of
/// each attempt (0: it succeeded), and then either works as usual or ends the process.
struct Nosy {
    dir: tempfile::TempDir,
    library: PathBuf,
    listener: TcpListener,
}

impl Nosy {
    fn new(then: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // In a folder of its own, so that nothing beside the model becomes readable with it.
        let folder = dir.path().join("model");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        let source = folder.join("nosy.c");
        let text = format!(
            r#"#include "{graph}"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int tried(long result) {{ return result < 0 ? errno : 0; }}

static int of_parent(const char *name, int flags) {{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)getppid(), name);
    return tried(open(path, flags));
}}

static int connects(void) {{
    struct sockaddr_in to = {{ .sin_family = AF_INET, .sin_port = htons({port}) }};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return tried(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof to));
}}

static int starts_programs(void) {{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {{
        execl("/bin/true", "true", (char *)0);
        _exit(errno);
    }}
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}}

static int traces(void) {{
    int status = 0, error = tried(ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    if (error == 0) {{
        waitpid(getppid(), &status, 0);
        ptrace(PTRACE_DETACH, getppid(), 0, 0);
    }}
    return error;
}}

__attribute__((constructor)) static void nosy(void) {{
    const char *token = getenv("A_SECRET_TOKEN");
    printf("nosy: read=%d write=%d list=%d home=%d environ=%d memory=%d trace=%d connect=%d signal=%d program=%d token=%s\n",
        tried(open("{dir}/secret", O_RDONLY)), tried(open("{dir}/written", O_WRONLY | O_CREAT, 0600)),
        tried(open("{dir}", O_RDONLY | O_DIRECTORY)), tried(open("/root", O_RDONLY | O_DIRECTORY)),
        of_parent("environ", O_RDONLY), of_parent("mem", O_RDWR), traces(), connects(),
        tried(kill(getppid(), 0)), starts_programs(), token ? token : "none");
    fflush(stdout);
    {then}
}}
"#,
            graph = repo("tests/models/small_graph.c").display(),
            port = listener.local_addr().unwrap().port(),
            dir = dir.path().display(),
        );
        std::fs::write(&source, text).unwrap();
        let library = model_library(&folder, source.to_str().unwrap(), &[]);
        Self { dir, library, listener }
    }

    /// Whether any attempt succeeded.
    fn left_traces(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        self.dir.path().join("written").exists() || self.listener.accept().is_ok()
    }
}

fn with_secret(call: Qnnscope) -> Qnnscope {
    call.env("A_SECRET_TOKEN", "t0ken")
}

/// What the constructor printed, as names and values.
fn outcomes(text: &str) -> Vec<(String, String)> {
    let line = text.lines().find_map(|line| line.split_once("nosy: ")).unwrap_or_else(|| panic!("nothing in {text}")).1;
    // In a session it is inside a JSON string.
    let line = line.split(['"', '\\']).next().unwrap();
    line.split_whitespace()
        .map(|cell| cell.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn assert_all_refused(text: &str) {
    for (name, value) in outcomes(text) {
        // EACCES, or EPERM for processes.
        let refused = value == "13" || value == "1" || (name == "token" && value == "none");
        assert!(refused, "{name}={value} in {text}");
    }
}

#[test]
fn a_library_that_runs_can_do_nothing_beside_its_task() {
    let nosy = Nosy::new("");
    let call = with_secret(Qnnscope::on(&runtime_247()));
    let session = call.home().join("session");
    let done = call
        .arg("run")
        .arg(&nosy.library)
        .args(["--json", "-n", "3", "--save-outputs", "out", "--save-context", "kept", "--record"])
        .arg(&session)
        .finish();
    // The CPU backend does not support context binaries; the attempt must not leave files behind.
    let text = std::fs::read_to_string(&session).unwrap();
    if kernel_confines() {
        assert_all_refused(&text);
        assert!(!nosy.left_traces());
    }
    let names: Vec<String> = std::fs::read_dir(done.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".tmp"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
    let sandbox = &done.first_run()["sandbox"];
    assert_eq!(sandbox["no_new_privileges"], true, "{sandbox}");
    let state = if kernel_confines() { "enforced" } else { "partial unavailable" };
    assert!(state.contains(sandbox["state"].as_str().unwrap()), "{sandbox}");
}

#[test]
fn commands_that_run_nothing_open_the_library_confined() {
    // The constructor ends the process, so the error quotes what it printed.
    for arguments in [&["inspect"][..], &["check", "--backend", "cpu"], &["recommend"]] {
        let nosy = Nosy::new("abort();");
        let done = with_secret(Qnnscope::on(&runtime_247())).args(arguments).arg(&nosy.library).finish();
        assert_ne!(done.code(), 0, "{arguments:?}: {}", done.text());
        if kernel_confines() {
            assert!(!nosy.left_traces(), "{arguments:?}");
            let said = done.stderr.clone() + &done.text();
            if said.contains("nosy: ") {
                assert_all_refused(&said);
            } else {
                assert!(arguments[0] != "inspect", "{said}");
            }
        }
    }
}

#[test]
fn what_a_model_starts_in_a_session_of_its_own_ends_with_the_run() {
    let nosy = Nosy::new(
        "if (fork() == 0) { setsid(); if (fork() != 0) _exit(0); for (int s = 1; s < 32; s++) signal(s, SIG_IGN); \
         close(0); close(1); close(2); for (;;) pause(); }",
    );
    for arguments in ["run -b cpu -n 2 --launches 1 --json", "inspect --json", "check --backend cpu --json"] {
        let mut arguments = arguments.split(' ');
        let call = Qnnscope::on(&runtime_247()).arg(arguments.next().unwrap()).arg(&nosy.library);
        call.args(arguments).finish();
        let left = with_mapped(&nosy.library);
        left.iter().for_each(|pid| drop(Command::new("kill").args(["-9", pid]).status()));
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Processes that have a library mapped.
fn with_mapped(library: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let maps = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    processes.filter(|pid| maps(pid).contains(library.to_str().unwrap())).collect()
}

#[test]
fn links_beside_a_model_and_pipes_open_no_door() {
    use std::os::unix::fs::symlink;
    let nosy = Nosy::new("");
    let folder = nosy.library.parent().unwrap();
    // Links such as an archive with a model may contain.
    symlink("/proc/self/fd/1", folder.join("libout.so")).unwrap();
    symlink(nosy.dir.path(), folder.join("libabove.so")).unwrap();
    symlink(nosy.dir.path().join("secret"), folder.join("libsecret.so.1")).unwrap();
    // `small_graph.c` has an input of 16 float32.
    let input =
        "\"$0\" run \"$1\" --json -n 2 --launches 1 --profiling off --input x=<(head -c 64 /dev/zero) --record \"$2\"";
    let home = tempfile::tempdir().unwrap();
    let session = home.path().join("session");
    let done = with_secret(Qnnscope::program(Path::new("/bin/bash")))
        .env("QNNSCOPE_RUNTIME", runtime_247())
        .args(["-c", input, env!("CARGO_BIN_EXE_qnnscope")])
        .arg(&nosy.library)
        .arg(&session)
        .finish();
    let text = std::fs::read_to_string(&session).unwrap();
    assert!(text.contains("nosy: "), "{}", done.stderr);
    if kernel_confines() {
        assert_all_refused(&text);
        assert!(!nosy.left_traces());
        assert_eq!(done.first_run()["sandbox"]["state"], "enforced");
    }
}

#[test]
fn without_the_sandbox_it_can_do_all_of_it() {
    let nosy = Nosy::new("");
    let call = with_secret(Qnnscope::on(&runtime_247()));
    let session = call.home().join("session");
    let done =
        call.args(["--no-sandbox", "run"]).arg(&nosy.library).args(["--json", "-n", "3", "--record"]).arg(&session);
    let done = done.finish().expect(0);
    let outcomes = outcomes(&std::fs::read_to_string(&session).unwrap());
    for (name, value) in &outcomes {
        // Who may trace what is up to the system, not to us.
        let may = value == "0" || (name == "token" && value == "t0ken") || matches!(name.as_str(), "trace" | "memory");
        // `/root` is closed to users other than root.
        assert!(may || name == "home", "{name}={value}");
    }
    assert!(nosy.left_traces());
    assert_eq!(done.first_run()["sandbox"]["state"], "off");
}

#[test]
fn documents_tell_what_was_in_force() {
    let state = |document: &Value, pointer: &str| document.pointer(pointer).unwrap()["state"].clone();
    let expected = |confined: bool| match (confined, kernel_confines()) {
        (true, true) => vec![json!("enforced")],
        (true, false) => vec![json!("partial"), json!("unavailable")],
        (false, _) => vec![json!("off")],
    };
    for confined in [true, false] {
        let call =
            || if confined { Qnnscope::on(&runtime_247()) } else { Qnnscope::on(&runtime_247()).arg("--no-sandbox") };
        let inspected = call().args(["inspect", "--json"]).arg(demo_int8()).finish().expect(0).json();
        assert!(expected(confined).contains(&state(&inspected, "/sandbox")), "{}", inspected["sandbox"]);
        let checked = call().args(["check", "--json", "--backend", "cpu"]).arg(demo_int8()).finish().json();
        assert!(expected(confined).contains(&state(&checked, "/sandbox")), "{}", checked["sandbox"]);
        let doctor = call().args(["--device", "local", "doctor", "--json"]).finish().json();
        let items = doctor["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["id"] == "sandbox").expect("an item");
        let ok = kernel_confines() || !confined;
        assert_eq!(item["status"], if ok { "ok" } else { "warning" }, "{item}");
    }
}

/// A runtime folder of links to the real one, with its manifest.
fn linked_runtime() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
        std::os::unix::fs::symlink(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn replace(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    let _ = std::fs::remove_file(&path);
    std::fs::write(path, content).unwrap();
}

#[test]
fn a_changed_runtime_is_noticed_by_runs_and_the_doctor() {
    let dir = linked_runtime();
    let run = || Qnnscope::on(dir.path()).run_json(&demo_int8(), "-n 3 --profiling off").expect(0);
    let item = || {
        let doctor = Qnnscope::on(dir.path()).args(["--device", "local", "doctor", "--json"]).finish().json();
        doctor["items"].as_array().unwrap().iter().find(|item| item["id"] == "files").expect("an item").clone()
    };
    assert_eq!(run().first_run()["changed_files"], json!([]));
    assert_eq!(item()["status"], "ok");

    replace(dir.path(), "LICENSE", "another");
    replace(dir.path(), "libplanted.so.1", "x");
    let done = run();
    let changed = done.first_run()["changed_files"].to_string();
    assert!(changed.contains("LICENSE (7 bytes instead of"), "{changed}");
    assert!(changed.contains("libplanted.so.1 (was not installed)"), "{changed}");
    assert!(done.stderr.contains("was changed since it was installed"), "{}", done.stderr);
    let item = item();
    assert_eq!(item["status"], "warning");
    assert!(item["detail"].as_str().unwrap().contains("libplanted.so.1"), "{item}");
    assert!(item["fix"].as_str().unwrap().contains("--force --version 2.3.0"), "{item}");
}
