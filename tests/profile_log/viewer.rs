//! What the vendor's viewer prints for logs of real runs.

use super::{csv, fixture, json, logs, read, read_text, text};
use serde_json::{Value, json};

/// Logs for which the viewer's text is wrong, or that are not logs: several sessions in one average, an
/// all-zero report for an empty file.
const OTHER_TEXT: [&str; 3] = ["api-appended", "ort-cpu-cls-2sessions-2inf-detailed", "net-run-failed-0bytes"];

#[test]
fn csv_rows_are_the_viewers() {
    let mut compared = 0;
    for name in logs().iter().filter(|name| *name != "not-a-log") {
        let expected = read_text(&format!("{name}.csv"));
        let ours = csv(&read(&format!("{name}.log")), &format!("{name}.log"));
        // The second line names the program.
        let same = |text: &str| {
            text.lines().enumerate().filter(|(i, _)| *i != 1).map(|(_, line)| line.to_owned()).collect::<Vec<_>>()
        };
        for (line, (ours, expected)) in same(&ours).iter().zip(same(&expected)).enumerate() {
            assert_eq!(*ours, expected, "{name}, line {line}");
            compared += 1;
        }
        assert_eq!(ours.lines().count(), expected.lines().count(), "{name}");
        assert_eq!(ours.lines().nth(1), Some(concat!("qnnscope version, v", env!("CARGO_PKG_VERSION"))));
    }
    assert!(compared > 30_000, "{compared} lines");
}

#[test]
fn text_is_the_viewers_where_that_is_right() {
    let mut compared = 0;
    for name in logs() {
        if OTHER_TEXT.contains(&name.as_str()) || !fixture(&format!("{name}.txt")).exists() {
            continue;
        }
        let ours = text(&read(&format!("{name}.log")), &format!("{name}.log"));
        let ours =
            ours.replace(concat!("qnnscope           v", env!("CARGO_PKG_VERSION")), "VERSION").replace(" UTC\n", "\n");
        let expected: String =
            read_text(&format!("{name}.txt"))
                .lines()
                // Printed for one log, and not true: there is no queue-wait event in it.
                .filter(|line| !line.starts_with("Multiple queue-wait"))
                .map(|line| {
                    if line.starts_with("qnn-profile-viewer v") { "VERSION\n".to_owned() } else { format!("{line}\n") }
                })
                .collect();
        assert_eq!(ours, expected, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 37, "logs with a text");
}

/// One of our events in the viewer's terms.
fn as_viewer(event: &Value) -> Value {
    let unit = match event["unit"].as_str().unwrap() {
        "us" => "MICROSEC",
        "cycles" => "CYCLES",
        "count" => "COUNT",
        other => panic!("{other}"),
    };
    let kind = match event["type"].as_str() {
        Some("queue_wait") => "EXECUTE_QUEUE_WAIT".to_owned(),
        Some("pre_process") => "EXECUTE_PREPROCESS".to_owned(),
        Some("post_process") => "EXECUTE_POSTPROCESS".to_owned(),
        Some("device") => "EXECUTE_DEVICE".to_owned(),
        Some("de_init") => "DEINIT".to_owned(),
        Some(other) => other.to_uppercase(),
        None if event["type"] == 0 => "NONE".to_owned(),
        None => String::new(),
    };
    let mut same = json!({"unit": unit, "type": kind, "value": event["value"]});
    if !event["identifier"].is_null() {
        same["identifier"] = event["identifier"].clone();
    }
    if !event["events"].is_null() {
        same["sub-events"] = event["events"].as_array().unwrap().iter().map(as_viewer).collect();
    }
    same
}

#[test]
fn every_field_and_every_level_is_kept() {
    let (mut compared, mut levels) = (0, 0);
    for name in logs() {
        if !fixture(&format!("{name}.json")).exists() {
            continue;
        }
        let expected: Value = serde_json::from_str(&read_text(&format!("{name}.json"))).unwrap();
        let ours = json(&read(&format!("{name}.log")));
        let session = &ours["sessions"][0];
        assert_eq!(ours["sessions"].as_array().unwrap().len(), 1, "{name}");
        assert_eq!(session["header"]["epoch_us"], expected["metadata"]["epochTime"]);
        assert_eq!(session["header"]["steady_us"], expected["metadata"]["timestamp"]);
        assert_eq!(session["header"]["backend_version"], expected["metadata"]["backendVersion"]);
        assert_eq!(session["header"]["writer_version"], expected["metadata"]["qnnNetRunVersion"]);
        assert_eq!(session["header"]["format_version"], "2.0.0");
        let (ours, expected) = (session["messages"].as_array().unwrap(), expected["messages"].as_array().unwrap());
        assert_eq!(ours.len(), expected.len(), "{name}");
        for (ours, expected) in ours.iter().zip(expected) {
            assert_eq!(ours["time_us"], expected["header"]["timestamp"]);
            assert_eq!(ours["seq"], expected["header"]["sequenceNumber"]);
            let metrics = &expected["appMetrics"];
            for (key, theirs) in [
                ("start_us", "startTime"),
                ("stop_us", "stopTime"),
                ("start_memory_bytes", "startMem"),
                ("stop_memory_bytes", "stopMem"),
            ] {
                let number = |value: &Value| value.as_u64().unwrap_or_default();
                assert_eq!(number(&ours["interval"][key]), number(&metrics[theirs]), "{name} {key}");
            }
            let method = match expected["method"].as_str().unwrap() {
                "BACKEND_DEINIT" => "de_init".to_owned(),
                // The viewer has no name for this one.
                "" => "library_load".to_owned(),
                other => other.trim_start_matches("BACKEND_").trim_start_matches("APP_").to_lowercase(),
            };
            assert_eq!(ours["method"], method.as_str());
            let events: Vec<Value> = ours["events"].as_array().unwrap().iter().map(as_viewer).collect();
            let theirs = expected["profilingEvents"].as_array().cloned().unwrap_or_default();
            assert_eq!(events, theirs, "{name}");
            compared += 1;
            levels = levels.max(events.iter().map(depth).max().unwrap_or_default());
        }
    }
    assert_eq!((compared, levels), (82, 4));
}

fn depth(event: &Value) -> usize {
    1 + event["sub-events"].as_array().into_iter().flatten().map(depth).max().unwrap_or_default()
}

#[test]
fn documents_fit_their_schema() {
    let schema: Value =
        serde_json::from_slice(&std::fs::read(crate::support::repo("docs/profile-log.schema.json")).unwrap()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut messages = 0;
    for name in logs().iter().filter(|name| *name != "not-a-log") {
        let document = json(&read(&format!("{name}.log")));
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {:#?}", &errors[..errors.len().min(5)]);
        messages += document["messages"].as_u64().unwrap();
    }
    assert!(messages > 4000);
    // And it rejects what is never printed.
    let good = json(&read("api-methods.log"));
    for (pointer, value) in [
        ("/schema", json!("qnnscope.profile-log/2")),
        ("/sessions/0/messages/0/method", json!("dance")),
        ("/sessions/0/messages/0/events/0/unit", json!(-1)),
        ("/sessions/0/messages/0/events/0/value", json!("4")),
        ("/sessions/0/messages/0/interval/start_us", json!(null)),
        ("/graphs/0/sessions", json!(0)),
        ("/graphs/0/ops/0/total", json!("many")),
        ("/graphs/0/netrun_us/surprise", json!(1)),
        ("/incomplete_bytes", json!(null)),
    ] {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = value;
        assert!(!validator.is_valid(&bad), "{pointer}");
    }
}
