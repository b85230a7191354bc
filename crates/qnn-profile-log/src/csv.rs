//! The rows of the vendor's CSV. They are ordered by kind and graph, so a log is read twice: once for the leading rows
//! and the graph names, once for the inferences.

use super::csv_pieces::{graph_name, middle};
use super::error::ProfileLogError;
use super::found::Found;
use super::inferences::inferences;
use super::output::{self, Output};
use super::overview::{Overview, Row, Section};
use super::reader::ReadOutcome;
use super::turns::Workers;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Writes the rows of the log called `location`, read from `source`'s current position on. Bytes appended meanwhile are
/// left for the next call.
///
/// # Errors
/// Errors of the log, source and sink. Damage further into the log is not an error: see [`ReadOutcome::damage`].
pub fn write_csv<R: Read + Seek + Send, W: Write + Send>(
    mut source: R,
    location: &str,
    sink: W,
) -> Result<ReadOutcome, ProfileLogError> {
    let start = source.stream_position().map_err(ProfileLogError::Read)?;
    let workers = Workers::new();
    let (found, outcome) = Found::in_file(&mut source, &workers)?;
    source.seek(SeekFrom::Start(start)).map_err(ProfileLogError::Read)?;
    write_found(&found, outcome, source, &workers, location, sink)
}

/// The same for a source that can be read only once: its bytes are kept in an unnamed temporary file.
///
/// # Errors
/// As above, plus those of the temporary file.
pub fn write_csv_once<R: Read, W: Write + Send>(
    source: R,
    location: &str,
    sink: W,
) -> Result<ReadOutcome, ProfileLogError> {
    let mut tee = Tee { source, copy: tempfile::tempfile().map_err(ProfileLogError::Temporary)?, failed: None };
    let first = Found::in_stream(&mut tee);
    if let Some(error) = tee.failed {
        return Err(ProfileLogError::Temporary(error));
    }
    let (found, outcome) = first?;
    tee.copy.rewind().map_err(ProfileLogError::Temporary)?;
    write_found(&found, outcome, tee.copy, &Workers::new(), location, sink)
}

/// Keeps a copy of everything read.
struct Tee<R> {
    source: R,
    copy: File,
    /// Why the copy is incomplete.
    failed: Option<io::Error>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(bytes)?;
        if let Err(error) = self.copy.write_all(bytes.get(..count).unwrap_or_default()) {
            self.failed = Some(error);
            return Err(io::Error::other("the copy failed"));
        }
        Ok(count)
    }
}

fn write_found<R: Read + Send, W: Write + Send>(
    found: &Found,
    outcome: ReadOutcome,
    again: R,
    workers: &Workers,
    location: &str,
    sink: W,
) -> Result<ReadOutcome, ProfileLogError> {
    let mut out = Output::new(sink);
    head(&mut out.buffer, location, found);
    let second = inferences(again.take(outcome.whole_bytes), workers, &found.graphs, &mut out)?;
    if second.whole_bytes != outcome.whole_bytes || second.messages != outcome.messages {
        return Err(ProfileLogError::Changed);
    }
    tail(&mut out.buffer, &found.overview);
    out.finish()?;
    Ok(outcome)
}

fn head(out: &mut Vec<u8>, location: &str, found: &Found) {
    let [writer, backend] = found.header.clone().unwrap_or_default();
    let version = concat!("v", env!("CARGO_PKG_VERSION")).as_bytes();
    for (label, text) in [
        ("input log file location, ", location.as_bytes()),
        ("qnnscope version, ", version),
        ("qnn-net-run version, ", &writer),
        ("Backend version, ", &backend),
    ] {
        out.extend_from_slice(label.as_bytes());
        output::name(out, text);
        out.push(b'\n');
    }
    out.extend_from_slice(
        b"Msg Timestamp, Message, Time, Unit of Measurement, Timing Source, Event Level, Event Identifier\n",
    );
    let overview = &found.overview;
    let (time_us, netrun_us) = overview.init();
    own_row(out, time_us, "INIT", netrun_us);
    event_rows(out, time_us, "INIT", &overview.init_rows);
    own_row(out, overview.compose.time_us, "COMPOSE GRAPHS", overview.compose.netrun_us);
    for (number, graph) in overview.finalized().enumerate() {
        row_start(out, graph.section.time_us, "FINALIZE");
        output::integer(out, graph.section.netrun_us);
        out.extend_from_slice(b",US,NETRUN,ROOT,");
        graph_name(out, number, &graph.graph);
        event_rows(out, graph.section.time_us, "FINALIZE", &graph.section.rows);
    }
    let Section { time_us, netrun_us, rows } = &overview.de_init;
    own_row(out, *time_us, "DE-INIT", *netrun_us);
    event_rows(out, *time_us, "DE-INIT", rows);
}

fn tail(out: &mut Vec<u8>, overview: &Overview) {
    if let Some((time_us, ips)) = overview.ips {
        row_start(out, time_us, "EXECUTE IPS");
        output::fixed(out, ips.into(), 6);
        out.extend_from_slice(b",INF/SEC,NETRUN,ROOT,null\n");
    }
    if let Some((time_us, value)) = &overview.load {
        row_start(out, *time_us, "DLOPEN LATENCY");
        out.extend_from_slice(value);
        out.extend_from_slice(b",US,NETRUN,ROOT,null\n");
    }
}

fn row_start(out: &mut Vec<u8>, time_us: u64, message: &str) {
    output::integer(out, time_us);
    out.push(b',');
    out.extend_from_slice(message.as_bytes());
    out.push(b',');
}

fn own_row(out: &mut Vec<u8>, time_us: u64, message: &str, netrun_us: u64) {
    row_start(out, time_us, message);
    output::integer(out, netrun_us);
    out.extend_from_slice(b",US,NETRUN,ROOT,null\n");
}

fn event_rows(out: &mut Vec<u8>, time_us: u64, message: &str, rows: &[Row]) {
    for row in rows {
        row_start(out, time_us, message);
        out.extend_from_slice(&row.value);
        middle(row.unit, row.is_below).put(out);
        output::identifier(out, row.identifier.as_deref());
        out.push(b'\n');
    }
}
