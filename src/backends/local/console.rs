//! Console output of vendor libraries: log lines, and the figures of HTP's finalize.

use crate::event::{Event, LogLevel, LogLine, LogSource, Stage, SubStage};
use std::time::{Duration, Instant};

/// Lines passed per second; a library that prints endlessly must not fill the session.
pub const LINES_PER_S: u64 = 2_000;

/// Counts lines within the current second.
#[derive(Debug)]
pub struct Flood {
    since: Instant,
    lines: u64,
}

impl Flood {
    /// No lines yet.
    pub fn new() -> Self {
        Self { since: Instant::now(), lines: 0 }
    }

    /// Counts a line. Returns whether it may pass, and how many were held back in the second that just ended.
    pub fn take(&mut self) -> (bool, u64) {
        let mut held_back = 0;
        if self.since.elapsed() >= Duration::from_secs(1) {
            held_back = self.held_back();
            *self = Self::new();
        }
        self.lines += 1;
        (self.lines <= LINES_PER_S, held_back)
    }

    /// How many were held back in the current second.
    pub fn held_back(&self) -> u64 {
        self.lines.saturating_sub(LINES_PER_S)
    }
}

/// Names in the DDR summary that HTP prints at the end of finalize, and their meaning.
const DDR: [(&str, &str); 4] = [
    ("spill_bytes", "DDR spill"),
    ("fill_bytes", "DDR fill"),
    ("write_total_bytes", "DDR write total"),
    ("read_total_bytes", "DDR read total"),
];

/// Turns a console line into events: always a log line, plus a figure if the line belongs to the DDR summary.
pub fn events(line: &str) -> Vec<Event> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    let mut events = Vec::new();
    if let Some((name, bytes)) = ddr_figure(line) {
        events.push(Event::SubStageFinished(SubStage {
            stage: Stage::Finalize,
            name: name.to_owned(),
            value: bytes as f64,
            unit: "bytes".to_owned(),
        }));
    }
    events.push(Event::Log(LogLine::new(LogLevel::Info, LogSource::Console, line)));
    events
}

fn ddr_figure(line: &str) -> Option<(&'static str, u64)> {
    let (key, value) = line.trim().split_once('=')?;
    let name = DDR.iter().find(|row| row.0 == key)?.1;
    Some((name, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ddr_summary_becomes_figures() {
        // As printed by QAIRT 2.47's HTP library on x86_64.
        let text = "====== DDR bandwidth summary ======\nspill_bytes=0\nfill_bytes=12\nwrite_total_bytes=2048\nread_total_bytes=366592\n\n";
        let figures: Vec<(String, f64)> = text
            .lines()
            .flat_map(events)
            .filter_map(|event| match event {
                Event::SubStageFinished(sub) => Some((sub.name, sub.value)),
                _ => None,
            })
            .collect();
        assert_eq!(figures.len(), 4);
        assert_eq!(figures[3], ("DDR read total".to_owned(), 366_592.0));
        assert_eq!(events("spill_bytes=many").len(), 1);
        assert!(events("  ").is_empty());
    }
}
