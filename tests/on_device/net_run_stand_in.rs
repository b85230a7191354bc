//! The stand-in for qnn-net-run (`examples/qnn_net_run`) on the real libraries: its options, lines, files and exit statuses.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::profile_log::{COMPOSE, CONTEXT_CREATE, CREATE_FROM_BINARY, DEINIT, EXECUTE, FINALIZE, IPS, Log, split};
use crate::support::{
    Done, Qnnscope, Running, context_binary, demo_float, demo_int8, model_library, none_left, read_f32, repo,
    result_file, runtime_247,
};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const INPUT: &str = "demo/reference/input-1x64x64x3-f32.raw";
const LOG: &str = "output/qnn-profiling-data.log";

/// The executable that cargo puts beside the tests.
fn tool() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/qnn_net_run");
    assert!(path.exists(), "{} is missing; build it with: cargo build --examples", path.display());
    path
}

/// The tool with its libraries on the search path, as on a device.
fn net_run() -> Qnnscope {
    Qnnscope::program(&tool()).env("LD_LIBRARY_PATH", runtime_247())
}

/// A call on a DLC with `lines` equal lines in its input list.
fn on_dlc(dlc: &Path, backend: &str, lines: usize, flags: &str) -> Qnnscope {
    let call = net_run();
    let list = format!("{}\n", repo(INPUT).display()).repeat(lines);
    std::fs::write(call.home().join("list.txt"), list).unwrap();
    call.args(["--model", "libQnnModelDlc.so", "--dlc_path"])
        .arg(dlc)
        .args(["--backend", backend, "--input_list", "list.txt"])
        .flags(flags)
}

fn on_cpu(lines: usize, flags: &str) -> Qnnscope {
    on_dlc(&demo_float(), "libQnnCpu.so", lines, flags)
}

/// A call on a model library of our own with a line of four numbers.
fn on_library(library: &Path, backend: &str, flags: &str) -> Qnnscope {
    let call = net_run();
    std::fs::write(call.home().join("x.raw"), crate::support::f32_bytes(&[1.0, -2.0, 0.5, 3.0])).unwrap();
    std::fs::write(call.home().join("list.txt"), "x:=x.raw\n").unwrap();
    call.arg("--model").arg(library).args(["--backend", backend, "--input_list", "list.txt"]).flags(flags)
}

/// A library whose inferences take microseconds, on one thread: many of them finish quickly even on a busy
/// machine.
fn small_library(dir: &Path) -> PathBuf {
    model_library(dir, "small_graph.c", &["SLOTS=72"])
}

/// Fails unless every line printed by the tool itself looks like the real one's: time, level, text.
#[track_caller]
fn levels(done: &Done) -> BTreeSet<String> {
    let text = done.text();
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    let pid = first.strip_prefix("qnn-net-run pid:").unwrap_or_else(|| panic!("{first}"));
    assert!(pid.parse::<u32>().is_ok(), "{first}");
    let mut seen = BTreeSet::new();
    for line in lines.filter(|line| line.contains("ms [")) {
        let (time, rest) = line.split_at(10);
        let time = time.strip_suffix("ms").unwrap_or_else(|| panic!("{line}")).trim_start();
        assert!(time.parse::<f64>().is_ok() && time.split('.').nth(1).unwrap().len() == 1, "{line}");
        let (level, _) = rest.strip_prefix(" [").and_then(|rest| rest.split_once("] ")).expect(line);
        assert!([" ERROR ", "WARNING", "  INFO ", "VERBOSE"].contains(&level), "{line}");
        seen.insert(level.to_owned());
    }
    seen
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Checks the last line, which names the failure.
#[track_caller]
fn fails(call: Qnnscope, status: i32, last: &str) -> Done {
    let done = call.finish().expect(status).leaves_nothing_behind();
    assert_eq!(done.stderr.lines().last(), Some(last), "{}{}", done.text(), done.stderr);
    done
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

#[test]
fn a_cpu_run_leaves_what_the_real_tool_leaves() {
    let done = on_cpu(3, "--profiling_level detailed --log_level info").finish().expect(0).leaves_nothing_behind();
    assert_eq!(levels(&done), BTreeSet::from(["  INFO ".to_owned()]));
    let text = done.text();
    let mut rest = text.as_str();
    for step in [
        "qnn-net-run build version: v",
        "Inferences will run in sync mode",
        "Profiling turned on; level = 2",
        "Backend     build version: v2.47.",
        "[QNN_CPU] QnnContext create start",
        "Composing Graphs",
        "Graphs composed",
        "Finalizing Graphs",
        "Graphs Finalized",
        "[QNN_CPU] QnnGraph execute start",
        "Executed Graph",
        "Freeing graphsInfo",
        "[QNN_CPU] QnnBackend Free end",
    ] {
        let at = rest.find(step).unwrap_or_else(|| panic!("no `{step}` in its place in {text}"));
        rest = &rest[at + step.len()..];
    }
    assert_eq!(text.matches("QnnGraph execute start").count(), 3, "no warm-up");
    let output = done.home().join("output");
    assert_eq!(
        entries(&output),
        [
            "Result_0",
            "Result_1",
            "Result_2",
            "execution_metadata.yaml",
            "qnn-profiling-data.log",
            "qnn-profiling-data_0.log"
        ]
    );
    assert_eq!(entries(&output.join("Result_1")), ["probabilities.raw"]);
    let link = std::fs::read_link(done.home().join(LOG)).unwrap();
    assert_eq!(link, Path::new("qnn-profiling-data_0.log"));
    let log = Log::read(&done.home().join(LOG));
    assert_eq!(log.methods(), [CONTEXT_CREATE, COMPOSE, FINALIZE, EXECUTE, EXECUTE, EXECUTE, IPS, DEINIT]);
    for message in log.of(EXECUTE) {
        assert_eq!(message.graph.as_deref(), Some("qnnscope_demo"));
        assert!(message.event(400).children.len() > 10, "every inference is profiled, the first one too");
    }
    assert_eq!(log.of(IPS)[0].event(400).value, 3);
    let yaml = std::fs::read_to_string(output.join("execution_metadata.yaml")).unwrap();
    for line in [
        "command: \"qnn-net-run --model libQnnModelDlc.so --dlc_path",
        "execution_mode: synchronous",
        "inferences_completed: 3",
        "graph_name: \"qnnscope_demo\"",
        "tensor_name: \"image\"",
        "dimensions: [1, 64, 64, 3]",
        "tensor_name: \"probabilities\"",
    ] {
        assert!(yaml.contains(line), "no `{line}` in {yaml}");
    }
}

#[test]
fn outputs_are_those_of_qnnscope() {
    for (backend, library, dlc) in [("cpu", "libQnnCpu.so", demo_float()), ("htp", "libQnnHtp.so", demo_int8())] {
        let theirs = on_dlc(&dlc, library, 1, "--output_dir deep/er").finish().expect(0);
        let ours = Qnnscope::on(&runtime_247())
            .arg("run")
            .arg(&dlc)
            .flags(&format!("-b {backend} --json -n 1 --warmup 0 --profiling off --save-outputs out"))
            .arg("--input")
            .arg(format!("image={}", repo(INPUT).display()))
            .finish()
            .expect(0);
        let file = |done: &Done, dir: &str| result_file(&done.home().join(dir), 0, "probabilities.raw");
        let (theirs_bytes, ours_bytes) =
            (std::fs::read(file(&theirs, "deep/er")).unwrap(), std::fs::read(file(&ours, "out")).unwrap());
        assert_eq!(theirs_bytes, ours_bytes, "{backend}");
        let sum: f32 = read_f32(&file(&ours, "out")).iter().sum();
        assert!((sum - 1.0).abs() < 0.05, "{backend}: probabilities sum to {sum}");
        assert!(!theirs.home().join("deep/er/qnn-profiling-data.log").exists(), "no level, no log");
    }
}

#[test]
fn htp_lines_carry_their_level_twice() {
    let flags = "--profiling_level basic --log_level info --num_inferences 4 --keep_num_outputs 1";
    let done = on_dlc(&demo_int8(), &runtime_247().join("libQnnHtp.so").display().to_string(), 2, flags).finish();
    let done = done.expect(0).leaves_nothing_behind();
    levels(&done);
    assert!(done.text().contains("[  INFO ]  <I> QnnContext_create started."), "{}", done.text());
    assert!(done.text().contains("[  INFO ] graph_registry.cc:"), "{}", done.text());
    let log = Log::read(&done.home().join(LOG));
    assert_eq!(log.methods(), [vec![CONTEXT_CREATE, COMPOSE, FINALIZE], vec![EXECUTE; 4], vec![IPS, DEINIT]].concat());
    for message in log.of(EXECUTE) {
        let kinds: Vec<u32> = message.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [8001, 3004, 400], "basic");
    }
    let results = |name: &&String| name.starts_with("Result_");
    assert_eq!(entries(&done.home().join("output")).iter().filter(results).count(), 1, "one is kept");
}

#[test]
fn a_run_goes_on_for_its_duration() {
    let dir = tempfile::tempdir().unwrap();
    let flags = "--profiling_level client --duration 1 --keep_num_outputs 0";
    let begun = Instant::now();
    let done = on_library(&small_library(dir.path()), "libQnnCpu.so", flags).finish().expect(0);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let log = Log::read(&done.home().join(LOG));
    let executes = log.of(EXECUTE);
    let busy = executes.last().unwrap().stop_us - executes[0].start_us;
    assert!((1_000_000..3_000_000).contains(&busy), "{busy} us");
    assert!(executes.len() > 10 && executes.iter().all(|message| message.events.is_empty()), "client has no events");
    let figure = |unit| log.of(IPS)[0].events.iter().find(|event| event.unit == unit).unwrap().value;
    assert_eq!(figure(4), executes.len() as u64);
    assert!((busy..busy + 2_000_000).contains(&figure(1)), "{} us", figure(1));
}

#[test]
fn logs_of_one_folder_count_up_and_the_link_follows() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    for run in 0..3 {
        on_cpu(run + 1, "--profiling_level basic --output_dir").arg(&out).finish().expect(0);
        assert_eq!(
            std::fs::read_link(out.join("qnn-profiling-data.log")).unwrap(),
            PathBuf::from(format!("qnn-profiling-data_{run}.log"))
        );
    }
    for run in 0..3 {
        let log = Log::read(&out.join(format!("qnn-profiling-data_{run}.log")));
        assert_eq!(log.of(EXECUTE).len(), run + 1);
    }
}

/// Starts 1,000,000 small inferences and waits until the log has grown `steps` times; returns the sizes.
fn growing(steps: usize) -> (Running, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let flags = "--profiling_level basic --num_inferences 1000000 --keep_num_outputs 0";
    let mut running = on_library(&small_library(dir.path()), "libQnnCpu.so", flags).start();
    let log = running.home().join(LOG);
    let mut sizes = Vec::new();
    running.until("growth", || {
        let now = size(&log);
        if log.exists() && sizes.last() != Some(&now) {
            sizes.push(now);
        }
        (sizes.len() > steps).then_some(())
    });
    (running, sizes)
}

#[test]
fn the_log_is_empty_and_then_grows_in_steps_of_a_thousand() {
    let dir = tempfile::tempdir().unwrap();
    let flags = "--profiling_level client --num_inferences 2500 --keep_num_outputs 0";
    let done = on_library(&small_library(dir.path()), "libQnnCpu.so", flags).finish().expect(0);
    let log = Log::read(&done.home().join(LOG));
    assert_eq!(log.of(EXECUTE).len(), 2500);
    let lengths: Vec<usize> = log.chunks.iter().map(Vec::len).collect();
    let (_, full) = lengths.split_last().unwrap();
    // The serializer checks about every thousand messages; on a busy machine somewhat later.
    assert!(!full.is_empty() && full.iter().all(|&length| length >= 1000), "{lengths:?}");
    let (running, sizes) = growing(3);
    assert_eq!(sizes[0], 0, "empty at first");
    assert!(sizes[1] > 10_000, "not message by message: {sizes:?}");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.signal(), Some(9));
}

#[test]
fn a_killed_run_keeps_what_was_written_and_leaves_nobody_behind() {
    // Before the first thousand messages: nothing.
    let mut running = on_cpu(1, "--profiling_level basic --num_inferences 1000000 --log_level info").start();
    let result = running.home().join("output/Result_5");
    running.until("the fifth result", || result.exists().then_some(()));
    running.signal(Signal::KILL);
    let done = running.wait();
    none_left(done.home());
    assert_eq!(size(&done.home().join(LOG)), 0);
    assert!(done.home().join(LOG).exists());
    // After that: whole chunks, perhaps followed by one that was being written.
    for signal in [Signal::KILL, Signal::TERM] {
        let (running, sizes) = growing(2);
        running.signal(signal);
        let done = running.wait();
        assert_eq!(done.status.signal(), Some(signal.as_raw()));
        none_left(done.home());
        let bytes = std::fs::read(done.home().join(LOG)).unwrap();
        let (chunks, rest) = split(&bytes);
        assert!(!chunks.is_empty() && bytes.len() as u64 >= sizes[1], "{} bytes", bytes.len());
        assert!(rest < 1 << 20, "{rest} bytes of a cut chunk");
    }
}

#[test]
fn a_context_binary_runs_and_a_cut_one_does_not() {
    let binary = context_binary("2.3.0", "htp", &demo_int8(), None);
    for (bytes, status) in [(&binary[..], 0), (&binary[..binary.len() / 2], 16)] {
        let call = net_run();
        std::fs::write(call.home().join("context.bin"), bytes).unwrap();
        std::fs::write(call.home().join("list.txt"), format!("image:={}\n", repo(INPUT).display())).unwrap();
        let done = call
            .flags("--retrieve_context context.bin --backend libQnnHtp.so --input_list list.txt")
            .flags("--profiling_level basic --log_level info")
            .finish()
            .expect(status);
        if status == 0 {
            assert!(done.text().contains("Loading context from cached bin file"));
            let log = Log::read(&done.home().join(LOG));
            assert_eq!(log.methods(), [CREATE_FROM_BINARY, EXECUTE, IPS, DEINIT]);
        } else {
            assert!(done.text().contains("[ ERROR ] Could not create context from binary"), "{}", done.text());
            assert_eq!(done.stderr.lines().last(), Some("Create From Binary failure"));
            assert_eq!(size(&done.home().join(LOG)), 0);
        }
    }
}

#[test]
fn native_files_hold_the_tensors_own_types() {
    let call = on_dlc(&demo_int8(), "libQnnCpu.so", 0, "--use_native_input_files --use_native_output_files");
    std::fs::write(call.home().join("native.raw"), vec![128; 64 * 64 * 3]).unwrap();
    std::fs::write(call.home().join("list.txt"), "# wanted\nimage:=native.raw\n").unwrap();
    let done = call.finish().expect(0);
    assert_eq!(size(&result_file(&done.home().join("output"), 0, "probabilities.raw")), 10);
}

#[test]
fn a_config_file_reaches_the_backend() {
    let call = on_dlc(&demo_int8(), "libQnnHtp.so", 1, "--config_file outer.json --log_level verbose");
    let outer = r#"{"backend_extensions": {"shared_library_path": "libQnnHtpNetRunExtensions.so",
        "config_file_path": "inner.json"}, "context_configs": {}}"#;
    let inner = r#"{"graphs": [{"graph_names": ["qnnscope_demo"], "vtcm_mb": 2, "fp16_relaxed_precision": 1, "O": 2}],
        "devices": [{"device_id": 0, "soc_model": 57, "cores": [{"core_id": 0, "perf_profile": "burst"}]}]}"#;
    std::fs::write(call.home().join("outer.json"), outer).unwrap();
    std::fs::write(call.home().join("inner.json"), inner).unwrap();
    let done = call.finish().expect(0);
    for effect in ["Set opvalidator socModel 57", "(requested arch is v75)", "set power settings rpc polling time 9999"]
    {
        assert!(done.text().contains(effect), "no `{effect}`");
    }
    let plain = on_dlc(&demo_int8(), "libQnnHtp.so", 1, "--log_level verbose").finish().expect(0).text();
    assert!(plain.contains("(requested arch is v68)") && !plain.contains("rpc polling time"), "the default");
}

#[test]
fn a_wrong_config_file_is_refused() {
    for (outer, inner) in [
        ("{", "{}"),
        ("[]", "{}"),
        (r#"{"backend_extensions": {"config_file_path": "inner.json"}}"#, "{\"graphs\": ["),
        (r#"{"backend_extensions": {"config_file_path": "none.json"}}"#, "{}"),
        (r#"{"backend_extensions": {"config_file_path": "inner.json"}}"#, r#"{"graphs": [{"vtcm_mb": "lots"}]}"#),
    ] {
        let call = on_dlc(&demo_int8(), "libQnnHtp.so", 1, "--config_file outer.json");
        std::fs::write(call.home().join("outer.json"), outer).unwrap();
        std::fs::write(call.home().join("inner.json"), inner).unwrap();
        let done = fails(call, 9, "Initialization failure");
        assert!(done.text().contains("[ ERROR ] Error in parsing the config file: "), "{}", done.text());
    }
}

#[test]
fn a_missing_model_or_backend_is_a_failed_initialisation() {
    let call = on_library(Path::new("./libnosuch.so"), "libQnnCpu.so", "--log_level verbose");
    let done = fails(call, 9, "Initialization failure");
    let said: Vec<String> =
        done.text().lines().filter_map(|l| Some(l.split_once("[ ERROR ] ")?.1.to_owned())).collect();
    assert_eq!(
        said,
        [
            "Unable to load model. dlerror(): ./libnosuch.so: cannot open shared object file: No such file or directory",
            "Failed to load ModelLib!",
            "Could not load model : ./libnosuch.so!"
        ]
    );
    let done = fails(on_dlc(&demo_float(), "libQnnNone.so", 1, ""), 9, "Initialization failure");
    assert!(done.text().contains("[ ERROR ] Could not load backend : libQnnNone.so!"), "{}", done.text());
    // A bare name is looked up where dlopen looks, and not in the working directory.
    let call = on_dlc(&demo_float(), "libQnnCpu.so", 1, "").env("LD_LIBRARY_PATH", "/nowhere");
    fails(call, 9, "Initialization failure");
}

#[test]
fn inputs_that_cannot_be_used_end_the_execution() {
    let with_list = |list: &str| {
        let call = on_cpu(0, "--profiling_level basic");
        std::fs::write(call.home().join("list.txt"), list).unwrap();
        std::fs::write(call.home().join("small.raw"), [0; 4000]).unwrap();
        call
    };
    let done = fails(with_list("nofile.raw\n"), 17, "Graph Execution failure");
    assert!(done.text().contains("[ ERROR ] Failed to open input file: nofile.raw"), "{}", done.text());
    assert!(done.text().contains("populateInputTensorFromFiles failed for input image with index 0"));
    assert_eq!(entries(&done.home().join("output")), ["qnn-profiling-data.log", "qnn-profiling-data_0.log"]);
    assert_eq!(size(&done.home().join(LOG)), 0, "a run that fails leaves an empty log");
    let done = fails(with_list("a.raw b.raw\n"), 17, "Graph Execution failure");
    let said = "Incorrect amount of Input files for graphIdx: 0. Expected: 1, received: 2";
    assert!(done.text().contains(said), "{}", done.text());
    // The real tool silently divides by zero.
    let done = with_list("small.raw\n").finish();
    assert_eq!(done.status.signal(), Some(8));
    assert_eq!((done.text().lines().count(), done.stderr.as_str()), (1, ""), "{}", done.text());
}

#[test]
fn a_refused_op_fails_the_preparation() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), "small_graph.c", &["OP_TYPE=\"NoSuchOp\""]);
    let done = fails(on_library(&library, "libQnnCpu.so", "--profiling_level basic"), 14, "Graph Prepare failure");
    assert!(done.text().contains("[ ERROR ] ComposeGraphs Failed with error = 1"), "{}", done.text());
    assert_eq!(size(&done.home().join(LOG)), 0);
}

#[test]
fn a_crash_ends_the_tool_by_the_same_signal() {
    let dir = tempfile::tempdir().unwrap();
    for (behaviour, signal) in [("segfault", 11), ("give_up", 6)] {
        let library = model_library(dir.path(), "small_graph.c", &[&format!("BEHAVIOUR={behaviour}")]);
        let done = on_library(&library, "libQnnCpu.so", "--profiling_level basic").finish().leaves_nothing_behind();
        assert_eq!(done.status.signal(), Some(signal), "{behaviour}: {}{}", done.text(), done.stderr);
        assert!(done.home().join(LOG).exists() && size(&done.home().join(LOG)) == 0);
    }
}

#[test]
fn the_command_line_is_checked() {
    for (flags, said) in [
        ("--no_such_option", "ERROR: Invalid argument passed: --no_such_option"),
        ("--model", "ERROR: Invalid argument passed: --model"),
        ("--backend libQnnCpu.so --input_list l", "ERROR: Missing option: --model or --retrieve_context"),
        ("--model m.so --input_list l", "ERROR: Missing option: --backend"),
        ("--model m.so --backend b.so", "ERROR: Missing option: --input_list"),
        ("--model m.so --retrieve_context c", "ERROR: --model and --retrieve_context exclude each other"),
        ("--model m.so --num_inferences x", "ERROR: Invalid value for --num_inferences: x"),
        ("--model m.so --profiling_level all", "ERROR: Invalid profiling level: all"),
        ("--model m.so --perf_profile turbo", "ERROR: Invalid perf profile: turbo"),
    ] {
        let flags =
            if flags.contains("num_inferences") { format!("{flags} --backend b --input_list l") } else { flags.into() };
        let done = net_run().flags(&flags).finish().expect(1);
        assert_eq!(done.stderr.lines().next(), Some(said), "{flags}");
        assert!(done.text().contains("--retrieve_context"), "the help follows");
    }
    let version = net_run().arg("--version").finish().expect(0).text();
    assert!(version.starts_with("QNN SDK v2.") && version.lines().count() == 1, "{version}");
    let help = net_run().arg("--help").finish().expect(0).text();
    assert!(help.contains("--keep_num_outputs") && help.contains("--config_file"), "{help}");
    // Options that do nothing here are accepted, in both spellings, and reported as having no effect.
    let flags = "--synchronous --shared_buffer -batch_multiplier=1 --timeout 100 --log_level=warn --debug";
    let done = on_cpu(1, flags).finish().expect(0);
    assert!(done.text().contains("[WARNING] --batch_multiplier has no effect in this stand-in"), "{}", done.text());
    assert!(levels(&done).is_subset(&BTreeSet::from(["WARNING".to_owned()])));
}
