//! Logs for the diagnosis tests: collected ones, handwritten ones, and what other tools turn them into.

#![allow(dead_code, reason = "each test target uses its own part")]

use serde_json::Value;
use std::path::PathBuf;

/// A log with what is known about it.
#[derive(Debug, Clone)]
pub struct Known {
    pub name: String,
    pub log: String,
    /// The cause first, then other answers that are just as right; empty for a healthy log.
    pub right: Vec<String>,
    /// Where it comes from: logs of one thread count as one source.
    pub thread: String,
    /// The project, tool or author it comes from.
    pub project: String,
    /// Exit status of the program that wrote it, if known.
    pub exit_status: Option<i32>,
    /// A failure whose cause is unknown: naming none is as right as naming one of `right`.
    pub none_is_right: bool,
}

impl Known {
    fn new(name: &str, log: String, right: Vec<String>, source: &str) -> Self {
        // `https://github.com/owner/repo/issues/12`, possibly after the word "after".
        let address = source.split_whitespace().find(|word| word.starts_with("http")).unwrap_or_default();
        let parts: Vec<&str> = address.split('/').collect();
        let (thread, project) = match parts[..] {
            [_, _, host, owner, repo, ..] => (address.to_owned(), format!("{host}/{owner}/{repo}")),
            _ if source.starts_with("made up") => (name.to_owned(), "made up".to_owned()),
            _ => (name.to_owned(), source.to_owned()),
        };
        Self { name: name.to_owned(), log, right, thread, project, exit_status: None, none_is_right: false }
    }
}

fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// Logs from public issue threads.
pub fn field() -> Vec<Known> {
    rows("field-logs.jsonl")
}

/// Logs from an audit: what earlier rules got wrong, mostly healthy ones.
pub fn audit() -> Vec<Known> {
    rows("audit-logs.jsonl")
}

fn rows(file: &str) -> Vec<Known> {
    let text = std::fs::read_to_string(data(file)).unwrap();
    let known = text.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let accept = row["accept"].as_array().cloned().unwrap_or_default();
        let truth = row["truth"].as_str().unwrap_or("healthy");
        let right = [truth].into_iter().chain(accept.iter().map(|id| id.as_str().unwrap()));
        let right = right.filter(|id| !["healthy", "unrelated", "none-of-them"].contains(id)).map(str::to_owned);
        let log = row["log"].as_str().unwrap().to_owned();
        let known = Known::new(row["id"].as_str().unwrap(), log, right.collect(), row["source"].as_str().unwrap());
        let exit_status = row["exit_status"].as_i64().map(|status| status as i32);
        Known { exit_status, none_is_right: truth == "none-of-them", ..known }
    });
    known.collect()
}

/// Messages of ordinary mistakes and of other stacks, in our own words.
pub fn mistakes() -> Vec<Known> {
    rows("mistake-logs.jsonl")
}

/// Logs of threads that are in no other set; their causes were written down before the rules saw them.
pub fn unseen() -> Vec<Known> {
    rows("unseen-logs.jsonl")
}

/// The newest logs whose causes were written down before the rules saw them.
pub fn fresh() -> Vec<Known> {
    rows("fresh-logs.jsonl")
}

/// Logs of public threads and files, of mistakes and of successful runs, collected by somebody who had not
/// seen the rules.
pub fn newest() -> Vec<Known> {
    rows("newest-logs.jsonl")
}

/// Two more such sets, first read by frozen rules.
pub fn held() -> Vec<Known> {
    rows("held-logs.jsonl")
}

/// Four more sets, without anything from notes whose author is unknown.
pub fn later() -> Vec<Known> {
    rows("later-logs.jsonl")
}

/// Logs made with real tools: what the rules before the tables of programs had wrong, and good runs.
pub fn made() -> Vec<Known> {
    rows("made-logs.jsonl")
}

/// The ends of more logs of such sets, which only the reader of closing words learns from.
pub fn read() -> Vec<Known> {
    rows("read-logs.jsonl")
}

/// Messages of public programs, as their sources print them.
pub fn programs() -> Vec<Known> {
    rows("program-logs.jsonl")
}

/// What different stacks print for each cause, in our own words, and what only looks like it.
pub fn phrasings() -> Vec<Known> {
    rows("phrasing-logs.jsonl")
}

/// Console logs of real runs.
pub fn runs() -> Vec<Known> {
    folder("run-logs")
}

/// Logs of the real device libraries, with chosen FastRPC answers.
pub fn dsp() -> Vec<Known> {
    folder("dsp-logs")
}

/// Logs of real converters.
pub fn converters() -> Vec<Known> {
    folder("converter-logs")
}

fn folder(name: &str) -> Vec<Known> {
    let text = std::fs::read_to_string(data(name).join("manifest.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let known = rows.iter().map(|row| {
        let file = row["file"].as_str().unwrap();
        let bytes = std::fs::read(data(name).join(file)).unwrap();
        let accept = row["accept"].as_array().cloned().unwrap_or_default();
        let right = [&row["cause"]].into_iter().chain(&accept).map(|id| id.as_str().unwrap().to_owned());
        // Each scenario has one root, whatever the release, part and log level: `open-0x2-618-247-error`.
        let number = |part: &&str| part.len() == 3 && part.bytes().all(|c| c.is_ascii_digit());
        let scenario: Vec<&str> = file.split('-').take_while(|part| !number(part)).collect();
        let tool = row["tool"].as_str().unwrap_or(name).split(',').next().unwrap();
        let right: Vec<String> = right.collect();
        let right = if right[0] == "none" { right[1..].to_vec() } else { right };
        Known {
            name: file.to_owned(),
            log: String::from_utf8_lossy(&bytes).into_owned(),
            right,
            thread: scenario.join("-"),
            project: format!("{name}: {tool}"),
            exit_status: row["exit_code"].as_i64().map(|status| status as i32),
            none_is_right: false,
        }
    });
    known.collect()
}

/// All kept logs, in sets with what each is.
pub fn sets() -> [(&'static str, Vec<Known>); 14] {
    [
        ("public threads (`field-logs.jsonl`)", field()),
        ("two audits (`audit-logs.jsonl`)", audit()),
        ("new threads (`unseen-logs.jsonl`)", unseen()),
        ("newer threads and plain mistakes (`fresh-logs.jsonl`)", fresh()),
        ("newest threads, files and mistakes (`newest-logs.jsonl`)", newest()),
        ("two sets that were held back (`held-logs.jsonl`)", held()),
        ("thirty-one later sets (`later-logs.jsonl`)", later()),
        ("thirty-four sets made with real tools (`made-logs.jsonl`)", made()),
        ("real runs (`run-logs/`)", runs()),
        ("real device libraries (`dsp-logs/`)", dsp()),
        ("real converters (`converter-logs/`)", converters()),
        ("mistakes in our own words (`mistake-logs.jsonl`)", mistakes()),
        ("what other stacks say, mostly in our own words (`phrasing-logs.jsonl`)", phrasings()),
        ("messages of public programs (`program-logs.jsonl`)", programs()),
    ]
}

/// The logs of one cause in `diagnosis-cases.txt`.
pub struct Cases {
    pub id: String,
    pub right: Vec<String>,
    pub wrong: Vec<String>,
}

pub fn cases() -> Vec<Cases> {
    let text = std::fs::read_to_string(data("diagnosis-cases.txt")).unwrap();
    let mut list: Vec<Cases> = Vec::new();
    let mut before = ' ';
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(id) = line.strip_prefix("== ") {
            list.push(Cases { id: id.to_owned(), right: Vec::new(), wrong: Vec::new() });
            before = ' ';
            continue;
        }
        let mark = line.chars().next().unwrap();
        let cases = list.last_mut().unwrap();
        let logs = if mark == '+' { &mut cases.right } else { &mut cases.wrong };
        assert!(mark == '+' || mark == '-', "{line}");
        if mark != before || line.len() == 1 {
            logs.push(String::new());
        }
        before = mark;
        if let Some(text) = line.get(2..) {
            let log = logs.last_mut().unwrap();
            log.push_str(text);
            log.push('\n');
        }
    }
    list
}

/// Pseudo-random numbers that are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Number of ways in which other tools would have printed a log.
pub const WRAPPINGS: usize = 11;

/// The log as tool number `which` prints it.
pub fn wrapped(log: &str, which: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut out = String::new();
    for line in log.lines() {
        let (a, b) = (numbers.next(900) + 100, numbers.next(9000) + 20000);
        match which {
            0 => out += &format!("05-0{} 10:1{}:31.{a}  {b}  {b} E app     : {line}\n", a % 9 + 1, a % 9),
            1 => {
                out += &format!(
                    "\x1b[1;31m2026-03-0{} 07:38:03.{a}{b} [E:onnxruntime:, x_manager.cc:{a} Log] {line}\x1b[m\n",
                    a % 9 + 1
                )
            }
            2 => out += &format!("[ERROR] [Executor]: {line}\n\n"),
            3 => out += &format!("[2026-01-02 03:04:05.{a}] [error] [tid {b}] {line}\n"),
            4 => out += &format!("E0000 00:00:17123{b}.{a} {b} x_log.cc:51] {line}\n"),
            9 => out += &format!("{}\n", serde_json::json!({ "level": "error", "msg": line })),
            10 => out += &format!("| {line} |\n"),
            5 => out += &format!("{line}\r\n"),
            6 => out += &format!("\x1b[01;31m\x1b[K{line}\x1b[m\x1b[K\n"),
            7 => {
                out += &noise(&mut numbers);
                out += &format!("[{a:>5}.{b}] {line}\n");
            }
            _ => out += &format!("{line}\n"),
        }
    }
    let out =
        out.replace("/data/local/tmp", "/data/local/q1").replace("/home/user", "/mnt/w").replace("/opt/", "/srv/");
    if which == 8 {
        let units = std::iter::once(0xfeff).chain(out.encode_utf16());
        return units.flat_map(u16::to_le_bytes).collect();
    }
    out.into_bytes()
}

/// A line from a busy, healthy system.
pub fn noise(numbers: &mut Numbers) -> String {
    let (a, b) = (numbers.next(100_000), numbers.next(1 << 32));
    match numbers.next(12) {
        0 => format!(
            "07-11 09:12:{:02}.{:03}  1203  1288 I ActivityManager: Start proc {a}:com.x.y/u0a{b}\n",
            a % 60,
            a % 999
        ),
        1 => {
            format!("[{a:>6}.{:06}] usb 1-1: new high-speed USB device number {} using xhci_hcd\n", b % 999_999, a % 99)
        }
        2 => format!("   Compiling serde v1.0.{}\nwarning: unused variable: `x{a}`\n", a % 300),
        3 => format!("GET /v1/items/{a}?page={} 404 not found in {} ms\n", b % 99, b % 1002),
        4 => format!("W/System.err: java.io.IOException: Connection reset by peer ({b:#x})\n"),
        5 => format!("E/wpa_supplicant: nl80211: Failed to set interface, error {}\n", a % 400),
        6 => format!("make[2]: *** [Makefile:{a}: all] Error {}\n", a % 3),
        7 => format!("  0x{b:016x} in std::thread::park () from /lib/libc.so.6\n"),
        8 => format!("[ INFO ] epoch {a} loss {} step time {} us\n", b % 1000, b % 8003),
        9 => format!("systemd[1]: Started Session {a} of user root; code=exited, status={}\n", a % 2),
        10 => format!("dex2oat: Compilation of module {b} took {a}ms; failed verification of 0 classes\n"),
        _ => format!("type=1400 audit(17{b}.1:{a}): avc:  denied  {{ read }} for  name=\"stat\" scontext=u:r:shell\n"),
    }
}
