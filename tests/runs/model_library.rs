//! Model libraries: our own, built on the spot with the system's C compiler, for different SDK generations.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::{
    Done, Qnnscope, f32_bytes, max_difference, model_library, number, read_f32, result_file, runtime_247, runtime_251,
};
use serde_json::{Value, json};
use std::path::Path;

const SOURCE: &str = "small_graph.c";
const X: [f32; 4] = [1.0, -2.0, 0.5, 3.0];

/// relu(W x + b + c) with the numbers of small_graph.c; every step is exact in float32.
fn first(x: [f32; 4]) -> [f32; 3] {
    const W: [[f32; 4]; 3] = [[1.0, 2.0, 3.0, 4.0], [-1.0, 0.5, -2.0, 0.25], [8.0, -4.0, 2.0, -1.0]];
    const B: [f32; 3] = [0.5, 1.0, -2.0];
    const C: [f32; 3] = [10.0, 0.0, -1.0];
    std::array::from_fn(|i| (W[i].iter().zip(x).map(|(w, x)| w * x).sum::<f32>() + B[i] + C[i]).max(0.0))
}

/// Runs the library on `X` and saves the outputs into the call's folder under `out`.
fn run(runtime: &Path, library: &Path, flags: &str) -> Done {
    let call = Qnnscope::on(runtime);
    let input = call.home().join("x.raw");
    std::fs::write(&input, f32_bytes(&X)).unwrap();
    call.arg("run")
        .arg(library)
        .args(["--json", "--save-outputs", "out", "-n", "5", "--profiling-iterations", "5", "--input"])
        .arg(format!("x={}", input.display()))
        .flags(flags)
        .finish()
}

fn saved(done: &Done, name: &str) -> Vec<f32> {
    read_f32(&result_file(&done.home().join("out"), 0, name))
}

#[test]
fn every_size_of_the_function_table_works() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(first(X), [21.0, 0.0, 11.0], "worked out by hand");
    for slots in ["SLOTS=44", "SLOTS=62", "SLOTS=72", "SLOTS=100"] {
        let library = model_library(dir.path(), SOURCE, &[slots]);
        let done = run(&runtime_247(), &library, "").expect(0).leaves_nothing_behind();
        assert_eq!(saved(&done, "y.raw"), first(X), "{slots}");
        let document = done.json();
        let (model, run) = (&document["model"], &document["runs"][0]);
        assert_eq!((&model["format"], &model["op_count"]), (&json!("model_library"), &json!(3)), "{slots}");
        // A table of another size must not turn debug on, which would make every tensor an output.
        assert_eq!(model["outputs"].as_array().unwrap().len(), 1, "{slots}: {}", model["outputs"]);
        assert_eq!((&model["macs"], &model["parameter_bytes"]), (&json!(12), &json!((12 + 3 + 3) * 4)));
        let names: Vec<&str> = run["ops"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["matrix", "shift", "clamp"]);
        assert!(run["ops"][0]["time_us"].is_object(), "{}", run["ops"]);
        assert!(number(&run["stages_us"]["compose"]) > 0.0 && number(&run["stages_us"]["finalize"]) > 0.0);
    }
}

#[test]
fn htp_computes_float_libraries_in_half_precision() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &[]);
    for runtime in [runtime_247(), runtime_251()] {
        let done = run(&runtime, &library, "--backend htp --soc-model 57 --precision float16").expect(0);
        assert!(max_difference(&saved(&done, "y.raw"), &first(X)) < 0.05, "{:?}", saved(&done, "y.raw"));
        let run = done.first_run();
        assert!(run["settings"].as_array().unwrap().iter().all(|setting| setting["outcome"] == "applied"), "{run}");
    }
}

#[test]
fn two_graphs_are_listed_and_chosen_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["GRAPHS=2"]);
    let names = |document: &Value| {
        let mut names: Vec<String> = serde_json::from_value(document["model"]["graphs"].clone()).unwrap();
        names.sort();
        names
    };
    let done = run(&runtime_247(), &library, "").expect(0);
    assert_eq!(
        (names(&done.json()), &done.json()["model"]["graph"]),
        (vec!["first".into(), "second".into()], &json!("first"))
    );
    assert_eq!(saved(&done, "y.raw"), first(X));
    assert!(done.stderr.contains("2 graphs") && done.stderr.contains("--graph"), "{}", done.stderr);

    let done = run(&runtime_247(), &library, "--graph second").expect(0);
    assert_eq!(
        (names(&done.json()), &done.json()["model"]["graph"]),
        (vec!["first".into(), "second".into()], &json!("second"))
    );
    assert_eq!(saved(&done, "z.raw"), X.map(|x| x + x));
    assert_eq!((&done.json()["model"]["op_count"], &done.first_run()["ops"][0]["name"]), (&json!(1), &json!("double")));

    let done = run(&runtime_247(), &library, "--graph third").expect(2).leaves_nothing_behind();
    let message = done.first_run()["error"]["message"].as_str().unwrap().to_owned();
    assert!(["third", "first", "second"].iter().all(|name| message.contains(&format!("`{name}`"))), "{message}");
}

#[test]
fn the_graphs_stay_in_the_model_s_order() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["GRAPHS=2"]);
    for flags in ["", "--graph second"] {
        let done = run(&runtime_247(), &library, flags).expect(0);
        assert_eq!(done.json()["model"]["graphs"], json!(["first", "second"]), "{flags}");
    }
}

#[test]
fn inspect_reads_libraries_without_a_backend() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["GRAPHS=2"]);
    for runtime in [runtime_247(), runtime_251()] {
        let document = Qnnscope::on(&runtime)
            .args(["inspect", "--json"])
            .arg(&library)
            .finish()
            .expect(0)
            .leaves_nothing_behind()
            .json();
        let graphs = document["graphs"].as_array().unwrap();
        let names: Vec<&Value> = graphs.iter().map(|graph| &graph["name"]).collect();
        assert_eq!(names, ["first", "second"]);
        let graph = &graphs[0];
        assert_eq!(
            (&graph["op_count"], &graph["macs"], &graph["parameter_bytes"]),
            (&json!(3), &json!(12), &json!(72))
        );
        assert_eq!((&graph["inputs"][0]["shape"], &graph["outputs"][0]["shape"]), (&json!([1, 4]), &json!([1, 3])));
        let op = &graph["ops"][1];
        assert_eq!((&op["type"], &op["params"]), (&json!("ElementWiseBinary"), &json!({"operation": 0})));
        let inputs: Vec<&Value> = op["inputs"].as_array().unwrap().iter().map(|tensor| &tensor["name"]).collect();
        assert_eq!(inputs, ["sum", "c"]);
        assert_eq!((&op["inputs"][0]["kind"], &op["inputs"][1]["kind"]), (&json!("native"), &json!("static")));
        assert_eq!(op["bytes_moved"], 3 * 3 * 4);
    }
}

#[test]
fn an_op_that_the_backend_refuses_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["OP_TYPE=\"Frobnicate\""]);
    let done = run(&runtime_247(), &library, "").expect(1).leaves_nothing_behind();
    let error = done.first_run()["error"].clone();
    assert_eq!((&error["stage"], &error["call"]), (&json!("compose"), &json!("graphAddNode")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("`clamp`") && message.contains("Frobnicate"), "{message}");
    assert!(error["code"].as_u64().unwrap() > 0, "{error}");
}

#[test]
fn a_relative_path_without_a_folder_is_a_file_here() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &[]);
    let call = Qnnscope::on(&runtime_247());
    std::fs::copy(&library, call.home().join("model")).unwrap();
    call.flags("run model --json -n 1 --profiling off").finish().expect(0);
}

#[test]
fn libraries_that_cannot_be_used_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let build = |name: &str, source: &str| {
        let (path, code) = (dir.path().join(name), dir.path().join(format!("{name}.c")));
        std::fs::write(&code, source).unwrap();
        let status =
            std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&path, &code]).status().unwrap();
        assert!(status.success());
        path
    };
    let inspect = |path: &Path| Qnnscope::on(&runtime_247()).arg("inspect").arg(path).finish();
    let run = |path: &Path| Qnnscope::on(&runtime_247()).run_json(path, "-n 1");

    let plain = build("plain.so", "int f(void) { return 1; }");
    for done in [run(&plain), inspect(&plain)] {
        assert!(done.expect(2).stderr.contains("without QnnModel_composeGraphs"));
    }
    // Only the name of the table type in a symbol shows what a library was built with.
    let old = build(
        "old.so",
        "int QnnModel_composeGraphs(void) { return 0; } int _Z4initRK34QnnInterface_ImplementationV2_7_t(void) { return 0; }",
    );
    for done in [run(&old), inspect(&old)] {
        let done = done.expect(2);
        assert!(done.stderr.contains("2.7") && done.stderr.contains("2.14"), "{}", done.stderr);
    }
    let needs = build(
        "needs.so",
        "int missing(void); int QnnModel_composeGraphs(void) { return missing(); }\nvoid *p = missing;",
    );
    let done = run(&needs).expect(1).leaves_nothing_behind();
    assert!(
        done.first_run()["error"]["message"].as_str().unwrap().contains("undefined symbol: missing"),
        "{}",
        done.stderr
    );
    assert!(inspect(&needs).expect(1).stderr.contains("undefined symbol: missing"));

    let fails = build("fails.so", "int QnnModel_composeGraphs(void) { return 4; }");
    let done = run(&fails).expect(1);
    let error = done.first_run()["error"].clone();
    assert_eq!((&error["stage"], &error["call"]), (&json!("compose"), &json!("QnnModel_composeGraphs")), "{error}");
    assert!(error["message"].as_str().unwrap().contains('4'), "{error}");
    assert!(inspect(&fails).expect(1).stderr.contains("QnnModel_composeGraphs"));

    let none = build("none.so", "int QnnModel_composeGraphs(void) { return 0; }");
    assert!(run(&none).expect(2).first_run()["error"]["message"].as_str().unwrap().contains("no graph"));
    let crashes = build(
        "crashes.so",
        "#include <stdlib.h>\n__attribute__((constructor)) static void boot(void) { abort(); }\nint QnnModel_composeGraphs(void) { return 0; }",
    );
    assert_eq!(run(&crashes).expect(1).leaves_nothing_behind().first_run()["error"]["call"], "SIGABRT");
    assert!(inspect(&crashes).expect(1).stderr.contains("SIGABRT"));
}
