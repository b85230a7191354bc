//! Rules that no real log shows: sessions, truncated and growing logs, statistics.

use super::made::{Msg, Number, chunk, ev, msg};
use super::{drain, json, logs, messages, read, read_text, rows, text};
use qnnscope::backends::profile_log::{Decoder, ProfileLogError, write_csv, write_json, write_text};
use serde_json::{Value, json};
use std::io::Cursor;

fn execute(seq: u64, us: u64, graph: &str) -> Msg {
    msg(1, seq, us, graph, vec![ev("A", 400, us / 2)])
}

#[test]
fn bytes_may_arrive_in_any_pieces() {
    for name in ["api-methods", "api-appended", "ort-htp-3partitions-5inf-detailed", "htp-2op-q8-5inf-linting"] {
        let log = read(&format!("{name}.log"));
        let expected = messages(&log);
        assert!(expected.len() > 4);
        for size in [1, 2, 3, 7, 100, 1000, 5000] {
            let (mut decoder, mut found) = (Decoder::new(), Vec::new());
            for piece in log.chunks(size) {
                decoder.push(piece);
                drain(&mut decoder, &mut found).unwrap();
            }
            assert_eq!(found, expected, "{name} in pieces of {size}");
            assert_eq!((decoder.incomplete_bytes(), decoder.offset()), (0, log.len() as u64));
            decoder.finish().unwrap();
        }
    }
}

/// Yields one byte at a time.
struct Trickle<'a>(&'a [u8]);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        std::io::Read::read(&mut self.0, &mut room[..1])
    }
}

#[test]
fn a_chunk_is_handed_out_as_soon_as_it_is_whole() {
    let log = read("api-appended.log");
    let (mut decoder, mut source, mut ends) = (Decoder::new(), Trickle(&log), Vec::new());
    while decoder.read_from(&mut source, 4096).unwrap() > 0 {
        while let Some(chunk) = decoder.next_chunk().unwrap() {
            ends.push((chunk.index(), chunk.offset(), log.len() - source.0.len()));
        }
    }
    assert_eq!(ends, [(0, 0, 460), (1, 460, 656), (2, 656, 996)]);
}

#[test]
fn a_log_cut_anywhere_gives_its_whole_chunks() {
    let log = read("ort-htp-3partitions-5inf-detailed.log");
    let mut ends = vec![0];
    while *ends.last().unwrap() < log.len() {
        let at = *ends.last().unwrap();
        ends.push(at + 4 + u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize);
    }
    assert_eq!(ends.len(), 14);
    let expected = messages(&log);
    for cut in 0..log.len() {
        let whole = ends.iter().filter(|&&end| end <= cut && end > 0).count();
        let (mut decoder, mut found) = (Decoder::new(), Vec::new());
        decoder.push(&log[..cut]);
        drain(&mut decoder, &mut found).unwrap();
        decoder.finish().unwrap();
        assert_eq!(found, expected[..whole], "cut at {cut}");
        assert_eq!(decoder.incomplete_bytes(), (cut - ends[whole]) as u64);
        // Then it continues where it was.
        decoder.push(&log[cut..]);
        drain(&mut decoder, &mut found).unwrap();
        assert_eq!(found, expected, "cut at {cut} and grown");
    }
}

/// All sessions of a document as (messages, inferences of the first graph).
fn sessions(log: &[u8]) -> Vec<(usize, u64)> {
    let document = json(log);
    let sessions = document["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|session| {
            let count = session["graphs"][0]["inferences"].as_u64().unwrap_or_default();
            (session["messages"].as_array().unwrap().len(), count)
        })
        .collect()
}

#[test]
fn sessions_are_told_apart() {
    assert_eq!(sessions(&read("api-appended.log")), [(2, 2), (1, 1), (2, 2)]);
    assert_eq!(sessions(&read("ort-cpu-cls-2sessions-2inf-detailed.log")), [(3, 2), (3, 2)]);
    for name in logs() {
        if !matches!(
            name.as_str(),
            "api-appended"
                | "ort-cpu-cls-2sessions-2inf-detailed"
                | "not-a-log"
                | "net-run-failed-0bytes"
                | "truncated-in-first-chunk"
        ) {
            assert_eq!(sessions(&read(&format!("{name}.log"))).len(), 1, "{name}");
        }
    }
    let once = read("cpu-2op-20inf-detailed.log");
    assert_eq!(sessions(&once.repeat(3)), [(25, 20); 3]);
    // Without a header in between, and where one ends with the number that the next one begins with.
    let log = [chunk(Some("net"), &[execute(0, 5, "g")]), chunk(None, &[execute(0, 7, "g")])].concat();
    assert_eq!(sessions(&log), [(1, 1), (1, 1)]);
}

#[test]
fn text_of_several_sessions_is_one_report_each() {
    let log =
        [chunk(Some("net"), &[execute(0, 100, "g"), execute(1, 300, "g")]), chunk(None, &[execute(0, 1000, "g")])]
            .concat();
    let text = text(&log, "x");
    let (first, second) = text.split_once("Session 2:\n").unwrap();
    assert!(first.starts_with("Session 1:\nInput Log File Location: x\n"), "{first}");
    assert!(first.contains("    NetRun: 200 us\n    Backend (A): 100 us\n"), "{first}");
    assert!(second.contains("    NetRun: 1000 us\n    Backend (A): 500 us\n"), "{second}");
    // The viewer prints the mean over all of them for both.
    let viewers = read_text("api-appended.txt");
    assert!(viewers.contains("    NetRun: 200 us\n"));
    let ours = super::text(&read("api-appended.log"), "x");
    for netrun in ["NetRun: 100 us", "NetRun: 200 us", "NetRun: 300 us"] {
        assert!(ours.contains(netrun), "{ours}");
    }
}

#[test]
fn signed_and_float_values_are_averaged_as_what_they_are() {
    let execution = |seq, signed, float, double| {
        let values = [
            ev("signed", 1, 0).value(Number::Signed(signed)),
            ev("float", 1, 0).value(Number::Float(float)),
            ev("double", 1, 0).value(Number::Double(double)),
            ev("large", 1, u64::MAX),
            ev("object", 1, 0).value(Number::Object(b"bytes")).below(vec![ev("below", 404, 7)]),
        ];
        msg(1, seq, 10, "g", values.to_vec())
    };
    let log = chunk(Some("net"), &[execution(0, -10, 1.5, -2.0), execution(1, 3, 2.5, 1.0)]);
    let text = text(&log, "x");
    for line in [
        "    Backend (signed): -3 us\n",
        "    Backend (float): 2.000000 us\n",
        "    Backend (double): -0.500000 us\n",
        "    Backend (large): 18446744073709551615 us\n        below: 7 us\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("object"));
    let rows = rows(&log);
    assert!(rows.contains(&"1001,EXECUTE,2.500000,US,BACKEND,ROOT,float".to_owned()), "{rows:?}");
    assert!(rows.contains(&"1001,EXECUTE,7,US,BACKEND,SUB-EVENT,below".to_owned()), "{rows:?}");
    let events = &json(&log)["graphs"][0]["events"];
    assert_eq!(events[0]["total"], -7);
    assert_eq!(events[0]["min"], -10.0);
    assert_eq!(events[3]["total"], 2.0 * u64::MAX as f64);
}

#[test]
fn init_events_and_graph_components_go_where_the_viewer_puts_them() {
    let log = chunk(
        Some("net"),
        &[
            msg(6, 0, 10, "", vec![ev("dropped", 1, 1)]),
            msg(7, 1, 20, "", vec![]),
            msg(2, 2, 30, "g", vec![ev("fin", 300, 29), ev("early", 100, 1)]),
            msg(2, 3, 40, "g", vec![ev("fin", 300, 39)]),
            msg(2, 4, 50, "h", vec![]),
            msg(1, 5, 60, "g", vec![ev("late", 100, 2), ev("run", 400, 59)]),
            msg(9, 6, 70, "g", vec![ev("part", 404, 3)]),
            msg(
                5,
                7,
                80,
                "",
                vec![ev("end", 500, 79).below(vec![ev("deep", 404, 1).below(vec![ev("deeper", 404, 1)])])],
            ),
            msg(10, 8, 90, "", vec![ev("dlopen", 1, 13)]),
            msg(17, 9, 90, "g", vec![ev("unknown", 1, 13)]),
        ],
    );
    assert_eq!(
        rows(&log),
        [
            "1000,INIT,70,US,NETRUN,ROOT,null",
            "1000,INIT,2,US,BACKEND,ROOT,late",
            "1001,COMPOSE GRAPHS,20,US,NETRUN,ROOT,null",
            "1003,FINALIZE,40,US,NETRUN,ROOT,Graph 0: g",
            "1003,FINALIZE,39,US,BACKEND,ROOT,fin",
            "1007,DE-INIT,80,US,NETRUN,ROOT,null",
            "1007,DE-INIT,79,US,BACKEND,ROOT,end",
            "1007,DE-INIT,1,US,BACKEND,SUB-EVENT,deep",
            "1005,EXECUTE,60,US,NETRUN,ROOT,Graph 0: g",
            "1005,EXECUTE,59,US,BACKEND,ROOT,run",
            "0,EXECUTE,0,US,NETRUN,ROOT,Graph 0: g",
            "0,EXECUTE,3,US,BACKEND,ROOT,part",
            "1008,DLOPEN LATENCY,13,US,NETRUN,ROOT,null",
        ]
    );
    let text = text(&log, "x");
    assert!(text.contains("Init Stats:\n-----------\n    NetRun: 70 us\n    Backend (late): 2 us\n\n"), "{text}");
}

#[test]
fn private_messages_leave_no_durations() {
    let mut messages = [
        msg(6, 0, 10, "", vec![]),
        msg(7, 1, 20, "", vec![]),
        execute(2, 30, "g"),
        msg(2, 3, 5, "g", vec![ev("f", 300, 1)]),
    ];
    for message in &mut messages {
        message.private = true;
    }
    let log = chunk(Some("net"), &messages);
    assert_eq!(
        rows(&log),
        [
            "0,INIT,0,US,NETRUN,ROOT,null",
            "1001,COMPOSE GRAPHS,0,US,NETRUN,ROOT,null",
            "0,DE-INIT,0,US,NETRUN,ROOT,null"
        ]
    );
    let document = json(&log);
    assert_eq!(document["graphs"], json!([]));
    assert_eq!(document["sessions"][0]["messages"][0]["private"], true);
}

#[test]
fn rows_of_many_graphs_are_sorted_by_graph() {
    let names: Vec<String> = (0..7).map(|i| format!("graph {i}")).collect();
    let mut log = Vec::new();
    for part in 0..40_u64 {
        let messages: Vec<Msg> = (0..1000_u64)
            .map(|i| {
                let seq = part * 1000 + i;
                let graph = if seq < 7 { seq } else { seq * 2_654_435_761 % 7 };
                execute(seq, seq + 2, &names[graph as usize])
            })
            .collect();
        log.extend(chunk((part == 0).then_some("net"), &messages));
    }
    let rows = rows(&log);
    assert_eq!(rows.len(), 3 + 80_000);
    let mut graphs: Vec<(String, Vec<u64>)> = Vec::new();
    for pair in rows[3..].chunks(2) {
        let (head, name) = pair[0].rsplit_once(',').unwrap();
        let time: u64 = head.split(',').next().unwrap().parse().unwrap();
        assert_eq!(pair[1], format!("{time},EXECUTE,{},US,BACKEND,ROOT,A", (time - 998) / 2));
        if graphs.last().is_none_or(|(last, _)| last != name) {
            graphs.push((name.to_owned(), Vec::new()));
        }
        graphs.last_mut().unwrap().1.push(time);
    }
    let expected: Vec<String> = names.iter().rev().enumerate().map(|(i, name)| format!("Graph {i}: {name}")).collect();
    assert_eq!(graphs.iter().map(|graph| graph.0.clone()).collect::<Vec<_>>(), expected);
    assert!(graphs.iter().all(|(_, times)| times.is_sorted()));
    assert_eq!(graphs.iter().map(|graph| graph.1.len()).sum::<usize>(), 40_000);
}

#[test]
fn statistics_are_those_of_the_messages() {
    let document = json(&read("cpu-2op-3000inf-detailed.log"));
    let mut netrun = Vec::new();
    let (mut backend, mut conv) = (Vec::new(), Vec::new());
    for message in document["sessions"][0]["messages"].as_array().unwrap() {
        if message["method"] == "execute" {
            netrun.push(
                message["interval"]["stop_us"].as_u64().unwrap() - message["interval"]["start_us"].as_u64().unwrap(),
            );
            backend.push(message["events"][0]["value"].as_u64().unwrap());
            conv.push(message["events"][0]["events"][0]["value"].as_u64().unwrap());
        }
    }
    let graph = &document["graphs"][0];
    for (key, values) in [("netrun_us", &mut netrun), ("backend_us", &mut backend)] {
        values.sort_unstable();
        let figures = &graph[key];
        assert_eq!((figures["samples"].as_u64(), values.len()), (Some(3000), 3000));
        assert_eq!(figures["min"], values[0]);
        assert_eq!(figures["max"], values[2999]);
        assert_eq!(figures["mean"].as_f64().unwrap(), values.iter().sum::<u64>() as f64 / 3000.0);
        for (name, rank) in [("p50", 1500), ("p95", 2850), ("p99", 2970)] {
            let (exact, got) = (values[rank - 1], figures[name].as_u64().unwrap());
            assert!(got.abs_diff(exact) <= exact / 1000 + 1, "{key} {name}: {got} for {exact}");
        }
    }
    let op = &graph["ops"][0];
    assert_eq!(op["name"], "InceptionV3_InceptionV3_Conv2d_1a_3x3_Conv2D");
    assert_eq!((op["samples"].as_u64(), op["total"].as_u64()), (Some(3000), Some(conv.iter().sum())));
    assert_eq!((&op["unit"], &op["op_id"]), (&json!("us"), &Value::Null));

    let document = json(&read("htp-2op-q8-1inf-detailed.log"));
    let ops = document["graphs"][0]["ops"].as_array().unwrap();
    let ids: Vec<(&str, u64)> =
        ops.iter().map(|op| (op["name"].as_str().unwrap(), op["op_id"].as_u64().unwrap())).collect();
    assert_eq!(
        ids,
        [
            ("Input", 2),
            ("InceptionV3_InceptionV3_Conv2d_1a_3x3_Conv2D", 21),
            ("InceptionV3_InceptionV3_Conv2d_1a_3x3_Relu", 24),
            ("Output", 3)
        ]
    );
    // One inference does not support any percentile.
    assert_eq!(document["graphs"][0]["netrun_us"]["p50"], Value::Null);
}

#[test]
fn a_graph_over_several_sessions_is_one() {
    let document = json(&read("cpu-2op-20inf-detailed.log").repeat(6));
    let graph = &document["graphs"][0];
    assert_eq!((graph["sessions"].as_u64(), graph["inferences"].as_u64()), (Some(6), Some(120)));
    let once = json(&read("cpu-2op-20inf-detailed.log"));
    for key in ["min", "max", "mean", "p50"] {
        assert_eq!(graph["netrun_us"][key], once["graphs"][0]["netrun_us"][key], "{key}");
    }
    assert!(graph["netrun_us"]["p99"].is_u64() && once["graphs"][0]["netrun_us"]["p99"].is_null());
    assert_eq!(graph["ops"][0]["total"].as_u64().unwrap(), 6 * once["graphs"][0]["ops"][0]["total"].as_u64().unwrap());
}

#[test]
fn names_cannot_disturb_a_table_or_a_terminal() {
    let bad = b"a\x1b[31m\n1,EXECUTE\xff\xc2\x9b";
    let mut event = ev("", 404, 1);
    event.name = Some(bad.to_vec());
    let mut message = msg(1, 0, 10, "g", vec![event]);
    message.graph = bad.to_vec();
    let log = chunk(Some("net\x1b"), &[message]);
    for format in [super::csv(&log, "x\x1b\n"), text(&log, "x\x1b\n")] {
        assert!(!format.chars().any(|c| c.is_control() && c != '\n'), "{format:?}");
        assert!(format.contains("a\u{fffd}[31m\u{fffd}1,EXECUTE\u{fffd}\u{fffd}"), "{format:?}");
    }
    assert_eq!(rows(&log).len(), 5);
    let mut out = Vec::new();
    write_json(log.as_slice(), "x\x1b", &mut out).unwrap();
    let raw = String::from_utf8(out).unwrap();
    assert!(!raw.chars().any(|c| c.is_control() && c != '\n'), "{raw:?}");
    assert_eq!(json(&log)["graphs"][0]["graph"], "a\x1b[31m\n1,EXECUTE\u{fffd}\u{9b}");
}

#[test]
fn damage_further_on_leaves_what_came_before() {
    let good = read("ort-htp-3partitions-5inf-detailed.log");
    let first = 4 + u32::from_le_bytes(good[..4].try_into().unwrap()) as usize;
    let mut log = good.clone();
    // The root offset of the second chunk.
    log[first + 4..first + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    let whole = csv_outcome(&log);
    assert_eq!((whole.0.chunks, whole.0.whole_bytes), (1, first as u64));
    assert_eq!(whole.1, super::csv(&good[..first], "x"));
    assert!(
        matches!(whole.0.damage, Some(ProfileLogError::Damaged { chunk: 1, offset, .. }) if offset == first as u64)
    );
    let mut out = Vec::new();
    assert!(write_text(log.as_slice(), "x", &mut out).unwrap().damage.is_some());
    assert_eq!(String::from_utf8(out).unwrap(), text(&good[..first], "x"));
    let document = json(&log);
    assert!(document["damage"].as_str().unwrap().contains("chunk 1"), "{}", document["damage"]);
    assert_eq!(document["messages"], 1);
}

fn csv_outcome(log: &[u8]) -> (qnnscope::backends::profile_log::ReadOutcome, String) {
    let mut out = Vec::new();
    let outcome = write_csv(Cursor::new(log), "x", &mut out).unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

#[test]
fn wall_clock_follows_the_header() {
    let log = chunk(Some("net"), &[execute(0, 5, "g")]);
    let mut decoder = Decoder::new();
    decoder.push(&log);
    let chunk = decoder.next_chunk().unwrap().unwrap();
    let header = chunk.header().unwrap();
    assert_eq!(header.wall_clock_us(3000), 1_700_000_000_002_000);
    assert_eq!(header.wall_clock_us(0), 1_699_999_999_999_000);
    assert!(!header.is_onnx_runtime());
}
