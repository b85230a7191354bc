//! Counters of a device through the program: what is listed, what is sampled during a run, and what happens
//! with the battery.

use crate::support::device::Bench;
use crate::support::virtual_device::Snapshot;
use crate::support::{demo_int8, number};
use serde_json::Value;
use std::time::Duration;

fn listed(bench: &Bench, flags: &str) -> Value {
    let done = bench.on_device().arg("counters").arg("--json").flags(flags).finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    done.json()
}

fn find<'a>(rows: &'a Value, id: &str) -> Option<&'a Value> {
    rows.as_array().unwrap().iter().find(|row| row["id"] == id)
}

#[test]
fn what_cannot_be_read_says_why_and_root_reads_more() {
    let plain = Bench::new(Snapshot::Sm8650User);
    let document = listed(&plain, "");
    assert_eq!(document["schema"], "qnnscope.counters/1");
    assert!(find(&document["readable"], "cpu.freq.policy0").is_some());
    let battery = find(&document["unreadable"], "battery.current").unwrap();
    assert_eq!((&battery["reason"], &battery["needs_root"]), (&"refused".into(), &true.into()));
    let absent = find(&document["unreadable"], "bus.l3").unwrap();
    assert_eq!(absent["reason"], "absent");
    assert!(find(&document["readable"], "service.battery.level").is_some(), "dumpsys is the fall-back without root");
    let rooted = Bench::new(Snapshot::Sm8550Root);
    let document = listed(&rooted, "");
    let battery = find(&document["readable"], "battery.current").unwrap();
    assert_eq!((&battery["needs_root"], &battery["unit"]), (&true.into(), &"mA".into()));
}

#[test]
fn chosen_counters_are_timed_and_own_ones_join_them() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counters.toml");
    bench.device.write("/data/local/tmp/my value", "4200\n");
    std::fs::write(
        &file,
        "[[counter]]\nid = \"my.value\"\npath = \"/data/local/tmp/my value\"\nunit = \"V\"\nscale = 0.001\n",
    )
    .unwrap();
    let flags = format!("--counter-file {} --counters my.value,cpu.freq --sample 2 --rate 50", file.display());
    let document = listed(&bench, &flags);
    assert!(find(&document["readable"], "my.value").is_some(), "{document:#}");
    let sampling = &document["sampling"];
    assert!(
        number(&sampling["ticks"]) > 10.0 && number(&sampling["values"]) > number(&sampling["ticks"]),
        "{sampling:#}"
    );
    assert!(number(&sampling["seconds"]) >= 1.9, "the time asked for, not that less the start: {sampling:#}");
    std::fs::write(&file, "[[counter]]\nid = \"bad id\"\npath = \"/x\"\n").unwrap();
    let refused = bench.on_device().arg("counters").flags(&format!("--counter-file {}", file.display())).finish();
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("counters.toml") && refused.stderr.contains('1'), "{}", refused.stderr);
}

#[test]
fn counters_stand_beside_a_log_that_is_watched() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.log");
    std::fs::write(&log, "QnnDsp <E> Request feature arch with value 81 unsupported\n").unwrap();
    let mut running = bench.on_device().arg("diagnose").arg(&log).flags("--watch --json").start();
    running.until_printed("cpu.freq.policy0");
    running.signal(rustix::process::Signal::INT);
    let done = running.wait().expect(0);
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&done.text()).into_iter::<Value>().map(Result::unwrap).collect();
    let last = documents.last().unwrap();
    crate::support::schema::fits(&crate::support::schema::read("diagnosis.schema.json"), last);
    let freq = find(&last["counters"], "cpu.freq.policy0").unwrap();
    assert!(number(&freq["value"]) > 100.0 && freq["unit"] == "MHz", "{freq:#}");
    assert_eq!(last["causes"][0]["id"], "context-binary-arch-newer");
}

#[test]
fn counters_lie_beside_the_inferences_of_a_run() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.set_moving(true);
    let run = bench.run(&demo_int8(), "-b htp -n 60 --warmup 0 --profiling basic --counter-rate 50");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let document = run.done.json();
    let device = &document["device_counters"][0];
    assert_eq!(device["device"], bench.device.serial());
    let freq = find(&device["counters"], "cpu.freq.policy0").unwrap();
    assert!(number(&freq["samples"]) > 20.0 && number(&freq["mean"]) > 100.0, "{freq:#}");
    let rss = find(&device["counters"], "proc.rss").unwrap();
    assert!(number(&rss["samples"]) > 0.0, "the tool's process is watched: {rss:#}");
    assert!(device["clock_uncertainty_us"].as_u64().unwrap() < 1_000_000);
    // One time axis: the run's counters lie around its inferences.
    let times = |kind: &str, read: &dyn Fn(&Value) -> Vec<u64>| -> Vec<u64> {
        run.all(kind).into_iter().flat_map(read).collect()
    };
    let ticks = times("counters", &|sample| match sample.get("set") {
        Some(_) => vec![sample["t_us"].as_u64().unwrap()],
        None => Vec::new(),
    });
    let inferences = times("inferences", &|batch| {
        batch["start_us"].as_array().unwrap().iter().map(|us| us.as_u64().unwrap()).collect()
    });
    let (first, last) = (inferences.iter().min().unwrap(), inferences.iter().max().unwrap());
    let within = ticks.iter().filter(|tick| (first..=last).contains(tick)).count();
    assert!(within > 10, "{within} ticks between the first and the last inference");
}

#[test]
fn energy_is_told_where_the_battery_tells_it_and_not_on_the_charger() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let flags = "-b htp --duration 5s --warmup 0 --profiling basic";
    let run = bench.run(&demo_int8(), flags);
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let energy = run.result()["energy"].clone();
    assert_eq!(energy["scope"], "system");
    let (power, each) = (number(&energy["average_power_w"]), number(&energy["per_inference_mj"]));
    assert!(power > 0.0 && each > 0.0, "{energy:#}");
    let seconds = number(&run.result()["latency_us"]["mean"]) / 1e6;
    assert!(each >= power * seconds * 1000.0 * 0.9, "power times the time of an inference: {energy:#}");
    let charging = "  USB powered: true\n  status: 2\n  present: true\n  level: 80\n  scale: 100\n";
    bench.device.dumpsys("battery", charging);
    let run = bench.run(&demo_int8(), flags);
    let energy = run.result()["energy"].clone();
    assert!(energy["average_power_w"].is_null(), "{energy:#}");
    assert!(energy["unavailable"].as_str().unwrap().contains("the device is charging"), "{energy:#}");
    let confounds = run.result()["confounds"].to_string();
    assert!(confounds.contains("charging"), "{confounds}");
    let asked = bench.run(&demo_int8(), &format!("{flags} --energy-while-charging"));
    assert!(number(&asked.result()["energy"]["average_power_w"]) > 0.0);
}

#[test]
fn a_counter_that_vanishes_is_a_gap_with_its_reason() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), "-b htp --duration 6s --warmup 0 --profiling basic");
    recording.until("counters", |sample| sample.get("set").is_some());
    bench.device.refuse("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq");
    recording.until("counter_gap", |gap| gap["reason"] == "refused");
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
}

/// Number of readings of the device's counters after a session event.
fn readings_after(run: &crate::support::device::Recorded, at: impl Fn(&Value) -> bool) -> usize {
    let from = run.events.iter().position(at).expect("the event is there");
    run.events[from..].iter().filter(|event| event["counters"].get("set").is_some()).count()
}

#[test]
fn a_counter_file_that_hangs_is_given_up_and_the_others_go_on() {
    const HANGS: &str = "/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq";
    let bench = Bench::new(Snapshot::Sm8650User);
    // Each round of the tool announces its process to the sampler; that does not prove that the sampler is
    // still running.
    let recording = bench.start(&demo_int8(), "-b htp --duration 20s --warmup 0 --profiling basic");
    recording.until("counters", |sample| sample.get("set").is_some());
    bench.device.slow_down(HANGS, Duration::from_secs(3600), "1000000\n");
    let given_up = |set: &Value| {
        let of = set["counters"].as_array().into_iter().flatten();
        of.clone().any(|info| info["id"] == "cpu.freq.policy0" && info["unavailable"] == "does not answer")
    };
    recording.until("counter_set_declared", given_up);
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert!(run.logged(HANGS), "the file is named: {:#?}", run.log());
    let after = readings_after(&run, |event| given_up(&event["counter_set_declared"]));
    assert!(after > 40, "{after} readings after the file was given up");
    let device = &run.done.json()["device_counters"][0];
    let gap = &device["gaps"][0];
    assert!(gap["reason"].as_str().unwrap().contains(HANGS), "{device:#}");
    let seconds = number(&gap["seconds"]);
    assert!((2.0..15.0).contains(&seconds) && gap["lasts"] == false, "{gap:#}");
    assert!(number(&device["mean_rate_hz"]) < 20.0, "{device:#}");
    let shells =
        "for p in /proc/[0-9]*; do grep -aq schedstat $p/cmdline 2>/dev/null && [ $p != /proc/$$ ] && echo $p; done";
    assert_eq!(bench.shell(shells), "", "no shell is left in the file");
}

#[test]
fn sampling_goes_on_after_a_lost_link_and_the_gap_is_told() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), "-b cpu --duration 12s --warmup 0 --profiling basic");
    recording.until("inferences", |batch| batch["phase"] == "clean");
    bench.device.drop_link();
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let ended = |event: &Value| event["sampler_ended"]["resumes"] == true;
    assert!(readings_after(&run, ended) > 40);
    let device = &run.done.json()["device_counters"][0];
    let gap = &device["gaps"][0];
    assert!(gap["reason"].as_str().unwrap().contains(&bench.device.serial()) && gap["lasts"] == false, "{gap:#}");
}

#[test]
fn this_machine_is_sampled_as_a_device_where_that_is_asked_for() {
    let run = crate::support::Qnnscope::on(&crate::support::runtime_247());
    let done = run.run_json(&demo_int8(), "-b htp -n 20 --counters memory.available,cpu.busy").expect(0);
    let document = done.json();
    let device = &document["device_counters"][0];
    assert_eq!(device["device"], "local");
    let memory = find(&device["counters"], "memory.available").unwrap();
    assert!(number(&memory["mean"]) > 0.0, "{memory:#}");
}
