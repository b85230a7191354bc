//! Long logs: memory that does not grow with their length, and time that grows linearly with it. CPU time is
//! compared with CPU time of the same thread, so that a busy machine does not matter.

#![cfg(target_os = "linux")]

use qnnscope::diagnosis::Diagnoser;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const MIB: usize = 1 << 20;

/// About `bytes` of a verbose log full of failures, no two lines of which are alike, from line `first` on.
fn verbose(bytes: usize, first: u64) -> String {
    let mut text = String::with_capacity(bytes + 300);
    for n in first.. {
        let line = match n % 5 {
            0 => writeln!(
                text,
                "{n:>6}.1ms [ ERROR ] QnnDsp <E> DspTransport.openSession qnn_open failed, 0x80000406, prio {n}"
            ),
            1 => writeln!(text, "{n:>6}.2ms [ ERROR ] QnnDsp <E> Failed to validate op node{n}x with error 0xc26"),
            2 => writeln!(text, "{n:>6}.2ms [  INFO ] graph.cc:3965:256: Setting execution priority x{n}"),
            3 => writeln!(text, "{n:>6}.3ms [VERBOSE] QnnDsp <V> rpcMemoryAlloc {n} isInit 1 of block b{n}"),
            _ => writeln!(text, "E app{n}: cannot find model{n}.dlc: no such file"),
        };
        line.unwrap();
        if text.len() >= bytes {
            break;
        }
    }
    text
}

/// CPU time it takes to read a log, seconds: the least of three attempts.
fn cost_s(log: &str) -> f64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let once = || {
        let begun = now();
        let mut diagnoser = Diagnoser::new();
        log.as_bytes().chunks(256 << 10).for_each(|chunk| diagnoser.feed(chunk));
        assert_eq!(diagnoser.finish().causes.first().map(|cause| cause.id), Some("skel-not-found"));
        now() - begun
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

#[test]
fn a_log_eight_times_as_long_takes_about_eight_times_as_long() {
    let (short, long) = (verbose(2 * MIB, 0), verbose(16 * MIB, 0));
    let (short_s, long_s) = (cost_s(&short), cost_s(&long));
    // Anything that grows with the square of the length would take 64 times as long.
    let times = long_s / short_s;
    assert!(times < 24.0, "{times:.1} times: {short_s:.3} s for {}, {long_s:.3} s for {}", short.len(), long.len());
}

#[test]
fn lines_that_come_again_are_not_read_again() {
    let new = verbose(8 * MIB, 0);
    let lines = &new[..verbose(64 << 10, 0).len()];
    let again = lines.repeat(new.len() / lines.len());
    let (new_s, again_s) = (cost_s(&new), cost_s(&again));
    assert!(again_s * 1.5 < new_s, "{again_s:.3} s for lines that come again, {new_s:.3} s for new ones");
}

#[test]
fn a_number_before_each_line_that_comes_again_does_not_make_it_new() {
    let new = verbose(8 * MIB, 0);
    let lines = verbose(64 << 10, 0);
    let mut numbered = String::with_capacity(new.len());
    for (n, line) in lines.lines().cycle().enumerate() {
        writeln!(numbered, "{} {} {line}", n % 1000, n / 1000).unwrap();
        if numbered.len() >= new.len() {
            break;
        }
    }
    let (new_s, numbered_s) = (cost_s(&new), cost_s(&numbered));
    assert!(numbered_s * 1.5 < new_s, "{numbered_s:.3} s for lines that come again, {new_s:.3} s for new ones");
}

#[test]
fn memory_stays_flat_over_three_hundred_megabytes() {
    let mut reader = Command::new(env!("CARGO_BIN_EXE_qnnscope"))
        .args(["diagnose", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = reader.id();
    let peak_kib = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let mut input = reader.stdin.take().unwrap();
    let (mut written, mut after_30_kib) = (0, 0);
    let mut number = 0;
    while written < 300 * MIB {
        let part = verbose(2 * MIB, number);
        number += part.lines().count() as u64;
        input.write_all(part.as_bytes()).unwrap();
        written += part.len();
        if after_30_kib == 0 && written >= 30 * MIB {
            after_30_kib = peak_kib();
        }
    }
    let at_end_kib = peak_kib();
    drop(input);
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["causes"][0]["id"], "skel-not-found", "{document:#}");
    assert!(at_end_kib < after_30_kib + 8 * 1024, "{after_30_kib} KiB after 30 MB, {at_end_kib} KiB after {written}");
}
