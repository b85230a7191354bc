//! Console lines in qnn-net-run's format: `    12.3ms [ ERROR ] text`.

use qnnscope::event::{LogLevel, LogLine, LogSource};
use std::io::Write;
use std::time::Instant;

/// A line on stdout.
pub fn plain(text: &str) {
    // A closed pipe is the caller's business, not a reason to fail.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A line on stderr.
pub fn plain_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints lines with a time stamp, up to a level.
pub struct Console {
    begun: Instant,
    level: LogLevel,
}

impl Console {
    pub fn new(level: LogLevel) -> Self {
        Self { begun: Instant::now(), level }
    }

    pub fn line(&self, level: LogLevel, text: &str) {
        if level <= self.level {
            let name = match level {
                LogLevel::Error => " ERROR ",
                LogLevel::Warning => "WARNING",
                LogLevel::Info => "  INFO ",
                LogLevel::Verbose => "VERBOSE",
                LogLevel::Debug => " DEBUG ",
            };
            plain(&format!("{:8.1}ms [{name}] {text}", self.begun.elapsed().as_secs_f64() * 1e3));
        }
    }

    pub fn error(&self, text: &str) {
        self.line(LogLevel::Error, text);
    }

    pub fn info(&self, text: &str) {
        self.line(LogLevel::Info, text);
    }

    /// Prints a line of the stream. HTP's own lines repeat their level and end with an empty line.
    pub fn log(&self, line: &LogLine, htp: bool) {
        match line.source {
            LogSource::Console => plain(&line.text),
            LogSource::Backend if htp => {
                let mark = match line.level {
                    LogLevel::Error => " <E> ",
                    LogLevel::Warning => " <W> ",
                    LogLevel::Info => " <I> ",
                    LogLevel::Verbose | LogLevel::Debug => " <V> ",
                };
                let mark = if is_source_line(&line.text) { "" } else { mark };
                self.line(line.level, &format!("{mark}{}\n", line.text));
            }
            LogSource::Backend => self.line(line.level, &line.text),
            // qnnscope's own messages do not belong in the tool's output.
            LogSource::Device | LogSource::Runner | LogSource::Qnnscope | LogSource::Program => {}
        }
    }
}

/// `graph.cc:2444:text`: lines from HTP's lower layers, which have no level mark.
fn is_source_line(text: &str) -> bool {
    let mut parts = text.splitn(3, ':');
    let file = parts.next().unwrap_or_default();
    let number = parts.next().unwrap_or_default();
    file.strip_suffix(".cc").is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
