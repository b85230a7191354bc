//! `accuracy` and `ranges` on a device: the real adb server, the real libraries, the real program as the
//! runner.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use super::device_runner::{bench, call, nothing_is_left};
use crate::support::device::Bench;
use crate::support::{Qnnscope, repo, runtime_247, schema};
use serde_json::{Value, json};
use std::time::Duration;

fn on(bench: &Bench, flags: &str) -> Qnnscope {
    call(bench).within(Duration::from_secs(240)).within_folder(&repo("tests/data/accuracy")).flags(flags)
}

/// The test model on the device, the reference with this machine's libraries.
fn compare(bench: &Bench, flags: &str) -> Qnnscope {
    on(bench, "accuracy --json --reference-runtime").arg(runtime_247()).flags(flags)
}

fn here(flags: &str) -> Qnnscope {
    Qnnscope::on(&runtime_247())
        .within(Duration::from_secs(180))
        .within_folder(&repo("tests/data/accuracy"))
        .flags(flags)
}

/// Each layer's difference from its reference, and the part that its op causes by itself.
fn figures(document: &Value) -> Vec<[Value; 4]> {
    let keys = ["test", "mse", "own_sqnr_db", "cosine"];
    document["layers"].as_array().unwrap().iter().map(|row| keys.map(|key| row[key].clone())).collect()
}

#[test]
fn a_device_computes_the_tensors_that_this_machine_computes() {
    let bench = bench();
    for (flags, simulated) in [
        ("-n 2 float.dlc range-too-small.dlc@cpu", false),
        ("-n 1 float.dlc channel-scale.dlc@htp --soc-model 57", true),
    ] {
        let there = compare(&bench, flags).finish().expect(1).json();
        let local = here(&format!("accuracy --json {flags}")).finish().expect(1).json();
        schema::fits(&schema::read("accuracy.schema.json"), &there);
        assert_eq!(figures(&there), figures(&local), "{flags}");
        // Constants are read on the device too.
        assert_eq!(there["verdict"], local["verdict"]);
        assert_eq!(there["first_diverging"]["cause"], local["first_diverging"]["cause"]);
        assert_eq!(
            (&there["test"]["device"], &there["reference"]["device"]),
            (&json!(bench.device.serial()), &json!(null))
        );
        assert_eq!(there["test"]["simulated"], json!(simulated));
        assert_eq!(there["test"]["model"], local["test"]["model"], "the user's name");
        nothing_is_left(&bench);
        assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"), "folders of graphs are removed");
    }
    let both = format!("accuracy --json -n 1 float.dlc float.dlc@cpu --reference-device {}", bench.device.serial());
    let both = on(&bench, &both).finish().expect(0).json();
    assert_eq!(both["reference"]["device"], both["test"]["device"]);
    assert!(both["layers"].as_array().unwrap().iter().all(|row| row["mse"] == json!(0.0)), "{both:#}");
    let flags = format!("accuracy -n 1 float.dlc float.dlc@cpu --reference-runtime {}", runtime_247().display());
    let text = on(&bench, &flags).finish().expect(0);
    assert!(text.text().contains(&format!("on cpu of {}", bench.device.serial())), "{}", text.text());
}

#[test]
fn ranges_on_a_device_are_those_of_here() {
    let bench = bench();
    let there = on(&bench, "ranges float.dlc -n 2 --json").finish().expect(0).json();
    let local = here("ranges float.dlc -n 2 --json").finish().expect(0).json();
    assert_eq!((&there["tensors"], &there["weights"]), (&local["tensors"], &local["weights"]));
    nothing_is_left(&bench);
}

#[test]
fn what_a_device_cannot_do_is_said() {
    let bench = bench();
    let refused = compare(&bench, "float.dlc float.onnx").finish().expect(2);
    assert!(refused.stderr.contains("--device does not apply to the test"), "{}", refused.stderr);
    let absent = compare(&bench, "-n 1 float.dlc no-such.dlc@cpu").finish();
    assert!(absent.code() == 2 && absent.stderr.contains("no-such.dlc"), "{} {}", absent.code(), absent.stderr);
    let data = repo("tests/data/accuracy");
    let call = bench.on_device().within_folder(&data).flags("accuracy -n 1 float.dlc good.dlc@cpu --reference-runtime");
    let without = call.arg(runtime_247()).finish();
    assert!(without.code() == 3 && without.stderr.contains("no runner"), "{} {}", without.code(), without.stderr);
    nothing_is_left(&bench);
}

#[test]
fn a_comparison_that_is_stopped_leaves_nothing_at_work_on_the_device() {
    let bench = bench();
    let mut running = compare(&bench, "-n 5000 float.dlc good.dlc@cpu").start();
    running.until("a runner on the device", || {
        bench.shell("ls /data/local/tmp/qnnscope/run-*/exchange/tensors 2>/dev/null").contains("tensors").then_some(())
    });
    running.signal(rustix::process::Signal::INT);
    running.wait().expect(130);
    nothing_is_left(&bench);
}
