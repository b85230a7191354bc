use super::super::testing::{FakeWheel, METADATA};
use super::*;

fn open(path: &Path) -> Result<Wheel, RuntimeError> {
    Wheel::open(path, File::open(path).expect("the wheel exists"), Package::Qnn)
}

fn unpack(path: &Path) -> Result<Vec<String>, RuntimeError> {
    let dir = tempfile::tempdir().expect("temp dir");
    let files = open(path)?.unpack(dir.path(), &mut |_| Ok(()))?;
    let mut names: Vec<String> = files.into_iter().map(|file| file.name).collect();
    names.sort();
    Ok(names)
}

#[test]
fn takes_file_names_apart() {
    let name = "onnxruntime_qnn-2.3.0-cp312-cp312-manylinux_2_35_x86_64.whl";
    let wheel = WheelName::parse(Path::new("/a/b").join(name).as_path()).expect("a wheel name");
    assert_eq!(wheel.version, "2.3.0");
    assert_eq!(wheel.dir_name(), "2.3.0-manylinux_2_35_x86_64");
    for bad in ["x.whl", "onnxruntime_qnn-2.3.0.tar.gz", "a-..-cp312-cp312-any.whl", "a-1.0-cp312-cp312-.whl"] {
        assert!(WheelName::parse(Path::new(bad)).is_err(), "{bad}");
    }
}

#[test]
fn keeps_libraries_what_they_link_to_and_licences() {
    let wheel = FakeWheel::new().build();
    assert_eq!(
        unpack(&wheel.path()).expect("a sound wheel"),
        [
            "LICENSE",
            "Qualcomm_LICENSE.pdf",
            "ThirdPartyNotices.txt",
            "libQnnCpu.so",
            "libQnnSystem.so",
            "libc++-71bc274c.so.1.0",
            "libonnxruntime_providers_qnn.so"
        ]
    );
}

#[test]
fn the_package_says_itself_what_it_is() {
    let check = |wheel: FakeWheel| {
        let wheel = wheel.build();
        let name = WheelName::parse(&wheel.path()).expect("a wheel name");
        open(&wheel.path()).expect("a sound archive").check_package(&name)
    };
    let described = |text: &str| FakeWheel::new().entry(METADATA, text.as_bytes());
    check(FakeWheel::new()).expect("the package");
    check(described("Name: Onnxruntime_QNN\nVersion: 2.3.0\n")).expect("the same package, spelt otherwise");
    for (text, says) in [
        ("Name: onnxruntime-qnm\nVersion: 2.3.0\n", "it is the package \"onnxruntime-qnm\""),
        ("Name: onnxruntime-qnn\nVersion: 2.3.1\n", "its name says version 2.3.0, its METADATA \"2.3.1\""),
        ("Version: 2.3.0\n\nName: onnxruntime-qnn\n", "it is the package \"\""),
    ] {
        let error = check(described(text)).expect_err(text);
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = check(FakeWheel::new().entry("other-1.dist-info/METADATA", b"Name: other")).expect_err("two");
    assert!(error.to_string().contains("2 METADATA files"), "{error}");
}

#[test]
fn refuses_names_that_lead_elsewhere() {
    for (name, word) in [
        ("../evil.so", "leads out"),
        ("onnxruntime_qnn/../../evil.so", "leads out"),
        ("/etc/evil.so", "absolute"),
        ("onnxruntime_qnn\\..\\evil.so", "characters"),
    ] {
        let wheel = FakeWheel::new().raw_entry(name, b"x").build();
        let error = open(&wheel.path()).expect_err(name);
        assert!(matches!(&error, RuntimeError::UnsafeEntry { reason, .. } if reason.contains(word)), "{name}: {error}");
    }
}

#[test]
fn refuses_links_and_doubles() {
    let wheel = FakeWheel::new().link("onnxruntime_qnn/libQnnHtp.so", "/etc/passwd").build();
    let error = open(&wheel.path()).expect_err("a link");
    assert!(error.to_string().contains("symbolic link"), "{error}");
    // The flat folder can hold only one of the two.
    let wheel = FakeWheel::new().entry("onnxruntime_qnn.libs/libQnnCpu.so", b"x").build();
    let error = open(&wheel.path()).expect_err("a double");
    assert!(error.to_string().contains("twice"), "{error}");
}

#[test]
fn refuses_absurd_sizes() {
    let wheel = FakeWheel::new().build();
    wheel.claim_size("onnxruntime_qnn/libQnnCpu.so", u32::MAX - 1);
    let error = open(&wheel.path()).expect_err("four gigabytes");
    assert!(error.to_string().contains("larger than any"), "{error}");
}

#[test]
fn damage_is_told_from_foreign_wheels() {
    let sound = FakeWheel::new().build();
    let bytes = std::fs::read(sound.path()).expect("readable");

    let dir = tempfile::tempdir().expect("temp dir");
    let path = dir.path().join("x.whl");
    let mut flipped = bytes.clone();
    let place = flipped.windows(8).position(|window| window == b"cpu-code").expect("the library is stored");
    flipped[place] ^= 1;
    for (case, content) in [
        ("empty", Vec::new()),
        ("text", b"<html>no such file</html>".to_vec()),
        ("cut", bytes[..bytes.len() / 2].to_vec()),
        ("flipped bit", flipped),
    ] {
        std::fs::write(&path, content).expect("write");
        let error = unpack(&path).expect_err(case);
        assert!(matches!(error, RuntimeError::CorruptWheel { .. }), "{case}: {error:?}");
    }

    let other = FakeWheel::empty().entry("numpy/core.so", b"x").build();
    assert!(matches!(open(&other.path()).expect_err("no QNN"), RuntimeError::NotTheWheel { .. }));
}

#[test]
fn a_smaller_or_larger_entry_than_claimed_is_damage() {
    for claimed in [3, 5] {
        let error = copy_entry(&mut &b"four"[..], &mut Vec::new(), claimed, &mut |_| Ok(())).expect_err("wrong size");
        assert!(matches!(error, CopyError::Read(_)), "{error:?}");
    }
}

/// The kernel's own ENOSPC: every write to this device fails with it.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_write_error_of_its_own() {
    let mut full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let error = copy_entry(&mut &b"four"[..], &mut full, 4, &mut |_| Ok(())).expect_err("nothing fits");
    let CopyError::Write(source) = error else {
        panic!("{error:?}");
    };
    let error = RuntimeError::file("unpack", Path::new("/data/x.so"), source);
    assert!(matches!(error, RuntimeError::DiskFull { .. }), "{error:?}");
}
