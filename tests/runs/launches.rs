//! Launches: a run's inferences divided among fresh processes, through the program with the real runtime.

#![cfg(target_os = "linux")]

use crate::support::{Qnnscope, Running, demo_float, demo_int8, model_library, number, repo, runtime_247, send};
use qnnscope::event::{Event, Record, RunStatus};
use qnnscope::report::{ResultDocument, text_report};
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A call whose runners are started through a script, which writes their process ids to the file `runners`.
/// `before` is a shell command that the script executes first; `$n` is the number of the runner, from 1.
fn counted(before: &str) -> (Qnnscope, PathBuf) {
    let call = Qnnscope::on(&runtime_247()).with_default_launches();
    let (script, pids) = (call.home().join("runner"), call.home().join("runners"));
    let text = format!(
        "#!/bin/sh\necho $$ >> {pids}\nn=$(wc -l < {pids})\n{before}\nexec {binary} \"$@\"\n",
        pids = pids.display(),
        binary = env!("CARGO_BIN_EXE_qnnscope")
    );
    executable(&script, &text);
    (call.env("QNNSCOPE_RUNNER", &script), pids)
}

/// A call whose runners are shell scripts that report 20 inferences of `$us` microseconds each; `level` sets
/// `$us`, and `$n` is the number of the runner, from 1.
fn pretended(level: &str) -> Qnnscope {
    let call = Qnnscope::on(&runtime_247()).with_default_launches();
    let (script, pids) = (call.home().join("runner"), call.home().join("runners"));
    let text = format!(
        r#"#!/bin/sh
read -r task
echo $$ >> {pids}
n=$(wc -l < {pids})
{level}
awk -v us="$us" '{{ now = $1 * 1e6 }} END {{
    printf "{{\"hello\":{{\"protocol\":3,\"version\":\"0\",\"pid\":1}}}}\n"
    event("\"phase_started\":{{\"phase\":\"clean\",\"budget\":{{\"iterations\":20}}}}")
    for (i = 0; i < 20; i++) {{
        starts = starts (i ? "," : "") sprintf("%d", now + i * us)
        takes = takes (i ? "," : "") sprintf("%d", us * (1000 + i % 5))
    }}
    event("\"inferences\":{{\"phase\":\"clean\",\"first_index\":0,\"start_us\":[" starts "],\"latency_ns\":[" takes "]}}")
    event("\"run_finished\":{{\"status\":\"ok\"}}")
    print "\"done\""
}}
function event(text) {{ printf "{{\"event\":{{\"t_us\":%d,\"event\":{{%s}}}}}}\n", now, text }}' /proc/uptime
"#,
        pids = pids.display(),
    );
    executable(&script, &text);
    call.env("QNNSCOPE_RUNNER", &script)
}

/// A child writes the file: while another test forks, a file that this process has open for writing cannot be
/// executed.
fn executable(path: &Path, text: &str) {
    let status = std::process::Command::new("sh")
        .args(["-c", r#"printf '%s' "$1" > "$2" && chmod +x "$2""#, "sh", text])
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

/// A model with inferences of microseconds on one thread, which finish quickly even on a busy machine.
fn quick(dir: &Path) -> PathBuf {
    model_library(dir, "small_graph.c", &[])
}

fn runners(pids: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(pids).unwrap_or_default();
    text.lines().map(|line| line.trim().parse().unwrap()).collect()
}

fn records(session: &Path) -> Vec<Record> {
    SessionReader::open(session).unwrap().map(Result::unwrap).collect()
}

/// Run and number of each launch, in order.
fn launches(records: &[Record]) -> Vec<(u32, u32)> {
    let started = |record: &Record| match record.event {
        Event::LaunchStarted { index, .. } => Some((record.run.unwrap().0, index)),
        _ => None,
    };
    records.iter().filter_map(started).collect()
}

fn count(records: &[Record], kind: impl Fn(&Event) -> bool) -> usize {
    records.iter().filter(|record| kind(&record.event)).count()
}

fn samples(run: &Value) -> Vec<u64> {
    run["latency_us"]["launches"].as_array().unwrap().iter().map(|row| row["samples"].as_u64().unwrap()).collect()
}

/// The document and the text report of a recorded session.
fn replayed(session: &Path) -> (Value, String) {
    let mut store = Store::new();
    records(session).iter().for_each(|record| store.apply(record));
    let document = serde_json::to_value(ResultDocument::new(&store)).unwrap();
    (serde_json::from_str(&document.to_string()).unwrap(), text_report(&store))
}

#[test]
fn the_inferences_of_a_run_are_shared_among_processes() {
    let (call, pids) = counted("");
    let flags = "-b cpu --launches 3 -n 31 --profiling-iterations 7 --warmup 2 --save-outputs out --record session";
    let done = call.run_json(&demo_float(), flags).expect(0).leaves_nothing_behind();
    let mut processes = runners(&pids);
    processes.dedup();
    assert_eq!(processes.len(), 3, "{processes:?}");

    let document = done.json();
    assert_eq!(document["runs"].as_array().unwrap().len(), 1, "launches are no runs of their own");
    let run = &document["runs"][0];
    let latency = &run["latency_us"];
    assert_eq!((run["status"].as_str(), latency["samples"].as_u64()), (Some("ok"), Some(31)));
    assert_eq!(latency["warmup"], 6, "each launch warms up");
    assert_eq!(samples(run), [11, 10, 10]);
    let rows = latency["launches"].as_array().unwrap();
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row["index"], index);
        for figure in ["mean", "min", "max", "p50", "load_us", "first_inference_us", "cpu_utilization_percent"] {
            assert!(number(&row[figure]) > 0.0, "{figure} in {row}");
        }
        assert!(number(&row["min"]) >= number(&latency["min"]) && number(&row["max"]) <= number(&latency["max"]));
    }
    let mean: f64 = rows.iter().map(|row| number(&row["mean"]) * number(&row["samples"])).sum::<f64>() / 31.0;
    assert!((mean - number(&latency["mean"])).abs() < 1e-6 * mean);
    let medians: Vec<f64> = rows.iter().map(|row| number(&row["p50"])).collect();
    let (least, most) = (medians.iter().copied().fold(f64::MAX, f64::min), medians.iter().copied().fold(0.0, f64::max));
    let between = &latency["between_launches"];
    for figure in ["deviation_percent", "known_to_percent"] {
        assert!(number(&between[figure]) > 0.0, "{figure} in {between}");
    }
    // Null if the machine is so busy that no difference could be detected.
    let tells = &between["tells_in_turns_percent"];
    assert!(tells.is_null() || number(tells) > 0.0, "{between}");
    let [low, high] = [0, 1].map(|at| number(&latency["ci95"]["p50"][at]));
    assert!(low <= least && most <= high, "three launches do not know the median better than they differ: {latency}");
    assert_eq!((&between["launches"], &between["planned"], &between["note"]), (&json!(3), &json!(3), &Value::Null));
    assert!((number(&between["spread_percent"]) - (most / least - 1.0) * 100.0).abs() < 1e-9);
    assert_eq!((&run["mode"]["launches"]["planned"], &run["mode"]["launches"]["limit"]), (&json!(3), &json!(3)));

    // What each launch repeats is counted once; layer times come from all launches.
    assert_eq!(run["first_inference_us"], rows[0]["first_inference_us"]);
    assert_eq!(run["profiling"]["iterations"], 7);
    assert_eq!((&run["profiling"]["mismatched_iterations"], run["ops"].as_array().unwrap().len()), (&json!(0), 59));
    assert_eq!(document["model"]["graphs"].as_array().unwrap().len(), 1);
    assert_eq!(run["outputs"].as_array().unwrap().len(), 2, "one launch writes the files");
    let load: f64 = ["library_load", "backend_create", "device_create", "context_create", "compose", "finalize"]
        .iter()
        .filter_map(|stage| run["stages_us"][stage].as_f64())
        .sum();
    assert!((load - number(&rows[0]["load_us"])).abs() < 1.0, "stages are those of the first launch");

    let session = records(&done.home().join("session"));
    assert_eq!(launches(&session), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(count(&session, |event| matches!(event, Event::GraphComposed(_))), 1);
    assert_eq!(count(&session, |event| matches!(event, Event::RuntimeLoaded(_))), 3);
    assert_eq!(count(&session, |event| matches!(event, Event::RunFinished { status: RunStatus::Ok })), 1);
}

#[test]
fn a_replayed_session_gives_the_same_document_and_says_how_far_launches_lie_apart() {
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_int8(), "-b cpu,htp --launches 2 -n 12 --profiling-iterations 4 --record session")
        .expect(0);
    let (document, text) = replayed(&done.home().join("session"));
    let live: Value = serde_json::from_str(&done.json().to_string()).unwrap();
    assert_eq!(document, live);
    assert_eq!(text.matches("  2 launches p50 ").count(), 2, "{text}");
    assert!(text.contains("% apart: the median is known"), "{text}");
}

#[test]
fn launches_of_several_backends_take_turns() {
    let flags = "-b cpu,htp --launches 4 -n 8 --profiling off --record session";
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), flags).expect(0).leaves_nothing_behind();
    let document = done.json();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["backend"].as_str().unwrap()).collect::<Vec<_>>(), ["cpu", "htp"]);
    for run in runs {
        assert_eq!((samples(run), &run["latency_us"]["samples"]), (vec![2; 4], &json!(8)));
    }
    let session = records(&done.home().join("session"));
    let order = launches(&session);
    assert_eq!(order.len(), 8);
    for (round, pair) in order.chunks(2).enumerate() {
        let mut runs: Vec<u32> = pair.iter().map(|(run, _)| *run).collect();
        runs.sort_unstable();
        assert_eq!(runs, [0, 1], "each run once in round {round}: {order:?}");
        assert!(pair.iter().all(|(_, index)| *index as usize == round), "{order:?}");
    }
    // One after the other, never two at once: a run's inferences come between its own launch and the next
    // one.
    let mut going_on = None;
    for record in &session {
        match &record.event {
            Event::LaunchStarted { .. } => going_on = record.run,
            Event::Inferences(_) | Event::StageStarted { .. } => assert_eq!(record.run, going_on),
            _ => {}
        }
    }
    // The seed is recorded, so that the order can be reconstructed.
    assert!(number(&runs[0]["mode"]["launches"]["seed"]) > 0.0);
    assert_eq!(runs[0]["mode"]["launches"]["seed"], runs[1]["mode"]["launches"]["seed"]);
}

#[test]
fn by_default_there_are_three_and_more_where_they_disagree() {
    let dir = tempfile::tempdir().unwrap();
    let library = quick(dir.path());
    let (call, pids) = counted("");
    let done = call.run_json(&library, "-b cpu -n 60 --profiling off --record session").expect(0);
    let run = done.first_run();
    let made = run["latency_us"]["launches"].as_array().unwrap();
    assert_eq!(runners(&pids).len(), made.len());
    assert!((3..=60).contains(&made.len()), "{}", made.len());
    for (index, row) in made.iter().enumerate() {
        assert_eq!(row["samples"], if index < 10 { 20 } else { 10 }, "{made:?}");
    }
    // Each one beyond the third has a reason, and a note mentions them.
    for (index, row) in made.iter().enumerate() {
        assert_eq!(row["reason"].is_string(), index >= 3, "{row}");
    }
    assert!(made.len() > 3, "six are cheap here");
    assert!(run["latency_us"]["between_launches"]["note"].is_string());
}

#[test]
fn quick_launches_that_agree_are_fifteen_and_those_on_two_levels_go_on() {
    let flags = "-b cpu -n 60 --profiling off";
    let run = pretended("us=1000").run_json(&demo_float(), flags).expect(0).first_run();
    assert_eq!(samples(&run), [20; 15], "quick ones are fifteen");
    let call = pretended("us=1000; [ $((n % 2)) = 0 ] && us=2000").within(Duration::from_secs(90));
    let run = call.run_json(&demo_float(), flags).expect(0).first_run();
    let made = run["latency_us"]["launches"].as_array().unwrap();
    assert!((11..=60).contains(&made.len()), "as many as 25 s hold: {}", made.len());
    for (index, row) in made.iter().enumerate() {
        let reason = row["reason"].as_str();
        match index {
            0..3 => assert_eq!(reason, None),
            _ => assert!(reason.unwrap().contains("are apart by a factor of 2.0"), "{row}"),
        }
    }
    let reasons = run["trust"].to_string();
    assert!(reasons.contains("trust.launches-disagree"), "{reasons}");
}

/// The verdict on the medians of two runs by simulated runners, and the document.
fn verdict(base: &str, other: &str) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let files = [("base", base), ("other", other)].map(|(name, level)| {
        let call = pretended(level).within(Duration::from_secs(90));
        let done = call.run_json(&demo_float(), "-b cpu -n 60 --profiling off").expect(0);
        let path = folder.path().join(name);
        std::fs::write(&path, &done.stdout).unwrap();
        path
    });
    let done = Qnnscope::without_runtime().args(["compare", "--json"]).args(&files).finish().expect(0);
    let document = done.json();
    let row = document["rows"].as_array().unwrap().iter().find(|row| row["id"] == "p50_us").unwrap();
    let difference = row["cells"][1]["difference"].clone();
    (difference["verdict"].as_str().unwrap().to_owned(), difference)
}

#[test]
fn separate_runs_on_two_levels_are_told_apart_where_none_of_their_launches_overlap() {
    let level = |us: u32, slow: u32| format!("us={us}; [ $((n % 2)) = {slow} ] && us=$((us * 2))");
    let (verdict_10, difference) = verdict(&level(1000, 0), &level(1100, 1));
    assert_eq!(verdict_10, "within_noise", "{difference}");
    assert!((number(&difference["of_launches"]) - 0.1).abs() < 0.02, "{difference}");
    assert!(number(&difference["up_to"]) >= 0.1, "{difference}");
    // Every launch of one run is slower than every launch of the other.
    let (verdict_3, difference) = verdict(&level(1000, 0), &level(3000, 1));
    assert_eq!(verdict_3, "worse", "{difference}");
    assert!((number(&difference["of_launches"]) - 2.0).abs() < 0.1, "{difference}");
}

#[test]
fn models_in_turns_show_a_difference_that_a_restless_machine_hides_from_separate_runs() {
    let folder = tempfile::tempdir().unwrap();
    let models = ["old.dlc", "new.dlc"].map(|name| folder.path().join(name));
    for model in &models {
        std::fs::copy(demo_float(), model).unwrap();
    }
    // Each turn is slower by a factor of up to 1.9 for both; the new model takes 6 % longer.
    let level = r#"turn=$(( (n - 1) / 2 ))
us=$((1000 + 10 * (turn * 37 % 90)))
case $task in */new.dlc*) us=$((us * 106 / 100));; esac"#;
    let call = pretended(level).within(Duration::from_secs(120));
    let session = call.home().join("session");
    let done =
        call.arg("run").args(&models).flags("-b cpu -n 60 --profiling off --json --record session").finish().expect(0);
    let document = done.json();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let made = [samples(&runs[0]), samples(&runs[1])];
    assert!(made[0].len() > 10 && made[0] == made[1], "each launch has its neighbour: {made:?}");
    for (turn, pair) in launches(&records(&session)).chunks(2).enumerate() {
        let mut pair = pair.to_vec();
        pair.sort_unstable();
        assert_eq!(pair, [(0, turn as u32), (1, turn as u32)], "in turn {turn}");
    }
    let difference = |files: &[PathBuf]| {
        let done = Qnnscope::without_runtime().args(["compare", "--json"]).args(files).finish().expect(0);
        let rows = done.json()["rows"].as_array().unwrap().clone();
        rows.iter().find(|row| row["id"] == "p50_us").unwrap()["cells"][1]["difference"].clone()
    };
    let together = difference(std::slice::from_ref(&session));
    assert_eq!(together["verdict"], "worse", "{together}");
    assert!((number(&together["of_launches"]) - 0.06).abs() < 0.005, "{together}");
    let [low, high] = [0, 1].map(|at| number(&together["ci95"][at]));
    assert!(0.05 < low && high < 0.07, "{together}");

    // The same launches, treated as runs made at different times, show nothing.
    let apart = [0, 1].map(|keep| {
        let mut document = document.clone();
        let mut run = document["runs"][keep].clone();
        run["mode"]["launches"]["seed"] = json!(keep + 1);
        document["runs"] = json!([run]);
        let path = folder.path().join(format!("{keep}.json"));
        std::fs::write(&path, document.to_string()).unwrap();
        path
    });
    let apart = difference(&apart);
    assert_eq!(apart["verdict"], "within_noise", "{apart}");
}

#[test]
fn a_model_that_is_replaced_between_launches_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.dlc");
    std::fs::copy(demo_float(), &model).unwrap();
    let swap = format!("[ $n = 3 ] && cp {} {}", demo_int8().display(), model.display());
    let (call, pids) = counted(&swap);
    let done = call.run_json(&model, "-b cpu --launches 4 -n 8 --profiling off --record session").expect(1);
    let done = done.leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["status"], &run["error"]["launch"]), (&json!("failed"), &json!(2)), "{}", run["error"]);
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.contains("was replaced between launches"), "{message}");
    assert_eq!(samples(&run), [2, 2], "figures of the model that was asked for stand");
    assert_eq!(runners(&pids).len(), 3);
    let sums: Vec<String> = records(&done.home().join("session"))
        .into_iter()
        .filter_map(|record| match record.event {
            Event::ModelIdentified(model) => Some(model.sha256),
            _ => None,
        })
        .collect();
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
}

#[test]
fn few_inferences_are_one_launch() {
    let done = Qnnscope::on(&runtime_247()).with_default_launches();
    let run = done.run_json(&demo_float(), "-b cpu -n 29 --profiling off").expect(0).first_run();
    assert_eq!(samples(&run), [29]);
    let between = &run["latency_us"]["between_launches"];
    assert_eq!((&between["launches"], &between["spread_percent"]), (&json!(1), &Value::Null));
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 5 --launches 10").expect(2);
    assert!(done.stderr.contains("--launches 10") && done.stderr.contains("5 inferences"), "{}", done.stderr);
}

/// A run in its second launch, with the first clean inferences measured.
fn in_the_second_launch(call: Qnnscope, flags: &str) -> Running {
    let session = call.home().join("session");
    let flags = format!("--json --profiling off --warmup 1 --record session {flags}");
    let mut running = call.arg("run").arg(demo_float()).flags(&flags).start();
    running.until("inferences of the second launch", || {
        let text = std::fs::read_to_string(&session).unwrap_or_default();
        let (_, second) = text.split_once(r#""launch_started":{"index":1"#)?;
        second.contains(r#""inferences":{"phase":"clean""#).then_some(())
    });
    running
}

#[test]
fn a_killed_second_launch_fails_the_run_with_the_figures_of_the_first() {
    let (call, pids) = counted("");
    let running = in_the_second_launch(call, "-b cpu --launches 3 --duration 15s");
    send(runners(&pids)[1], Signal::KILL);
    let done = running.wait().expect(1).leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["status"], &run["error"]["call"]), (&json!("failed"), &json!("SIGKILL")));
    assert_eq!(run["error"]["launch"], 1, "counted from 0 as everywhere in the document");
    assert_eq!(samples(&run).len(), 2, "figures up to then are kept");
    assert!(samples(&run).iter().all(|count| *count > 0));
    assert_eq!(runners(&pids).len(), 2, "the third launch is dropped");
    assert!(done.stderr.contains("cpu 2/3: failed"), "{}", done.stderr);
    let (document, text) = replayed(&done.home().join("session"));
    assert_eq!(document["runs"][0]["error"]["launch"], 1);
    assert!(text.contains("of launch 2 of 3"), "{text}");
}

#[test]
fn a_launch_that_fails_drops_only_the_launches_of_its_run() {
    // The second runner is that of htp's first launch.
    let (call, pids) = counted("[ $n = 2 ] && exit 7");
    let flags = "-b cpu,htp --launches 2 -n 4 --profiling off --record session";
    let done = call.run_json(&demo_int8(), flags).expect(1).leaves_nothing_behind();
    let document = done.json();
    assert_eq!(document["runs"][0]["status"], "ok");
    assert_eq!(samples(&document["runs"][0]), [2, 2]);
    assert_eq!((&document["runs"][1]["status"], &document["runs"][1]["latency_us"]), (&json!("failed"), &Value::Null));
    assert_eq!(runners(&pids).len(), 3);
}

#[test]
fn a_signal_while_the_second_launch_comes_up_keeps_the_first() {
    let (call, pids) = counted("[ $n = 2 ] && sleep 30");
    let mut running =
        call.arg("run").arg(demo_float()).flags("--json -b cpu --launches 3 -n 30 --profiling off").start();
    running.until("the second runner", || (runners(&pids).len() == 2).then_some(()));
    running.signal(Signal::INT);
    let done = running.wait().expect(130).leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["status"], &run["stopped_early"], &run["error"]), (&json!("ok"), &json!(true), &Value::Null));
    assert_eq!(samples(&run), [10]);
    assert_eq!(runners(&pids).len(), 2);
}

#[test]
fn a_signal_in_a_launch_ends_the_run_and_leaves_others_out() {
    let call = Qnnscope::on(&runtime_247());
    let running = in_the_second_launch(call, "-b cpu --launches 3 --duration 15s");
    running.signal(Signal::INT);
    let done = running.wait().expect(130).leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["status"], &run["stopped_early"]), (&json!("ok"), &json!(true)));
    assert_eq!(samples(&run).len(), 2);
    let session = records(&done.home().join("session"));
    assert_eq!(launches(&session), [(0, 0), (0, 1)]);
    assert_eq!(count(&session, |event| matches!(event, Event::RunFinished { status: RunStatus::Stopped })), 1);
}

#[test]
fn a_model_that_takes_long_to_load_is_loaded_once() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), "small_graph.c", &["BEHAVIOUR=dawdle"]);
    let (call, pids) = counted("");
    let done = call
        .within(Duration::from_secs(90))
        .run_json(&library, "-b cpu -n 60 --profiling-iterations 12 --record session")
        .expect(0)
        .leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!(runners(&pids).len(), 1);
    assert_eq!((samples(&run), &run["profiling"]["iterations"]), (vec![60], &json!(12)));
    let note = run["latency_us"]["between_launches"]["note"].as_str().unwrap();
    assert!(note.contains("loading took 1") && note.contains("--launches 3"), "{note}");
    assert!(done.stderr.contains("in one launch") && done.stderr.contains("--launches"), "{}", done.stderr);
}

#[test]
fn a_paced_run_counts_all_its_launches() {
    let dir = tempfile::tempdir().unwrap();
    let library = quick(dir.path());
    let flags = "-b cpu --launches 2 -n 20 --rate 100 --profiling off --warmup 1";
    let run = Qnnscope::on(&runtime_247()).run_json(&library, flags).expect(0).first_run();
    assert_eq!((&run["pace"]["planned"], &run["pace"]["done"]), (&json!(20), &json!(20)));
    assert_eq!(samples(&run), [10, 10]);
    let ips = number(&run["throughput_ips"]);
    assert!(ips <= 100.5 && ips > 60.0, "time between launches is in no throughput: {ips}");
}

#[test]
fn sessions_of_earlier_versions_are_one_launch() {
    for name in ["quiet-cpu-float.jsonl", "quiet-cpu-int8.jsonl"] {
        let (document, text) = replayed(&repo("tests/data/sessions").join(name));
        let run = &document["runs"][0];
        let rows = run["latency_us"]["launches"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["samples"]), (1, &run["latency_us"]["samples"]), "{name}");
        assert_eq!((&rows[0]["p50"], &rows[0]["mean"]), (&run["latency_us"]["p50"], &run["latency_us"]["mean"]));
        assert_eq!(run["latency_us"]["between_launches"]["launches"], 1);
        assert_eq!(run["mode"]["launches"], json!({"planned": 1, "limit": 1, "seed": 0}));
        assert!(!text.contains("launches p50"), "{text}");
    }
}

#[test]
fn a_pinned_runner_stays_on_its_cores() {
    let (call, _) = counted("");
    let mut running = in_the_second_launch(call, "-b cpu --launches 2 --duration 8s --pin 0");
    let runner = running.runner();
    // All its threads: QNN's CPU backend pins its own to cores of its choice when it starts them.
    let tasks = std::fs::read_dir(format!("/proc/{runner}/task")).unwrap().flatten();
    let cores = |status: String| {
        status.lines().find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
    };
    let seen: Vec<Option<String>> =
        tasks.map(|task| cores(std::fs::read_to_string(task.path().join("status")).unwrap_or_default())).collect();
    assert!(seen.len() > 2 && seen.iter().flatten().all(|cores| cores == "0"), "{seen:?}");
    let run = running.wait().expect(0).first_run();
    let settings = run["settings"].as_array().unwrap();
    let pins: Vec<&Value> = settings.iter().filter(|setting| setting["key"] == "--pin").collect();
    assert_eq!(pins.len(), 1, "told once: {settings:?}");
    assert_eq!((&pins[0]["value"], &pins[0]["outcome"]), (&json!("0"), &json!("applied")));

    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 2 --pin 900").expect(0);
    let settings = done.first_run()["settings"].clone();
    let refused = settings.as_array().unwrap().iter().find(|setting| setting["key"] == "--pin").unwrap().clone();
    assert_eq!(refused["outcome"], "refused");
    assert!(done.stderr.contains("--pin 900"), "{}", done.stderr);
}

/// The cores that each thread of a process may use, by thread; the process's first thread comes first.
fn allowed(pid: u32) -> Vec<(String, String)> {
    let mut tasks: Vec<u32> = std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flatten()
        .map(|task| task.file_name().to_str().unwrap().parse().unwrap())
        .collect();
    tasks.sort_unstable();
    let cores = |task: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/task/{task}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        (task.to_string(), line.trim().to_owned())
    };
    tasks.iter().map(cores).collect()
}

fn pins(run: &Value) -> Vec<(String, String)> {
    let settings = run["settings"].as_array().unwrap().iter().filter(|setting| setting["key"] == "--pin");
    settings
        .map(|setting| (setting["value"].as_str().unwrap().into(), setting["outcome"].as_str().unwrap().into()))
        .collect()
}

#[test]
fn the_calling_thread_is_with_the_first_of_the_backends_unless_threads_are_left_free() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let placed = |flags: &str| {
        let (call, _) = counted("");
        let mut running = in_the_second_launch(call, &format!("-b cpu --launches 2 --duration 6s {flags}"));
        let pid = running.runner();
        let seen = allowed(pid);
        (seen, pins(&running.wait().expect(0).first_run()))
    };
    for flags in ["", "--pin spread"] {
        let (seen, pins) = placed(flags);
        assert_eq!(pins, [("spread".to_owned(), "applied".to_owned())], "told once");
        let single: Vec<&str> = seen.iter().map(|(_, cores)| &**cores).filter(|c| c.parse::<u32>().is_ok()).collect();
        // The caller is the first thread; the backend's threads follow in the order of their creation.
        assert!(seen[0].1.parse::<u32>().is_ok() && single.len() > 1, "{seen:?}");
        assert_eq!(single[0], single[1], "{seen:?}");
        let mut own: Vec<&str> = single[1..].to_vec();
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), (single.len() - 1).min(cores), "a core each: {seen:?}");
    }
    let (seen, pins) = placed("--pin free");
    assert_eq!(pins, [("free".to_owned(), "applied".to_owned())]);
    assert!(cores == 1 || seen[0].1.parse::<u32>().is_err(), "{seen:?}");
}

#[test]
fn spreading_says_where_it_cannot() {
    let run = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "-b htp -n 2 --profiling off").expect(0).first_run();
    assert!(pins(&run).is_empty(), "nobody asked: {}", run["settings"]);
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-b cpu -n 2 --pin spread:900").expect(0);
    assert_eq!(pins(&done.first_run()), [("spread:900".to_owned(), "refused".to_owned())]);
    let done = Qnnscope::without_runtime().args(["run", "m.dlc", "--pin", "spread:"]).finish().expect(2);
    assert!(done.stderr.contains("spread:0-3"), "{}", done.stderr);
}

#[test]
fn bench_check_says_which_differences_can_be_told_here() {
    let dir = tempfile::tempdir().unwrap();
    let library = quick(dir.path());
    let (call, pids) = counted("");
    let done = call
        .within(Duration::from_secs(90))
        .args(["bench-check", "--json", "-n", "5", "--time", "20s", "--record", "session"])
        .arg(&library)
        .finish()
        .expect(0)
        .leaves_nothing_behind();
    let document = done.json();
    crate::support::schema::fits(&crate::support::schema::read("bench-check.schema.json"), &document);
    let made = document["medians_us"].as_array().unwrap().len();
    assert!(made >= 3 && made.abs_diff(runners(&pids).len()) <= 1, "{made} of {}", runners(&pids).len());
    assert_eq!((&document["backend"], &document["inferences_per_launch"]), (&json!("cpu"), &json!(5)));
    let tells = document["tells"].as_array().unwrap();
    assert!(tells.is_sorted_by(|few, many| number(&few["difference_percent"]) > number(&many["difference_percent"])));
    assert!(tells.is_sorted_by(|few, many| number(&few["seconds"]) < number(&many["seconds"])));
    assert!(number(&document["seconds"]) < 30.0, "it keeps to its time");
    // What is printed matches the session.
    let mut store = Store::new();
    records(&done.home().join("session")).iter().for_each(|record| store.apply(record));
    let text = qnnscope::report::bench_check_text(&qnnscope::report::BenchCheckDocument::new(&store).unwrap());
    for part in ["resolves a difference of", "takes launches", "A/A: "] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn bench_check_without_time_for_three_launches_says_so() {
    let (call, _) = counted("");
    let done = call.args(["bench-check", "-n", "1000000", "--time", "2s"]).arg(demo_float()).finish().expect(1);
    assert!(done.stderr.contains("fewer than 3 launches") && done.stderr.contains("--time"), "{}", done.stderr);
    let (call, _) = counted("");
    let done = call.args(["bench-check", "missing.dlc"]).finish().expect(2);
    assert!(done.stderr.contains("missing.dlc"), "{}", done.stderr);
}

#[test]
fn ctrl_c_ends_bench_check() {
    let dir = tempfile::tempdir().unwrap();
    let library = quick(dir.path());
    let (call, pids) = counted("");
    let mut running = call.args(["bench-check", "-n", "5"]).arg(&library).start();
    running.until("a fourth launch", || (runners(&pids).len() >= 5).then_some(()));
    running.signal(Signal::INT);
    let done = running.wait().expect(130).leaves_nothing_behind();
    assert!(done.text().contains("resolves a difference of"), "{}", done.text());
}
