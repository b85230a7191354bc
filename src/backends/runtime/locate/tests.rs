use super::super::testing::{ARM, FakeWheel, X86, elf, env_in};
use super::super::{InstallRequest, install};
use super::*;
use crate::backends::runtime::Consent;
use tempfile::TempDir;

fn libraries(dir: &Path, platform: Platform, names: &[&str]) {
    fs::create_dir_all(dir).expect("folder");
    for name in names {
        fs::write(dir.join(name), elf(platform)).expect("library");
    }
}

fn install_fake(env: &Env, version: &str) -> PathBuf {
    let wheel = FakeWheel::new().version(version).build();
    let mut request = InstallRequest::new(env.clone());
    request.wheel_file = Some(wheel.path());
    install(&request, Consent::Given, &mut |_| {}).expect("installed").dir
}

fn temp() -> TempDir {
    tempfile::tempdir().expect("temp dir")
}

#[test]
fn the_default_version_then_the_newest() {
    let data = temp();
    let env = env_in(data.path());
    for version in ["2.10.0", "2.9.0", DEFAULT_WHEEL_VERSION] {
        install_fake(&env, version);
    }
    let versions: Vec<_> =
        locate(None, &env).into_iter().map(|found| found.version.expect("installed ones have a version")).collect();
    assert_eq!(versions, [DEFAULT_WHEEL_VERSION, "2.10.0", "2.9.0"]);
    let chosen = choose(None, &env).expect("a runtime");
    assert_eq!(chosen.version.as_deref(), Some(DEFAULT_WHEEL_VERSION));
    assert!(chosen.complete);
    assert!(chosen.library("cpu").is_some());
    assert!(chosen.library("htp").is_none());
}

#[test]
fn named_places_come_first_in_the_documented_order() {
    let (data, a, b, c) = (temp(), temp(), temp(), temp());
    let names = ["libQnnSystem.so", "libQnnHtp.so", "libQnnHtpV75Stub.so"];
    let mut env = env_in(data.path());
    install_fake(&env, "2.3.0");
    libraries(a.path(), X86, &names);
    libraries(&b.path().join("onnxruntime_qnn"), X86, &names);
    fs::create_dir(b.path().join("onnxruntime_qnn-2.7.0.dist-info")).expect("folder");
    libraries(&c.path().join("lib/x86_64-linux-clang"), X86, &names);
    env.runtime = Some(b.path().to_path_buf());
    env.qnn_sdk_root = Some(c.path().to_path_buf());
    env.qairt_sdk_root = Some(c.path().to_path_buf());
    let found = locate(Some(a.path()), &env);
    let sources: Vec<_> = found.iter().map(|one| one.source).collect();
    assert_eq!(
        sources,
        [RuntimeSource::Option, RuntimeSource::Variable, RuntimeSource::QnnSdk, RuntimeSource::Installed]
    );
    assert_eq!(found[1].version.as_deref(), Some("2.7.0"));
    assert_eq!(found[2].path, c.path().join("lib/x86_64-linux-clang"));
    assert_eq!(found[2].version, None);
    let helper = &found[0].libraries[1];
    assert_eq!((helper.name.as_str(), helper.backend), ("libQnnHtpV75Stub.so", None));
}

#[test]
fn the_newest_compiler_of_the_better_family() {
    let (data, sdk) = (temp(), temp());
    for target in ["aarch64-oe-linux-gcc9.3", "aarch64-oe-linux-gcc11.2", "x86_64-linux-clang"] {
        let dir = sdk.path().join("lib").join(target);
        libraries(&dir, ARM, &["libQnnSystem.so", "libQnnCpu.so"]);
    }
    let mut env = env_in(data.path());
    env.platform = ARM;
    env.qnn_sdk_root = Some(sdk.path().to_path_buf());
    let chosen = choose(None, &env).expect("a runtime");
    assert!(chosen.path.ends_with("lib/aarch64-oe-linux-gcc11.2"));
}

#[test]
fn a_named_place_without_libraries_is_an_error_even_if_others_are_there() {
    let (data, empty) = (temp(), temp());
    let mut env = env_in(data.path());
    install_fake(&env, "2.3.0");
    let error = choose(Some(empty.path()), &env).expect_err("empty");
    let text = error.to_string();
    assert!(text.contains("--runtime") && text.contains("lib/x86_64-linux-clang"), "{text}");
    env.runtime = Some(empty.path().join("missing"));
    let text = choose(None, &env).expect_err("missing").to_string();
    assert!(text.contains("QNNSCOPE_RUNTIME"), "{text}");
    assert!(text.contains("No such file"), "{text}");
}

#[test]
fn libraries_of_another_machine_are_named() {
    let (data, sdk) = (temp(), temp());
    let android = sdk.path().join("lib/aarch64-android");
    libraries(&android, ARM, &["libQnnSystem.so"]);
    let env = env_in(data.path());
    let error = choose(Some(&android), &env).expect_err("another machine");
    assert!(error.to_string().ends_with("(--runtime) is built for aarch64, this machine is linux x86_64"), "{error}");
    let error = choose(Some(sdk.path()), &env).expect_err("no target");
    assert!(error.to_string().ends_with("only lib/ for aarch64-android"), "{error}");
}

#[test]
fn a_wheel_file_is_told_how_to_be_used() {
    let data = temp();
    let wheel = FakeWheel::new().build();
    let error = choose(Some(&wheel.path()), &env_in(data.path())).expect_err("a file");
    let hint = error.hint().expect("a hint");
    assert!(hint.starts_with("qnnscope runtime install --wheel "), "{hint}");
}

#[test]
fn nothing_anywhere_says_where_it_looked() {
    let data = temp();
    let error = choose(None, &env_in(data.path())).expect_err("nothing");
    assert!(matches!(error, RuntimeError::NotFound { .. }));
    let text = error.to_string();
    assert!(text.contains("QNN_SDK_ROOT (not set)"), "{text}");
    assert!(text.contains("runtimes (nothing installed)"), "{text}");
}

#[test]
fn a_damaged_install_is_listed_but_not_chosen() {
    let data = temp();
    let env = env_in(data.path());
    let dir = install_fake(&env, "2.3.0");
    fs::remove_file(dir.join("libQnnCpu.so")).expect("removed");
    let found = locate(None, &env);
    assert!(!found[0].complete);
    let error = choose(None, &env).expect_err("damaged");
    assert!(error.to_string().contains("libQnnCpu.so missing"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("qnnscope runtime install --force --version 2.3.0"));
    install_fake(&env, "2.7.0");
    let chosen = choose(None, &env).expect("the whole one");
    assert_eq!(chosen.version.as_deref(), Some("2.7.0"));
}
