//! The whole log as one JSON document, written as the log is read: one line per message.

use super::chunk::{Chunk, Event, Events, Header, Message, Value};
use super::error::ProfileLogError;
use super::fold::{Fold, GraphFold};
use super::kinds::{EventType, Unit};
use super::lines::{Line, Sum};
use super::names::op_identifier;
use super::output::{self, Output, json_float, json_string, json_text};
use super::reader::{ReadOutcome, read_all};
use super::session::SessionSplitter;
use super::times::Times;
use std::io::{Read, Write};

/// Name and version of the document.
pub const PROFILE_LOG_SCHEMA: &str = "qnnscope.profile-log/1";

/// Percentiles of the document.
const PERCENTILES: [u8; 3] = [50, 95, 99];

/// Writes the document of the log called `location`.
///
/// # Errors
/// Errors of the log, source and sink. Damage further into the log is not an error: see [`ReadOutcome::damage`].
pub fn write_json<R: Read, W: Write>(source: R, location: &str, sink: W) -> Result<ReadOutcome, ProfileLogError> {
    let mut document = Document {
        out: Output::new(sink),
        sessions: SessionSplitter::new(),
        session: Fold::new(),
        whole: Fold::new(),
        first_message: true,
    };
    // Nothing is written before the first chunk is found valid: a file that is not a log gets no document.
    document.start(location);
    let mut outcome = read_all(source, |chunk| document.chunk(chunk))?;
    outcome.sessions = document.sessions.sessions();
    document.finish(&outcome)?;
    Ok(outcome)
}

struct Document<W: Write> {
    out: Output<W>,
    sessions: SessionSplitter,
    session: Fold,
    whole: Fold,
    first_message: bool,
}

impl<W: Write> Document<W> {
    fn start(&mut self, location: &str) {
        let out = &mut self.out.buffer;
        out.extend_from_slice(format!("{{\"schema\":\"{PROFILE_LOG_SCHEMA}\",\"tool_version\":\"").as_bytes());
        out.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
        out.extend_from_slice(b"\",\"file\":");
        json_string(out, location.as_bytes());
        out.extend_from_slice(b",\"sessions\":[");
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), ProfileLogError> {
        if let Some(header) = chunk.header() {
            let earlier = self.sessions.sessions();
            self.sessions.header(&header);
            self.begin(earlier, Some(&header))?;
        }
        for message in chunk.messages() {
            let earlier = self.sessions.sessions();
            if self.sessions.message(&message) {
                self.begin(earlier, None)?;
            }
            self.session.add(&message)?;
            let out = &mut self.out.buffer;
            out.extend_from_slice(if self.first_message { b"\n" } else { b",\n" });
            self.first_message = false;
            write_message(out, &message);
            self.out.settle()?;
        }
        Ok(())
    }

    /// Begins a session, after `earlier` others.
    fn begin(&mut self, earlier: u64, header: Option<&Header<'_>>) -> Result<(), ProfileLogError> {
        if earlier > 0 {
            self.end()?;
            self.out.buffer.push(b',');
        }
        let out = &mut self.out.buffer;
        out.extend_from_slice(b"\n{\"index\":");
        output::integer(out, earlier);
        out.extend_from_slice(b",\"header\":");
        match header {
            Some(header) => write_header(out, header),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"messages\":[");
        self.first_message = true;
        Ok(())
    }

    fn end(&mut self) -> Result<(), ProfileLogError> {
        let session = std::mem::take(&mut self.session);
        self.out.buffer.extend_from_slice(b"],\n\"graphs\":");
        write_graphs(&mut self.out.buffer, &session, false);
        self.out.buffer.push(b'}');
        self.whole.merge_session(&session)?;
        self.out.settle()
    }

    fn finish(&mut self, outcome: &ReadOutcome) -> Result<(), ProfileLogError> {
        if outcome.sessions > 0 {
            self.end()?;
        }
        let out = &mut self.out.buffer;
        out.extend_from_slice(b"],\n\"graphs\":");
        write_graphs(out, &self.whole, true);
        for (key, value) in [
            ("chunks", outcome.chunks),
            ("messages", outcome.messages),
            ("whole_bytes", outcome.whole_bytes),
            ("incomplete_bytes", outcome.incomplete_bytes),
        ] {
            write_key(out, key);
            output::integer(out, value);
        }
        write_key(out, "damage");
        json_text(out, outcome.damage.as_ref().map(ToString::to_string).as_deref().map(str::as_bytes));
        out.extend_from_slice(b"}\n");
        self.out.finish()
    }
}

/// `,"key":`
fn write_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn write_header(out: &mut Vec<u8>, header: &Header<'_>) {
    out.extend_from_slice(b"{\"epoch_us\":");
    output::integer(out, header.epoch_us());
    write_key(out, "steady_us");
    output::integer(out, header.steady_us());
    write_key(out, "time_scale_s");
    // As a 32-bit float, so that 1e-6 reads 1e-6.
    let _ = serde_json::to_writer(&mut *out, &header.time_scale_s());
    write_key(out, "format_version");
    let [major, minor, third] = header.format_version();
    json_string(out, format!("{major}.{minor}.{third}").as_bytes());
    write_key(out, "writer");
    json_text(out, header.writer_name());
    write_key(out, "writer_version");
    json_text(out, header.writer_version());
    write_key(out, "backend_version");
    json_text(out, header.backend_version());
    out.push(b'}');
}

/// A name, or the number if unknown.
fn write_name(out: &mut Vec<u8>, name: Option<&str>, number: impl itoa::Integer) {
    match name {
        Some(name) => json_string(out, name.as_bytes()),
        None => output::integer(out, number),
    }
}

fn write_unit(out: &mut Vec<u8>, unit: Unit) {
    write_key(out, "unit");
    write_name(out, unit.name(), if let Unit::Other(number) = unit { number } else { 0 });
}

fn write_type(out: &mut Vec<u8>, event_type: EventType) {
    write_key(out, "type");
    match event_type.name() {
        Ok(name) => json_string(out, name.as_bytes()),
        Err(number) => output::integer(out, number),
    }
}

fn write_message(out: &mut Vec<u8>, message: &Message<'_>) {
    out.extend_from_slice(b"{\"seq\":");
    match message.seq() {
        Some(seq) => output::integer(out, seq),
        None => out.extend_from_slice(b"null"),
    }
    write_key(out, "time_us");
    output::integer(out, message.time_us());
    write_key(out, "method");
    write_name(out, message.method().name(), message.method_number());
    write_key(out, "graph");
    json_text(out, message.graph());
    write_key(out, "private");
    out.extend_from_slice(if message.is_private() { b"true" } else { b"false" });
    write_key(out, "interval");
    match message.interval() {
        None => out.extend_from_slice(b"null"),
        Some(interval) => {
            out.extend_from_slice(b"{\"start_us\":");
            output::integer(out, interval.start_us);
            write_key(out, "stop_us");
            output::integer(out, interval.stop_us);
            if interval.start_memory != 0 || interval.stop_memory != 0 {
                write_key(out, "start_memory_bytes");
                output::integer(out, interval.start_memory);
                write_key(out, "stop_memory_bytes");
                output::integer(out, interval.stop_memory);
            }
            out.push(b'}');
        }
    }
    write_key(out, "events");
    write_events(out, message.events());
    out.push(b'}');
}

/// Nesting is bounded: the chunk was checked.
fn write_events(out: &mut Vec<u8>, events: Events<'_>) {
    out.push(b'[');
    for (index, event) in events.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_event(out, &event);
    }
    out.push(b']');
}

fn write_event(out: &mut Vec<u8>, event: &Event<'_>) {
    out.extend_from_slice(b"{\"identifier\":");
    json_text(out, event.identifier());
    write_type(out, event.event_type());
    write_unit(out, event.unit());
    write_key(out, "value");
    match event.value() {
        Value::Unsigned(value) => output::integer(out, value),
        Value::Signed(value) => output::integer(out, value),
        Value::Float(value) => drop(serde_json::to_writer(&mut *out, &value)),
        Value::Double(value) => json_float(out, value),
        Value::Object { bytes, file } => {
            out.extend_from_slice(b"{\"object_bytes\":");
            output::integer(out, bytes.len());
            write_key(out, "file");
            json_text(out, file);
            out.push(b'}');
        }
    }
    if let Some(timestamp) = event.timestamp() {
        write_key(out, "timestamp");
        output::integer(out, timestamp);
    }
    let events = event.events();
    if events.len() > 0 {
        write_key(out, "events");
        write_events(out, events);
    }
    out.push(b'}');
}

fn write_graphs(out: &mut Vec<u8>, fold: &Fold, with_sessions: bool) {
    out.push(b'[');
    for (index, graph) in fold.graphs().iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",\n" } else { b"\n" });
        out.extend_from_slice(b"{\"graph\":");
        json_string(out, &graph.name);
        if with_sessions {
            write_key(out, "sessions");
            output::integer(out, graph.sessions);
        }
        write_key(out, "inferences");
        output::integer(out, graph.netrun.count());
        write_key(out, "netrun_us");
        write_times(out, &graph.netrun);
        write_key(out, "backend_us");
        write_times(out, &graph.backend);
        write_totals(out, graph);
        out.push(b'}');
    }
    out.push(b']');
}

fn write_times(out: &mut Vec<u8>, times: &Times) {
    out.extend_from_slice(b"{\"samples\":");
    output::integer(out, times.count());
    let whole = |out: &mut Vec<u8>, us: Option<u64>| match us {
        Some(us) => output::integer(out, us),
        None => out.extend_from_slice(b"null"),
    };
    write_key(out, "mean");
    json_float(out, times.mean_us().unwrap_or(f64::NAN));
    write_key(out, "min");
    whole(out, times.min_us());
    for (percent, us) in PERCENTILES.into_iter().zip(times.percentiles_us(PERCENTILES)) {
        write_key(out, &format!("p{percent}"));
        whole(out, us);
    }
    write_key(out, "max");
    whole(out, times.max_us());
    out.push(b'}');
}

/// Totals: ops separately, at any level, then everything else of the upper level.
fn write_totals(out: &mut Vec<u8>, graph: &GraphFold) {
    // The CPU backend's name for an execution; only there do ops start with an underscore.
    let cpu = graph.events.as_slice().iter().any(|line| line.identifier.as_deref() == Some(b"GRAPH_EXECUTE"));
    let is_op = |line: &&Line| line.event_type == EventType::Node && line.sum.is_some();
    write_key(out, "ops");
    out.push(b'[');
    let ops = graph
        .events
        .as_slice()
        .iter()
        .flat_map(|line| std::iter::once(line).chain(line.below.as_slice().iter()))
        .filter(is_op);
    for (index, line) in ops.enumerate() {
        out.extend_from_slice(if index > 0 { b",\n" } else { b"\n" });
        let identifier = String::from_utf8_lossy(line.identifier.as_deref().unwrap_or_default());
        let op = op_identifier(&identifier, cpu);
        out.extend_from_slice(b"{\"name\":");
        json_string(out, op.name.as_bytes());
        write_key(out, "op_id");
        match op.op_id {
            Some(op_id) => output::integer(out, op_id),
            None => out.extend_from_slice(b"null"),
        }
        write_total(out, line);
        out.push(b'}');
    }
    out.push(b']');
    write_key(out, "events");
    out.push(b'[');
    let others = graph.events.as_slice().iter().filter(|line| line.event_type != EventType::Node && line.sum.is_some());
    for (index, line) in others.enumerate() {
        out.extend_from_slice(if index > 0 { b",\n" } else { b"\n" });
        out.extend_from_slice(b"{\"identifier\":");
        json_text(out, line.identifier.as_deref());
        write_type(out, line.event_type);
        write_total(out, line);
        out.push(b'}');
    }
    out.push(b']');
}

fn write_total(out: &mut Vec<u8>, line: &Line) {
    let Some((sum, samples)) = line.sum else { return };
    write_unit(out, line.unit);
    write_key(out, "samples");
    output::integer(out, samples);
    write_key(out, "total");
    match sum {
        Sum::Unsigned(sum) => output::integer(out, sum),
        Sum::Signed(sum) => output::integer(out, sum),
        Sum::Float(sum) => json_float(out, sum),
    }
    for (key, value) in [("mean", sum.as_f64() / samples as f64), ("min", line.min), ("max", line.max)] {
        write_key(out, key);
        json_float(out, value);
    }
}
