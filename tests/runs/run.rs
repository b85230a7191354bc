//! Runs of real models on the real libraries, seen through the result document.

#![cfg(target_os = "linux")]

use crate::support::{
    Qnnscope, context_binary, demo_float, demo_int8, f32_bytes, max_difference, npy, number, read_f32, repo,
    result_file, runtime_247, runtime_251,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const REFERENCE_INPUT: &str = "demo/reference/input-1x64x64x3-f32.raw";
const REFERENCE_OUTPUT: &str = "demo/reference/output-1x10-f32.raw";
const OPS: usize = 59;

/// The demo model on cpu and htp, 20 inferences: many tests examine this one document.
static BOTH: LazyLock<Value> = LazyLock::new(|| {
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_int8(), "--backend cpu,htp -n 20 --warmup 3 --profiling-iterations 5")
        .expect(0)
        .leaves_nothing_behind();
    assert!(!done.stderr.contains('{'), "JSON on stderr: {}", done.stderr);
    assert!(done.stdout.ends_with(b"}\n"), "stdout ends with the document");
    // The tests' data folder is the working directory, and every run is kept there.
    let left: Vec<_> = std::fs::read_dir(done.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["sessions"], "no other files in the working directory");
    done.json()
});

static HTP_251: LazyLock<Value> = LazyLock::new(|| {
    Qnnscope::on(&runtime_251())
        .run_json(&demo_int8(), "--backend htp -n 20 --warmup 3 --profiling-iterations 5")
        .expect(0)
        .leaves_nothing_behind()
        .json()
});

fn runs() -> [(&'static str, &'static Value); 3] {
    [("cpu", &BOTH["runs"][0]), ("htp", &BOTH["runs"][1]), ("htp", &HTP_251["runs"][0])]
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn rows(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// A row of an array of objects, selected by one of its keys.
#[track_caller]
fn row<'a>(value: &'a Value, key: &str, wanted: &str) -> &'a Value {
    rows(value).iter().find(|row| row[key] == wanted).unwrap_or_else(|| panic!("no {key} {wanted} in {value}"))
}

/// Writes bytes under a name without an extension.
fn file(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_run_tells_what_it_was() {
    assert_eq!(BOTH["schema"], "qnnscope.result/1");
    assert_eq!(BOTH["tool"]["name"], "qnnscope");
    assert_eq!(BOTH["seed"], 1);
    assert_eq!(rows(&BOTH["runs"]).len(), 2);
    let model = &BOTH["model"];
    assert_eq!((model["format"].as_str(), model["op_count"].as_u64()), (Some("dlc"), Some(OPS as u64)));
    assert_eq!(model["bytes"].as_u64().unwrap(), std::fs::metadata(demo_int8()).unwrap().len());
    assert_eq!((model["graph"].as_str(), &model["graphs"]), (Some("qnnscope_demo"), &json!(["qnnscope_demo"])));
    assert_eq!((&model["inputs"][0]["name"], &model["inputs"][0]["shape"]), (&json!("image"), &json!([1, 64, 64, 3])));
    assert_eq!(model["outputs"][0]["dtype"], "ufixed8");
    for (backend, run) in runs() {
        assert_eq!((run["backend"].as_str(), run["status"].as_str()), (Some(backend), Some("ok")));
        assert_eq!(run["simulated"], backend == "htp" && cfg!(target_arch = "x86_64"));
        assert_eq!((&run["stopped_early"], &run["error"]), (&json!(false), &Value::Null));
        assert!(run["runtime"]["build_id"].as_str().unwrap().starts_with("v2."));
        assert_eq!(run["inputs"][0]["source"], "random");
        assert_eq!(run["inputs"][0]["bytes"], 64 * 64 * 3);
        assert_eq!(run["device"]["id"], "local");
    }
    assert_eq!(BOTH["runs"][0]["runtime"]["core_api"], "2.36.0");
    assert_eq!(HTP_251["runs"][0]["runtime"]["core_api"], "2.40.0");
}

#[test]
fn every_stage_has_its_time() {
    const STAGES: [&str; 8] = [
        "backend_create",
        "compose",
        "context_create",
        "device_create",
        "finalize",
        "first_inference",
        "library_load",
        "teardown",
    ];
    for (backend, run) in runs() {
        assert_eq!(keys(&run["stages_us"]), STAGES, "{backend}");
        assert_eq!(keys(&run["stage_rss_delta_bytes"]), STAGES, "{backend}");
        assert!(run["stages_us"].as_object().unwrap().values().all(|time| number(time) > 0.0));
        let first = number(&run["first_inference_us"]);
        assert!(first > 0.0 && first <= number(&run["stages_us"]["first_inference"]), "{first}");
    }
}

#[test]
fn sub_stages_come_from_the_backend_and_its_console() {
    let mut seen: Vec<&str> = Vec::new();
    for sub in rows(&BOTH["runs"][0]["sub_stages"]) {
        assert_eq!(sub["stage"], "finalize");
        assert!(!seen.contains(&sub["name"].as_str().unwrap()), "twice in {}", BOTH["runs"][0]["sub_stages"]);
        seen.push(sub["name"].as_str().unwrap());
    }
    let htp = &BOTH["runs"][1]["sub_stages"];
    for name in ["DDR spill", "DDR fill", "DDR write total", "DDR read total"] {
        assert_eq!(row(htp, "name", name)["unit"], "bytes");
    }
    for run in [&BOTH["runs"][1], &HTP_251["runs"][0]] {
        let timed: Vec<&Value> = rows(&run["sub_stages"]).iter().filter(|sub| sub["unit"] == "us").collect();
        assert!(timed.len() >= 5 && timed.iter().all(|sub| sub["stage"] == "finalize"), "{timed:?}");
        assert!(timed.iter().any(|sub| sub["name"] == "VTCM Allocation"), "{timed:?}");
        let finalize = number(&run["stages_us"]["finalize"]);
        assert!(timed.iter().all(|sub| number(&sub["value"]) <= finalize), "parts fit into the whole");
    }
}

#[test]
fn latencies_are_ordered_and_percentiles_need_samples() {
    for (_, run) in runs() {
        let latency = &run["latency_us"];
        assert_eq!(
            (&latency["iterations"], &latency["samples"], &latency["warmup"]),
            (&json!(20), &json!(20), &json!(3))
        );
        let ordered: Vec<f64> = ["min", "p50", "p90", "p95", "max"].iter().map(|key| number(&latency[*key])).collect();
        assert!(ordered.is_sorted() && ordered[0] > 0.0, "{latency}");
        // Twenty samples do not support a 99th percentile.
        assert_eq!((&latency["p99"], &latency["p999"]), (&Value::Null, &Value::Null));
        let (mean, min, max) = (number(&latency["mean"]), ordered[0], ordered[4]);
        assert!(min <= mean && mean <= max && number(&latency["stddev"]) < max - min + 1e-9, "{latency}");
        assert!(number(&latency["warmup_mean"]) > 0.0);
        assert_eq!(keys(&latency["ci95"]), ["p50", "p90", "p95", "p99", "p999"]);
        for (name, interval) in latency["ci95"].as_object().unwrap() {
            let [low, high] = rows(interval).as_slice() else { panic!("{name}: {interval}") };
            let points = [low, &latency[name], high];
            let known: Vec<f64> = points.iter().filter_map(|point| point.as_f64()).collect();
            assert!(known.is_sorted(), "{name}: {points:?}");
            assert!(known.iter().all(|value| (min..=max).contains(value)), "{name}: {points:?}");
        }
        assert!(latency["ci95"]["p50"][0].is_number() && latency["ci95"]["p50"][1].is_number());
        assert!(latency["ci95"]["p95"][1].is_null(), "20 samples bound no 95th percentile from above");
        // Throughput counts the gaps between inferences too.
        let throughput = number(&run["throughput_ips"]);
        assert!(throughput > 0.0 && throughput <= 1e6 / mean * 1.001, "{throughput} {mean}");
    }
}

#[test]
fn a_percentile_appears_with_enough_samples() {
    let float =
        Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 100 --warmup 0 --profiling off").expect(0).first_run();
    let latency = &float["latency_us"];
    assert!(latency["p99"].is_number() && latency["p999"].is_null(), "{latency}");
    assert!(number(&latency["p99"]) <= number(&latency["max"]));
    assert_eq!((&latency["warmup"], &latency["warmup_mean"]), (&json!(0), &Value::Null));
    assert!(latency["ci95"]["p90"].as_array().unwrap().iter().all(Value::is_number));
}

#[test]
fn every_op_has_a_row_and_its_share() {
    for (backend, run) in runs() {
        let ops = rows(&run["ops"]);
        let (graph, extra) = ops.split_at(OPS);
        assert!(graph.iter().all(|op| op["type"].is_string() && op["macs"].is_u64()));
        assert_eq!(graph.iter().filter(|op| op["type"] == "Conv2d").count(), 20);
        assert!(ops.iter().enumerate().all(|(at, op)| op["index"] == at));
        let macs: u64 = graph.iter().map(|op| op["macs"].as_u64().unwrap()).sum();
        assert_eq!(BOTH["model"]["macs"], macs);
        let shares: f64 = ops.iter().map(|op| number(&op["share"])).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{backend}: {shares}");
        assert_eq!(run["profiling"]["iterations"], 5);
        assert_eq!(run["profiling"]["mismatched_iterations"], 0);
        assert!(number(&run["profiling"]["overhead_factor"]) > 0.1);
        let mean = number(&run["latency_us"]["mean"]);
        let scaled: f64 = ops.iter().filter_map(|op| op["scaled_us"].as_f64()).sum();
        assert!((scaled - mean).abs() < mean * 1e-6, "{scaled} {mean}");
        for op in ops.iter().filter(|op| op["time_us"].is_object()) {
            let time = &op["time_us"];
            assert!(number(&time["p50"]) <= number(&time["max"]) && number(&time["mean"]) <= number(&time["max"]));
            assert_eq!((&time["p95"], &time["p99"]), (&Value::Null, &Value::Null), "five samples");
        }
        if backend == "cpu" {
            assert!(extra.is_empty() && ops.iter().all(|op| op["cycles"].is_null() && op["time_derived"] == false));
            // The backend merges activations into the op before them; a time that was not reported is absent,
            // not zero.
            let silent: Vec<&Value> = ops.iter().filter(|op| op["time_us"].is_null()).collect();
            assert!(silent.iter().all(|op| op["type"] == "ElementWiseNeuron" && op["share"] == 0.0), "{silent:?}");
        } else {
            let names: Vec<&str> = extra.iter().map(|op| op["name"].as_str().unwrap()).collect();
            assert!(names.len() == 2 && names[0].starts_with("Input") && names[1].starts_with("Output"), "{names:?}");
            assert!(extra.iter().all(|op| op["type"].is_null() && op["macs"].is_null() && op["cycles"].is_object()));
            let joined: Vec<&Value> = graph.iter().filter(|op| op["cycles"].is_object()).collect();
            assert!(joined.len() > OPS / 2, "only {} ops have cycles", joined.len());
            assert!(joined.iter().all(|op| op["time_us"].is_object() && op["time_derived"] == true));
            assert!(joined.iter().any(|op| number(&op["cycles"]["mean"]) > 0.0));
        }
    }
}

#[test]
fn derived_times_add_up_to_the_accelerator_time() {
    for run in [&BOTH["runs"][1], &HTP_251["runs"][0]] {
        let metric = row(&run["backend_metrics"], "name", "Accelerator (execute) time");
        assert_eq!((&metric["unit"], &metric["samples"]), (&json!("us"), &json!(5)));
        assert!(number(&metric["min"]) <= number(&metric["mean"]) && number(&metric["mean"]) <= number(&metric["max"]));
        let sum: f64 = rows(&run["ops"]).iter().filter_map(|op| op["time_us"]["mean"].as_f64()).sum();
        assert!((sum - number(&metric["mean"])).abs() < 1e-3 * sum, "{sum} {metric}");
    }
    row(&BOTH["runs"][0]["backend_metrics"], "name", "GRAPH_EXECUTE");
}

#[test]
fn memory_figures_are_ordered() {
    for (backend, run) in runs() {
        let memory = &run["memory_bytes"];
        let [before, loaded, peak] = ["rss_before", "rss_loaded", "rss_peak"].map(|key| number(&memory[key]));
        assert!(0.0 < before && before < loaded && loaded <= peak, "{backend}: {memory}");
        assert!((number(&memory["rss_delta"]) - (loaded - before)).abs() < 1.0, "{memory}");
        assert!(number(&memory["pss_loaded"]) <= loaded, "{memory}");
        assert!(memory["growth_per_inference"].is_number());
        assert!(number(&run["cpu_utilization_percent"]) > 0.0);
    }
}

#[test]
fn host_counters_are_declared_and_sampled() {
    let counters = &BOTH["host_counters"];
    for id in
        ["host.cpu.busy", "host.cpu.busiest", "host.cpu.freq", "host.load.1m", "host.memory.used", "host.temp.max"]
    {
        let counter = row(counters, "id", id);
        if counter["unavailable"].is_null() {
            assert!(counter["samples"].as_u64().unwrap() > 0, "{counter}");
            let [min, mean, max] = ["min", "mean", "max"].map(|key| number(&counter[key]));
            assert!(min <= mean * 1.000_001 && mean <= max * 1.000_001, "{counter}");
        } else {
            assert_eq!((&counter["samples"], &counter["mean"]), (&json!(0), &Value::Null));
        }
    }
    assert!(number(&row(counters, "id", "host.memory.used")["min"]) > 1e6);
}

#[test]
fn the_newer_runtime_has_no_cpu_backend() {
    let done = Qnnscope::on(&runtime_251()).run_json(&demo_int8(), "-n 5").expect(3).leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["status"], &run["error"]["stage"]), (&json!("failed"), &json!("library_load")));
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.contains("no cpu backend") && message.contains("libQnnCpu.so"), "{message}");
    assert!(run["error"]["hint"].as_str().unwrap().contains("qnnscope runtime"), "{run}");
    assert!(done.stderr.contains("no cpu backend") && done.stderr.contains("next: "), "{}", done.stderr);
    assert_eq!((&run["latency_us"], &run["ops"]), (&Value::Null, &json!([])));
}

#[test]
fn one_backend_that_fails_does_not_take_the_others_along() {
    let done = Qnnscope::on(&runtime_251())
        .run_json(&demo_int8(), "--backend cpu,htp -n 5 --profiling off")
        .expect(3)
        .leaves_nothing_behind();
    let document = done.json();
    assert_eq!((&document["runs"][0]["status"], &document["runs"][1]["status"]), (&json!("failed"), &json!("ok")));
    // Whichever run reached the model reports it.
    assert_eq!(document["model"]["op_count"], OPS);
}

#[test]
fn the_gpu_backend_says_why_it_does_not_run_here() {
    let run = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "--backend gpu -n 5").expect(1).first_run();
    let error = &run["error"];
    assert_eq!((&error["stage"], &error["call"]), (&json!("backend_create"), &json!("backendCreate")));
    assert_eq!((&error["code"], &error["symbol"]), (&json!(4000), &json!("QNN_BACKEND_ERROR_CANNOT_INITIALIZE")));
    assert!(error["log_tail"][0].as_str().unwrap().contains("GPU"), "the backend's own words: {error}");
    assert!(error["hint"].as_str().unwrap().contains("Adreno"));
}

#[test]
fn context_binaries_run_whatever_their_name() {
    let dir = tempfile::tempdir().unwrap();
    for (runtime, version) in [(runtime_247(), "2.3.0"), (runtime_251(), "2.7.0")] {
        let path = file(dir.path(), version, &context_binary(version, "htp", &demo_int8(), None));
        let document = Qnnscope::on(&runtime)
            .run_json(&path, "--backend htp -n 5 --profiling-iterations 5 --vtcm-mb 4")
            .expect(0)
            .json();
        let (model, run) = (&document["model"], &document["runs"][0]);
        assert_eq!((&model["format"], &model["op_count"]), (&json!("context_binary"), &Value::Null));
        assert_eq!(model["context_binary"]["backend_id"], 6);
        assert_eq!(model["inputs"][0]["name"], "image");
        assert!(number(&run["stages_us"]["context_create"]) > 0.0);
        assert_eq!((&run["stages_us"]["compose"], &run["stages_us"]["finalize"]), (&Value::Null, &Value::Null));
        // What the binary does not contain, profiling reports.
        assert!(rows(&run["ops"]).len() >= OPS, "{}", run["ops"]);
        let setting = row(&run["settings"], "key", "--vtcm-mb");
        assert_eq!(setting["outcome"], "no_effect", "{setting}");
    }
    let path = file(dir.path(), "cpu", &context_binary("2.3.0", "cpu", &demo_float(), None));
    let run = Qnnscope::on(&runtime_247()).run_json(&path, "-n 5 --profiling-iterations 5").expect(0).first_run();
    assert_eq!((&run["status"], &run["latency_us"]["samples"]), (&json!("ok"), &json!(5)));
}

#[test]
fn a_context_binary_gives_the_same_answer_as_its_dlc() {
    let dir = tempfile::tempdir().unwrap();
    let binary = file(dir.path(), "model", &context_binary("2.3.0", "htp", &demo_int8(), None));
    let [from_dlc, from_binary] =
        [demo_int8(), binary].map(|model| outputs_of(&model, "--backend htp", &[("image", repo(REFERENCE_INPUT))]));
    assert_eq!(from_dlc, from_binary);
}

#[test]
fn context_binaries_for_others_are_refused_with_the_code() {
    let dir = tempfile::tempdir().unwrap();
    let newer = file(dir.path(), "newer", &context_binary("2.7.0", "htp", &demo_int8(), None));
    let run = Qnnscope::on(&runtime_247()).run_json(&newer, "--backend htp -n 5").expect(1).first_run();
    let error = &run["error"];
    assert_eq!((&error["code"], &error["stage"]), (&json!(5000), &json!("context_create")), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("make the context binary again"));

    let run = Qnnscope::on(&runtime_247())
        .run_json(&file(dir.path(), "htp", &context_binary("2.3.0", "htp", &demo_int8(), None)), "-n 5")
        .expect(1)
        .first_run();
    assert_eq!(run["error"]["code"], 5005, "{}", run["error"]);

    // The older one still runs on the newer runtime.
    let older = dir.path().join("htp");
    Qnnscope::on(&runtime_251()).run_json(&older, "--backend htp -n 5 --profiling off").expect(0);
}

#[test]
fn a_context_binary_tells_its_chip() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "chip", &context_binary("2.3.0", "htp", &demo_int8(), Some(57)));
    let done = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(&path).finish().expect(0);
    let document = done.json();
    let binary = &document["context_binary"];
    assert_eq!((&binary["hexagon_arch"], &binary["soc_model"]), (&json!(75), &json!(57)));
    assert!(binary["graphs"][0]["vtcm_bytes"].as_u64().unwrap() > 0, "{binary}");
    assert_eq!((&document["graphs"][0]["op_count"], &document["graphs"][0]["ops"]), (&Value::Null, &json!([])));
    assert_eq!(document["graphs"][0]["outputs"][0]["name"], "probabilities");
    let text = Qnnscope::on(&runtime_247()).arg("inspect").arg(&path).finish().expect(0).text();
    assert!(text.contains("v75") && text.contains("SoC model 57"), "{text}");
}

/// Runs a model with these inputs and returns `Result_0/probabilities.raw`.
fn outputs_of(model: &Path, flags: &str, inputs: &[(&str, PathBuf)]) -> Vec<f32> {
    let dir = tempfile::tempdir().unwrap();
    let mut call =
        Qnnscope::on(&runtime_247()).arg("run").arg(model).arg("--json").arg("--save-outputs").arg(dir.path());
    for (name, path) in inputs {
        call = call.arg("--input").arg(format!("{name}={}", path.display()));
    }
    let run = call.flags("-n 1 --warmup 0 --profiling off").flags(flags).finish().expect(0).first_run();
    let raw = result_file(dir.path(), 0, "probabilities.raw");
    assert_eq!(run["outputs"], json!([raw, raw.with_extension("npy")]));
    let values = read_f32(&raw);
    let written = std::fs::read(raw.with_extension("npy")).unwrap();
    assert!(written.starts_with(b"\x93NUMPY") && written.ends_with(&std::fs::read(&raw).unwrap()), ".npy equals .raw");
    let header = String::from_utf8_lossy(&written[..written.len() - 40]).into_owned();
    assert!(header.contains("'<f4'") && header.contains("(1, 10"), "{header}");
    values
}

#[test]
fn the_answers_are_those_of_the_reference() {
    let reference = read_f32(&repo(REFERENCE_OUTPUT));
    let input = [("image", repo(REFERENCE_INPUT))];
    assert!(max_difference(&outputs_of(&demo_float(), "--backend cpu", &input), &reference) < 1e-5);
    assert!(max_difference(&outputs_of(&demo_int8(), "--backend cpu", &input), &reference) < 0.06);
    assert!(max_difference(&outputs_of(&demo_int8(), "--backend htp", &input), &reference) < 0.06);
    let half = outputs_of(&demo_float(), "--backend htp --soc-model 57 --precision float16", &input);
    assert!(max_difference(&half, &reference) < 0.01, "{half:?}");
}

#[test]
fn inputs_come_as_raw_float_npy_or_native() {
    let dir = tempfile::tempdir().unwrap();
    let raw = repo(REFERENCE_INPUT);
    let expected = outputs_of(&demo_int8(), "", &[("image", raw.clone())]);
    let bytes = std::fs::read(&raw).unwrap();
    let as_npy = file(dir.path(), "picture", &npy("<f4", "(1, 64, 64, 3)", &bytes));
    assert_eq!(outputs_of(&demo_int8(), "", &[("image", as_npy)]), expected);
    let doubles: Vec<u8> = read_f32(&raw).iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    let as_double = file(dir.path(), "double", &npy("<f8", "(1, 64, 64, 3)", &doubles));
    assert_eq!(outputs_of(&demo_int8(), "", &[("image", as_double)]), expected);
    // The tensor's scale is 1/255 and its offset 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values between 0 and 255")]
    let native: Vec<u8> = read_f32(&raw).iter().map(|value| (value * 255.0).round() as u8).collect();
    let native = file(dir.path(), "native", &native);
    assert_eq!(outputs_of(&demo_int8(), "--native-input", &[("image", native)]), expected);
}

#[test]
fn an_input_list_gives_one_result_per_line() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = file(dir.path(), "zeros", &f32_bytes(&vec![0.0; 64 * 64 * 3]));
    let list = format!("# two pictures\nimage:={}\n{}\n", repo(REFERENCE_INPUT).display(), zeros.display());
    let list = file(dir.path(), "list", list.as_bytes());
    let out = dir.path().join("out");
    let done = Qnnscope::on(&runtime_247())
        .arg("run")
        .arg(demo_float())
        .args(["--json", "-n", "4", "--profiling", "off", "--input-list"])
        .arg(&list)
        .arg("--save-outputs")
        .arg(&out)
        .finish()
        .expect(0);
    assert_eq!(done.first_run()["outputs"].as_array().unwrap().len(), 4);
    let [first, second] = [0, 1].map(|index| read_f32(&result_file(&out, index, "probabilities.raw")));
    assert!(max_difference(&first, &read_f32(&repo(REFERENCE_OUTPUT))) < 1e-5);
    assert!(max_difference(&second, &outputs_of(&demo_float(), "", &[("image", zeros)])) < 1e-7);
    assert!(max_difference(&first, &second) > 1e-3, "the lines are different inputs");
    assert!(!out.join("Result_2").exists());
}

#[test]
fn the_seed_decides_about_random_inputs() {
    let [one, again, other] = ["--seed 7", "--seed 7", "--seed 8"].map(|seed| outputs_of(&demo_float(), seed, &[]));
    assert_eq!(one, again);
    assert!(max_difference(&one, &other) > 0.0);
}

#[test]
fn several_backends_save_into_folders_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new folder");
    let done = Qnnscope::on(&runtime_247())
        .arg("run")
        .arg(demo_int8())
        .args(["--json", "-n", "2", "--profiling", "off", "--backend", "cpu,htp", "--save-outputs"])
        .arg(&out)
        .finish()
        .expect(0);
    for (index, backend) in ["cpu", "htp"].into_iter().enumerate() {
        let path = result_file(&out.join(backend), 0, "probabilities.raw");
        assert_eq!(done.json()["runs"][index]["outputs"][0], json!(path));
        assert_eq!(read_f32(&path).len(), 10);
    }
}

#[test]
fn a_duration_bounds_the_time() {
    let run = Qnnscope::on(&runtime_247())
        .run_json(&demo_float(), "--duration 1 --profiling-iterations 2 --warmup 1")
        .expect(0)
        .first_run();
    let latency = &run["latency_us"];
    let seconds = number(&latency["samples"]) / number(&run["throughput_ips"]);
    let longest = number(&latency["max"]) / 1e6;
    assert!(seconds >= 0.999 && seconds < 1.5 + 2.0 * longest, "{seconds} s, longest {longest} s");
    assert_eq!(run["profiling"]["iterations"], 2);
}

#[test]
fn profiling_levels() {
    let off = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 5 --profiling off").expect(0).first_run();
    assert_eq!(off["profiling"]["level"], "off");
    assert_eq!((&off["profiling"]["iterations"], &off["profiling"]["overhead_factor"]), (&json!(0), &Value::Null));
    assert_eq!(off["backend_metrics"], json!([]));
    assert_eq!(rows(&off["ops"]).len(), OPS);
    assert!(rows(&off["ops"]).iter().all(|op| op["time_us"].is_null() && op["share"].is_null()));

    let basic = Qnnscope::on(&runtime_247())
        .run_json(&demo_int8(), "-n 5 --profiling basic --backend htp")
        .expect(0)
        .first_run();
    assert_eq!((&basic["profiling"]["level"], &basic["profiling"]["iterations"]), (&json!("basic"), &json!(0)));
    let metric = row(&basic["backend_metrics"], "name", "Accelerator (execute) time");
    assert_eq!(metric["samples"], 5, "totals of the latency phase");
    assert!(number(&metric["mean"]) <= number(&basic["latency_us"]["mean"]), "{metric}");
    assert!(rows(&basic["ops"]).iter().all(|op| op["time_us"].is_null()));
}

#[test]
fn every_setting_of_a_file_has_an_outcome_and_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({
        "htp_config": {
            "performance_mode": "burst", "precision_mode": "fp16", "vtcm_mb": 4, "enable_dma": true, "num_threads": 2,
            "device_id": 0, "O": 2, "dlbc": true, "priority": "high", "soc_model": 57, "htp_arch": "v75", "no_such_key": 1
        },
        "cpu_config": {"num_threads": 4, "vtcm_mb": 1},
    });
    let path = file(dir.path(), "config", config.to_string().as_bytes());
    let done = Qnnscope::on(&runtime_247())
        .arg("run")
        .arg(demo_int8())
        .args(["--json", "-n", "2", "--profiling", "off", "--backend", "cpu,htp", "--vtcm-mb", "2", "--config"])
        .arg(&path)
        .finish()
        .expect(0);
    let document = done.json();
    for (index, section, keys) in [(0, "cpu_config", 2), (1, "htp_config", 12)] {
        let settings = &document["runs"][index]["settings"];
        assert_eq!(rows(settings).len(), keys + 1, "each key once, and the flag: {settings}");
        for key in config[section].as_object().unwrap().keys() {
            row(settings, "key", &format!("{section}.{key}"));
        }
        for setting in rows(settings) {
            let reason = setting["reason"].as_str().unwrap_or_default();
            assert_eq!(setting["outcome"] == "applied", setting["reason"].is_null(), "{setting}");
            assert!(setting["outcome"] == "applied" || reason.len() > 10, "{setting}");
            assert!(setting["value"].is_string());
        }
    }
    let htp = &document["runs"][1]["settings"];
    assert_eq!(row(htp, "key", "htp_config.soc_model")["outcome"], "applied");
    assert!(row(htp, "key", "htp_config.vtcm_mb")["reason"].as_str().unwrap().contains("--vtcm-mb takes precedence"));
    assert_eq!(row(htp, "key", "--vtcm-mb")["outcome"], "applied");
    assert!(row(htp, "key", "htp_config.no_such_key")["reason"].as_str().unwrap().contains("not a setting"));
    assert_eq!(row(htp, "key", "htp_config.htp_arch")["outcome"], "no_effect");
}

#[test]
fn inspect_tells_the_ops() {
    for runtime in [runtime_247(), runtime_251()] {
        for model in [demo_float(), demo_int8()] {
            let done = Qnnscope::on(&runtime)
                .args(["inspect", "--json"])
                .arg(&model)
                .finish()
                .expect(0)
                .leaves_nothing_behind();
            assert_eq!(std::fs::read_dir(done.home()).unwrap().count(), 0, "no files in the working directory");
            let document = done.json();
            assert_eq!((&document["schema"], &document["format"]), (&json!("qnnscope.inspect/1"), &json!("dlc")));
            assert_eq!(document["sha256"].as_str().unwrap().len(), 64);
            let graph = &document["graphs"][0];
            assert_eq!((&graph["name"], &graph["op_count"]), (&json!("qnnscope_demo"), &json!(OPS)));
            assert_eq!(graph["macs"], 6_493_952);
            let ops = rows(&graph["ops"]);
            assert!(ops.iter().enumerate().all(|(at, op)| op["index"] == at && op["package"] == "qti.aisw"));
            let conv = &ops[0];
            assert_eq!((&conv["type"], &conv["inputs"][0]["name"]), (&json!("Conv2d"), &json!("image")));
            assert_eq!(conv["params"]["stride"]["values"], json!([2, 2]));
            assert_eq!(conv["inputs"][1]["shape"], json!([3, 3, 3, 16]));
            // Whatever an op reads is an input, a constant, or the output of an earlier op.
            let mut written: Vec<&str> = vec!["image"];
            for op in ops {
                for input in rows(&op["inputs"]).iter().filter(|input| input["kind"] != "static") {
                    assert!(
                        written.contains(&input["name"].as_str().unwrap()),
                        "{} reads {}",
                        op["name"],
                        input["name"]
                    );
                }
                written.extend(rows(&op["outputs"]).iter().map(|output| output["name"].as_str().unwrap()));
            }
            assert_eq!(graph["outputs"][0]["name"], *written.last().unwrap());
            let parameters: u64 = ops.iter().map(|op| op["parameter_bytes"].as_u64().unwrap()).sum();
            assert!(graph["parameter_bytes"].as_u64().unwrap() >= parameters && parameters > 80_000);
        }
    }
    let text = Qnnscope::on(&runtime_247()).arg("inspect").arg(demo_int8()).finish().expect(0).text();
    assert!(text.contains("59 ops") && text.contains("stem_conv_token_2"), "{text}");
}

#[test]
fn the_list_of_runtimes_tells_which_backends_load() {
    let document =
        Qnnscope::on(&runtime_247()).flags("runtime list --json").finish().expect(0).leaves_nothing_behind().json();
    assert_eq!(document["schema"], "qnnscope.runtimes/1");
    let runtime = &document["runtimes"][0];
    assert_eq!((&runtime["chosen"], &runtime["source"]), (&json!(true), &json!("option")));
    for (name, loads) in [("cpu", true), ("htp", true), ("system", true), ("gpu", false)] {
        let backend = row(&runtime["backends"], "name", name);
        assert_eq!(backend["loads"], loads, "{backend}");
        assert_eq!(backend["error"].is_null(), loads, "{backend}");
    }
    let none = Qnnscope::without_runtime().flags("runtime list --json").finish().expect(3);
    assert_eq!(none.json()["runtimes"], json!([]));
    assert!(none.stderr.contains("qnnscope runtime install"), "{}", none.stderr);
}

#[test]
fn without_json_stdout_is_a_report_for_people() {
    let done = Qnnscope::on(&runtime_247())
        .arg("run")
        .arg(demo_int8())
        .flags("--backend htp -n 5 --profiling-iterations 5")
        .finish()
        .expect(0);
    let text = done.text();
    for part in ["htp", "simulated", "p50", "block3_depthwise_relu6", "finalize"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_demo_needs_nothing_but_a_runtime() {
    let done = Qnnscope::on(&runtime_247()).flags("demo --json -n 2").finish().expect(0).leaves_nothing_behind();
    let document = done.json();
    let backends: Vec<&Value> = rows(&document["runs"]).iter().map(|run| &run["backend"]).collect();
    assert_eq!(backends, ["cpu", "htp"]);
    assert_eq!(document["model"]["sha256"], BOTH["model"]["sha256"], "the bundled model is the one of the repository");
}

#[test]
fn settings_are_in_what_the_compiler_makes() {
    let dir = tempfile::tempdir().unwrap();
    for (flags, arch, soc, vtcm_mib) in
        [("--soc-model 69", 79, 69, 4), ("--vtcm-mb 2", 68, 0, 2), ("--soc-model 57 --vtcm-mb 8", 75, 57, 8)]
    {
        let path = dir.path().join("made");
        let flags = format!("-b htp -n 1 --warmup 0 --profiling off --save-context {} {flags}", path.display());
        Qnnscope::on(&runtime_247()).run_json(&demo_int8(), &flags).expect(0);
        let said = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(&path).finish().expect(0).json();
        let binary = &said["context_binary"];
        assert_eq!(binary["hexagon_arch"], arch, "{flags}");
        assert_eq!(binary["soc_model"], soc, "{flags}");
        assert_eq!(binary["graphs"][0]["vtcm_bytes"], vtcm_mib << 20, "{flags}");
    }
}

#[test]
fn an_option_that_a_backend_lacks_is_told_and_the_model_runs() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.json");
    std::fs::write(&config, r#"{"cpu_config": {"priority": "high"}}"#).unwrap();
    let flags = format!("-n 3 --profiling off --config {}", config.display());
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), &flags).expect(0);
    let setting = &done.first_run()["settings"][0];
    assert_eq!((&setting["key"], &setting["outcome"]), (&json!("cpu_config.priority"), &json!("no_effect")));
    assert!(setting["reason"].as_str().unwrap().contains("1000"), "{setting}");
}
