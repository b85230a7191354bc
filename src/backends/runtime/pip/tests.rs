use super::*;

#[test]
fn reads_versions_and_sizes() {
    let pip = Pip::parse("pip 23.2.1 from /usr/lib/python3/dist-packages/pip (python 3.11)", ISOLATED);
    assert_eq!(pip, Some(Pip { version: "23.2.1".to_owned(), python: "3.11".to_owned(), flags: ISOLATED }));
    assert_eq!(Pip::parse("/usr/bin/python3: No module named pip", ISOLATED), None);
    assert_eq!(size("93.2", "MB"), Some(93_200_000));
    assert_eq!(size("512", "bytes"), Some(512));
    assert_eq!(size("9..2", "MB"), None);
}

#[test]
fn follows_a_download() {
    let mut seen = Seen::default();
    assert!(!seen.line("Collecting onnxruntime-qnn==2.3.0"));
    assert!(!seen.line("  Downloading onnxruntime_qnn-2.3.0.whl.metadata (3.0 kB)"));
    assert!(seen.line("  Downloading https://x/y/onnxruntime_qnn-2.3.0.whl (93.2 MB)"));
    assert_eq!(seen.total, Some(93_200_000));
    assert_eq!(seen.wheel.as_deref(), Some("onnxruntime_qnn-2.3.0.whl"));
    assert!(seen.line("Progress 262144 of 93166107"));
    assert_eq!((seen.done, seen.total), (262_144, Some(93_166_107)));
    assert!(seen.line("Progress 524288 of 0"));
    assert_eq!((seen.done, seen.total), (524_288, Some(93_166_107)));
}

#[test]
fn finds_the_versions_on_offer() {
    let line = |list: &str| {
        vec![format!("ERROR: Could not find a version that satisfies the requirement x==9 (from versions: {list})")]
    };
    assert_eq!(offered_versions(&line("2.3.0, 2.7.0")), Some(vec!["2.3.0".to_owned(), "2.7.0".to_owned()]));
    assert_eq!(offered_versions(&line("none")), Some(Vec::new()));
    assert_eq!(offered_versions(&["ERROR: other".to_owned()]), None);
}

#[cfg(target_os = "linux")]
mod with_a_fake_python {
    use super::super::super::testing::{env_in, fake_python};
    use super::*;

    /// Runs a download with a working pip that then executes `script`.
    fn download(script: &str) -> Result<PathBuf, RuntimeError> {
        let version = r#"case "$*" in *--version) echo "pip 24.1 from /x (python 3.12)"; exit;; esac"#;
        raw_download(&format!("{version}\n{script}"))
    }

    fn raw_download(script: &str) -> Result<PathBuf, RuntimeError> {
        let dir = tempfile::tempdir().expect("temp dir");
        let mut env = env_in(dir.path());
        env.python = fake_python(dir.path(), script);
        let scratch = dir.path().join("scratch");
        fs::create_dir(&scratch).expect("folder");
        Download {
            env: &env,
            requirement: "onnxruntime-qnn==2.3.0",
            scratch: &scratch,
            cancel: &AtomicBool::new(false),
        }
        .run(&mut |_| {})
    }

    #[test]
    fn each_failure_is_told_from_the_others() {
        let error = raw_download("echo \"$0: No module named pip\" >&2; exit 1").expect_err("x");
        assert!(matches!(error, RuntimeError::PipMissing { .. }), "{error}");

        let error = download(
            "echo 'ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device' >&2; exit 1",
        )
        .expect_err("full");
        assert!(matches!(error, RuntimeError::DiskFull { .. }), "{error}");

        let none = "ERROR: Could not find a version that satisfies the requirement x (from versions: none)";
        let error = download(&format!("echo '{none}' >&2; exit 1")).expect_err("no wheel");
        assert!(matches!(error, RuntimeError::NoWheel { .. }), "{error}");

        let old = r#"case "$*" in *--version) echo "pip 20.2.4 from /x (python 3.12)"; exit;; esac"#;
        let error = raw_download(&format!("{old}\necho '{none}' >&2; exit 1")).expect_err("old pip");
        let hint = error.hint().expect("a hint");
        assert!(hint.starts_with("pip 20.2.4 is too old for these wheels"), "{hint}");

        let retry = "WARNING: Retrying (Retry(total=4)) after connection broken by NewConnectionError";
        let error = download(&format!("echo '{retry}'; echo '{none}' >&2; exit 1")).expect_err("net");
        assert!(matches!(error, RuntimeError::Network { .. }), "{error}");

        let error = download("echo 'ERROR: something \u{1b}[31mnew' >&2; exit 2").expect_err("x");
        assert_eq!(
            error.to_string(),
            "pip could not download onnxruntime-qnn==2.3.0 (exit status: 2)\n    pip: ERROR: something [31mnew"
        );

        let error = download("exit 0").expect_err("no file");
        assert!(matches!(error, RuntimeError::PipFailed { .. }), "{error}");
    }

    #[test]
    fn asks_for_another_python_when_there_is_no_wheel_for_this_one() {
        let none = "ERROR: Could not find a version that satisfies the requirement x (from versions: none)";
        let script = format!(
            r#"case "$*" in *--version) echo "pip 23.0 from /x (python 3.9)"; exit;; esac
            case "$*" in *"--python-version 3.12"*) ;; *) echo '{none}' >&2; exit 1;; esac
            while [ "$1" != --dest ]; do shift; done
            touch "$2/onnxruntime_qnn-2.3.0-cp312-cp312-manylinux_2_35_x86_64.whl""#
        );
        let path = raw_download(&script).expect("the other wheel");
        assert!(path.ends_with("wheel/onnxruntime_qnn-2.3.0-cp312-cp312-manylinux_2_35_x86_64.whl"));
    }

    #[test]
    fn stopping_ends_the_child() {
        let dir = tempfile::tempdir().expect("temp dir");
        let mut env = env_in(dir.path());
        let pid_file = dir.path().join("pid");
        env.python = fake_python(
            dir.path(),
            &format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 600", pid_file.display()),
        );
        let cancel = AtomicBool::new(false);
        let download =
            Download { env: &env, requirement: "onnxruntime-qnn==2.3.0", scratch: dir.path(), cancel: &cancel };
        let error = thread::scope(|scope| {
            let running = scope.spawn(|| download.run(&mut |_| {}).expect_err("stopped"));
            while !pid_file.exists() && !running.is_finished() {
                thread::yield_now();
            }
            cancel.store(true, Ordering::Relaxed);
            running.join().expect("no panic")
        });
        assert!(matches!(error, RuntimeError::Cancelled), "{error}");
        let pid = fs::read_to_string(&pid_file).expect("written");
        let process = PathBuf::from("/proc").join(pid.trim());
        assert!(!process.exists(), "the child is gone and reaped");
    }
}
