//! How runs differ apart from what is compared.

use super::*;

#[test]
fn settings_that_differ_are_named() {
    let setting =
        |key: &str, value: &str, applied| SideSetting { key: key.to_owned(), value: value.to_owned(), applied };
    let base = side(Backend::Htp, &latencies(1, 100, 1000.0, 0.0));
    let mut other = base.clone();
    other.settings = vec![
        setting("--perf-profile", "burst", true),
        setting("htp_config.O", "3", true),
        setting("--vtcm-mb", "8", false),
    ];
    other.latency = side(Backend::Htp, &latencies(2, 100, 1000.0, 0.0)).latency;
    other.driver = Driver::NetRun;
    other.clean_level = ProfilingLevel::Basic;
    other.build_id = Some("v2.51".to_owned());
    let found = mismatches(&[base.clone(), other.clone()], 0);
    let ids: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, ["driver", "profiling", "sdk_build", "setting.optimization_level", "setting.perf_profile"]);
    assert!(found[4].text.contains("burst in 2, not set in 1"), "{}", found[4].text);
    // The same setting under another key is the same; another backend has other settings.
    let mut same = base.clone();
    same.settings = vec![setting("htp_config.performance_mode", "burst", true)];
    let mut flag = base.clone();
    flag.latency.clone_from(&other.latency);
    flag.settings = vec![setting("--perf-profile", "burst", true)];
    assert_eq!(mismatches(&[same, flag], 0), []);
    let latency = side(Backend::Htp, &latencies(3, 100, 1000.0, 0.0)).latency;
    let pinned = |pin: &str| Side {
        settings: vec![setting("--pin", pin, true)],
        latency: if pin == "free" { other.latency.clone() } else { latency.clone() },
        ..base.clone()
    };
    assert_eq!(mismatches(&[base.clone(), pinned("spread")], 0), [], "there was nothing to spread");
    assert_eq!(mismatches(&[pinned("free"), pinned("spread")], 0)[0].id, "setting.pin");
    assert_eq!(mismatches(&[base.clone(), pinned("0")], 0)[0].id, "setting.pin");
    other = Side { backend: Backend::Cpu, driver: Driver::Runner, clean_level: ProfilingLevel::Off, ..other };
    other.build_id.clone_from(&base.build_id);
    assert_eq!(mismatches(&[base, other], 0), []);
}

#[test]
fn warm_up_data_and_runs_that_are_there_twice_are_named() {
    let base = side(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0));
    let mut other = side(Backend::Cpu, &latencies(2, 100, 1000.0, 0.0));
    other.warmup = 1;
    other.seed = Some(9);
    let found = mismatches(&[base.clone(), other.clone(), base.clone()], 0);
    let ids: Vec<(&str, usize)> = found.iter().map(|found| (found.id.as_str(), found.column)).collect();
    assert_eq!(ids, [("warmup", 1), ("inputs", 1), ("same_run", 2)]);
    assert!(found[0].text.contains("1 inference, 1 with 5 inferences"), "{}", found[0].text);
    assert!(found[2].text.contains("3 is the same run as 1"), "{}", found[2].text);
    // Random data of another model necessarily differs; the inputs of a run without figures do not matter.
    other.model_sha256 = Some("b".repeat(64));
    other.warmup = base.warmup;
    let found = mismatches(&[base.clone(), other.clone()], 0);
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["model"]);
    other = Side { latency: None, warmup: 0, seed: None, model_sha256: base.model_sha256.clone(), ..other };
    assert_eq!(mismatches(&[base, other], 0), []);
}

#[test]
fn inputs_must_have_been_the_same() {
    let base = side(Backend::Cpu, &latencies(1, 100, 1000.0, 0.0));
    assert_eq!(same_inputs(&base, &base), Ok(None));
    let with = |change: &dyn Fn(&mut Side)| {
        let mut other = base.clone();
        change(&mut other);
        other
    };
    let from = |source: &str, sha256: Option<&str>| {
        with(&|side| {
            source.clone_into(&mut side.inputs[0].source);
            side.inputs[0].sha256 = sha256.map(ToOwned::to_owned);
        })
    };
    let reason = |other: &Side| same_inputs(&base, other).unwrap_err();
    assert!(reason(&with(&|side| side.seed = Some(2))).contains("seeds"));
    assert!(reason(&with(&|side| side.inputs[0].bytes = 1)).contains("--input"));
    assert!(reason(&with(&|side| side.inputs.clear())).contains("unknown"));
    assert!(reason(&from("a.raw", None)).contains("in the other"));
    assert_eq!(same_inputs(&from("a.raw", Some("1")), &from("b.raw", Some("1"))), Ok(None));
    assert!(same_inputs(&from("a.raw", Some("1")), &from("a.raw", Some("2"))).is_err());
    assert!(same_inputs(&from("a.raw", None), &from("b.raw", None)).is_err());
    assert!(same_inputs(&from("a.raw", None), &from("a.raw", None)).unwrap().is_some());
}
