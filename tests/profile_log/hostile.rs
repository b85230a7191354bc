//! Bytes that no writer produces: no panic, no endless loop, no more memory than the input justifies.

use super::made::{Ev, Flat, chunk, ev, msg};
use super::{logs, read};
use proptest::prelude::*;
use qnnscope::backends::profile_log::{
    Damage, Decoder, MAX_CHUNK_BYTES, MAX_EVENT_DEPTH, ProfileLogError, write_csv, write_json, write_text,
};
use std::io::Cursor;
use std::time::{Duration, Instant};

/// Reads the log in every possible way. Any outcome is acceptable.
fn swallow(log: &[u8], piece: usize) {
    let (mut decoder, mut found) = (Decoder::new(), Vec::new());
    for piece in log.chunks(piece) {
        decoder.push(piece);
        if super::drain(&mut decoder, &mut found).is_err() {
            break;
        }
    }
    let _ = decoder.finish();
    let mut outcomes = Vec::new();
    let mut document = Vec::new();
    outcomes.push(write_text(log, "x", std::io::sink()).map(|outcome| outcome.messages).ok());
    outcomes.push(write_csv(Cursor::new(log), "x", std::io::sink()).map(|outcome| outcome.messages).ok());
    outcomes.push(write_json(log, "x", &mut document).map(|outcome| outcome.messages).ok());
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
    if outcomes[0].is_some() {
        serde_json::from_slice::<serde_json::Value>(&document).unwrap();
    }
}

/// Small whole logs to be damaged.
fn seeds() -> Vec<Vec<u8>> {
    let names = logs();
    let mut seeds: Vec<Vec<u8>> = names.iter().map(|name| read(&format!("{name}.log"))).collect();
    seeds.retain(|log| (1..=12_000).contains(&log.len()));
    assert!(seeds.len() > 25);
    seeds
}

/// A random position in the log, and what to write there.
fn change() -> impl Strategy<Value = (prop::sample::Index, Vec<u8>)> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..8),
        prop::sample::select(vec![0_u32, 1, 2, 4, 8, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX])
            .prop_map(|word| word.to_le_bytes().to_vec()),
        (-64_i32..64).prop_map(|word| word.to_le_bytes().to_vec()),
        (0_u16..64).prop_map(|word| word.to_le_bytes().to_vec()),
    ];
    (any::<prop::sample::Index>(), bytes)
}

fn broken(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let cut = any::<prop::sample::Index>();
    (prop::sample::select(seeds), prop::collection::vec(change(), 1..12), prop::option::weighted(0.1, cut)).prop_map(
        |(mut log, changes, cut)| {
            for (place, bytes) in changes {
                let at = place.index(log.len());
                let end = (at + bytes.len()).min(log.len());
                log[at..end].copy_from_slice(&bytes[..end - at]);
            }
            if let Some(cut) = cut {
                log.truncate(cut.index(log.len()));
            }
            log
        },
    )
}

/// Random bytes after a length word that matches, so that their content is examined.
fn framed() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => Just(0_u8), 2 => 0_u8..32, 1 => any::<u8>()], 0..600)
        .prop_map(|bytes| [(bytes.len() as u32).to_le_bytes().to_vec(), bytes].concat())
}

/// With `QNNSCOPE_FUZZ_SECONDS`, the three properties below each run for that long, and print how many cases
/// that was.
fn run<S: Strategy<Value = Vec<u8>>>(what: &str, cases: u32, strategy: S) {
    let seconds = std::env::var("QNNSCOPE_FUZZ_SECONDS").ok().map(|text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let mut done = 0_u64;
    loop {
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        runner
            .run(&(&strategy, 1_usize..5000), |(log, piece)| {
                swallow(&log, piece);
                Ok(())
            })
            .unwrap();
        done += u64::from(cases);
        if Instant::now() >= end {
            break;
        }
    }
    eprintln!("{what}: {done} cases");
}

#[test]
fn random_bytes() {
    run("random bytes", 300, prop::collection::vec(any::<u8>(), 0..2000));
}

#[test]
fn random_bytes_in_a_frame() {
    run("random bytes in a frame", 500, framed());
}

#[test]
fn changed_logs() {
    run("changed logs", 500, broken(seeds()));
}

fn first_error(log: &[u8]) -> ProfileLogError {
    let mut decoder = Decoder::new();
    decoder.push(log);
    let error = decoder.next_chunk().unwrap_err();
    // Nothing more can be read from it.
    assert!(decoder.next_chunk().unwrap().is_none());
    error
}

/// The damage reported for a bad chunk that follows a good one.
fn damage(bad: Vec<u8>) -> Damage {
    let mut decoder = Decoder::new();
    decoder.push(&chunk(Some("net"), &[]));
    assert!(decoder.next_chunk().unwrap().is_some());
    decoder.push(&bad);
    match decoder.next_chunk().unwrap_err() {
        ProfileLogError::Damaged { chunk: 1, damage, .. } => damage,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_no_log_is_told() {
    let words = |log: &[u8]| first_error(log).to_string();
    assert!(
        words(&read("not-a-log.log"))
            .contains("not a QNN profiling log: its first chunk is invalid: it declares 2189591170 bytes")
    );
    assert!(words(&[0; 100]).contains("0 bytes are too few"));
    assert!(words(&[&200_u32.to_le_bytes()[..], &[0xff; 200]].concat()).contains("root table"));
    for (log, is_log) in [
        (&b"Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"[..], false),
        (b"input log file location, x.log\n", false),
        (b"{\"schema\":\"qnnscope.session/1\"}", false),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", false),
        (&read("truncated-in-first-chunk.log"), true),
        (b"\x10\x20", true),
        (b"", true),
    ] {
        let mut decoder = Decoder::new();
        decoder.push(log);
        let read = decoder.next_chunk().map(|_| ());
        assert_eq!(read.and_then(|()| decoder.finish()).is_ok(), is_log, "{log:?}");
    }
}

#[test]
fn claims_are_limits_not_allocations() {
    let claim = |length: u32| damage(length.to_le_bytes().to_vec());
    assert_eq!(claim(MAX_CHUNK_BYTES + 1), Damage::TooLong { length: u64::from(MAX_CHUNK_BYTES) + 1 });
    assert_eq!(claim(u32::MAX), Damage::TooLong { length: u64::from(u32::MAX) });
    assert_eq!(claim(0), Damage::TooShort { length: 0 });
}

fn nested(levels: usize) -> Ev {
    (1..levels).fold(ev("deepest", 404, 1), |below, _| ev("level", 404, 1).below(vec![below]))
}

#[test]
fn nesting_has_a_limit() {
    let log = |levels| chunk(None, &[msg(1, 0, 5, "g", vec![nested(levels)])]);
    assert_eq!(damage(log(MAX_EVENT_DEPTH + 1)), Damage::TooDeep { limit: MAX_EVENT_DEPTH });
    assert_eq!(damage(log(1000)), Damage::TooDeep { limit: MAX_EVENT_DEPTH });
    let deepest = super::json(&log(MAX_EVENT_DEPTH));
    let mut event = &deepest["sessions"][0]["messages"][0]["events"][0];
    let mut levels = 1;
    while !event["events"].is_null() {
        event = &event["events"][0];
        levels += 1;
    }
    assert_eq!((levels, &event["identifier"]), (MAX_EVENT_DEPTH, &serde_json::json!("deepest")));
}

/// One message whose events are created by `fill`, which is given the place of the offset to their list.
fn one_message(fill: impl FnOnce(&mut Flat, usize)) -> Vec<u8> {
    let mut flat = Flat::new();
    let (root, fields) = flat.table(&[1]);
    flat.point(0, root);
    let (list, places) = flat.vector(1);
    flat.point(fields[0], list);
    let (message, fields) = flat.table(&[1, 4]);
    flat.point(places[0], message);
    flat.put(fields[0], &[1]);
    fill(&mut flat, fields[1]);
    flat.chunk()
}

#[test]
fn shared_events_cannot_multiply() {
    // Every level lists the next one twice: 2^30 events in less than 2,000 bytes.
    let log = one_message(|flat, mut place| {
        for _ in 0..30 {
            let (list, places) = flat.vector(2);
            flat.point(place, list);
            let (event, fields) = flat.table(&[4]);
            places.iter().for_each(|&place| flat.point(place, event));
            place = fields[0];
        }
        let (none, _) = flat.vector(0);
        flat.point(place, none);
    });
    assert!(log.len() < 2000);
    let begun = Instant::now();
    assert_eq!(damage(log), Damage::TooManyEvents);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn shared_names_cannot_multiply() {
    let log = |names: usize, length: usize| {
        one_message(|flat, place| {
            let (list, places) = flat.vector(names);
            flat.point(place, list);
            let fields: Vec<usize> = places
                .into_iter()
                .map(|place| {
                    let (event, fields) = flat.table(&[0]);
                    flat.point(place, event);
                    fields[0]
                })
                .collect();
            let name = flat.string(&vec![b'x'; length]);
            fields.into_iter().for_each(|field| flat.point(field, name));
        })
    };
    assert_eq!(damage(log(10_000, 100_000)), Damage::TooMuchText);
    // What a writer that shares names may legitimately do: 1,000 inferences of one op with a name of 100
    // bytes.
    let shared = log(1000, 100);
    assert_eq!(super::rows(&shared).len(), 3 + 1 + 1000);
}

#[test]
fn tables_and_vectors_must_lie_inside() {
    let bad = |break_it: &dyn Fn(&mut Flat, usize)| {
        damage(one_message(|flat, place| {
            let (list, places) = flat.vector(1);
            flat.point(place, list);
            let (event, fields) = flat.table(&[0, 2]);
            flat.point(places[0], event);
            let name = flat.string(b"name");
            flat.point(fields[0], name);
            break_it(flat, event);
        }))
    };
    // The event's vtable is right before it: its own length, the table's length, three entries.
    let vtable = |event: usize| event - 10;
    for (what, break_it) in [
        (
            "length of the list odd",
            &(|flat: &mut Flat, event| flat.put(vtable(event), &[9, 0])) as &dyn Fn(&mut Flat, usize),
        ),
        ("length of the list beyond the end", &|flat, event| flat.put(vtable(event), &[0xfe, 0xff])),
        ("table too short for its field", &|flat, event| flat.put(vtable(event) + 2, &[8, 0])),
        ("field inside of the offset", &|flat, event| flat.put(vtable(event) + 4, &[2, 0])),
        ("field beyond the table", &|flat, event| flat.put(vtable(event) + 8, &[0xf0, 0xff])),
    ] {
        assert!(matches!(bad(break_it), Damage::BadLayout { what: "event", .. }), "{what}: {:?}", bad(break_it));
    }
    for (what, break_it) in [
        (
            "list far away",
            &(|flat: &mut Flat, event| flat.put(event, &i32::MIN.to_le_bytes())) as &dyn Fn(&mut Flat, usize),
        ),
        ("list beyond the end", &|flat, event| flat.put(event, &i32::to_le_bytes(-1_000_000))),
        ("name beyond the end", &|flat, event| flat.put(event + 4, &u32::MAX.to_le_bytes())),
        ("name longer than the rest", &|flat, event| flat.put(event + 20, &1_000_000_u32.to_le_bytes())),
    ] {
        assert!(matches!(bad(break_it), Damage::OutOfBounds { .. }), "{what}: {:?}", bad(break_it));
    }
    let huge = one_message(|flat, place| {
        let (list, _) = flat.vector(1);
        flat.point(place, list);
        flat.put(list, &0x4000_0001_u32.to_le_bytes());
    });
    assert!(matches!(damage(huge), Damage::OutOfBounds { what: "list of events", .. }));
}

#[test]
fn endless_new_names_are_refused() {
    // 40 MB of new names, kept for both text and JSON, would take 120 MB and more; the limit is 64 MiB.
    let log: Vec<u8> = (0..40_u64)
        .flat_map(|part| {
            let events = (0..1000).map(|i| ev(&format!("{part} {i} {}", "x".repeat(1000)), 404, 1)).collect();
            chunk((part == 0).then_some("net"), &[msg(1, part, 5, "g", events)])
        })
        .collect();
    for result in [write_text(log.as_slice(), "x", std::io::sink()), write_json(log.as_slice(), "x", std::io::sink())] {
        assert!(matches!(result, Err(ProfileLogError::TooManyNames { .. })), "{result:?}");
    }
    // The rows do not require names to be kept.
    assert_eq!(super::rows(&log).len(), 3 + 40 + 40_000);
}
