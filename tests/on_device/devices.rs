//! Finding devices behind a real adb server, and describing them.

use crate::support::Qnnscope;
use crate::support::device::Bench;
use crate::support::virtual_device::{AdbServer, LinkState, Options, Snapshot, VirtualDevice};
use serde_json::Value;

fn listed(server: &AdbServer) -> Value {
    let address = format!("127.0.0.1:{}", server.port());
    let done = Qnnscope::without_runtime().args(["--adb-server", &address, "devices", "--json"]).finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    done.json()
}

fn row<'a>(document: &'a Value, device: &VirtualDevice) -> &'a Value {
    let rows = document["devices"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == device.serial()).unwrap_or_else(|| panic!("{document:#}"))
}

#[test]
fn a_phone_without_root_says_what_it_is() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let document = listed(&bench.server);
    assert_eq!(document["schema"], "qnnscope.devices/1");
    assert_eq!(document["devices"][0]["id"], "local");
    let facts = &row(&document, &bench.device)["facts"];
    assert_eq!(facts["soc"]["part"], "SM8650");
    assert_eq!((&facts["soc"]["soc_model"], &facts["soc"]["vtcm_mb"]), (&57.into(), &8.into()));
    assert_eq!((&facts["soc"]["hexagon_arch"], &facts["soc"]["htp_fp16"]), (&"v75".into(), &true.into()));
    assert_eq!(facts["os"], "Android 14 (API 34)");
    assert_eq!((&facts["root"], &facts["shell_uid"]), (&"none".into(), &2000.into()));
    assert_eq!(facts["selinux"], "Enforcing");
    assert_eq!(facts["gpu"], "Adreno750v2");
    let clusters: Vec<usize> =
        facts["clusters"].as_array().unwrap().iter().map(|cluster| cluster["cpus"].as_array().unwrap().len()).collect();
    assert_eq!(clusters, [2, 3, 2, 1]);
    assert_eq!(facts["battery"]["status"], "discharging");
    assert!(facts["free_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn root_is_found_where_it_is_and_only_there() {
    let rooted = Bench::new(Snapshot::Sm8550Root);
    assert_eq!(row(&listed(&rooted.server), &rooted.device)["facts"]["root"], "su_c");
    let refused = Bench::with(Snapshot::Sm8550Root, Options { su_refused: true, ..Options::default() });
    assert_eq!(row(&listed(&refused.server), &refused.device)["facts"]["root"], "none");
    let board = Bench::new(Snapshot::Qcs6490Linux);
    let document = listed(&board.server);
    let facts = &row(&document, &board.device)["facts"];
    assert_eq!(facts["root"], "shell");
    assert_eq!((&facts["soc"]["part"], &facts["soc"]["soc_model"]), (&"QCS6490".into(), &93.into()));
    assert_eq!((&facts["battery"], &facts["thermal_status"]), (&Value::Null, &Value::Null));
}

#[test]
fn states_that_are_not_ready_say_what_to_do() {
    for (state, word, advice) in [
        (LinkState::Unauthorized, "unauthorized", "Allow USB debugging"),
        (LinkState::Recovery, "recovery", "adb reboot"),
    ] {
        let bench = Bench { ..Bench::new(Snapshot::Sm8650User) };
        bench.device.set_state(state);
        bench.device.drop_link();
        bench.server.wait_for(&bench.device, word, "the state is set");
        let document = listed(&bench.server);
        let row = row(&document, &bench.device);
        assert_eq!(row["state"], word);
        assert!(row["advice"].as_str().unwrap().contains(advice), "{row:#}");
        assert!(row["facts"].is_null());
        let refused = bench.on_device().run_json(&crate::support::demo_int8(), "-n 1");
        assert_eq!(refused.code(), 3, "{}", refused.stderr);
        assert!(refused.stderr.contains(advice), "{}", refused.stderr);
    }
}

#[test]
fn what_disturbs_a_run_is_announced() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let battery = "Current Battery Service state:\n  USB powered: true\n  status: 2\n  present: true\n  level: 12\n  scale: 100\n";
    bench.device.dumpsys("battery", battery);
    bench.device.dumpsys("thermalservice", "Thermal Status: 2\n");
    let document = listed(&bench.server);
    let found: Vec<&str> = row(&document, &bench.device)["confounds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|confound| confound["id"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["thermal_status", "charging", "battery_low"]);
}

#[test]
fn text_of_a_device_cannot_reach_the_terminal() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.set_property("ro.product.model", b"\x1b]0;owned\x07\x1b[31mX\xff\xfe");
    let address = format!("127.0.0.1:{}", bench.server.port());
    let done = Qnnscope::without_runtime().args(["--adb-server", &address, "devices"]).finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(!done.text().contains('\x1b') && done.text().contains("[31mX"), "{}", done.text());
}

#[test]
fn a_device_must_be_named_where_there_are_several() {
    let first = Bench::new(Snapshot::Sm8650User);
    let second = VirtualDevice::start(Snapshot::Qcs6490Linux, Options::default());
    first.server.connect(&second);
    let done = first.qnnscope().args(["--device", "adb"]).run_json(&crate::support::demo_int8(), "-n 1");
    assert_eq!(done.code(), 2, "{}", done.stderr);
    assert!(done.stderr.contains("--device SERIAL") && done.stderr.contains(&second.serial()), "{}", done.stderr);
    let unknown = first.qnnscope().env("ANDROID_SERIAL", "NOSUCH").run_json(&crate::support::demo_int8(), "-n 1");
    assert_eq!(unknown.code(), 3, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no device NOSUCH is attached; attached: "), "{}", unknown.stderr);
}

#[test]
fn wireless_devices_are_connected_and_refusals_are_told() {
    let server = AdbServer::start();
    let device = VirtualDevice::start(Snapshot::Sm8650User, Options::default());
    let address = format!("127.0.0.1:{}", server.port());
    let connect = |to: &str| Qnnscope::without_runtime().args(["--adb-server", &address, "connect", to]).finish();
    let done = connect(&device.serial());
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(done.stderr.contains("connected to"), "{}", done.stderr);
    assert_eq!(row(&listed(&server), &device)["state"], "device");
    let refused = connect("127.0.0.1:1");
    assert_eq!(refused.code(), 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("next: check address and port"), "{}", refused.stderr);
}

#[test]
fn without_adb_this_machine_is_still_listed() {
    let folder = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{free}");
    // A path without adb. `sh` and the other tools are found through it too, so they are linked in.
    for tool in ["sh", "uname", "id", "df", "head", "cat", "ls", "ps", "tr", "grep"] {
        let found =
            ["/bin", "/usr/bin"].iter().map(|dir| std::path::Path::new(dir).join(tool)).find(|path| path.exists());
        if let Some(found) = found {
            std::os::unix::fs::symlink(found, folder.path().join(tool)).unwrap();
        }
    }
    let done =
        Qnnscope::without_runtime().env("PATH", folder.path()).args(["--adb-server", &address, "devices"]).finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(done.text().starts_with("local  (ready)"), "{}", done.text());
    assert!(
        done.text().contains("adb is not installed") && done.text().contains("apt-get install adb"),
        "{}",
        done.text()
    );
}

#[test]
fn a_server_that_does_not_run_is_started() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{free}");
    let done = Qnnscope::without_runtime().args(["--adb-server", &address, "devices"]).finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(done.text().contains(&format!("no device is attached (server {address})")), "{}", done.text());
    let killed = std::process::Command::new("adb").args(["-P", &free.to_string(), "kill-server"]).status().unwrap();
    assert!(killed.success());
}
