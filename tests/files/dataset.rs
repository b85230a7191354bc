//! The Parquet dataset, read by DuckDB: the questions of docs/dataset.md have answers, and these agree with
//! the result documents.

#![cfg(target_os = "linux")]

use crate::support::{Qnnscope, demo_float, demo_int8, number, python_packages, repo, runtime_247};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// DuckDB's answer, as one object per row.
fn ask(folder: &Path, sql: &str) -> Vec<Value> {
    // Already as JSON: for timestamps, Python would need more packages.
    const SCRIPT: &str = "
import duckdb, sys
sql = sys.stdin.read().strip().rstrip(';')
rows = duckdb.sql('SELECT to_json(q)::VARCHAR FROM (' + sql + ') q').fetchall()
print('[' + ','.join(row[0] for row in rows) + ']')
";
    let packages = python_packages("duckdb", "duckdb");
    let mut child = Command::new("python3")
        .args(["-c", SCRIPT])
        .env("PYTHONPATH", &packages)
        .env("TZ", "UTC")
        .current_dir(folder)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), sql.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{sql}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The queries of the docs.
fn questions() -> Vec<String> {
    let text = std::fs::read_to_string(repo("docs/dataset.md")).unwrap();
    let blocks = text.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// Every column that docs/dataset.md names, by table.
fn documented(table: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(repo("docs/dataset.md")).unwrap();
    let part = text.split(&format!("\n`{table}`: ")).nth(1).unwrap();
    let rows = part.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    let names = rows.flat_map(|row| {
        let cell = row.split('|').nth(1).unwrap().to_owned();
        cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

#[test]
fn duckdb_answers_the_questions_of_the_docs() {
    let data = tempfile::tempdir().unwrap();
    let call = || Qnnscope::on(&runtime_247()).env("QNNSCOPE_DATA_DIR", data.path());
    let both =
        call().run_json(&demo_int8(), "-b cpu,htp --profiling-iterations 8 --duration 2s --launches 2").expect(0);
    let failed = call().run_json(&demo_float(), "-b gpu -n 1").expect(1);
    let folder = data.path().join("dataset");
    let export = |expected: &str| {
        let done = call().args(["export", "--parquet"]).arg(&folder).finish().expect(0);
        assert!(done.text().contains(expected), "{}", done.text());
    };
    export("2 sessions added");
    let files = || {
        let listed = Command::new("find").arg(&folder).args(["-type", "f", "-printf", "%P %T@ %i\n"]).output().unwrap();
        String::from_utf8(listed.stdout).unwrap().lines().map(ToOwned::to_owned).collect::<BTreeSet<_>>()
    };
    let before = files();
    assert!(before.iter().all(|name| name.contains("/date=20") && name.contains(".parquet ")), "{before:?}");
    export("0 sessions added");
    assert_eq!(files(), before, "nothing is rewritten");
    call().run_json(&demo_float(), "-b cpu -n 20 --profiling off").expect(0);
    export("1 session added");
    assert!(files().is_superset(&before));

    let (both, failed) = (both.json(), failed.json());
    let rows = ask(data.path(), "SELECT * FROM 'dataset/runs/**/*.parquet' ORDER BY started_at, run");
    assert_eq!(rows.len(), 4);
    for (row, run) in rows.iter().zip(both["runs"].as_array().unwrap()) {
        assert_eq!(
            (&row["backend"], &row["status"], &row["simulated"]),
            (&run["backend"], &run["status"], &run["simulated"])
        );
        for (column, figure) in [("p50_us", "p50"), ("mean_us", "mean"), ("max_us", "max"), ("p99_us", "p99")] {
            assert_eq!(row[column], run["latency_us"][figure], "{column}");
        }
        assert_eq!(row["launches"], 2);
        assert_eq!(row["model_sha256"], both["model"]["sha256"]);
        assert_eq!(row["macs"], both["model"]["macs"]);
        let started = row["started_at"].as_str().unwrap();
        assert_eq!(started[..13].replace(' ', "T"), both["started_at"].as_str().unwrap()[..13]);
    }
    assert_eq!(
        (&rows[2]["status"], &rows[2]["failed_stage"]),
        (&"failed".into(), &failed["runs"][0]["error"]["stage"])
    );
    assert!(rows[2]["p50_us"].is_null(), "unknown is null");
    for table in ["runs", "inferences", "ops", "counters"] {
        let row = &ask(data.path(), &format!("SELECT * EXCLUDE (date) FROM 'dataset/{table}/**/*.parquet' LIMIT 1"))[0];
        let columns: BTreeSet<String> = row.as_object().unwrap().keys().cloned().collect();
        assert_eq!(columns, documented(table), "{table} is as documented");
    }
    // By nearest rank, as in results: with few samples, a median between the middle two would be another
    // figure.
    let clean = "SELECT run, count(*) AS n, list_sort(list(latency_us))[(count(*) + 1) // 2] AS p50 FROM 'dataset/inferences/**/*.parquet' \
                 JOIN 'dataset/runs/**/*.parquet' USING (session, run) WHERE phase = 'clean' AND launches = 2 \
                 GROUP BY run ORDER BY run";
    for (row, run) in ask(data.path(), clean).iter().zip(both["runs"].as_array().unwrap()) {
        assert_eq!(row["n"], run["latency_us"]["samples"]);
        let (here, there) = (number(&row["p50"]), number(&run["latency_us"]["p50"]));
        assert!((here - there).abs() <= 0.01 * there, "{here} {there}");
    }
    let ops = ask(
        data.path(),
        "SELECT run, name, avg(value) AS mean FROM 'dataset/ops/**/*.parquet' WHERE unit = 'cycles' GROUP BY ALL",
    );
    let measured: Vec<&Value> =
        both["runs"][1]["ops"].as_array().unwrap().iter().filter(|op| !op["cycles"].is_null()).collect();
    assert_eq!(ops.len(), measured.len());
    for op in measured {
        let row = ops.iter().find(|row| row["name"] == op["name"]).unwrap();
        assert!((number(&row["mean"]) - number(&op["cycles"]["mean"])).abs() < 1e-6, "{op}");
    }
    let answers: Vec<Vec<Value>> = questions().iter().map(|sql| ask(data.path(), sql)).collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|rows| !rows.is_empty()), "{answers:?}");
    assert!(
        answers[1].iter().any(|row| row["op_type"] == "Conv2d" && number(&row["share"]) > 0.05),
        "{:?}",
        answers[1]
    );
}

#[test]
fn what_cannot_be_exported_is_told() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("notes");
    std::fs::write(&file, "mine").unwrap();
    let done = Qnnscope::without_runtime().args(["export", "--parquet", "d"]).arg(&file).finish().expect(1);
    assert!(done.stderr.contains("is neither a result document nor a session"), "{}", done.stderr);
    let done = Qnnscope::without_runtime().args(["export", "--parquet"]).arg(&file).finish().expect(0);
    assert!(done.text().starts_with("0 sessions added"), "an empty history");
}

/// Files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files_below(&entry)) } else { found.push(entry) }
    }
    found.sort();
    found
}

#[test]
fn what_is_missing_or_broken_is_mended_and_nothing_is_written_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("d");
    let session = repo("tests/data/sessions/quiet-cpu-float.jsonl");
    let export = || Qnnscope::without_runtime().args(["export", "--parquet"]).args([&folder, &session]).finish();
    assert!(export().expect(0).text().starts_with("1 session added"));
    let whole = files_below(&folder);
    assert!(whole.len() >= 3, "{whole:?}");
    let contents: Vec<Vec<u8>> = whole.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for (file, content) in whole.iter().zip(&contents) {
        for damage in [None, Some(&b"junk"[..]), Some(&[]), Some(&content[..content.len() / 2])] {
            std::fs::remove_file(file).unwrap();
            if let Some(damage) = damage {
                std::fs::write(file, damage).unwrap();
            }
            let text = export().expect(0).text();
            assert!(text.contains("1 session added") && text.contains("1 of them repaired"), "{file:?}: {text}");
            assert_eq!(std::fs::read(file).unwrap(), *content, "{file:?}");
        }
    }
    assert!(export().expect(0).text().contains("1 already in it"));
    // A foreign link: the file it points to is not ours to write.
    let other = home.path().join("other");
    std::fs::write(&other, "theirs").unwrap();
    std::fs::remove_file(&whole[0]).unwrap();
    std::os::unix::fs::symlink(&other, &whole[0]).unwrap();
    let refused = export().expect(1);
    assert!(refused.stderr.contains("is a symbolic link"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
    let table = folder.join("runs");
    std::fs::rename(&table, home.path().join("runs")).unwrap();
    std::os::unix::fs::symlink(home.path().join("runs"), &table).unwrap();
    assert!(export().expect(1).stderr.contains("is a symbolic link"));
}

#[test]
fn whatever_show_takes_can_be_added() {
    let home = tempfile::tempdir().unwrap();
    let session = repo("tests/data/sessions/quiet-cpu-float.jsonl");
    let result = home.path().join("result.json");
    let shown = Qnnscope::without_runtime().args(["show", "--json"]).arg(&session).finish().expect(0);
    std::fs::write(&result, &shown.stdout).unwrap();
    let files =
        [session, repo("tests/data/imports/ai-hub-v1.7.json"), repo("tests/data/imports/etdump.etdp"), result.clone()];
    let folder = home.path().join("dataset");
    let export = |files: &[PathBuf]| {
        Qnnscope::without_runtime().args(["export", "--parquet"]).arg(&folder).args(files).finish().expect(0).text()
    };
    assert!(export(&files).starts_with("4 sessions added"));
    assert!(export(&files).contains("0 sessions added") && export(&files).contains("4 already in it"));
    // A copy that was written later counts as the same file.
    let copy = home.path().join("copy.json");
    std::fs::write(&copy, std::fs::read(&files[1]).unwrap()).unwrap();
    assert!(export(&[copy]).contains("1 already in it"));
    let rows = ask(home.path(), "SELECT * FROM 'dataset/runs/**/*.parquet' ORDER BY driver, host NULLS LAST");
    assert_eq!(rows.len(), 4);
    let figures: Value = shown.json();
    let of = |column: &str, value: &str| rows.iter().filter(|row| row[column] == value).collect::<Vec<_>>();
    let imported: Vec<&Value> =
        rows.iter().filter(|row| row["driver"].as_str().unwrap().contains("another tool")).collect();
    assert_eq!(imported.len(), 2, "{rows:?}");
    // The session and its document have the same figures.
    let own = of("model_sha256", figures["model"]["sha256"].as_str().unwrap());
    assert_eq!(own.len(), 2);
    for column in
        ["model", "backend", "build_id", "status", "inferences", "p50_us", "mean_us", "max_us", "launches", "driver"]
    {
        assert_eq!(own[0][column], own[1][column], "{column}");
    }
}
