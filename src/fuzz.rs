//! Every parser of external bytes, each as a function that takes any bytes and has to return: the targets of
//! `fuzz/` and of `tests/properties/fuzz.rs`, which runs them on a stored corpus. Not a stable interface: it
//! changes with the parsers.

use crate::accuracy::{AccuracyDocument, Record as RecordedSide, Role};
use crate::app::{ColorDepth, Keymap, Theme};
use crate::backends::profile_log::{Decoder, write_csv, write_json, write_text};
use crate::backends::runtime::{Wheel, WheelName};
use crate::backends::settings;
use crate::backends::{Backend, ProfilingLevel};
use crate::devices::{parse_devices, read_answers};
use crate::diagnosis::{Diagnoser, explain};
use crate::event::{Budget, Constraints, Driver, Event, Mode, Record, RunId, RunPlan, clean_text};
use crate::facts::{build_id_in, context_text, parse_header, read_elf};
use crate::imports;
use crate::models::source::SourceFormat;
use crate::models::{DataType, Tensor, TensorKind, dlc_sdk_version, identify};
use crate::models::{identify_source, read_source};
use crate::probes::{Parser, load_custom, read_line, rows};
use crate::report::comparison::{CompareDocument, ComparisonOptions, ComparisonReport, Named, comparison_text, load};
use crate::report::export::FORMATS;
use crate::report::{Material, Recorded, ResultDocument, SourceDocument, source_text, text_report};
use crate::store::{Run, Store, StoreDigest};
use std::fs::File;
use std::io::{Cursor, sink};
use std::path::Path;

/// A target: its name, which is also the name of its corpus folder, and its function.
pub type FuzzTarget = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [FuzzTarget; 25] = [
    ("accuracy_document", accuracy_document),
    ("adb_answers", adb_answers),
    ("context_binary", context_binary),
    ("counter_file", counter_file),
    ("counter_values", counter_values),
    ("device_listing", device_listing),
    ("encodings", encodings),
    ("import", import),
    ("inputs", inputs),
    ("keymap", keymap),
    ("labels", labels),
    ("log", log),
    ("model_file", model_file),
    ("name_map", name_map),
    ("onnx_placement", onnx_placement),
    ("profile_log", profile_log),
    ("run_config", run_config),
    ("run_file", run_file),
    ("sampler_line", sampler_line),
    ("tap_stream", tap_stream),
    ("session_digest", session_digest),
    ("session_views", session_views),
    ("source_model", source_model),
    ("theme", theme),
    ("wheel", wheel),
];

/// Output of ONNX Runtime and its QNN plug-in: the verbose log, message by message; the profile, and QNN's
/// log of ops.
pub fn onnx_placement(bytes: &[u8]) {
    #[cfg(unix)]
    {
        use crate::backends::onnx::{PlacementLog, Times, place, placement::Known};
        use crate::event::LogLevel;
        let text = String::from_utf8_lossy(bytes);
        let mut log = PlacementLog::default();
        for message in text.split("\n20") {
            log.take(LogLevel::Warning, message);
        }
        let times = Times::read(Some(Cursor::new(bytes)), bytes, bytes.len().is_multiple_of(2)).ok();
        let _ = place(Known { log: Some(&log), times: times.as_ref(), provider: "QNN", ..Known::default() });
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// Writes the bytes to a file, for parsers that take a path.
fn in_file(bytes: &[u8], name: &str, read: impl FnOnce(&Path)) {
    // Without a temporary folder nothing would be tested, and nobody would notice.
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).expect("room for a small file");
    read(&path);
}

/// The adb server's device list, and output of programs on a device: properties, clusters, battery,
/// processes.
pub fn adb_answers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = parse_devices(&text);
    read_answers(&text);
}

/// What a context binary says about how it was made, found without the vendor's parser.
pub fn context_binary(bytes: &[u8]) {
    let _ = build_id_in(bytes);
    in_file(bytes, "binary", |path| {
        let _ = context_text(path);
    });
}

/// A user's counters.
pub fn counter_file(bytes: &[u8]) {
    in_file(bytes, "counters.toml", |path| {
        let _ = load_custom(path);
    });
}

/// Contents of sysfs and procfs files and of Android's services, parsed as every counter in the catalogue;
/// twice, since rates need two readings.
pub fn counter_values(bytes: &[u8]) {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for row in rows() {
        let mut parser = Parser::new(row.parse);
        parser.keys.clone_from(&row.keys);
        parser.scale = row.scale;
        parser.pid = Some(1);
        for (t_us, content) in [(0, first), (1_000_000, second), (1_000_000, bytes)] {
            let value = parser.value(t_us, &[Ok(content), Ok(second)]);
            assert!(value.ok().flatten().is_none_or(f64::is_finite), "{} is not finite", row.id);
        }
    }
}

/// A file from another tool, of any kind that it resembles; the result is a complete session.
pub fn import(bytes: &[u8]) {
    in_file(bytes, "other", |path| {
        let Ok(Some(imported)) = imports::open(path, path) else { return };
        let mut store = Store::new();
        for (seq, record) in (0..).zip(&imported.records) {
            assert_eq!(record.seq, seq, "{}", imported.kind);
            store.apply(record);
        }
        assert!(imported.records.is_sorted_by_key(|record| record.t_us), "{}", imported.kind);
        assert!(!store.runs().is_empty() && store.runs().iter().all(Run::is_ended), "{}", imported.kind);
        let _ = text_report(&store);
    });
}

/// A user's inputs: `.npy` files, and lists in qnn-net-run's format.
pub fn inputs(bytes: &[u8]) {
    #[cfg(unix)]
    {
        use crate::backends::qnn::runner::{read_list, read_npy};
        let _ = read_npy(bytes);
        let input = |name: &str| Tensor {
            name: name.to_owned(),
            dtype: DataType(0x0232),
            shape: vec![2, 3],
            quantization: None,
            kind: TensorKind::Input,
        };
        in_file(bytes, "list.txt", |path| {
            let _ = read_list(path, &[input("a"), input("b")]);
        });
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// A user's keys.
pub fn keymap(bytes: &[u8]) {
    let _ = Keymap::merged(&String::from_utf8_lossy(bytes), "keys.toml");
}

/// A log from any tool, in pieces of any size, and codes to explain.
pub fn log(bytes: &[u8]) {
    let mut whole = Diagnoser::new();
    whole.feed(bytes);
    let mut pieces = Diagnoser::new();
    let size = usize::from(bytes.first().copied().unwrap_or(0)) + 1;
    bytes.chunks(size).for_each(|piece| pieces.feed(piece));
    assert_eq!(whole.finish().lines, pieces.finish().lines, "pieces of {size} bytes");
    let text = String::from_utf8_lossy(bytes);
    let _ = explain(text.lines().next().unwrap_or_default());
    let clean = clean_text(&text);
    assert!(!clean.chars().any(char::is_control), "{clean:?}");
}

/// A model file: its format by content, a DLC's archive and a library's ELF header.
pub fn model_file(bytes: &[u8]) {
    let _ = parse_header(bytes);
    in_file(bytes, "model", |path| {
        let _ = identify(path);
        let _ = dlc_sdk_version(path);
        let _ = read_elf(path);
    });
}

/// QNN's profiling log, read in every possible way; all of them have to agree.
pub fn profile_log(bytes: &[u8]) {
    let mut decoder = Decoder::new();
    for piece in bytes.chunks(1 + bytes.len() / 3) {
        decoder.push(piece);
        while let Ok(Some(_)) = decoder.next_chunk() {}
    }
    let _ = decoder.finish();
    let mut document = Vec::new();
    let text = write_text(bytes, "x", sink()).map(|outcome| outcome.messages).ok();
    let csv = write_csv(Cursor::new(bytes), "x", sink()).map(|outcome| outcome.messages).ok();
    let json = write_json(bytes, "x", &mut document).map(|outcome| outcome.messages).ok();
    assert!(text == csv && csv == json, "{text:?}, {csv:?}, {json:?}");
    if json.is_some() {
        let parsed = serde_json::from_slice::<serde_json::Value>(&document);
        assert!(parsed.is_ok(), "{parsed:?}");
    }
}

/// A backend configuration.
pub fn run_config(bytes: &[u8]) {
    in_file(bytes, "config.json", |path| {
        let Ok(requests) = settings::read_config(path) else { return };
        for backend in crate::backends::Backend::ALL {
            let _ = settings::resolve(&requests, backend);
        }
    });
}

/// A session or a result document.
pub fn run_file(bytes: &[u8]) {
    in_file(bytes, "run", |path| {
        let _ = Named::new(path).and_then(|named| load(&named));
    });
}

/// A comparison of two models: as a page in the view, in both reports, and as a side of another comparison.
pub fn accuracy_document(bytes: &[u8]) {
    let Ok(Some(document)) = AccuracyDocument::from_bytes(bytes) else { return };
    let _ = crate::app::accuracy_entries(&document);
    for redact in [false, true] {
        let named = [("a.json".to_owned(), document.clone())];
        let material = Material::of_files(&[], redact).with_accuracy(&named);
        for format in FORMATS.iter().filter(|format| ["html", "md"].contains(&format.name)) {
            let _ = (format.make)(&material);
        }
    }
    for role in [Role::Reference, Role::Test] {
        let _ = RecordedSide::of_comparison(Path::new("a.json"), &document, role);
    }
}

/// The expected classes of outputs.
pub fn labels(bytes: &[u8]) {
    in_file(bytes, "labels.txt", |path| drop(crate::truth::read_labels(path)));
}

/// The map of names that a conversion writes beside its model.
pub fn name_map(bytes: &[u8]) {
    in_file(bytes, "model.names.json", |path| drop(crate::models::source_names(&path.with_file_name("model.dlc"))));
}

/// A line from the sampler that runs on a device.
pub fn sampler_line(bytes: &[u8]) {
    bytes.split(|&byte| byte == b'\n').for_each(read_line);
}

/// What a device reports about a tapped program: its process, its files, the memory of processes, how it
/// ended.
pub fn device_listing(bytes: &[u8]) {
    #[cfg(unix)]
    crate::tap::device::replay_listing(bytes);
    #[cfg(not(unix))]
    let _ = bytes;
}

/// What a tapped process sends, whoever sends it: as events, in the store, and in both reports.
pub fn tap_stream(bytes: &[u8]) {
    #[cfg(unix)]
    {
        let store = crate::tap::replay(bytes);
        let _ = crate::report::tap_text(&store);
        let document = serde_json::to_vec(&crate::report::TapDocument::new(&store));
        assert!(document.is_ok(), "{document:?}");
        let _ = qnnscope_core::tap::unread(bytes);
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// The digest at the end of a long session, applied to the records before it.
pub fn session_digest(bytes: &[u8]) {
    let Ok(digest) = StoreDigest::from_bytes(bytes) else { return };
    let mut store = Store::new();
    let plan = RunPlan {
        device: "local".to_owned(),
        backend: Backend::Htp,
        model: "m".to_owned(),
        warmup: 0,
        budget: Budget::Iterations(1),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: None,
        simulated: false,
        driver: Driver::default(),
        energy_while_charging: false,
        mode: Mode::default(),
        constraints: Constraints::default(),
    };
    let event = Event::RunStarted(Box::new(plan));
    store.apply(&Record { seq: 0, t_us: 0, run: Some(RunId(0)), event });
    if store.restore(digest) {
        // A valid digest can be shown, and the run can continue.
        let _ = ResultDocument::new(&store);
        let event = Event::LaunchStarted { index: 1, of: 2, reason: None };
        store.apply(&Record { seq: 1, t_us: 1, run: Some(RunId(0)), event });
    }
}

/// A session and everything derived from it: the result document, the text, every report in text form, a
/// comparison.
pub fn session_views(bytes: &[u8]) {
    in_file(bytes, "s.jsonl", |path| {
        let Ok(recorded) = Recorded::open(path) else { return };
        let document = serde_json::to_vec(&ResultDocument::new(&recorded.store));
        assert!(document.is_ok(), "{document:?}");
        let _ = text_report(&recorded.store);
        let files = [recorded];
        for is_redacted in [false, true] {
            let material = Material::of_files(&files, is_redacted);
            // The pixel image is the vector one, rendered by a library.
            for format in FORMATS.iter().filter(|format| format.name != "png") {
                let _ = (format.make)(&material);
            }
        }
        let Ok(sides) = Named::new(path).and_then(|named| load(&named)) else { return };
        let twice = sides.iter().chain(&sides).cloned().collect();
        let report = ComparisonReport::new(twice, &ComparisonOptions::default());
        let document = serde_json::to_vec(&CompareDocument::new(&report));
        assert!(document.is_ok(), "{document:?}");
        let _ = comparison_text(&report);
    });
}

/// A model before conversion: its detected format, and parsed as every format regardless.
pub fn source_model(bytes: &[u8]) {
    in_file(bytes, "model", |path| {
        let _ = identify_source(path);
        for format in [SourceFormat::Onnx, SourceFormat::Tflite, SourceFormat::Executorch] {
            let Ok(model) = read_source(path, format, &[]) else { continue };
            let document = SourceDocument::new(model, String::new(), &[]);
            let _ = source_text(&document);
            assert!(serde_json::to_vec(&document).is_ok(), "{}", format.label());
        }
    });
}

/// A file with quantisation encodings: parsed, linted, and written in every format.
pub fn encodings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(encodings) = crate::encodings::parse(text) {
        let _ = crate::encodings::lint(&encodings, Some(&[]), crate::encodings::Hardware { hexagon_arch: Some(68) });
        let _ = crate::encodings::diff(&encodings, &encodings);
        for format in ["overrides", "0.6.1", "1.0.0", "2.0.0"] {
            let written = format.parse().map(|format| crate::encodings::write(&encodings, format).0);
            // What was written has to be readable again.
            let again = written.map(|text| crate::encodings::parse(&text));
            assert!(matches!(again, Ok(Ok(_))), "{again:?}");
        }
    }
}

/// A user's theme.
pub fn theme(bytes: &[u8]) {
    in_file(bytes, "mine.toml", |path| {
        for depth in [ColorDepth::Rgb, ColorDepth::Ansi16] {
            let _ = Theme::load("mine", depth, false, path.parent());
        }
    });
}

/// A wheel: its entries, its metadata, and unpacking it.
pub fn wheel(bytes: &[u8]) {
    in_file(bytes, "onnxruntime_qnn-2.3.0-cp312-cp312-manylinux_2_35_x86_64.whl", |path| {
        let (Ok(file), Ok(name)) = (File::open(path), WheelName::parse(path)) else { return };
        let Ok(mut wheel) = Wheel::open(path, file, crate::backends::runtime::Package::Qnn) else { return };
        let _ = wheel.check_package(&name);
        // An archive that claims to be large is not worth the disk space.
        if wheel.unpacked_bytes() > 1 << 20 {
            return;
        }
        let Ok(target) = tempfile::tempdir() else { return };
        let _ = wheel.unpack(target.path(), &mut |_| Ok(()));
    });
}
