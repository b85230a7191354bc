//! The text report, worded like the vendor's viewer. Where that mixes several sessions into one average, or averages
//! signed and floating-point values wrongly, this one is correct.

use super::chunk::Header;
use super::error::ProfileLogError;
use super::fold::{Fold, GraphFold};
use super::kinds::EventType;
use super::lines::{Line, Sum};
use super::output::{self, Output};
use super::overview::{Overview, Row};
use super::reader::{ReadOutcome, read_all};
use super::session::SessionSplitter;
use std::io::{Read, Write};

/// Writes the report of the log called `location`, one part per session.
///
/// # Errors
/// Errors of the log, source and sink. Damage further into the log is not an error: see [`ReadOutcome::damage`].
pub fn write_text<R: Read, W: Write>(source: R, location: &str, sink: W) -> Result<ReadOutcome, ProfileLogError> {
    let mut out = Output::new(sink);
    let mut sessions = SessionSplitter::new();
    let mut session = Session::default();
    let mut outcome = read_all(source, |chunk| {
        if let Some(header) = chunk.header() {
            let earlier = sessions.sessions();
            sessions.header(&header);
            if earlier > 0 {
                session.end(&mut out, earlier)?;
            }
            session_header(&mut session.header, location, &header);
        }
        for message in chunk.messages() {
            let earlier = sessions.sessions();
            if sessions.message(&message) && earlier > 0 {
                session.end(&mut out, earlier)?;
            }
            session.overview.add(&message)?;
            session.fold.add(&message)?;
        }
        Ok(())
    })?;
    outcome.sessions = sessions.sessions();
    if outcome.sessions > 1 {
        session.end(&mut out, outcome.sessions)?;
    } else if outcome.chunks > 0 {
        session.write(&mut out.buffer);
    }
    out.finish()?;
    Ok(outcome)
}

#[derive(Default)]
struct Session {
    header: Vec<u8>,
    overview: Overview,
    fold: Fold,
}

impl Session {
    /// Writes a session that is one of several, and starts the next.
    fn end<W: Write>(&mut self, out: &mut Output<W>, number: u64) -> Result<(), ProfileLogError> {
        out.buffer.extend_from_slice(b"Session ");
        output::integer(&mut out.buffer, number);
        out.buffer.extend_from_slice(b":\n");
        std::mem::take(self).write(&mut out.buffer);
        out.settle()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let overview = &self.overview;
        out.extend_from_slice(&self.header);
        title(out, "\nQnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:", 60);

        title(out, "Init Stats:", 11);
        own_line(out, "NetRun", overview.init().1);
        rows(out, overview.binary.as_ref().map(|section| section.rows.as_slice()).unwrap_or_default());
        rows(out, &overview.init_rows);

        title(out, "\nCompose Graphs Stats:", 14);
        own_line(out, "NetRun", overview.compose.netrun_us);

        title(out, "\nFinalize Stats:", 15);
        let mut number = 0;
        for graph in overview.finalized() {
            graph_title(out, number, &graph.graph);
            own_line(out, "NetRun", graph.section.netrun_us);
            rows(out, &graph.section.rows);
            out.push(b'\n');
            number += 1;
        }
        if number == 0 {
            out.push(b'\n');
        }

        title(out, "De-Init Stats:", 14);
        own_line(out, "NetRun", overview.de_init.netrun_us);
        rows(out, &overview.de_init.rows);

        title(out, "\nExecute Stats (Average):", 24);
        title(out, "Total Inference Time: ", 21);
        for (number, graph) in self.fold.graphs().iter().enumerate() {
            graph_title(out, number, &graph.name);
            averages(out, graph, self.fold.has_asynchronous());
            out.push(b'\n');
        }
        if self.fold.graphs().is_empty() {
            out.push(b'\n');
        }
        if let Some((_, ips)) = overview.ips {
            title(out, "Execute Stats (Overall):", 24);
            out.extend_from_slice(b"    NetRun IPS (includes IO and misc. time): ");
            output::fixed(out, ips.into(), 4);
            out.extend_from_slice(b" inf/sec \n\n");
        }
        if let Some((_, value)) = &overview.load {
            title(out, "Dynamic Lib Load Stats:", 24);
            out.extend_from_slice(b"    Backend Latency: ");
            out.extend_from_slice(value);
            out.extend_from_slice(b" us\n\n");
        }
    }
}

fn session_header(out: &mut Vec<u8>, location: &str, header: &Header<'_>) {
    out.extend_from_slice(b"Input Log File Location: ");
    output::name(out, location.as_bytes());
    let created = i64::try_from(header.epoch_us()).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let created =
        created.map_or_else(|| "unknown".to_owned(), |time| time.strftime("%a %b %e %H:%M:%S %Y UTC").to_string());
    out.extend_from_slice(
        format!(
            "\nLog File Created: {created}\nTime Scale: {}\nEpoch Timestamp: {} Steady Clock Timestamp: {}\n\
             Generated using: \nqnnscope           v{}\n",
            six_digits(header.time_scale_s().into()),
            header.epoch_us(),
            header.steady_us(),
            env!("CARGO_PKG_VERSION"),
        )
        .as_bytes(),
    );
    for (label, text) in [("qnn-net-run", header.writer_version()), ("Backend    ", header.backend_version())] {
        out.extend_from_slice(label.as_bytes());
        out.extend_from_slice(b"        ");
        output::name(out, text.unwrap_or_default());
        out.push(b'\n');
    }
}

fn title(out: &mut Vec<u8>, text: &str, dashes: usize) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
    out.resize(out.len() + dashes, b'-');
    out.push(b'\n');
}

fn graph_title(out: &mut Vec<u8>, number: usize, name: &[u8]) {
    out.extend_from_slice(b"Graph ");
    output::integer(out, number);
    out.extend_from_slice(b" (");
    output::name(out, name);
    out.extend_from_slice(b"):\n");
}

fn own_line(out: &mut Vec<u8>, label: &str, us: u64) {
    out.extend_from_slice(b"    ");
    out.extend_from_slice(label.as_bytes());
    out.extend_from_slice(b": ");
    output::integer(out, us);
    out.extend_from_slice(b" us\n");
}

fn rows(out: &mut Vec<u8>, rows: &[Row]) {
    for row in rows {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(&row.value);
        event_line(out, row.is_below, row.identifier.as_deref(), write, row.unit.in_text());
    }
}

fn event_line(
    out: &mut Vec<u8>,
    is_below: bool,
    identifier: Option<&[u8]>,
    value: impl FnOnce(&mut Vec<u8>),
    unit: &str,
) {
    out.extend_from_slice(if is_below { b"        " } else { b"    Backend (" });
    output::identifier(out, identifier);
    out.extend_from_slice(if is_below { b": " } else { b"): " });
    value(out);
    out.push(b' ');
    out.extend_from_slice(unit.as_bytes());
    out.push(b'\n');
}

fn averages(out: &mut Vec<u8>, graph: &GraphFold, asynchronous: bool) {
    let count = u128::from(graph.netrun.count().max(1));
    // An average is no larger than its largest value.
    let netrun_us = u64::try_from(graph.netrun.sum_us() / count).unwrap_or(u64::MAX);
    own_line(out, if asynchronous { "NetRun (Host Round-Trip)" } else { "NetRun" }, netrun_us);
    if asynchronous {
        let mut waits = graph.events.as_slice().iter().filter(|line| line.event_type == EventType::QueueWait);
        if let (Some(Line { sum: Some((Sum::Unsigned(sum), samples)), .. }), None) = (waits.next(), waits.next()) {
            out.extend_from_slice(b"    NetRun (Host Round-Trip excluding queue wait): ");
            output::integer(
                out,
                i128::from(netrun_us) - i128::try_from(sum / u128::from(*samples)).unwrap_or_default(),
            );
            out.push(b'\n');
        }
    }
    for line in graph.events.as_slice() {
        average(out, line, false);
        for line in line.below.as_slice() {
            average(out, line, true);
        }
    }
}

fn average(out: &mut Vec<u8>, line: &Line, is_below: bool) {
    let Some((sum, samples)) = line.sum else { return };
    let write = |out: &mut Vec<u8>| match sum {
        Sum::Unsigned(sum) => output::integer(out, sum / u128::from(samples)),
        Sum::Signed(sum) => output::integer(out, sum / i128::from(samples)),
        Sum::Float(sum) => output::fixed(out, sum / samples as f64, 6),
    };
    event_line(out, is_below, line.identifier.as_deref(), write, line.unit.in_text());
}

/// Six significant digits without trailing zeros, as C's `%g`.
fn six_digits(value: f64) -> String {
    let text = format!("{value:.5e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{value:.*}", usize::try_from(5 - exponent).unwrap_or_default()));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_scales_as_c_prints_them() {
        for (value, text) in [
            (9.999_999_974_752_427e-7, "1e-06"),
            (0.001, "0.001"),
            (1.0, "1"),
            (1.5e-9, "1.5e-09"),
            (0.0, "0"),
            (123_456_789.0, "1.23457e+08"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(six_digits(value), text);
        }
    }
}
