//! The rows of the inferences in the vendor's CSV. Chunks are turned into rows by several threads.

use super::batch::Stop;
use super::chunk::Value;
use super::csv_pieces::{graph_name, middle};
use super::error::ProfileLogError;
use super::kinds::{EventType, Method, Unit};
use super::output::{self, Output, Piece};
use super::reader::ReadOutcome;
use super::shape::{Again, Shape, Shapes};
use super::shown::{Graphs, has_row_of_component};
use super::spool::Spool;
use super::turns::{Turn, Workers};
use super::visit::{EventParts, MessageParts, Visit};
use std::io::{Read, Write};

/// Rows are passed to the output in pieces of about this many bytes.
const ROWS_BYTES: usize = 2 << 20;

/// Rows on their way.
#[derive(Default)]
struct Rows {
    text: Vec<u8>,
    /// Number of a graph, and where its rows begin; consecutive rows of the same graph form one part.
    parts: Vec<(usize, usize)>,
}

/// Where the rows go.
struct SpoolTarget<'a, W: Write> {
    out: &'a mut Output<W>,
    spool: &'a mut Spool,
    /// Number of the graph whose rows are written directly.
    first: usize,
}

/// All inferences, graph by graph. The viewer lists the last graph first: its rows are written directly, those of the
/// others wait in a spool.
pub(super) fn inferences<W: Write + Send>(
    source: impl Read + Send,
    workers: &Workers,
    graphs: &Graphs,
    out: &mut Output<W>,
) -> Result<ReadOutcome, ProfileLogError> {
    let first = graphs.names.len().saturating_sub(1);
    let labels: Vec<Vec<u8>> = graphs.names.iter().enumerate().map(|(at, name)| label(first - at, name)).collect();
    let mut spool = Spool::default();
    let target = SpoolTarget { out, spool: &mut spool, first };
    let outcome = workers.in_order(source, target, |batch, (shapes, rows): &mut (Shapes<Plan>, Rows), turn| {
        let mut writer = Writer::new(rows, turn, graphs, &labels);
        let mut checked = batch.check(shapes, &mut writer, |_, _| Ok(()))?;
        if checked.error.is_some() {
            // It was sound in the first pass.
            return Some(checked);
        }
        match writer.send() {
            Ok(()) => {}
            Err(Stop::Failed(error)) => checked.error = Some(error),
            Err(_) => return None,
        }
        Some(checked)
    })?;
    for graph in (0..first).rev() {
        spool.take(graph, |piece| out.pass(piece))?;
    }
    Ok(outcome)
}

/// The fields after the time of an inference.
fn label(number: usize, name: &[u8]) -> Vec<u8> {
    let mut label = b",US,NETRUN,ROOT,".to_vec();
    graph_name(&mut label, number, name);
    label
}

/// Makes the rows of a batch while it is checked.
struct Writer<'w, 't, 's, W: Write> {
    rows: &'w mut Rows,
    turn: &'w mut Turn<'t, SpoolTarget<'s, W>>,
    graphs: &'w Graphs,
    /// By number of the graph.
    labels: &'w [Vec<u8>],
    /// Graph number of the previous inference.
    last: usize,
    shows: Shows,
    /// The event being checked and its direct sub-events have rows.
    is_shown: bool,
    /// Timestamp and kind of the message.
    prefix: Piece,
}

/// Which parts of the message being checked have rows.
#[derive(Clone, Copy)]
enum Shows {
    Nothing,
    /// The message and its events, except those of the initialisation.
    Inference,
    /// Its events, except those of initialisation and finalize, and, if there are any, the message. With the number of
    /// its graph.
    Component(Option<usize>),
    /// The same, with the message's row already written.
    Begun,
}

impl<'w, 't, 's, W: Write> Writer<'w, 't, 's, W> {
    fn new(
        rows: &'w mut Rows,
        turn: &'w mut Turn<'t, SpoolTarget<'s, W>>,
        graphs: &'w Graphs,
        labels: &'w [Vec<u8>],
    ) -> Self {
        Self { rows, turn, graphs, labels, last: 0, shows: Shows::Nothing, is_shown: false, prefix: Piece::new(b"") }
    }

    /// The row of a message.
    #[inline]
    fn begin(&mut self, time_us: u64, netrun_us: u64) {
        let Rows { text, parts } = &mut *self.rows;
        let start = text.len();
        if parts.last().is_none_or(|&(graph, _)| graph != self.last) {
            parts.push((self.last, start));
        }
        output::integer(text, time_us);
        text.extend_from_slice(b",EXECUTE,");
        // At most 20 digits and 9 characters, so it fits into a piece.
        let length = text.len() - start;
        output::integer(text, netrun_us);
        text.extend_from_slice(&self.labels[self.last]);
        self.prefix = Piece::first(&text[start..], length);
    }

    #[inline]
    fn row(&mut self, event: &EventParts<'_>, is_below: bool) {
        let (unit, value) = (event.unit(), event.value());
        if unit == Unit::Object || matches!(value, Value::Object { .. }) {
            return;
        }
        let text = &mut self.rows.text;
        self.prefix.put(text);
        output::value(text, value);
        middle(unit, is_below).put(text);
        output::identifier(text, event.identifier);
        text.push(b'\n');
    }

    /// Passes the rows on once all earlier ones were.
    fn send(&mut self) -> Result<(), Stop> {
        let SpoolTarget { out, spool, first } = self.turn.wait().ok_or(Stop::Gone)?;
        let Rows { text, parts } = &mut *self.rows;
        let ends = parts.iter().skip(1).map(|&(_, start)| start).chain([text.len()]);
        for (&(graph, from), to) in parts.iter().zip(ends) {
            if graph == *first { out.pass(&text[from..to])? } else { spool.add(graph, &text[from..to])? }
        }
        parts.clear();
        text.clear();
        // One inference can have far more rows than others.
        text.shrink_to(2 * ROWS_BYTES);
        Ok(())
    }
}

/// The rows of inferences with the same shape.
struct Plan {
    /// Number of the graph.
    graph: usize,
    /// Positions of the values, and where the text after each ends in `text`.
    rows: Vec<(Option<usize>, usize)>,
    text: Vec<u8>,
}

impl<'a, W: Write> Visit<'a> for Writer<'_, '_, '_, W> {
    type Error = Stop;
    type Plan = Plan;

    fn plan(&mut self, shape: &Shape, message: &Again<'_>) -> Option<Plan> {
        if !shape.method.is_inference() || shape.is_private {
            return None;
        }
        let mut plan = Plan { graph: self.last, rows: Vec::new(), text: Vec::new() };
        let mut is_shown = false;
        for event in &shape.events {
            if event.depth == 1 {
                is_shown = event.event_type != EventType::Init;
            }
            if is_shown && event.unit != Unit::Object {
                if !event.is_unsigned {
                    return None;
                }
                middle(event.unit, event.depth > 1).put(&mut plan.text);
                output::identifier(&mut plan.text, message.text(event.identifier.as_ref()));
                plan.text.push(b'\n');
                plan.rows.push((event.value, plan.text.len()));
            }
        }
        Some(plan)
    }

    #[inline]
    fn again(&mut self, message: &Again<'a>, shape: &Shape, plan: &Plan) -> Result<(), Stop> {
        if self.rows.text.len() >= ROWS_BYTES {
            self.send()?;
        }
        self.last = plan.graph;
        let (start, stop) = (message.number(shape.start), message.number(shape.stop));
        let netrun_us = if start == 0 { 0 } else { stop.saturating_sub(start) };
        self.begin(message.number(shape.time), netrun_us);
        let (text, mut from) = (&mut self.rows.text, 0);
        for &(value, to) in &plan.rows {
            self.prefix.put(text);
            output::integer(text, message.number(value));
            text.extend_from_slice(plan.text.get(from..to).unwrap_or_default());
            from = to;
        }
        Ok(())
    }

    #[inline]
    fn message(&mut self, message: &MessageParts<'a>) -> Result<(), Stop> {
        (self.shows, self.is_shown) = (Shows::Nothing, false);
        let method = message.method();
        let is_component = method == Method::GraphComponent;
        if message.is_private() || !(is_component || method.is_inference()) {
            return Ok(());
        }
        if self.rows.text.len() >= ROWS_BYTES {
            self.send()?;
        }
        let name = message.graph.unwrap_or_default();
        let number = match self.graphs.names.get(self.last) {
            Some(last) if last == name => Some(self.last),
            _ => self.graphs.numbers.get(name).copied(),
        };
        if is_component {
            self.shows = Shows::Component(number);
        } else {
            self.shows = Shows::Inference;
            self.last = number.ok_or(ProfileLogError::Changed)?;
            self.begin(message.time_us(), message.netrun_us());
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, event: &EventParts<'a>, depth: usize) -> Result<(), Stop> {
        if depth > 1 {
            if depth == 2 && self.is_shown {
                self.row(event, true);
            }
            return Ok(());
        }
        let kind = event.event_type();
        self.is_shown = match self.shows {
            Shows::Nothing => false,
            Shows::Inference => kind != EventType::Init,
            Shows::Component(_) | Shows::Begun => has_row_of_component(kind),
        };
        if self.is_shown {
            if let Shows::Component(number) = self.shows {
                self.last = number.ok_or(ProfileLogError::Changed)?;
                self.shows = Shows::Begun;
                self.begin(0, 0);
            }
            self.row(event, false);
        }
        Ok(())
    }
}
