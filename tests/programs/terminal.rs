//! The live view end to end: the real program on a real pseudo-terminal, running the bundled model on the real libraries.

use crate::support::device::Bench;
use crate::support::virtual_device::{LinkState, Snapshot};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vt100::MouseProtocolMode;

/// Longest wait for anything to appear; generous, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// An op type of the model, which is on the screen once the layers are.
const A_LAYER: &str = "Conv2d";

struct Terminal {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Everything written to the terminal.
    written: Arc<Mutex<Vec<u8>>>,
    _data: tempfile::TempDir,
}

impl Terminal {
    fn start(arguments: &[impl AsRef<std::ffi::OsStr>], rows: u16, cols: u16, environment: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        let data = tempfile::tempdir().unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_qnnscope"));
        command.args(arguments);
        command.cwd(data.path());
        command.env("TERM", "xterm-256color");
        command.env("QNNSCOPE_DATA_DIR", data.path());
        command.env("QNNSCOPE_RUNTIME", crate::support::runtime_247());
        command.env_remove("NO_COLOR");
        // An address reserved for documentation, where nothing answers: no test uses or starts the user's own
        // adb server.
        command.env("ADB_SERVER_SOCKET", "tcp:198.51.100.1:5037");
        for (key, value) in environment {
            command.env(key, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(size(rows), size(cols), 0)));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let sink = screen.clone();
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = written.clone();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                sink.lock().unwrap().process(&buffer[..count]);
                kept.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { master: pair.master, child, writer, screen, written, _data: data }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn wait_for(&self, what: &str, seen: impl Fn(&vt100::Screen) -> bool) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if seen(self.screen.lock().unwrap().screen()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{what} did not show within {PATIENCE:?}; the screen:\n{}", self.text());
    }

    fn wait_for_text(&self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Waits for the end; returns the exit status and checks that the terminal was restored.
    fn end(mut self) -> u32 {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end; the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        };
        // Its last output may still be on its way through the pty.
        self.wait_for("the normal screen with a cursor, and the mouse left to the terminal", |screen| {
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && screen.mouse_protocol_mode() == MouseProtocolMode::None
        });
        status.exit_code()
    }

    /// Sends what the terminal sends for a mouse button at a cell.
    fn mouse(&mut self, button: u8, (column, row): (u16, u16)) {
        self.keys(&format!("\x1b[<{button};{};{}M", column + 1, row + 1));
    }

    /// The position of a text, as column and row.
    fn place_of(&self, text: &str) -> (u16, u16) {
        let screen = self.screen.lock().unwrap();
        let (rows, columns) = screen.screen().size();
        let lines = (0..).zip(screen.screen().rows(0, columns.into()).take(usize::from(rows.get())));
        let found = lines.filter_map(|(row, line)| Some((line.split_once(text)?.0.chars().count(), row))).next();
        let (column, row) = found.unwrap_or_else(|| panic!("{text} is not there:\n{}", screen.screen().contents()));
        (u16::try_from(column).unwrap(), row)
    }

    fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }
}

/// A run that lasts longer than any test, of the faster one of the bundled models.
fn long_run() -> [String; 6] {
    let model = crate::support::demo_float().display().to_string();
    ["run", &model, "-b", "cpu", "-n", "100000000"].map(ToOwned::to_owned)
}

fn size(cells: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(cells).unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn signal(pid: u32, name: &str) {
    let done = std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(done.success());
}

fn wait_until_gone(pid: u32) {
    let begun = Instant::now();
    let alive = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
    };
    while alive() {
        assert!(begun.elapsed() < PATIENCE, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn demo_shows_layers_of_both_backends_and_leaves_a_report() {
    let mut terminal = Terminal::start(&["demo", "-n", "10"], 40, 120, &[]);
    terminal.wait_for_text(A_LAYER);
    terminal.wait_for_text("simulated");
    terminal.wait_for("the end of both runs", |screen| screen.contents().matches("✓ done").count() >= 2);
    terminal.keys("?");
    terminal.wait_for_text("Freeze or resume the view");
    // An escape immediately followed by a key would be that key with alt.
    terminal.keys("\x1b");
    terminal.wait_for("the view without help", |screen| !screen.contents().contains("Freeze or resume"));
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_small_terminal_a_resize_and_no_colour() {
    let mut terminal = Terminal::start(&["demo", "-n", "5"], 24, 80, &[("NO_COLOR", "1")]);
    terminal.wait_for_text(A_LAYER);
    for (rows, cols) in [(60, 200), (10, 30), (24, 80)] {
        terminal.screen.lock().unwrap().screen_mut().set_size(size(rows), size(cols));
        terminal.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        // Something is drawn in the last column or row of the new size, so the layout has followed.
        terminal.wait_for("a frame of the new size", |screen| {
            (0..rows).any(|row| screen.cell(row, cols - 1).is_some_and(vt100::Cell::has_contents))
        });
    }
    {
        let parser = terminal.screen.lock().unwrap();
        let screen = parser.screen();
        let coloured = (0..24).flat_map(|row| (0..80).map(move |col| (row, col))).any(|(row, col)| {
            screen
                .cell(row, col)
                .is_some_and(|cell| cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default)
        });
        assert!(!coloured, "NO_COLOR is set, and there is colour");
    }
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn signals_give_the_terminal_back_and_leave_no_runner() {
    for name in ["TERM", "INT", "HUP"] {
        let terminal = Terminal::start(&long_run(), 24, 80, &[]);
        terminal.wait_for_text(A_LAYER);
        let runners = children(terminal.pid());
        assert_eq!(runners.len(), 1, "one runner at a time");
        signal(terminal.pid(), name);
        if name == "INT" {
            // As with Ctrl-C: the first one stops the run and keeps its figures, the second one quits.
            terminal.wait_for_text("stopped");
            signal(terminal.pid(), name);
        }
        terminal.end();
        wait_until_gone(runners[0]);
    }
}

#[test]
fn the_mouse_focuses_selects_and_scrolls_and_is_given_back() {
    const LEFT: u8 = 0;
    const WHEEL_DOWN: u8 = 65;
    const MARKER: &str = "▸";
    let ours = |screen: &vt100::Screen| screen.mouse_protocol_mode() == MouseProtocolMode::PressRelease;
    let theirs = |screen: &vt100::Screen| screen.mouse_protocol_mode() == MouseProtocolMode::None;
    let mut terminal = Terminal::start(&long_run(), 40, 120, &[]);
    terminal.wait_for_text(A_LAYER);
    terminal.wait_for("the mouse", ours);
    // Frozen, so that only the mouse moves layers.
    terminal.keys(" ");
    terminal.wait_for_text("PAUSED");
    let (_, header) = terminal.place_of("share %");
    let marked =
        |row: u16| move |screen: &vt100::Screen| screen.cell(row, 1).is_some_and(|cell| cell.contents() == MARKER);
    terminal.mouse(LEFT, (10, header + 3));
    terminal.wait_for("the layer that was clicked, selected", marked(header + 3));
    let (_, log) = terminal.place_of("─ log ");
    terminal.mouse(LEFT, (30, log + 1));
    terminal.wait_for("the log with the focus", marked(log));
    terminal.mouse(WHEEL_DOWN, (10, header + 1));
    terminal.wait_for("the layers, scrolled under the pointer", marked(header + 6));
    terminal.wait_for("the log, with the focus still", marked(log));
    // While the terminal has the mouse, text can be selected as usual.
    terminal.keys("M");
    terminal.wait_for("the mouse of the terminal", theirs);
    terminal.keys("M");
    terminal.wait_for("the mouse again", ours);
    terminal.keys("\x1a");
    terminal.wait_for("the terminal given back", |screen| theirs(screen) && !screen.alternate_screen());
    signal(terminal.pid(), "CONT");
    // This terminal answers no questions: the view must come back without any.
    terminal.wait_for("the view again", |screen| {
        ours(screen) && screen.alternate_screen() && screen.contents().contains("PAUSED")
    });
    terminal.keys("\x0c");
    terminal.keys(" ");
    terminal.wait_for("the view, redrawn and running", |screen| {
        let text = screen.contents();
        text.contains(A_LAYER) && !text.contains("PAUSED")
    });
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_killed_runner_is_a_failed_run_on_a_living_screen() {
    let mut terminal = Terminal::start(&long_run(), 40, 120, &[]);
    terminal.wait_for_text(A_LAYER);
    let runner = children(terminal.pid())[0];
    signal(runner, "KILL");
    terminal.wait_for_text("SIGKILL");
    terminal.wait_for_text("diagnosis · run 1 on cpu");
    terminal.keys("q");
    terminal.wait_for_text("1 cpu ✗ failed");
    terminal.keys("q");
    assert_eq!(terminal.end(), 1);
}

#[test]
fn a_failed_run_opens_its_diagnosis_and_runs_again_after_the_fix() {
    // The file is truncated, which the real libraries refuse; the fix is to replace it with the whole one.
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("net.bin");
    let context = crate::support::context_binary("2.3.0", "htp", &crate::support::demo_int8(), None);
    std::fs::write(&model, &context[..context.len() / 4]).unwrap();
    let arguments = ["run", model.to_str().unwrap(), "-b", "htp", "-n", "3"];
    let mut terminal = Terminal::start(&arguments, 24, 80, &[]);
    terminal.wait_for_text("diagnosis · run 1 on htp");
    terminal.wait_for_text("cannot read the file as");
    terminal.keys("y");
    terminal.wait_for_text("sent to the terminal's clipboard");
    let copied = |bytes: &[u8]| bytes.windows(7).any(|part| part == b"\x1b]52;c;");
    terminal.wait_for("the fix in the clipboard", |_| copied(&terminal.written.lock().unwrap()));
    terminal.keys("r");
    terminal.wait_for_text("diagnosis · run 2 on htp");
    std::fs::write(&model, &context).unwrap();
    terminal.keys("r");
    terminal.wait_for_text("3 htp ✓ done");
    // The diagnosis of the newest failed run can be opened again.
    terminal.keys("d");
    terminal.wait_for_text("diagnosis · run 2 on htp");
    terminal.keys("q");
    terminal.wait_for_text("3 htp ✓ done");
    terminal.keys("q");
    // The failed runs failed because of their input.
    assert_eq!(terminal.end(), 2);
}

#[test]
fn a_killed_qnnscope_takes_its_runner_along() {
    let terminal = Terminal::start(&long_run(), 24, 80, &[]);
    terminal.wait_for_text(A_LAYER);
    let runner = children(terminal.pid())[0];
    signal(terminal.pid(), "KILL");
    wait_until_gone(runner);
}

#[test]
fn the_start_screen_opens_without_arguments() {
    let mut terminal = Terminal::start(&[""; 0], 24, 80, &[]);
    terminal.wait_for_text("cpu");
    terminal.wait_for_text("htp");
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_run_is_switched_stopped_and_restarted_without_leaving() {
    let mut terminal = Terminal::start(&long_run(), 60, 200, &[]);
    terminal.wait_for_text(A_LAYER);
    terminal.keys("b");
    terminal.wait_for_text("switch backend");
    terminal.keys("\r");
    terminal.wait_for_text("1 cpu ■ stopped");
    terminal.wait_for_text("2 htp ● running");
    terminal.wait_for_text("simulated");
    terminal.wait_for_text(A_LAYER);
    terminal.keys("x");
    terminal.wait_for_text("2 htp ■ stopped");
    terminal.keys("r");
    terminal.wait_for_text("3 htp ● running");
    let runners = children(terminal.pid());
    assert_eq!(runners.len(), 1, "one runner at a time");
    terminal.keys("q");
    terminal.end();
    wait_until_gone(runners[0]);
}

#[test]
fn a_run_on_a_phone_shows_layers_and_counters_and_lives_through_a_lost_link() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let (server, serial) = (format!("127.0.0.1:{}", bench.server.port()), bench.device.serial());
    let sdk = bench.sdk.root().to_str().unwrap().to_owned();
    let model = crate::support::demo_int8().to_str().unwrap().to_owned();
    let arguments = ["--adb-server", &server, "--device", &serial, "run", &model, "-b", "htp", "--duration", "5m"];
    let mut terminal = Terminal::start(&arguments, 50, 160, &[("QNN_SDK_ROOT", &sdk)]);
    terminal.wait_for_text("SM8650, v75");
    terminal.wait_for_text(A_LAYER);
    terminal.wait_for("a counter of the device", |screen| screen.contents().contains("GPU clock"));
    bench.device.drop_link();
    terminal.wait_for_text("to come back");
    terminal.wait_for_text("is back");
    terminal.keys("q");
    terminal.wait_for("the end", |_| bench.tools_left().is_empty());
    assert_eq!(terminal.end(), 0);
    let begun = Instant::now();
    // The device's shell does this, and nobody waits for it.
    while !bench.shell("ls /data/local/tmp/qnnscope | grep run-").is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the folder of the run is not removed");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn heat_is_on_the_first_screen_of_a_small_terminal_and_a_lost_device_is_waited_for() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let (server, serial) = (format!("127.0.0.1:{}", bench.server.port()), bench.device.serial());
    let sdk = bench.sdk.root().to_str().unwrap().to_owned();
    let model = crate::support::demo_int8().to_str().unwrap().to_owned();
    let arguments = ["--adb-server", &server, "--device", &serial, "run", &model, "-b", "htp", "--duration", "5m"];
    let mut terminal = Terminal::start(&arguments, 24, 80, &[("QNN_SDK_ROOT", &sdk)]);
    terminal.wait_for("the NPU's temperature", |screen| screen.contents().contains("NPU nsp"));
    terminal.wait_for_text("thermal status");
    terminal.wait_for_text("ETA");
    bench.device.refuse_connections(true);
    bench.device.drop_link();
    terminal.wait_for_text("waiting  for the device");
    terminal.wait_for("no time left that nobody knows", |screen| !screen.contents().contains("ETA"));
    bench.device.refuse_connections(false);
    terminal.wait_for_text("ETA");
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn devices_come_and_go_on_the_start_screen() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let server = format!("127.0.0.1:{}", bench.server.port());
    let mut terminal = Terminal::start(&["--adb-server", &server], 30, 120, &[]);
    terminal.wait_for_text("SM8650, v75");
    let serial = bench.device.serial();
    bench.server.adb(["disconnect", &serial]);
    terminal.wait_for("the device is gone", |screen| !screen.contents().contains(&serial));
    bench.server.connect(&bench.device);
    terminal.wait_for_text("SM8650, v75");
    bench.device.set_state(LinkState::Unauthorized);
    bench.device.drop_link();
    terminal.wait_for_text("unauthorized: unlock");
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

/// Closes the terminal of a run once it is measuring; returns the events of its session.
fn after_the_terminal_closed(flags: &str) -> Vec<serde_json::Value> {
    let home = tempfile::tempdir().unwrap();
    let session = home.path().join("session");
    let [program, runtime, model] =
        [env!("CARGO_BIN_EXE_qnnscope").into(), crate::support::runtime_247(), crate::support::demo_float()]
            .map(|path| path.display().to_string());
    let command = format!(
        "QNNSCOPE_DATA_DIR={home} ADB_SERVER_SOCKET=tcp:198.51.100.1:5037 exec '{program}' --runtime '{runtime}' run '{model}' -n \
         100000000 --record '{session}' {flags}",
        home = home.path().display(),
        session = session.display()
    );
    let tmux = |arguments: &[&str]| {
        let server = format!("qnnscope-{}-{}", std::process::id(), flags.len());
        let mut tmux = std::process::Command::new("tmux");
        tmux.args(["-L", &server, "-f", "/dev/null"]).args(arguments);
        assert!(tmux.status().expect("tmux runs; install it: sudo apt-get install tmux").success());
    };
    tmux(&["new-session", "-d", "-x", "100", "-y", "30", &command]);
    let events = || -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&session).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .map(|line| line["event"].clone())
            .collect()
    };
    let begun = Instant::now();
    while !events().iter().any(|event| event["inferences"]["phase"] == "clean") {
        assert!(begun.elapsed() < PATIENCE, "no inference: {:?}", events().last());
        std::thread::sleep(Duration::from_millis(50));
    }
    tmux(&["kill-server"]);
    let begun = Instant::now();
    while !crate::support::processes_in(home.path()).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "it goes on without its terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = std::fs::read_to_string(&session).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole");
    events()
}

#[test]
fn a_closed_terminal_leaves_a_finished_session() {
    for flags in ["", "--headless"] {
        let events = after_the_terminal_closed(flags);
        let ends: Vec<_> = events.iter().filter_map(|event| event.get("run_finished")).collect();
        assert_eq!(ends, [&serde_json::json!({"status": "stopped"})], "{flags}");
        let torn_down = events.iter().any(|event| event["stage_finished"]["stage"] == "teardown");
        assert!(torn_down, "{flags}: the run was stopped in order");
    }
}

#[test]
fn leaving_the_view_stops_the_run_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("session");
    let mut arguments = long_run().to_vec();
    arguments.extend(["--record".to_owned(), session.display().to_string()]);
    let mut terminal = Terminal::start(&arguments, 24, 80, &[]);
    terminal.wait_for_text(A_LAYER);
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
    let text = std::fs::read_to_string(&session).unwrap();
    assert!(text.contains(r#"{"run_finished":{"status":"stopped"}}"#), "{}", text.lines().last().unwrap());
}

/// A recorded session in the live view: all at once, from its start, forward and back, with every pane and
/// without a run to stop.
#[test]
fn a_recorded_session_opens_plays_and_seeks() {
    let done = crate::support::Qnnscope::on(&crate::support::runtime_247())
        .run_json(&crate::support::demo_int8(), "-b cpu,htp -n 20 --profiling-iterations 10 --record s.jsonl.zst")
        .expect(0);
    let file = done.home().join("s.jsonl.zst").display().to_string();
    let mut terminal = Terminal::start(&["open", &file], 40, 120, &[]);
    terminal.wait_for_text(A_LAYER);
    terminal.wait_for("both runs, and the player", |screen| {
        let whole = screen.contents();
        ["1 cpu", "2 htp", "stopped"].iter().all(|part| whole.contains(part))
    });
    // Nothing can be run in a recording; its keys are those of a player.
    terminal.keys("r");
    terminal.keys("(");
    terminal.wait_for("the start", |screen| screen.contents().contains("stopped 0.00 µs of"));
    assert!(!terminal.text().contains(A_LAYER), "nothing had happened by then:\n{}", terminal.text());
    terminal.keys(">>>>> ");
    terminal.wait_for_text("playing");
    terminal.wait_for_text(A_LAYER);
    terminal
        .wait_for("its end", |screen| screen.contents().contains("stopped") && screen.contents().contains("at 100x"));
    terminal.keys("()");
    terminal.wait_for_text(A_LAYER);
    terminal.wait_for("all of it", |screen| screen.contents().contains("stopped"));
    terminal.keys("[");
    terminal.wait_for_text("cpu");
    terminal.keys("c");
    terminal.wait_for_text("baseline");
    terminal.keys("qq");
    assert_eq!(terminal.end(), 0);

    let terminal = Terminal::start(&["open", "--play", "--speed", "100", &file, &file], 40, 120, &[]);
    terminal.wait_for_text("4 htp");
    terminal.wait_for_text(A_LAYER);
    let mut terminal = terminal;
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);

    // Without a file, one is chosen from the history; from there, another one.
    let data = tempfile::tempdir().unwrap();
    for backend in ["cpu", "htp"] {
        let kept = crate::support::Qnnscope::on(&crate::support::runtime_247()).env("QNNSCOPE_DATA_DIR", data.path());
        kept.run_json(&crate::support::demo_int8(), &format!("-b {backend} -n 5 --profiling-iterations 5")).expect(0);
    }
    let environment = [("QNNSCOPE_DATA_DIR", data.path().to_str().unwrap())];
    let mut terminal = Terminal::start(&["open"], 40, 120, &environment);
    terminal.wait_for_text("session history, newest first");
    terminal.keys("\r");
    terminal.wait_for_text("1 htp");
    terminal.wait_for_text(A_LAYER);
    terminal.keys("H");
    terminal.wait_for_text("session history, newest first");
    terminal.keys("j\r");
    terminal.wait_for_text("1 cpu");
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
    let mut terminal = Terminal::start(&["open"], 24, 80, &[]);
    terminal.wait_for_text("no sessions yet");
    terminal.keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_key_writes_a_page_of_the_session_while_it_runs() {
    let mut terminal = Terminal::start(&long_run(), 40, 120, &[]);
    terminal.wait_for_text(A_LAYER);
    terminal.keys("R");
    terminal.wait_for_text("wrote qnnscope-report-");
    let folder = terminal._data.path().to_owned();
    let is_page = |name: &str| name.starts_with("qnnscope-report-") && name.ends_with(".html");
    let mut names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let page = std::fs::read_to_string(folder.join(names.find(|name| is_page(name)).unwrap())).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "a whole page");
    assert!(page.contains("unfinished") && page.contains(A_LAYER));
    terminal.keys("q");
    terminal.end();
}
