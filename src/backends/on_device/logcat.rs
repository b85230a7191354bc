//! Lines of Android's log about the DSP, the GPU, memory and crashes during a run.

use crate::devices::{Device, Piece, quote};
use crate::event::{Event, LogLevel, LogLine, LogSource, RunId};
use crate::session::Source;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Tags and their minimum levels. `DEBUG` and `libc` report crashes (tombstones).
const FILTER: &str = "adsprpc:V fastrpc:V cdsprpcd:I QNN:V QnnDsp:V QnnHtp:V Adreno:W kgsl:V thermal-engine:W ThermalService:W \
                      lowmemorykiller:I lmkd:I libc:F DEBUG:F remoteproc:V subsys-restart:V '*:S'";

/// Printed by a device without logcat.
const NONE: &str = "__qnnscope_no_logcat";
/// Pause before following it again.
const RETRY: Duration = Duration::from_secs(1);

/// Ends when dropped.
pub struct Logcat(JoinHandle<()>);

impl Drop for Logcat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Puts new lines on the stream. A device without logcat has none.
pub fn follow(device: &Device, source: Source, run: RunId) -> Logcat {
    let device = device.clone();
    Logcat(tokio::spawn(async move {
        // `logcat` itself would notice a closed stream only at the next line it cannot write.
        let inner = format!(
            "trap '' HUP\ncommand -v logcat >/dev/null || {{ echo {NONE}; exit 0; }}\necho {SINCE}$(date '+%m-%d_%H:%M:%S')\nlogcat -v \
             threadtime -T 1 -s {FILTER} &\np=$!\nread -r x\nkill -KILL $p 2>/dev/null"
        );
        // After a lost link it is followed again; `-T 1` outputs the newest line, of whatever age, and what follows.
        let mut fresh = Fresh::default();
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
                    let line = String::from_utf8_lossy(line);
                    if fresh.takes(&line) {
                        continue;
                    }
                    if let Some(line) = parse(&line).filter(|_| fresh.passes(&line)) {
                        source.send(Some(run), Event::Log(line)).await;
                    }
                }
                pending.drain(..=end);
            }
            tokio::time::sleep(RETRY).await;
        }
    }))
}

/// Marker before the device's own time, which precedes its log.
const SINCE: &str = "__qnnscope_since:";

/// Holds back lines from before the log was opened: what was logged before a run explains nothing about it.
#[derive(Debug, Default)]
struct Fresh {
    /// Month, day and time of day, in the log's format.
    since: Option<String>,
    /// A line of the run has arrived: those after it are newer, even if the device's clock is set back.
    passed: bool,
}

impl Fresh {
    fn passes(&mut self, line: &str) -> bool {
        let stamp: String = line.trim_start().chars().take(14).collect();
        let Some(since) = &self.since else { return true };
        let new_year = since.starts_with("12-31") && stamp.starts_with("01-01");
        self.passed |= new_year || stamp.as_str() >= since.as_str();
        self.passed
    }

    /// Stores the device's time if the line has it; it is then not a log line.
    fn takes(&mut self, line: &str) -> bool {
        let Some((_, moment)) = line.split_once(SINCE) else { return false };
        // A device without `date` prints none, and then all lines count.
        let moment = moment.trim().replace('_', " ");
        *self = Self { since: Some(moment).filter(|moment| moment.len() == 14), passed: false };
        true
    }
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
    fn lines_from_before_the_run_do_not_count() {
        let mut fresh = Fresh::default();
        assert!(fresh.passes("11-21 06:40:05.344 1 1 W x: y"), "the device did not tell its time");
        assert!(fresh.takes("__qnnscope_since:11-21_06:45:00") && !fresh.takes("11-21 06:45:00.100 1 1 W x: y"));
        assert!(!fresh.passes("11-21 06:40:05.344 1 1 W thermal-engine: throttling"));
        assert!(fresh.passes("11-21 06:45:00.001 1 1 W x: y"));
        assert!(fresh.passes("11-21 06:44:59.000 1 1 W x: y"), "the clock was set back in the run");
        assert!(fresh.takes("__qnnscope_since:12-31_23:59:59") && fresh.passes("01-01 00:00:00.000 1 1 W x: y"));
        assert!(fresh.takes("__qnnscope_since:") && fresh.passes("01-01 00:00:00.000 1 1 W x: y"));
    }

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
