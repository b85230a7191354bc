//! Lines of Android's log that concern the DSP, the GPU, memory and crashes, while a run goes on.

use crate::devices::{Device, Piece, quote};
use crate::event::{Event, LogLevel, LogLine, LogSource, RunId};
use crate::session::Source;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Tags and the levels from which on they are shown. `DEBUG` and `libc` are those of crashes (tombstones).
const FILTER: &str = "adsprpc:V fastrpc:V cdsprpcd:I QNN:V QnnDsp:V QnnHtp:V Adreno:W kgsl:V thermal-engine:W ThermalService:W \
                      lowmemorykiller:I lmkd:I libc:F DEBUG:F remoteproc:V subsys-restart:V '*:S'";

/// What a device without logcat says.
const NONE: &str = "__qnnscope_no_logcat";
/// Pause before it is followed again.
const RETRY: Duration = Duration::from_secs(1);

/// Ends when dropped.
pub struct Logcat(JoinHandle<()>);

impl Drop for Logcat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Puts new lines on the stream. A device without logcat gives none.
pub fn follow(device: &Device, source: Source, run: RunId) -> Logcat {
    let device = device.clone();
    Logcat(tokio::spawn(async move {
        // `logcat` itself would notice a closed stream only with the next line that it cannot write.
        let inner = format!(
            "trap '' HUP\ncommand -v logcat >/dev/null || {{ echo {NONE}; exit 0; }}\nlogcat -v threadtime -T 1 -s {FILTER} &\np=$!\nread -r \
             x\nkill $p 2>/dev/null"
        );
        // After a lost link it is followed again; `-T 1` gives the newest line and what follows.
        loop {
            let mut stream = device.stream(&format!("sh -c {}", quote(&inner)));
            let mut pending = Vec::new();
            while let Some(Piece::Output(bytes)) = stream.next().await {
                pending.extend_from_slice(&bytes);
                let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { continue };
                for line in pending[..end].split(|byte| *byte == b'\n') {
                    if line == NONE.as_bytes() {
                        return;
                    }
                    if let Some(line) = parse(&String::from_utf8_lossy(line)) {
                        source.send(Some(run), Event::Log(line)).await;
                    }
                }
                pending.drain(..=end);
            }
            tokio::time::sleep(RETRY).await;
        }
    }))
}

/// `MM-DD hh:mm:ss.mmm  PID  TID L TAG : text`.
fn parse(line: &str) -> Option<LogLine> {
    if line.starts_with("--------- ") || line.trim().is_empty() {
        return None;
    }
    let mut rest = line.trim_end();
    let mut word = || {
        rest = rest.trim_start();
        let (word, more) = rest.split_once(' ')?;
        rest = more;
        Some(word)
    };
    let (_date, _time, _pid, _tid, letter) = (word()?, word()?, word()?, word()?, word()?);
    let level = match letter {
        "F" | "E" => LogLevel::Error,
        "W" => LogLevel::Warning,
        "I" => LogLevel::Info,
        "D" | "V" => LogLevel::Verbose,
        _ => return None,
    };
    Some(LogLine::new(level, LogSource::Device, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_what_the_stream_knows_already() {
        let line =
            parse("11-21 06:40:05.344  2210  2214 V adsprpc : remote_handle64_open: Successfully opened").unwrap();
        assert_eq!((line.level, line.source), (LogLevel::Verbose, LogSource::Device));
        assert_eq!(line.text, "adsprpc : remote_handle64_open: Successfully opened");
        let crash = parse("11-21 06:40:05.344  99  99 F libc    : Fatal signal 11 (SIGSEGV)").unwrap();
        assert_eq!(crash.level, LogLevel::Error);
        assert!(parse("--------- beginning of main").is_none() && parse("garbage").is_none());
    }
}
