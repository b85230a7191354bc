//! The history end to end: runs are kept, found again, shown, marked, exported and removed; and what a killed
//! run leaves behind.

#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, demo_float, demo_int8, runtime_247};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A data folder shared by several calls.
struct Lab {
    data: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap() }
    }

    fn call(&self) -> Qnnscope {
        Qnnscope::on(&runtime_247()).env("QNNSCOPE_DATA_DIR", self.data.path()).env("XDG_CONFIG_HOME", self.config())
    }

    fn config(&self) -> PathBuf {
        self.data.path().join("config")
    }

    fn run(&self, model: &Path, flags: &str) -> Done {
        self.call().run_json(model, &format!("--profiling off --warmup 0 {flags}"))
    }

    fn ask(&self, flags: &str) -> Done {
        self.call().flags(flags).finish()
    }

    fn sessions(&self, flags: &str) -> Vec<Value> {
        let document = self.ask(&format!("sessions --json {flags}")).expect(0).json();
        crate::support::schema::fits(&crate::support::schema::read("sessions.schema.json"), &document);
        document["sessions"].as_array().unwrap().clone()
    }

    fn folder(&self) -> PathBuf {
        self.data.path().join("sessions")
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder())
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".jsonl.zst"))
            .collect();
        names.sort();
        names
    }
}

fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

#[test]
fn runs_are_kept_and_shown_as_they_were_printed() {
    let lab = Lab::new();
    assert_eq!(lab.sessions(""), [] as [Value; 0]);
    assert!(lab.ask("show @last").expect(2).stderr.contains("the history has no session `last`"));
    let first = lab.run(&demo_float(), "-b cpu -n 12").expect(0).json();
    let second = lab.call().flags("run --json -n 10 --profiling-iterations 4 -b cpu,htp").arg(demo_int8()).finish();
    let second = second.expect(0).json();
    let listed = lab.sessions("");
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["runs"].as_array().unwrap().len(), 2, "newest first");
    assert_eq!(listed[1]["runs"][0]["inferences"], 12);
    assert_eq!(listed[1]["runs"][0]["p50_us"], first["runs"][0]["latency_us"]["p50"]);
    assert_eq!((&listed[0]["state"], &listed[0]["runs"][1]["status"]), (&"whole".into(), &"ok".into()));
    assert_eq!(lab.ask("show @last --json").expect(0).json(), second);
    assert_eq!(lab.ask("show --json @last~1").expect(0).json(), first);
    let text = lab.ask("show @last").expect(0).text();
    assert!(text.contains("== cpu on local") && text.contains("== htp on local"), "{text}");
    let table = lab.ask("sessions").expect(0).text();
    assert!(table.lines().count() == 4 && table.contains("qnnscope-demo-int8.dlc (simulated)"), "{table}");
    // Sessions in the history can be used like any other file.
    let compared = lab.ask("compare --json @last#cpu @last~1").expect(0).json();
    assert_eq!(compared["columns"].as_array().unwrap().len(), 2);
    // So can the documents that runs print.
    let saved = lab.data.path().join("second.json");
    std::fs::write(&saved, serde_json::to_vec(&second).unwrap()).unwrap();
    let shown = lab.call().args(["show", "--json"]).arg(&saved).finish().expect(0);
    assert_eq!(shown.json(), second);
    let text = lab.call().arg("show").arg(&saved).finish().expect(0).text();
    assert!(text.contains("== htp on local  [simulated]") && text.contains("of 10 inferences"), "{text}");
    assert!(text.contains("layers     the 15 slowest of"), "{text}");
}

#[test]
fn sessions_are_filtered_marked_and_found_after_the_index_is_lost() {
    let lab = Lab::new();
    lab.run(&demo_float(), "-b cpu -n 3").expect(0);
    lab.run(&demo_int8(), "-b htp -n 3").expect(0);
    lab.run(&demo_int8(), "-b gpu -n 3").expect(1);
    let all = lab.sessions("");
    let ids: Vec<&str> = all.iter().map(id).collect();
    for (flags, expected) in [
        ("--model FLOAT", vec![ids[2]]),
        ("--backend htp", vec![ids[1]]),
        ("--on local --model int8", vec![ids[0], ids[1]]),
        ("--on pixel", vec![]),
        ("--since 2020-01-01 -n 1", vec![ids[0]]),
        ("--until 2020-01-01", vec![]),
        ("--text backend", vec![ids[0]]),
    ] {
        let found = lab.sessions(flags);
        assert_eq!(found.iter().map(id).collect::<Vec<_>>(), expected, "{flags}");
    }
    lab.ask("sessions tag last~1 nightly v2").expect(0);
    lab.ask("sessions tag last~1 v2 --remove").expect(0);
    lab.call().args(["sessions", "note", "last~2", "with the \u{1b}[31mnew\u{1b}[0m driver"]).finish().expect(0);
    let shown = lab.ask("sessions rename last~2 reference").expect(0).text();
    assert!(shown.contains("reference") && shown.contains("driver") && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(lab.sessions("--tag nightly").iter().map(id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(lab.sessions("--tag v2").len(), 0);
    assert_eq!(lab.sessions("--text DRIVER").iter().map(id).collect::<Vec<_>>(), [ids[2]]);
    assert!(lab.ask("sessions rename last reference").expect(2).stderr.contains("already has the name `reference`"));
    // Words that select sessions in other ways, and a name too long for any list.
    for name in ["last", "last~1", "@mine", "x#htp", "20261122", ids[0], &"n".repeat(101)] {
        let refused = lab.call().args(["sessions", "rename", "last", name]).finish().expect(2);
        assert!(refused.stderr.contains("a session cannot have the name"), "{}", refused.stderr);
    }
    lab.call().args(["sessions", "tag", "last", &"t".repeat(100_000)]).finish().expect(2);
    lab.call().args(["sessions", "note", "last", &"n".repeat(100_000)]).finish().expect(2);
    lab.ask("sessions rename reference reference").expect(0);
    let before = lab.sessions("");
    let index = lab.folder().join("index.sqlite");
    for damage in [None, Some("no database at all, but long enough to look at".repeat(100))] {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(lab.folder().join(format!("index.sqlite{ending}")));
        }
        if let Some(text) = damage {
            std::fs::write(&index, text).unwrap();
        }
        assert_eq!(lab.sessions(""), before, "made anew from the files");
    }
    // A damaged file of marks is still the user's.
    let marks = lab.folder().join(format!("{}.json", ids[2]));
    let whole = std::fs::read(&marks).unwrap();
    std::fs::write(&marks, &whole[..whole.len() / 2]).unwrap();
    std::fs::remove_file(&index).unwrap();
    let listed = lab.sessions("");
    assert!(listed[2]["marks_error"].is_string() && listed[2]["name"].is_null(), "{}", listed[2]);
    assert!(lab.ask("sessions").expect(0).stderr.contains("cannot be read"));
    let refused = lab.call().args(["sessions", "note", ids[2], "new"]).finish().expect(2);
    assert!(refused.stderr.contains("next: repair the file"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&marks).unwrap(), whole[..whole.len() / 2]);
    std::fs::write(&marks, &whole).unwrap();
    assert_eq!(lab.sessions(""), before, "mended");
    assert_eq!(lab.ask("show --json @reference").expect(0).json()["runs"][0]["latency_us"]["samples"], 3);

    let out = lab.data.path().join("out.jsonl");
    lab.call().args(["sessions", "export", "reference"]).arg(&out).finish().expect(0);
    assert!(std::fs::read_to_string(&out).unwrap().starts_with("{\"seq\":0,"));
    let packed = lab.data.path().join("out.jsonl.zst");
    lab.call().args(["sessions", "export", "reference"]).arg(&packed).finish().expect(0);
    for file in [&out, &packed] {
        let document = lab.call().args(["show", "--json"]).arg(file).finish().expect(0).json();
        assert_eq!(document["runs"][0]["latency_us"]["samples"], 3);
    }
    std::fs::write(&out, "mine").unwrap();
    lab.call().args(["sessions", "export", "reference"]).arg(&out).finish().expect(2);
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");

    lab.ask("sessions delete last reference").expect(0);
    assert_eq!(lab.sessions("").iter().map(id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(lab.files().len(), 1);
    assert!(lab.ask("sessions delete nothing").expect(2).stderr.contains("next: `qnnscope sessions` lists them"));
}

#[test]
fn what_is_kept_has_limits_and_can_be_switched_off() {
    let lab = Lab::new();
    let config = lab.config().join("qnnscope/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    lab.run(&demo_float(), "-b cpu -n 1 --no-history").expect(0);
    assert!(!lab.folder().exists());
    std::fs::write(&config, "[history]\nkeep = false\n").unwrap();
    lab.run(&demo_float(), "-b cpu -n 1").expect(0);
    assert!(!lab.folder().exists());
    std::fs::write(&config, "[history]\nmax_sessions = 2\n").unwrap();
    lab.run(&demo_float(), "-b cpu -n 1").expect(0);
    lab.ask("sessions tag last keep-me").expect(0);
    for _ in 0..4 {
        lab.run(&demo_float(), "-b cpu -n 1").expect(0);
    }
    assert_eq!(lab.files().len(), 3, "two, and the one with a tag");
    assert_eq!(lab.sessions("--tag keep-me").len(), 1);
    std::fs::write(&config, "[history]\nmax_session = 2\n").unwrap();
    let done = lab.run(&demo_float(), "-b cpu -n 1").expect(0);
    assert!(done.stderr.contains("the history does not keep this session") && done.stderr.contains("max_session"));
    // A folder that cannot be written to does not prevent a run.
    std::fs::remove_file(&config).unwrap();
    std::fs::remove_dir_all(lab.folder()).unwrap();
    std::fs::write(lab.folder(), "a file").unwrap();
    let done = lab.run(&demo_float(), "-b cpu -n 1").expect(0);
    assert!(done.stderr.contains("note: the history does not keep this session"), "{}", done.stderr);
}

#[test]
fn a_killed_run_leaves_a_session_that_says_so_with_its_stage() {
    let lab = Lab::new();
    let flags = "--json -b cpu --duration 60s --profiling off --warmup 0 --launches 1 --record mine.jsonl.zst";
    let mut running = lab.call().arg("run").arg(demo_float()).flags(flags).start();
    let folder = lab.folder();
    running.until("a kept session with inferences", || {
        let file = std::fs::read_dir(&folder)
            .ok()?
            .flatten()
            .find(|file| file.path().extension().is_some_and(|e| e == "zst"))?;
        let opened = qnnscope::session::read_any(&file.path()).ok()??;
        (opened.store.runs().first()?.clean.count() > 100).then_some(())
    });
    let listed = lab.sessions("");
    assert_eq!(listed[0]["state"], "recording");
    assert!(lab.ask("sessions delete last").expect(2).stderr.contains("is being recorded"));
    let mine = running.home().join("mine.jsonl.zst");
    running.signal(Signal::KILL);
    let kept = lab.data.path().join("kept.zst");
    running.until("its copy", || std::fs::copy(&mine, &kept).ok().map(drop));
    let done = running.wait();
    assert!(done.status.code().is_none());
    let listed = lab.sessions("");
    assert_eq!((&listed[0]["state"], &listed[0]["runs"][0]["status"]), (&"cut_off".into(), &"unfinished".into()));
    assert_eq!(listed[0]["runs"][0]["error"], "the session ended in stage execute");
    for file in [lab.folder().join(&lab.files()[0]), kept] {
        let shown = lab.call().arg("show").arg(&file).finish().expect(0);
        assert!(shown.text().contains("unfinished: it was in stage execute"), "{}", shown.text());
        assert!(shown.stderr.contains("the session was cut off") && shown.stderr.contains("in stage execute"));
        let document = lab.call().args(["show", "--json"]).arg(&file).finish().expect(0).json();
        assert_eq!(document["runs"][0]["error"]["stage"], "execute");
    }
}

#[test]
fn runs_at_once_keep_a_session_each_and_a_full_disk_is_no_failure() {
    let lab = Lab::new();
    let flags = "--json -b cpu -n 200 --profiling off --warmup 0 --launches 1";
    let started: Vec<_> = (0..4).map(|_| lab.call().arg("run").arg(demo_float()).flags(flags).start()).collect();
    for running in started {
        running.wait().expect(0);
    }
    let listed = lab.sessions("");
    assert_eq!((listed.len(), lab.files().len()), (4, 4));
    assert!(listed.iter().all(|session| session["state"] == "whole"), "{listed:#?}");

    // 20 blocks of 1,024 bytes: the session does not fit; the index exists already and is not touched before.
    let script = format!("ulimit -f 20; exec \"$0\" run \"$1\" {flags} --log-level debug --profiling detailed");
    let script = script.replace("--profiling off", "");
    let output = std::process::Command::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_qnnscope")])
        .arg(demo_int8())
        .env("QNNSCOPE_DATA_DIR", lab.data.path())
        .env("QNNSCOPE_RUNTIME", runtime_247())
        .env("XDG_CONFIG_HOME", lab.config())
        .current_dir(lab.data.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the history keeps this session only up to here"), "{said}");
    let listed = lab.sessions("");
    assert_eq!((listed.len(), &listed[0]["state"]), (5, &"cut_off".into()), "what was written is listed");
}

#[test]
fn the_historys_runs_of_the_same_thing_count_as_launches() {
    let lab = Lab::new();
    let flags = "-b cpu -n 60 --launches 2 --seed 1";
    for _ in 0..3 {
        lab.run(&demo_float(), flags).expect(0);
    }
    // Another model, other settings, and the run itself as a document: none of these counts as one more
    // launch.
    lab.run(&demo_int8(), flags).expect(0);
    lab.run(&demo_float(), "-b cpu -n 60 --launches 2 --seed 2").expect(0);
    let mine = lab.data.path().join("mine.json");
    let run = lab.run(&demo_float(), flags).expect(0);
    std::fs::write(&mine, &run.stdout).unwrap();
    let other = lab.data.path().join("other.json");
    std::fs::write(&other, lab.run(&demo_int8(), &format!("{flags} --no-history")).expect(0).stdout).unwrap();
    let compared = |more: &str| {
        let done = lab.call().args(["compare", "--json"]).arg(&mine).arg(&other).flags(more).finish();
        done.expect(0).json()["columns"].clone()
    };
    let launches = |columns: &Value, at: usize| columns[at]["launches"].as_u64().unwrap_or_else(|| panic!("{columns}"));
    let alone = compared("");
    assert_eq!((launches(&alone, 0), launches(&alone, 1)), (2, 2));
    let with = compared("--history");
    assert_eq!((launches(&with, 0), launches(&with, 1)), (8, 4), "{with}");
    assert!(with[0]["notes"].to_string().contains("with 3 of the history's runs"), "{with}");
    // If both sides are the same thing, they are left alone.
    let twice = lab.ask("compare --json --history @last @last~5").expect(0).json()["columns"].clone();
    assert!(twice[0]["notes"].to_string().contains("the history is not used"), "{twice}");
    assert_eq!((launches(&twice, 0), launches(&twice, 1)), (2, 2));
}
