use super::scene::{About, Read, Scene};
use super::table::all;
use crate::backends::Backend;
use crate::diagnosis::cause;
use crate::event::{CheckOutcome, DeviceFacts, Setting, SettingOutcome, SocFacts, TensorData};
use crate::facts::{ContextText, DspLook, Folder, Listing, Node, RemoteFile, build_id_in, parse_header};
use crate::models::ModelFormat;

#[test]
fn every_check_is_one_of_its_cause_in_the_catalogue() {
    for row in all() {
        let known = cause(row.cause).unwrap_or_else(|| panic!("no cause {}", row.cause));
        assert_eq!(known.id, row.cause);
        assert!(known.confirm.iter().any(|check| check.id == row.check), "{} {}", row.cause, row.check);
    }
}

#[test]
fn without_any_facts_nothing_is_confirmed() {
    let scene = Scene::new(About::default());
    for row in all() {
        let verdict = (row.test)(&scene);
        let outcome = verdict.outcome;
        assert!(!verdict.detail.is_empty());
        // That it ran on a device instead of a PC is known even without facts.
        assert!(outcome == CheckOutcome::Unknown || row.check == "machine", "{} {}: {verdict:?}", row.cause, row.check);
    }
}

fn facts(arch: &str) -> DeviceFacts {
    let text = r#"{"id":"x","model":null,"soc":{"part":null,"name":null,"soc_id":null,"soc_model":null,"hexagon_arch":null,
        "vtcm_mb":null,"htp_fp16":null},"os":"Android 14","build":null,"kernel":null,"abi":"arm64-v8a","gpu":null,
        "clusters":[],"shell_uid":2000,"root":"none","selinux":"Enforcing","free_bytes":null,"memory_bytes":null,
        "memory_available_bytes":null,"nodes":[],"battery":null,"thermal_status":null,"hottest_celsius":null,
        "power_save":null,"screen_on":null,"busy_processes":[]}"#;
    let facts: DeviceFacts = serde_json::from_str(text).unwrap();
    DeviceFacts { soc: SocFacts { hexagon_arch: Some(arch.to_owned()), ..SocFacts::default() }, ..facts }
}

fn folder(path: &str, names: &[&str]) -> Folder {
    let file = |name: &&str| RemoteFile { name: (*name).to_owned(), bytes: 100, readable: true };
    Folder { path: path.to_owned(), listing: Listing::Files(names.iter().map(file).collect()) }
}

fn hexagon(arch: u8) -> Vec<u8> {
    let mut header = vec![0; 52];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    header[16] = 3;
    header[18] = 164;
    header[20] = 1;
    header[36] = arch;
    header[40] = 52;
    header
}

/// A phone with v75, with the run's folder and the vendor's.
fn scene(own: &[&str], vendor: &[&str]) -> Scene {
    let mut scene = Scene::new(About {
        folder: Some("/run".to_owned()),
        library_folders: vec!["/run".to_owned(), "/vendor/lib64".to_owned()],
        dsp_path: Some("/run;/vendor/lib/rfsa/adsp".to_owned()),
        facts: Some(facts("v75")),
        ..About::default()
    });
    let folders = vec![folder("/run", own), folder("/vendor/lib64", &[]), folder("/vendor/lib/rfsa/adsp", vendor)];
    scene.look = Ok(DspLook { folders, ..DspLook::default() });
    scene
}

fn said(scene: &Scene, cause: &str, check: &str) -> (CheckOutcome, String) {
    let row = all().iter().find(|row| row.cause == cause && row.check == check).unwrap();
    let verdict = (row.test)(scene);
    (verdict.outcome, verdict.detail)
}

#[track_caller]
fn is(scene: &Scene, cause: &str, check: &str, outcome: CheckOutcome) {
    let (got, detail) = said(scene, cause, check);
    assert_eq!(got, outcome, "{cause} {check}: {detail}");
}

use CheckOutcome::{Confirms, Neutral, Refutes, Unknown};

#[test]
fn skels_are_looked_for_where_the_dsp_looks() {
    let none = scene(&["libQnnHtp.so", "libQnnHtpV75Stub.so"], &[]);
    is(&none, "skel-not-found", "skel-files", Confirms);
    is(&none, "skel-wrong-arch", "skel-files", Neutral);
    is(&none, "stub-not-found", "stub-files", Refutes);
    let other = scene(&["libQnnHtpV73Skel.so"], &[]);
    is(&other, "skel-not-found", "skel-files", Neutral);
    is(&other, "skel-wrong-arch", "skel-files", Confirms);
    is(&other, "stub-not-found", "stub-files", Confirms);
    let mut mislabelled = scene(&["libQnnHtpV75Skel.so"], &[]);
    let read = Read { elf: parse_header(&hexagon(0x73)), build: None };
    mislabelled.read.insert("/run/libQnnHtpV75Skel.so".to_owned(), read);
    is(&mislabelled, "skel-wrong-arch", "skel-files", Confirms);
    let read = Read { elf: parse_header(&hexagon(0x75)), build: None };
    mislabelled.read.insert("/run/libQnnHtpV75Skel.so".to_owned(), read);
    is(&mislabelled, "skel-wrong-arch", "skel-files", Refutes);
    is(&mislabelled, "skel-not-found", "skel-files", Refutes);
    let vendors = scene(&["libQnnHtp.so"], &["libQnnHtpV75Skel.so"]);
    is(&vendors, "skel-not-found", "skel-files", Refutes);
    is(&vendors, "vendor-lib-shadowing", "vendor-files", Confirms);
}

#[test]
fn a_path_with_colons_is_one_folder() {
    let mut colons = scene(&["libQnnHtpV75Skel.so"], &[]);
    is(&colons, "adsp-path-colon", "adsp-path", Refutes);
    colons.about.dsp_path = Some("/run:/vendor/lib/rfsa/adsp".to_owned());
    is(&colons, "adsp-path-colon", "adsp-path", Confirms);
    is(&colons, "skel-not-found", "skel-files", Neutral);
    colons.about.dsp_path = Some("/run;/a:/b".to_owned());
    is(&colons, "adsp-path-colon", "adsp-path", Neutral);
}

#[test]
fn build_ids_are_held_against_each_other() {
    let mut mixed = scene(&["libQnnHtp.so", "libQnnHtpV75Stub.so", "libQnnHtpV75Skel.so"], &[]);
    is(&mixed, "stub-skel-build-id-mismatch", "build-ids", Unknown);
    for (name, id) in [
        ("libQnnHtp.so", "v2.47.0.260601114230"),
        ("libQnnHtpV75Stub.so", "v2.47.0.260601114230_77"),
        ("libQnnHtpV75Skel.so", "v2.47.0.260601114230"),
    ] {
        mixed.read.insert(format!("/run/{name}"), Read { elf: None, build: build_id_in(id.as_bytes()) });
    }
    is(&mixed, "stub-skel-build-id-mismatch", "build-ids", Refutes);
    let other = Read { elf: None, build: build_id_in(b"v2.31.0.250130151446") };
    mixed.read.insert("/run/libQnnHtpV75Skel.so".to_owned(), other);
    let (outcome, detail) = said(&mixed, "stub-skel-build-id-mismatch", "build-ids");
    assert!(outcome == Confirms && detail.contains("v2.31.0") && detail.contains("v2.47.0"), "{detail}");
}

#[test]
fn nodes_and_denials_tell_of_permissions() {
    let mut refused = scene(&[], &[]);
    let Ok(look) = &mut refused.look else { panic!() };
    look.nodes = vec![Node { path: "/dev/fastrpc-cdsp".into(), readable: false, shown: "crw------- root".into() }];
    look.denials = Some(vec!["avc: denied { read } for name=\"fastrpc-cdsp\"".into()]);
    look.selinux = Some("Enforcing".into());
    is(&refused, "fastrpc-permission-denied", "nodes", Confirms);
    is(&refused, "fastrpc-permission-denied", "denials", Confirms);
    let Ok(look) = &mut refused.look else { panic!() };
    look.nodes[0].readable = true;
    look.selinux = Some("Permissive".into());
    is(&refused, "fastrpc-permission-denied", "nodes", Neutral);
    is(&refused, "fastrpc-permission-denied", "denials", Neutral);
}

#[test]
fn the_catalogue_file_of_windows_is_wanted_beside_each_skel() {
    let whole = ["QnnHtp.dll", "QnnHtpV73Stub.dll", "libQnnHtpV73Skel.so", "libqnnhtpv73.cat"];
    is(&scene(&whole, &[]), "windows-skel-load", "win-files", Refutes);
    for left_out in whole {
        let names: Vec<&str> = whole.into_iter().filter(|name| *name != left_out).collect();
        is(&scene(&names, &[]), "windows-skel-load", "win-files", Confirms);
    }
}

#[test]
fn the_dsps_runtime_is_not_missed_where_the_dsp_was_never_asked() {
    let with_skel = |own: &[&str]| {
        let mut scene = scene(own, &[]);
        let elf = parse_header(&hexagon(0x75)).map(|mut elf| {
            elf.needed = Some(vec!["libc++.so.1".to_owned()]);
            elf
        });
        scene.read.insert("/run/libQnnHtpV75Skel.so".to_owned(), Read { elf, build: None });
        scene
    };
    is(&with_skel(&["libQnnHtpV75Skel.so"]), "dsp-libcxx-missing", "dsp-libcxx", Unknown);
    is(&with_skel(&["libQnnHtpV75Skel.so", "libcdsprpc.so"]), "dsp-libcxx-missing", "dsp-libcxx", Confirms);
}

#[test]
fn a_pc_says_nothing_of_the_machine_where_it_failed() {
    let mut here = scene(&[], &[]);
    here.about.is_here = true;
    here.is_pc = true;
    for (cause, check) in [
        ("libcdsprpc-missing", "find"),
        ("fastrpc-permission-denied", "nodes"),
        ("fastrpc-session-open-failed", "remoteproc"),
        ("dsp-heap-growth-failed", "memory"),
    ] {
        is(&here, cause, check, Unknown);
    }
    is(&here, "gpu-on-x86", "machine", Confirms);
    is(&scene(&[], &[]), "libcdsprpc-missing", "find", Confirms);
}

#[test]
fn context_binaries_are_held_against_part_and_runtime() {
    let with = |arch, vtcm_mb, writer: &str| {
        let mut scene = scene(&["libQnnHtp.so"], &[]);
        scene.about.backend = Some(Backend::Htp);
        let facts = scene.about.facts.as_mut().unwrap();
        (facts.soc.part, facts.soc.vtcm_mb) = (Some("SM8650".to_owned()), Some(8));
        let soc = Some("SM8750".to_owned());
        let writer = build_id_in(writer.as_bytes());
        scene.context = Some(ContextText { soc, arch, vtcm_mb, writer, ..ContextText::default() });
        let build = build_id_in(b"v2.47.0.260601114230");
        scene.read.insert("/run/libQnnHtp.so".to_owned(), Read { elf: None, build });
        scene
    };
    let newer = with(Some(79), Some(16), "v2.51.0.260929181845");
    is(&newer, "context-binary-arch-newer", "binary-arch", Confirms);
    is(&newer, "context-binary-vtcm-too-large", "binary-vtcm", Confirms);
    is(&newer, "context-binary-sdk-newer", "binary-writer", Confirms);
    is(&newer, "context-binary-incompatible", "binary-arch", Neutral);
    // Binaries for an older SoC run, and another build of the same release reads them.
    let older = with(Some(73), Some(8), "v2.47.0.260701114230");
    is(&older, "context-binary-arch-newer", "binary-arch", Refutes);
    is(&older, "context-binary-vtcm-too-large", "binary-vtcm", Refutes);
    is(&older, "context-binary-sdk-newer", "binary-writer", Refutes);
    let silent = with(None, None, "");
    is(&silent, "context-binary-arch-newer", "binary-arch", Unknown);
    let mut container = scene(&[], &[]);
    container.model_kind = Some(Ok(ModelFormat::Dlc));
    is(&container, "context-binary-wrong-container", "container", Confirms);
    // Without a run the backend is unknown; a binary with a Hexagon architecture is for HTP.
    let mut pasted = newer;
    pasted.about.backend = None;
    is(&pasted, "context-binary-sdk-newer", "binary-writer", Confirms);
    for (bytes, needs_bytes, outcome) in [(7, Some(8), Confirms), (8, Some(8), Neutral), (8, None, Unknown)] {
        pasted.context = Some(ContextText { bytes, needs_bytes, ..ContextText::default() });
        is(&pasted, "context-binary-wrong-container", "binary-hash", outcome);
    }
}

#[test]
fn a_part_that_no_table_has_is_named() {
    let mut scene = scene(&[], &[]);
    let soc = |soc_id, arch: Option<&str>| SocFacts {
        soc_id,
        hexagon_arch: arch.map(ToOwned::to_owned),
        ..SocFacts::default()
    };
    for (soc, outcome) in [
        (soc(None, None), Confirms),
        (soc(Some(9999), None), Confirms),
        (soc(Some(9999), Some("v79")), Neutral),
        (soc(Some(356), Some("v66")), Neutral),
    ] {
        scene.about.facts.as_mut().unwrap().soc = soc;
        is(&scene, "soc-unknown-to-sdk", "soc", outcome);
    }
}

#[test]
fn inputs_memory_and_storage_are_held_against_what_is_needed() {
    let mut scene = scene(&[], &[]);
    is(&scene, "input-size-mismatch", "input-bytes", Unknown);
    let tensor = r#"{"name":"x","dtype":"float32","shape":[1,4],"quantization":null,"kind":"input"}"#;
    scene.about.graph_inputs = vec![serde_json::from_str(tensor).unwrap()];
    let given =
        |bytes| TensorData { name: "x".into(), source: "x.raw".into(), bytes, quantization: None, sha256: None };
    scene.about.inputs = vec![given(8)];
    is(&scene, "input-size-mismatch", "input-bytes", Confirms);
    scene.about.inputs = vec![given(16)];
    is(&scene, "input-size-mismatch", "input-bytes", Refutes);
    let facts = scene.about.facts.as_mut().unwrap();
    (facts.soc.part, facts.soc.htp_fp16) = (Some("SM8635".to_owned()), Some(false));
    is(&scene, "float-unsupported-on-arch", "soc", Confirms);
    for (free, outcome) in [(0, Confirms), (100 << 20, Neutral), (1 << 30, Refutes)] {
        let Ok(look) = &mut scene.look else { panic!() };
        (look.free_bytes, look.memory_available_bytes) = (Some(free), Some(free));
        is(&scene, "disk-full", "space", outcome);
        is(&scene, "dsp-heap-growth-failed", "memory", if free < 200 << 20 { Confirms } else { Neutral });
    }
    let Ok(look) = &mut scene.look else { panic!() };
    look.heaps = vec![Node { path: "/dev/dma_heap/system".into(), readable: false, shown: "crw-------".into() }];
    is(&scene, "rpcmem-alloc-failed", "heaps", Confirms);
    let setting =
        |value: &str| Setting { key: "--htp-arch".into(), value: value.into(), outcome: SettingOutcome::Applied };
    is(&scene, "device-config-arch-unsupported", "soc", Refutes);
    scene.about.settings = vec![setting("v79")];
    is(&scene, "device-config-arch-unsupported", "soc", Confirms);
}

#[test]
fn libraries_for_another_processor_and_missing_ones_are_named() {
    let mut scene = scene(&["libQnnHtp.so", "libQnnSystem.so"], &[]);
    scene.about.backend = Some(Backend::Gpu);
    is(&scene, "backend-library-not-found", "backend-file", Confirms);
    scene.about.backend = Some(Backend::Htp);
    is(&scene, "backend-library-not-found", "backend-file", Refutes);
    is(&scene, "prepare-lib-missing", "prepare-file", Confirms);
    is(&scene, "wrong-elf-class", "elf-header", Unknown);
    let elf = |machine: u8| {
        let mut header = vec![0; 64];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (header[18], header[20]) = (machine, 1);
        Read { elf: parse_header(&header), build: None }
    };
    scene.read.insert("/run/libQnnHtp.so".to_owned(), elf(183));
    is(&scene, "wrong-elf-class", "elf-header", Refutes);
    scene.read.insert("/run/libQnnSystem.so".to_owned(), elf(62));
    is(&scene, "wrong-elf-class", "elf-header", Confirms);
    // The dependencies of a library for another CPU say nothing.
    scene.missing = Some(vec![("libc++.so.1".to_owned(), "/run/libQnnHtp.so".to_owned())]);
    is(&scene, "dependency-missing", "ldd", Neutral);
    is(&scene, "libcxx-missing", "needed", Neutral);
    scene.read.insert("/run/libQnnSystem.so".to_owned(), elf(183));
    is(&scene, "dependency-missing", "ldd", Confirms);
    is(&scene, "libcxx-missing", "needed", Confirms);
    scene.missing = Some(vec![("libfoo.so".to_owned(), "/run/libQnnHtp.so".to_owned())]);
    is(&scene, "dependency-missing", "ldd", Confirms);
    is(&scene, "libcxx-missing", "needed", Refutes);
    scene.missing = None;
    is(&scene, "dependency-missing", "ldd", Unknown);
}

#[test]
fn a_dlc_is_read_by_whoever_is_oldest() {
    let mut scene = scene(&["libQnnHtp.so", "libQnnModelDlc.so"], &[]);
    scene.about.backend = Some(Backend::Htp);
    is(&scene, "dlc-sdk-newer", "dlc-maker", Unknown);
    scene.dlc_maker = Some("2.47.0.260601114230".to_owned());
    is(&scene, "dlc-sdk-newer", "dlc-maker", Unknown);
    let build = build_id_in(b"v2.47.0.260601114230");
    scene.read.insert("/run/libQnnHtp.so".to_owned(), Read { elf: None, build });
    is(&scene, "dlc-sdk-newer", "dlc-maker", Refutes);
    scene.tool = build_id_in(b"v2.25.0.240728104910");
    let (outcome, detail) = said(&scene, "dlc-sdk-newer", "dlc-maker");
    assert!(outcome == Confirms && detail.contains("qnn-net-run is v2.25.0"), "{detail}");
}
