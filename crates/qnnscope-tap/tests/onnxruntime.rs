//! ONNX Runtime with the QNN plug-in, tapped: the host that most engineers use. `./test.sh` installs its
//! packages below `target/test-python`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use qnnscope_core::tap::{Call, TapMessage, execution_flags};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Run, tap_library, tapped, workspace};

/// Where the packages for a version of the plug-in are.
fn packages(plug_in: &str) -> PathBuf {
    let root =
        std::env::var_os("QNNSCOPE_TEST_PYTHON").map_or_else(|| workspace().join("target/test-python"), PathBuf::from);
    let folder = root.join(format!("onnxruntime-qnn-{plug_in}"));
    assert!(
        folder.join("onnxruntime_qnn").exists(),
        "{} is missing: run ./test.sh, which installs it",
        folder.display()
    );
    folder
}

fn host(plug_in: &str, model: &Path, backend: &str, count: u32, options: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(workspace().join("tests/support/ort_host.py"))
        .arg(model)
        .args([backend, &count.to_string()])
        .args(options);
    command.env("PYTHONPATH", packages(plug_in));
    command
}

fn model(name: &str) -> PathBuf {
    workspace().join("tests/data/onnx").join(name)
}

/// The last line, which is the host's; HTP prints stages before it.
fn last_line(output: &std::process::Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().last().unwrap_or_default().to_owned()
}

/// Runs with and without the tap: the outputs must be the same, bit by bit.
fn compared(plug_in: &str, model: &Path, backend: &str, count: u32, options: &[&str]) -> Run {
    let plain = host(plug_in, model, backend, count, options).output().unwrap();
    let mut command = host(plug_in, model, backend, count, options);
    command.env("LD_PRELOAD", tap_library());
    let run = tapped(command, &[]);
    assert_eq!(last_line(&run.output), last_line(&plain));
    assert!(run.told.lost().is_empty(), "{:?}", run.told.lost());
    run
}

fn calls<'a>(run: &'a Run, name: &'a str) -> Vec<&'a Call> {
    run.told
        .all()
        .filter_map(move |message| match message {
            TapMessage::Ended(call) if call.call == name => Some(&**call),
            _ => None,
        })
        .collect()
}

/// Types of the ops that were composed, in order.
fn op_types(run: &Run) -> Vec<String> {
    let ops = run.told.all().filter_map(|message| match message {
        TapMessage::GraphOps { ops, .. } => Some(ops),
        _ => None,
    });
    ops.flatten().map(|op| op.op_type.clone()).collect()
}

fn node_events(run: &Run) -> usize {
    let details = run.told.all().filter_map(|message| match message {
        TapMessage::Detail(detail) => Some(detail),
        _ => None,
    });
    details.map(|detail| detail.events.iter().filter(|event| event.kind == 404).count()).max().unwrap_or(0)
}

#[test]
fn a_model_that_qnn_takes_whole_and_one_that_it_takes_in_two() {
    let run = compared("2.3.0", &model("whole.onnx"), "libQnnCpu.so", 20, &[]);
    assert_eq!((calls(&run, "graphCreate").len(), run.told.executions().len()), (1, 20));
    assert!(op_types(&run).contains(&"Conv2d".to_owned()) && node_events(&run) >= 8, "{:?}", op_types(&run));
    let run = compared("2.3.0", &model("split.onnx"), "libQnnCpu.so", 20, &[]);
    assert_eq!((calls(&run, "graphCreate").len(), run.told.executions().len()), (2, 40), "two partitions");
}

#[test]
fn the_simulated_npu_with_options_votes_and_refusals() {
    let options = ["htp_performance_mode=burst", "vtcm_mb=4"];
    let run = compared("2.3.0", &model("whole_a8w8.onnx"), "libQnnHtp.so", 4, &options);
    assert_eq!(calls(&run, "graphCreate")[0].options["vtcm_mb"], 4);
    let votes: Vec<_> =
        run.told.all().filter_map(|m| if let TapMessage::Voted(vote) = m { Some(vote) } else { None }).collect();
    let set = votes.iter().find(|vote| vote.action == "set").expect("burst is a vote");
    assert_eq!((&set.settings["rpc_polling_us"], &set.settings["core_max"]), (&9999.into(), &0xa0.into()));
    assert_eq!(votes.last().unwrap().action, "destroy", "it ends with the session");
    assert!(node_events(&run) > 10, "per-op cycles");
    let run = compared("2.3.0", &model("refuse.onnx"), "libQnnHtp.so", 1, &[]);
    let refused: Vec<_> =
        run.told.all().filter_map(|m| if let TapMessage::Refused(op) = m { Some(op) } else { None }).collect();
    assert!(refused.iter().any(|refused| refused.op.name == "add_rank6" && refused.code == 3110), "{refused:?}");
    assert!(refused.iter().all(|refused| refused.reasons.iter().any(|line| line.contains("Rank 6"))), "{refused:?}");
}

#[test]
fn a_context_binary_is_loaded_not_composed() {
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("whole_ctx.onnx");
    let path = format!("session:ep.context_file_path={}", context.display());
    let make = ["session:ep.context_enable=1", "session:ep.context_embed_mode=0", &path];
    let mut command = host("2.3.0", &model("whole_a8w8.onnx"), "libQnnHtp.so", 1, &make);
    command.env("LD_PRELOAD", tap_library());
    let written = tapped(command, &[]);
    last_line(&written.output);
    assert!(calls(&written, "contextGetBinary")[0].binary_bytes > Some(10_000));
    let run = compared("2.3.0", &context, "libQnnHtp.so", 3, &[]);
    assert!(calls(&run, "graphFinalize").is_empty() && op_types(&run).is_empty());
    let loaded = calls(&run, "contextCreateFromBinary");
    assert!(loaded[0].binary_bytes > Some(10_000) && loaded[0].context.is_some());
    assert_eq!(run.told.executions().len(), 3);
    let bound = run
        .told
        .all()
        .find_map(|m| if let TapMessage::Bound { inputs, outputs, .. } = m { Some((inputs, outputs)) } else { None });
    let (inputs, outputs) = bound.expect("inputs and outputs, though nothing was composed");
    assert_eq!(
        (inputs[0].tensor.shape_text().as_str(), outputs[0].tensor.shape_text().as_str()),
        ("1x3x64x64", "1x10")
    );
}

#[test]
fn the_newer_release_in_a_backends_place() {
    // QAIRT 2.51: a table with more slots. In the backend's place, as Android apps need it.
    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join("libQnnHtp.so");
    std::fs::copy(tap_library(), &stand_in).unwrap();
    let real = packages("2.7.0").join("onnxruntime_qnn");
    let plain = host("2.7.0", &model("whole_a8w8.onnx"), "libQnnHtp.so", 3, &[]).output().unwrap();
    let command = host("2.7.0", &model("whole_a8w8.onnx"), stand_in.to_str().unwrap(), 3, &[]);
    let run = tapped(command, &[("QNNSCOPE_TAP_REAL", real.to_str().unwrap())]);
    assert_eq!(last_line(&run.output), last_line(&plain));
    let executions = run.told.executions();
    assert_eq!(executions.len(), 3);
    assert!(
        executions.iter().any(|execution| execution.flags & execution_flags::DETAILED != 0) && node_events(&run) > 10
    );
    let provider = run
        .told
        .all()
        .find_map(|m| if let TapMessage::Provider(provider) = m { Some(provider) } else { None })
        .unwrap();
    assert!(provider.core_api.starts_with("2.40.") && provider.untouched.is_none(), "{provider:?}");
}
