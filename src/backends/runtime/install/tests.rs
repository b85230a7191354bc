use super::super::testing::{ARM, BuiltWheel, FakeWheel, METADATA, elf, env_in};
use super::super::{MANIFEST_FILE, locate};
use super::*;

fn request(data: &TempDir, wheel: &BuiltWheel) -> InstallRequest {
    let mut request = InstallRequest::new(env_in(data.path()));
    request.wheel_file = Some(wheel.path());
    request
}

fn temp() -> TempDir {
    tempfile::tempdir().expect("temp dir")
}

/// The contents of the runtimes folder, except for the lock.
fn left_in(data: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(data.path().join("runtimes"))
        .expect("readable")
        .map(|entry| {
            let entry = entry.expect("entry");
            entry.file_name().to_string_lossy().into_owned()
        })
        .filter(|name| name != LOCK_FILE)
        .collect();
    names.sort();
    names
}

#[test]
fn installs_once_and_says_so_the_second_time() {
    let (data, wheel) = (temp(), FakeWheel::new().build());
    let mut steps = Vec::new();
    let first = install(&request(&data, &wheel), Consent::Given, &mut |step| steps.push(step)).expect("installed");
    assert!(!first.already_installed);
    assert_eq!(first.version, "2.3.0");
    assert_eq!(first.files, 7);
    let licence = first.licence.clone().expect("a licence");
    assert!(licence.is_file());
    assert!(matches!(steps.last(), Some(InstallProgress::Unpacking { done, total }) if done == total));
    let manifest = RuntimeManifest::read(&first.dir).expect("a manifest");
    assert_eq!(manifest.sha256.len(), 64);
    assert_eq!(left_in(&data), ["2.3.0-manylinux_2_35_x86_64"]);

    let second = install(&request(&data, &wheel), Consent::Given, &mut |_| {}).expect("found");
    assert!(second.already_installed);
    // By version, without a local wheel and without asking pip.
    let mut by_version = InstallRequest::new(env_in(data.path()));
    by_version.env.python = PathBuf::from("/nowhere/python3");
    for same in ["2.3.0", "2.3"] {
        same.clone_into(&mut by_version.version);
        let found = install(&by_version, Consent::Given, &mut |_| {}).expect("found");
        assert!(found.already_installed);
    }
    // A changed file is not what was installed.
    fs::write(second.dir.join("libQnnCpu.so"), b"cpu-CODE").expect("written");
    let ended = install(&by_version, Consent::Given, &mut |_| {});
    assert!(matches!(ended, Err(RuntimeError::PythonMissing { .. })), "it is not there any more: {ended:?}");
    "2.3.0rc1".clone_into(&mut by_version.version);
    assert!(matches!(install(&by_version, Consent::Given, &mut |_| {}), Err(RuntimeError::PythonMissing { .. })));
}

#[test]
fn force_and_damage_and_other_content_install_again() {
    let (data, wheel) = (temp(), FakeWheel::new().build());
    let mut again = request(&data, &wheel);
    let first = install(&again, Consent::Given, &mut |_| {}).expect("installed");
    fs::write(first.dir.join("libQnnCpu.so"), "").expect("damage");
    let repaired = install(&again, Consent::Given, &mut |_| {}).expect("repaired");
    assert!(!repaired.already_installed);
    assert!(locate(None, &again.env)[0].complete);

    let other = FakeWheel::new().entry("onnxruntime_qnn/libQnnCpu.so", b"newer").build();
    let newer = install(&request(&data, &other), Consent::Given, &mut |_| {}).expect("installed");
    assert!(!newer.already_installed);
    let code = fs::read(newer.dir.join("libQnnCpu.so")).expect("readable");
    assert_eq!(code, b"newer");

    again.force = true;
    let forced = install(&again, Consent::Given, &mut |_| {}).expect("installed");
    assert!(!forced.already_installed);
    assert_eq!(left_in(&data), ["2.3.0-manylinux_2_35_x86_64"]);
}

#[test]
fn two_at_once_take_turns() {
    let (data, wheel) = (temp(), FakeWheel::new().build());
    let request = request(&data, &wheel);
    let done: Vec<Installed> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| install(&request, Consent::Given, &mut |_| {}).expect("installed")))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let fresh = done.iter().filter(|one| !one.already_installed).count();
    assert_eq!(fresh, 1);
    assert!(done.iter().all(|one| one.dir == done[0].dir));
    assert_eq!(left_in(&data).len(), 1);
}

#[test]
fn a_waiting_install_says_so_and_can_be_stopped() {
    let (data, wheel) = (temp(), FakeWheel::new().build());
    let request = request(&data, &wheel);
    let runtimes = data.path().join("runtimes");
    fs::create_dir_all(&runtimes).expect("folder");
    let _held = take_lock(&runtimes, &AtomicBool::new(false), &mut |_| {}).expect("free");
    let mut waited = 0;
    let ended = install(&request, Consent::Given, &mut |step| {
        assert!(matches!(step, InstallProgress::Waiting { .. }));
        waited += 1;
        request.cancel.store(true, Ordering::Relaxed);
    });
    assert!(matches!(ended, Err(RuntimeError::Cancelled)));
    assert_eq!(waited, 1);
}

#[test]
fn what_a_killed_install_left_is_removed_and_never_listed() {
    let (data, wheel) = (temp(), FakeWheel::new().build());
    let request = request(&data, &wheel);
    let whole = install(&request, Consent::Given, &mut |_| {}).expect("installed").dir;
    let runtimes = data.path().join("runtimes");
    // Killed just before the rename: complete, with a manifest, but not in place.
    let stale = runtimes.join(".tmp-dead00");
    fs::create_dir(&stale).expect("folder");
    fs::rename(&whole, stale.join("runtime")).expect("moved");
    fs::copy(stale.join("runtime").join(MANIFEST_FILE), stale.join(MANIFEST_FILE)).expect("copied");
    assert!(locate(None, &request.env).is_empty());
    install(&request, Consent::Given, &mut |_| {}).expect("installed");
    assert_eq!(left_in(&data), ["2.3.0-manylinux_2_35_x86_64"]);
}

#[test]
fn wheels_of_other_machines_are_refused_by_name_and_by_content() {
    let data = temp();
    let by_name = FakeWheel::new().platform("win_amd64").build();
    let error = install(&request(&data, &by_name), Consent::Given, &mut |_| {}).expect_err("windows");
    assert!(error.to_string().contains("it is for win_amd64"), "{error}");

    let by_content = FakeWheel::new().entry("onnxruntime_qnn/libQnnSystem.so", &elf(ARM)).build();
    let error = install(&request(&data, &by_content), Consent::Given, &mut |_| {}).expect_err("arm");
    assert!(error.to_string().ends_with("its libQnnSystem.so is aarch64, this machine is linux x86_64"), "{error}");
    let text = FakeWheel::new().entry("onnxruntime_qnn/libQnnSystem.so", b"text").build();
    let error = install(&request(&data, &text), Consent::Given, &mut |_| {}).expect_err("text");
    assert!(error.to_string().contains("not a 64-bit ELF"), "{error}");
    assert!(left_in(&data).is_empty());
}

#[test]
fn every_failure_and_a_stop_leave_nothing_behind() {
    let data = temp();
    let cut = FakeWheel::new().build();
    let bytes = fs::read(cut.path()).expect("readable");
    fs::write(cut.path(), &bytes[..bytes.len() - 30]).expect("cut");
    let unsafe_one = FakeWheel::new().raw_entry("../evil.so", b"x").build();
    let foreign = FakeWheel::empty().entry("a/b.so", b"x").build();
    for wheel in [&cut, &unsafe_one, &foreign] {
        install(&request(&data, wheel), Consent::Given, &mut |_| {}).expect_err("refused");
        assert!(left_in(&data).is_empty());
    }
    let sound = FakeWheel::new().build();
    let stopped = request(&data, &sound);
    let ended = install(&stopped, Consent::Given, &mut |step| {
        if matches!(step, InstallProgress::Unpacking { .. }) {
            stopped.cancel.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(ended, Err(RuntimeError::Cancelled)));
    assert!(left_in(&data).is_empty());
}

#[test]
fn versions_that_could_be_options_never_reach_pip() {
    let data = temp();
    let mut request = InstallRequest::new(env_in(data.path()));
    request.env.python = PathBuf::from("/nowhere/python3");
    "2.3.0 --index-url=http://x".clone_into(&mut request.version);
    assert!(matches!(install(&request, Consent::Given, &mut |_| {}), Err(RuntimeError::BadVersion { .. })));
    assert!(!data.path().join("runtimes").exists());
}

#[test]
fn a_wheel_with_another_checksum_needs_consent_before_it_is_unpacked() {
    let (data, wheel) = (temp(), FakeWheel::new().build());
    let request = request(&data, &wheel);
    for consent in [Consent::PinnedOnly, Consent::Missing, Consent::Ask(&mut |_| false)] {
        let mut unpacked = false;
        let ended =
            install(&request, consent, &mut |step| unpacked |= matches!(step, InstallProgress::Unpacking { .. }));
        let Err(RuntimeError::NotPinned { wheel, reason, .. }) = ended else { panic!("{ended:?}") };
        assert!(wheel.starts_with("onnxruntime_qnn-2.3.0-"), "{wheel}");
        assert!(reason.contains("not one published for version 2.3.0"), "{reason}");
        assert!(!unpacked && left_in(&data).is_empty());
    }
    let mut asked = None;
    let mut ask = |unpinned: &Unpinned| {
        asked = Some(unpinned.clone());
        true
    };
    let installed = install(&request, Consent::Ask(&mut ask), &mut |_| {}).expect("consented");
    assert!(!installed.pinned);
    let manifest = RuntimeManifest::read(&installed.dir).expect("a manifest");
    assert!(!manifest.pinned && manifest.files.iter().all(|file| file.modified_ns.is_some()));
    assert_eq!(asked.expect("asked").sha256.expect("it was here"), manifest.sha256);
}

#[test]
fn a_version_without_checksums_is_refused_before_pip_is_asked() {
    let data = temp();
    let mut request = InstallRequest::new(env_in(data.path()));
    request.env.python = PathBuf::from("/nowhere/python3");
    "2.6.0".clone_into(&mut request.version);
    let error = install(&request, Consent::Missing, &mut |_| {}).expect_err("not known");
    let text = "onnxruntime-qnn 2.6.0 was not installed: qnnscope knows only the checksums of versions 2.3.0 and 2.7.0";
    assert_eq!(error.to_string(), text);
    assert!(error.hint().is_some_and(|hint| hint.contains("--yes")));
    let ended = install(&request, Consent::Given, &mut |_| {});
    assert!(matches!(ended, Err(RuntimeError::PythonMissing { .. })), "{ended:?}");
}

#[test]
fn a_wheel_of_another_package_is_refused_even_with_consent() {
    let data = temp();
    let other = FakeWheel::new().entry(METADATA, b"Name: onnxruntime-qnn-fast\nVersion: 2.3.0\n").build();
    let error = install(&request(&data, &other), Consent::Given, &mut |_| {}).expect_err("another package");
    assert!(matches!(error, RuntimeError::OtherPackage { .. }), "{error}");
    assert!(left_in(&data).is_empty());
}
