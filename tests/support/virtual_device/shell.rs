//! The `shell:` and `exec:` services: a command on the device behind pipes, with or without the framing of
//! shell v2.

use super::core::Core;
use super::namespaces::{hang_up, is_argument};
use super::stream::{Closed, Input, Stream};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Kinds of packets of shell v2: one byte, four of length, data.
mod kind {
    pub const STDIN: u8 = 0;
    pub const STDOUT: u8 = 1;
    pub const STDERR: u8 = 2;
    pub const EXIT: u8 = 3;
    pub const CLOSE_STDIN: u8 = 4;
}

/// Maximum read at once, bytes.
const CHUNK: usize = 64 * 1024;

/// What to run, and how to transfer its data.
pub struct Request {
    /// Empty for a shell that reads commands.
    pub command: OsString,
    pub v2: bool,
    /// `exec:`, which does not change bytes; an old `shell:` goes through a terminal that turns `\n` into
    /// `\r\n`.
    pub exec: bool,
    pub term: Option<String>,
}

#[derive(Clone, Copy)]
enum Framing {
    V2(u8),
    Terminal,
    Plain,
}

/// Runs the request until it has ended and all output has been sent.
pub fn run(core: &Core, stream: &Arc<Stream>, input: Input, request: &Request) {
    if core.cuts(&request.command.to_string_lossy()) {
        return;
    }
    let Some((mut child, outputs)) = spawn(core, request) else {
        stream.close();
        return;
    };
    let pid = child.id();
    // Set under its lock once the child has been waited for: its pid may mean something else afterwards.
    let gone = Arc::new(Mutex::new(false));
    let seen = gone.clone();
    stream.on_close(move || {
        let gone = seen.lock().unwrap();
        if !*gone {
            hang_up(pid);
        }
    });
    let stdin = child.stdin.take().unwrap();
    let v2 = request.v2;
    std::thread::spawn(move || feed(input, stdin, v2));
    let readers: Vec<JoinHandle<()>> = outputs
        .into_iter()
        .map(|(framing, from)| {
            let stream = stream.clone();
            std::thread::spawn(move || forward(from, &stream, framing))
        })
        .collect();
    for reader in readers {
        let _ = reader.join();
    }
    let status = reap(&mut child, &gone);
    if request.v2 {
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(255);
        let _ = stream.write(&frame(kind::EXIT, &[code.to_le_bytes()[0]]));
    }
    stream.close();
}

type Output = Box<dyn Read + Send>;

/// The process and its output. `None` if the device is off, or if the command cannot be one.
fn spawn(core: &Core, request: &Request) -> Option<(Child, Vec<(Framing, Output)>)> {
    if !is_argument(&request.command) {
        return None;
    }
    let mut command = core.shell_command()?;
    if request.command.is_empty() {
        command.arg("-");
    } else {
        command.arg("-c").arg(&request.command);
    }
    if let Some(term) = &request.term {
        command.env("TERM", term);
    }
    command.stdin(Stdio::piped());
    if request.v2 {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out: Output = Box::new(child.stdout.take().unwrap());
        let err: Output = Box::new(child.stderr.take().unwrap());
        return Some((child, vec![(Framing::V2(kind::STDOUT), out), (Framing::V2(kind::STDERR), err)]));
    }
    let (reader, writer) = io::pipe().unwrap();
    let child = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
    let framing = if request.exec { Framing::Plain } else { Framing::Terminal };
    Some((child, vec![(framing, Box::new(reader))]))
}

fn reap(child: &mut Child, gone: &Mutex<bool>) -> ExitStatus {
    let pid = Pid::from_child(child);
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let mut gone = gone.lock().unwrap();
    *gone = true;
    child.wait().unwrap()
}

fn frame(kind: u8, data: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(5 + data.len());
    packet.push(kind);
    packet.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    packet.extend(data);
    packet
}

/// Sends a process's output. If the host is gone, stops and closes the pipe, so that the process finds it
/// broken.
fn forward(mut from: Output, stream: &Stream, framing: Framing) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let data = &buffer[..count];
        let sent = match framing {
            Framing::V2(kind) => stream.write(&frame(kind, data)),
            Framing::Plain => stream.write(data),
            Framing::Terminal => stream.write(&with_carriage_returns(data)),
        };
        if let Err(Closed) = sent {
            break;
        }
    }
}

fn with_carriage_returns(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 16);
    for byte in data {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

/// Passes on what the host sends to the process, until the host closes standard input or the process does.
fn feed(mut input: Input, mut stdin: impl Write, v2: bool) {
    if !v2 {
        let _ = io::copy(&mut input, &mut stdin);
        return;
    }
    let mut header = [0u8; 5];
    let mut open = Some(stdin);
    while input.read_exact(&mut header).is_ok() {
        let length = u64::from(u32::from_le_bytes([header[1], header[2], header[3], header[4]]));
        let mut data = (&mut input).take(length);
        let taken = match (header[0], open.as_mut()) {
            (kind::STDIN, Some(stdin)) => io::copy(&mut data, stdin).is_ok(),
            (kind::CLOSE_STDIN, _) => false,
            // A window's size, and input that nobody reads.
            _ => true,
        };
        if !taken {
            open = None;
        }
        if io::copy(&mut data, &mut io::sink()).is_err() {
            return;
        }
    }
}
