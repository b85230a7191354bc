//! Throughput of reading logs: a busy system's noise with one failure in it, a healthy QNN log, and nothing
//! but failures.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use qnnscope::diagnosis::Diagnoser;
use std::fmt::Write;
use std::hint::black_box;

const BYTES: usize = 32 << 20;
const CHUNK: usize = 256 << 10;

fn log(line: impl Fn(&mut String, u64)) -> Vec<u8> {
    let mut text = String::with_capacity(BYTES + 400);
    let mut number = 0;
    while text.len() < BYTES {
        line(&mut text, number);
        number += 1;
    }
    text.into_bytes()
}

fn noise(text: &mut String, n: u64) {
    let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let _ = match n % 5 {
        0 => writeln!(text, "07-11 09:12:31.{:03}  1203  1288 I ActivityManager: Start proc {x}:com.x.y/u0a1", n % 999),
        1 => writeln!(text, "[{n:>6}.{:06}] usb 1-1: new high-speed USB device number 4 using xhci_hcd", x % 999_999),
        2 => writeln!(text, "GET /v1/items/{x}?page=2 404 not found in {} ms", n % 1002),
        3 => writeln!(text, "E/wpa_supplicant: nl80211: Failed to set interface, error {}", n % 400),
        _ => writeln!(text, "  #{n} 0x{x:016x} in std::thread::park () from /lib/libc.so.6"),
    };
}

fn healthy(text: &mut String, n: u64) {
    let _ = match n % 4 {
        0 => writeln!(text, "     0.0ms [  INFO ]  <I> QnnGraph_execute started. graph = 0x1"),
        1 => writeln!(text, "     0.0ms [  INFO ] graph.cc:3965:256: Setting execution priority {}", n % 200),
        2 => writeln!(text, "     0.0ms [  INFO ] vtcm_wrapper.cc:268:0x7ffdaf648688 vtcm_waiters now 1"),
        _ => writeln!(text, "     0.0ms [  INFO ]  <I> QnnGraph_execute done. status 0x0"),
    };
}

fn failing(text: &mut String, n: u64) {
    let _ = match n % 3 {
        0 => writeln!(text, "[ERROR] [Qnn]:  <E> DspTransport.openSession qnn_open failed, 0x80000406, prio {n}"),
        1 => writeln!(text, "[ERROR] [Qnn]:  <E> Failed to retrieve skel build id: err: 1008"),
        _ => writeln!(text, "[ERROR] [Qnn]:  <E> Failed to validate op node_{n} with error 0xc26"),
    };
}

fn throughput(c: &mut Criterion) {
    let mut group = c.benchmark_group("diagnose");
    group.sample_size(10);
    let mut mixed = log(noise);
    mixed.extend(b"QnnDsp <E> Request feature arch with value 81 unsupported\n");
    for (name, log) in [("noise", mixed), ("healthy", log(healthy)), ("failing", log(failing))] {
        group.throughput(Throughput::Bytes(log.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &log, |b, log| {
            b.iter(|| {
                let mut diagnoser = Diagnoser::new();
                log.chunks(CHUNK).for_each(|chunk| diagnoser.feed(chunk));
                black_box(diagnoser.finish())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
