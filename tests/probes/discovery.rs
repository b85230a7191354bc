use crate::device::device;
use crate::tree::Tree;
use qnnscope::devices::Root;
use qnnscope::event::Gap;
use qnnscope::probes::{Cadence, Counter, Discovery, discover};
use std::collections::BTreeSet;

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn find(device: &qnnscope::devices::Device) -> Discovery {
    block_on(discover(device, Root::None, &[])).unwrap()
}

fn ids(discovery: &Discovery) -> BTreeSet<&str> {
    discovery.readable.iter().map(|counter| counter.id.as_str()).collect()
}

fn reason<'a>(discovery: &'a Discovery, id: &str) -> (Gap, &'a str) {
    let row = discovery.unreadable.iter().find(|row| row.info.id == id);
    let row = row.unwrap_or_else(|| panic!("{id} is not among the unreadable: {:?}", ids(discovery)));
    (row.reason, row.info.unavailable.as_deref().unwrap())
}

fn counter<'a>(discovery: &'a Discovery, id: &str) -> &'a Counter {
    let found = discovery.readable.iter().find(|counter| counter.id == id);
    found.unwrap_or_else(|| panic!("{id} is not among the readable: {:?}", ids(discovery)))
}

#[test]
fn a_phone_without_root_gives_what_is_open() {
    let tree = Tree::new("sm8650-user", false);
    let found = find(&tree.device());
    let ids = ids(&found);
    for id in [
        "gpu.busy.percent",
        "gpu.freq",
        "gpu.temp",
        "bus.freq.DDR",
        "bus.freq.L3",
        "cpu.freq.policy0",
        "cpu.freq.policy7",
        "cpu.limit.policy2",
        "cpu.busy",
        "cpu.cluster.policy5",
        "thermal.npu.nsphvx-0",
        "thermal.npu.nsphmx-3",
        "thermal.gpu.gpuss-7",
        "thermal.memory.ddr",
        "thermal.skin.skin-msm-therm",
        "thermal.battery.battery",
        "battery.zone.voltage.vbat",
        "cooling.cdsp",
        "cooling.cdsp_hw",
        "memory.available",
        "proc.rss",
        "service.battery.voltage",
        "service.thermal.nsp0",
        "service.thermal.status",
        "service.gpu.active",
        "service.gpu.memory",
    ] {
        assert!(ids.contains(id), "{id} is missing: {ids:?}");
    }
    // The shell may not read the pair behind `gpu.busy`, so a run samples the percentage.
    assert!(counter(&found, "gpu.busy.percent").chosen);
    // The first path of the GPU clock is refused, but another one can be read.
    assert_eq!(counter(&found, "gpu.freq").files[0].path, "/sys/kernel/gpu/gpu_clock");
    // What zones are not: temperatures of a battery that are millivolts, or of a radio that sleeps.
    assert!(
        !ids.iter()
            .any(|id| id.starts_with("thermal") && ["vbat", "ibat", "socd", "mmw"].iter().any(|no| id.contains(no)))
    );
    assert_eq!(reason(&found, "thermal.modem.mmw0").0, Gap::Placeholder);
    assert_eq!(reason(&found, "thermal.modem.modem-skin").0, Gap::Placeholder);
    for id in ["gpu.busy", "gpu.memory", "npu.state", "battery.current", "pressure.cpu", "memory.dmabuf"] {
        let (gap, text) = reason(&found, id);
        assert_eq!((gap, text), (Gap::Refused, "permission denied (needs root)"), "{id}");
    }
    assert_eq!(reason(&found, "video.load").0, Gap::Refused);
    assert_eq!(counter(&found, "cpu.freq.policy7").maximum, Some(3302.4));
    assert_eq!(counter(&found, "cooling.cdsp").maximum, Some(7.0));
    assert_eq!(counter(&found, "cpu.cluster.policy2").parser.keys, ["cpu2", "cpu3", "cpu4"]);
    // The NPU's own zones can be read, so the service is not needed for temperatures, but it is for the
    // battery.
    assert!(!counter(&found, "service.thermal.nsp0").chosen && counter(&found, "service.battery.voltage").chosen);
    assert!(!found.readable.iter().any(|counter| counter.needs_root));
}

#[test]
fn root_opens_the_rest() {
    let tree = Tree::new("sm8550-root", true);
    let found = find(&tree.device());
    let ids = ids(&found);
    for id in [
        "gpu.busy",
        "gpu.freq",
        "gpu.freq.mean",
        "gpu.level",
        "gpu.memory",
        "proc.gpu.mapped",
        "npu.state.32300000.remoteproc-cdsp",
        "battery.current",
        "battery.power",
        "pressure.memory",
        "memory.dmabuf",
        "memory.dmaheap.pools",
        "devfreq.1d84000.ufshc",
        "thermal.npu.nspss-3",
        "cooling.gpu",
    ] {
        assert!(ids.contains(id), "{id} is missing: {ids:?}");
    }
    assert!(!counter(&found, "service.battery.voltage").chosen, "the battery's own files are better");
    let shell = Tree::new("sm8550-root", false);
    let found = find(&shell.device());
    assert_eq!(reason(&found, "gpu.busy").0, Gap::Refused);
}

#[test]
fn su_is_only_asked_for_what_needs_it() {
    let tree = Tree::new("sm8550-root", false);
    let device = tree.rooted_device();
    let found = block_on(discover(&device, Root::SuC, &[])).unwrap();
    assert!(counter(&found, "gpu.busy").needs_root && counter(&found, "battery.power").needs_root);
    assert!(!counter(&found, "cpu.freq.policy0").needs_root && !counter(&found, "thermal.npu.nspss-0").needs_root);
    assert_eq!(counter(&found, "gpu.busy").files[0].path, "/sys/class/kgsl/kgsl-3d0/gpubusy");
    // What is missing for root too is absent, and root would not help.
    assert_eq!(reason(&found, "video.load"), (Gap::Absent, "not on this device"));
}

#[test]
fn a_board_without_android_is_understood() {
    let tree = Tree::new("qcs6490-linux", false);
    let found = find(&tree.device());
    let ids = ids(&found);
    for id in [
        "gpu.freq",
        "gpu.freq.limit",
        "npu.state.a300000.remoteproc",
        "thermal.npu.nspss0-thermal",
        "thermal.skin.msm-skin-thermal",
        "cooling.devfreq-3d00000.gpu",
        "pressure.cpu",
        "cpu.freq.policy0",
    ] {
        assert!(ids.contains(id), "{id} is missing: {ids:?}");
    }
    assert_eq!(counter(&found, "gpu.freq").files[0].path, "/sys/class/devfreq/3d00000.gpu/cur_freq");
    assert_eq!(reason(&found, "gpu.busy").0, Gap::Absent);
    // A battery supply without a battery: 0 V is not a reading.
    assert_eq!(reason(&found, "battery.voltage").0, Gap::Implausible);
    assert_eq!(reason(&found, "service.thermal.status"), (Gap::Absent, "this device has no such service"));
}

#[test]
fn every_shell_finds_the_same_on_this_machine() {
    let shells: [&[&str]; 4] = [&["mksh"], &["bash"], &["busybox", "ash"], &["dash"]];
    let all: Vec<_> = shells.iter().map(|shell| find(&device(shell))).collect();
    let expected = ids(&all[0]);
    assert!(expected.contains("cpu.busy") && expected.contains("memory.available") && expected.contains("proc.pss"));
    for (shell, found) in shells.iter().zip(&all) {
        assert_eq!(ids(found), expected, "{shell:?}");
    }
}

#[test]
fn a_file_that_hangs_is_left_out_and_hostile_contents_do_no_harm() {
    let tree = Tree::new("sm8650-user", false);
    let zone = |number: u32| format!("/sys/class/thermal/thermal_zone{number}/temp");
    tree.remove(&zone(20));
    let fifo = tree.here(&zone(20));
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o666), 0)
        .unwrap();
    tree.write(&zone(21), &vec![b'7'; 10 << 20]);
    tree.write(&zone(22), b"\x1b[2J\x1b]0;title\x07\x1f1=5\n");
    tree.write(&zone(23), b"\xff\xfe\x00 31000\n");
    tree.write("/sys/class/thermal/thermal_zone24/type", b"nsp\x1b[31m\x1f$(reboot)'\"\n");
    let found = find(&tree.device());
    assert_eq!(reason(&found, "thermal.npu.nsphvx-0").0, Gap::Hangs);
    assert_eq!(reason(&found, "thermal.npu.nsphvx-1").0, Gap::NotANumber, "10 MB of digits");
    assert_eq!(reason(&found, "thermal.npu.nsphmx-0").0, Gap::NotANumber);
    let texts = found.unreadable.iter().map(|row| row.info.unavailable.clone().unwrap_or_default());
    let texts = texts.chain(found.readable.iter().flat_map(|counter| [counter.id.clone(), counter.label.clone()]));
    for text in texts {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    assert!(ids(&found).contains("thermal.npu.nsphmx-3"), "the others are there");
}

#[test]
fn users_own_counters_are_tried_like_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("my 'rail' $x"), "1200\n").unwrap();
    std::fs::write(path("text"), "hello\n").unwrap();
    let toml = format!(
        "[[counter]]\nid = \"my.rail\"\npath = '''{}'''\nscale = 0.001\nunit = \"V\"\n[[counter]]\nid = \"my.text\"\npath = \"{}\"\n\
         [[counter]]\nid = \"my.none\"\npath = \"{}\"\n",
        path("my 'rail' $x"),
        path("text"),
        path("none")
    );
    std::fs::write(path("counters.toml"), toml).unwrap();
    let custom = qnnscope::probes::load_custom(std::path::Path::new(&path("counters.toml"))).unwrap();
    let found = block_on(discover(&device(&["mksh"]), Root::None, &custom)).unwrap();
    assert_eq!(counter(&found, "my.rail").cadence, Cadence::Fast);
    assert_eq!(reason(&found, "my.text").0, Gap::NotANumber);
    assert_eq!(reason(&found, "my.none").0, Gap::Absent);
}
