//! Shell scripts for a tapped program on a device: starting, following and signalling it.

use crate::devices::quote;
use crate::tap::Ended;
use crate::tap::library::FILE;
use std::fmt::Write as _;

/// Folder of the processes' tap data, in the run's folder.
pub const TOLD: &str = "told";
/// The program's standard output.
pub const STDOUT: &str = "stdout";
/// The program's standard error.
pub const STDERR: &str = "stderr";
/// How it ended, once it has: see [`ended`].
pub const STATUS: &str = "status";
/// Its standard input, if it was given one.
pub const STDIN: &str = "stdin";
/// Its process id, once it runs.
const PID: &str = "pid";
/// Created once, by whoever starts the program.
const STARTED: &str = "started";
/// Folder with the tap under the names of backends.
pub const SWAPPED: &str = "swap";

/// Where a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapPlace {
    /// Folder of the run.
    pub folder: String,
    /// The app whose user runs everything; if `None`, the shell's user does.
    pub app: Option<String>,
}

impl TapPlace {
    /// A script executed in the run's folder.
    pub fn inside(&self, script: &str) -> String {
        self.as_owner(&format!("cd {} || exit 125\n{script}", quote(&self.folder)))
    }

    /// A script executed as the program's user.
    pub fn as_owner(&self, script: &str) -> String {
        match &self.app {
            Some(app) => format!("run-as {} sh -c {}", quote(app), quote(script)),
            None => script.to_owned(),
        }
    }

    /// Starts the program once, however often it is called. When the connection breaks, its shell gets a hangup and
    /// keeps waiting; the program's input and outputs are not part of the connection. Its input is empty, or the file
    /// [`STDIN`].
    pub fn start(&self, base: &str, variables: &[(String, String)], command: &[String], has_input: bool) -> String {
        let mut program = format!("echo $$ >.{PID} && mv .{PID} {PID}\ncd {} || exit 125\n", quote(base));
        for (name, value) in variables {
            let _ = writeln!(program, "export {name}={}", quote(value));
        }
        program.push_str("exec \"$0\" \"$@\"");
        let words: Vec<String> = command.iter().map(|word| quote(word)).collect();
        let words = words.join(" ");
        let input = if has_input { STDIN } else { "/dev/null" };
        let run = quote(&format!("exec sh -c {} {words} <{input} >{STDOUT} 2>{STDERR}", quote(&program)));
        // A shell reports the same number for a program killed by a signal and for one that exited with 128 or more. Of
        // the tools on devices, awk can distinguish them; an old one may not, which is tested first.
        let waiter = format!(
            "case $(awk 'BEGIN {{ print system(\"kill -9 $$\") }}' 2>/dev/null </dev/null) in 265|521|0.0*)\nawk 'BEGIN {{ print \
             system(ARGV[1]) }}' {run} >.{STATUS} </dev/null\necho awk >>.{STATUS};;\n*) sh -c {run}\necho $? >.{STATUS};;\nesac\nmv \
             .{STATUS} {STATUS}"
        );
        // A shell killed by a hangup would take its child along (mksh does). The signal is caught rather than
        // ignored, because the program would inherit an ignored one. The command at the end keeps the shell
        // from turning into the waiter.
        self.inside(&format!(
            "mkdir {STARTED} 2>/dev/null || exit 0\ntrap : HUP\nsh -c {} </dev/null >/dev/null 2>&1\n:",
            quote(&waiter)
        ))
    }

    /// Executes [`list`] and [`get`] lines until its input ends.
    pub fn follow(&self) -> String {
        let size = "stat -c 'f %s %n'";
        self.inside(&format!(
            "l() {{\nx=\n[ -f {PID} ] && read -r x <{PID}\necho \"pid $x\"\n[ -n \"$x\" ] && [ -d \"/proc/$x\" ] && echo alive\n\
             {size} {STATUS} {STDOUT} {STDERR} {TOLD}/* 2>/dev/null\nfor p in \"$@\"; do [ -d \"/proc/$p\" ] && echo \"p $p\" && grep -E \
             '^Vm(RSS|HWM)' \"/proc/$p/status\" 2>/dev/null; done\necho .\n}}\ng() {{ tail -c \"+$2\" \"$1\" | head -c \"$3\"; }}\nwhile \
             read -r line; do eval \"$line\"; done"
        ))
    }

    /// Sends the program a signal once it exists; an ended one gets none.
    pub fn signal(&self, number: i32) -> String {
        self.inside(&format!(
            "i=0\nwhile [ ! -f {PID} ] && [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done\n[ -f {STATUS} ] || kill -{number} \"$(cat {PID})\" 2>/dev/null\ntrue"
        ))
    }
}

/// How the program ended, from [`STATUS`]: awk's number (256 or 512 and more for a signal, or a fraction), or
/// the shell's, where 128 and more counts as a signal.
pub fn ended(text: &[u8]) -> Ended {
    let text = String::from_utf8_lossy(text);
    let mut words = text.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<f64>().ok()).filter(|number| (0.0..1024.0).contains(number));
    let Some(number) = number else { return Ended { status: None, signal: None } };
    #[expect(clippy::cast_possible_truncation, reason = "it was looked at")]
    let whole = |number: f64| number.round() as i32;
    let signal = match words.next() {
        // A core dump adds 128, or 256.
        Some("awk") if number.fract() > 0.0 => Some(whole(number.fract() * 256.0) & 127),
        Some("awk") => (number >= 256.0).then(|| whole(number) & 127),
        _ => (129.0..=192.0).contains(&number).then(|| whole(number) - 128),
    };
    Ended { status: signal.is_none().then(|| whole(number)), signal }
}

/// A line for [`TapPlace::follow`]: lists the files with lengths, and these processes' memory.
pub fn list(pids: impl IntoIterator<Item = u32>) -> String {
    let mut line = "l".to_owned();
    for pid in pids {
        let _ = write!(line, " {pid}");
    }
    line.push('\n');
    line
}

/// A line for [`TapPlace::follow`]: `count` bytes of a file from `offset` on. The name must satisfy [`is_name`].
pub fn get(name: &str, offset: u64, count: u64) -> String {
    format!("g {name} {} {count}\n", offset.saturating_add(1))
}

/// A line for [`TapPlace::follow`]: these files are no longer needed.
pub fn remove<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = "rm -f".to_owned();
    for name in names {
        line.push(' ');
        line.push_str(name);
    }
    line.push('\n');
    line
}

/// The end of a script that places the tap under the names of backends, as copies: a loader treats two links as one
/// library.
pub fn copies(backends: &[String]) -> String {
    let mut script = String::new();
    for name in backends {
        let _ = write!(script, " && cp {FILE} {SWAPPED}/{name}");
    }
    script
}

/// True for names that need no quotes and stay in the folder.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    name.len() < 256 && !name.starts_with(['/', '-']) && !name.contains("..") && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn sh(script: &str, input: &str) -> String {
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn a_program_is_started_once_and_followed_by_offsets() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("it's a run");
        std::fs::create_dir_all(folder.join(TOLD)).unwrap();
        let place = TapPlace { folder: folder.to_str().unwrap().to_owned(), app: None };
        let words = [
            "sh",
            "-c",
            "pwd; echo \"$V|$1\"; echo oops >&2; read -r x || echo no input; exit 7",
            "x",
            "it's $(an) argument",
        ];
        let start = place.start("/", &[("V".to_owned(), "a 'b'".to_owned())], &words.map(str::to_owned), false);
        assert_eq!(sh(&start, "nothing of this\n"), "", "nothing of it is on the connection");
        assert_eq!(sh(&start, ""), "", "it was started");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read(STDOUT), "/\na 'b'|it's $(an) argument\nno input\n");
        assert_eq!(read(STDERR), "oops\n");
        assert_eq!(ended(read(STATUS).as_bytes()), Ended { status: Some(7), signal: None });
        std::fs::write(folder.join("told/1.2.tap"), "0123456789").unwrap();
        let input = format!(
            "{}{}{}",
            list([std::process::id(), u32::MAX]),
            get("told/1.2.tap", 3, 4),
            remove(["told/1.2.tap"])
        );
        let told = sh(&place.follow(), &input);
        let pid = read(PID);
        let (status, stdout) = (read(STATUS).len(), read(STDOUT).len());
        assert!(told.starts_with(&format!("pid {pid}f {status} status\nf {stdout} stdout\n")), "{told}");
        assert!(
            told.contains("\nf 10 told/1.2.tap\n") && told.contains(&format!("\np {}\nVm", std::process::id())),
            "{told}"
        );
        assert!(told.ends_with("\n.\n3456") && !told.contains(&u32::MAX.to_string()), "{told}");
        assert!(!folder.join("told/1.2.tap").exists());
        // A signal for a program that has ended goes nowhere.
        std::fs::write(folder.join(PID), format!("{}\n", std::process::id())).unwrap();
        sh(&place.signal(15), "");
    }

    #[test]
    fn a_status_of_a_signals_number_is_told_from_the_signal() {
        let dir = tempfile::tempdir().unwrap();
        for (number, (script, status, signal)) in (0..).zip([
            ("exit 0", Some(0), None),
            ("exit 137", Some(137), None),
            ("kill -9 $$", None, Some(9)),
            ("exit 130", Some(130), None),
            ("kill -2 $$", None, Some(2)),
            ("cat; exit 3", Some(3), None),
        ]) {
            let folder = dir.path().join(number.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(STDIN), "what it reads").unwrap();
            let place = TapPlace { folder: folder.to_str().unwrap().to_owned(), app: None };
            let words = ["sh", "-c", script].map(str::to_owned);
            sh(&place.start("/", &[], &words, script.starts_with("cat")), "");
            assert_eq!(ended(&std::fs::read(folder.join(STATUS)).unwrap()), Ended { status, signal }, "{script}");
            let printed = std::fs::read_to_string(folder.join(STDOUT)).unwrap();
            assert_eq!(printed, if script.starts_with("cat") { "what it reads" } else { "" });
        }
    }

    #[test]
    fn every_kind_of_awk_is_understood_and_so_is_none() {
        let of = |text: &str| {
            let Ended { status, signal } = ended(text.as_bytes());
            (status, signal)
        };
        for (text, expected) in [
            ("7\nawk\n", (Some(7), None)),
            ("137\nawk\n", (Some(137), None)),
            ("265\nawk\n", (None, Some(9))),
            ("523\nawk\n", (None, Some(11))),
            // The first one: the status that wait reports, divided by 256; 128 more with a core dump.
            ("0.0351562\nawk\n", (None, Some(9))),
            ("0.542969\nawk\n", (None, Some(11))),
            ("137\n", (None, Some(9))),
            ("255\n", (Some(255), None)),
            ("", (None, None)),
            ("nan\nawk", (None, None)),
            ("-1\nawk", (None, None)),
            ("1e300 awk", (None, None)),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_a_device_are_words_without_meaning() {
        for name in ["told/12.345.tap", "stdout", "told/loaded"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["told/$(rm)", "../owner", "/etc/passwd", "-n", "a b", "a;b", "told/x\n"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn what_belongs_to_an_app_is_done_as_the_app() {
        let place = TapPlace { folder: "/data/data/a.b/q".to_owned(), app: Some("a.b".to_owned()) };
        let script = place.inside("echo 'x y'");
        let printed = sh(&script.replacen("run-as", "printf '%s|'", 1), "");
        assert_eq!(printed, "a.b|sh|-c|cd /data/data/a.b/q || exit 125\necho 'x y'|");
    }
}
