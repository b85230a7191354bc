//! The rows of the inferences in the vendor's CSV. Chunks are turned into rows by several threads.

use super::batch::{Batch, Checked, Stop};
use super::budget::NameBudget;
use super::chunk::{Event, Message, Value};
use super::csv::{graph_name, middle};
use super::error::ProfileLogError;
use super::kinds::{EventType, Method, Unit};
use super::lanes::{Lane, in_order};
use super::output::{self, Output, Piece};
use super::reader::Outcome;
use super::spool::Spool;
use std::collections::HashMap;
use std::io::{Read, Write};

/// Rows go on to where they are written when there are so many bytes of them.
const ROWS_BYTES: usize = 512 << 10;

/// Graphs in the order of their first inference.
#[derive(Default)]
pub(super) struct Graphs {
    names: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, usize>,
    last: usize,
    budget: NameBudget,
}

impl Graphs {
    /// Number of a graph; a new one if it was not met before.
    pub(super) fn number(&mut self, name: &[u8]) -> Result<usize, ProfileLogError> {
        if let Some(number) = self.find(name) {
            self.last = number;
            return Ok(number);
        }
        self.budget.take(2 * name.len())?;
        self.last = self.names.len();
        self.names.push(name.to_vec());
        self.numbers.insert(name.to_vec(), self.last);
        Ok(self.last)
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        match self.names.get(self.last) {
            Some(last) if last == name => Some(self.last),
            _ => self.numbers.get(name).copied(),
        }
    }
}

/// Which events of an inference have rows; `None` if the message is no inference.
pub(super) fn shown(message: &Message<'_>) -> Option<fn(EventType) -> bool> {
    if message.is_private() {
        return None;
    }
    match message.method() {
        method if method.is_inference() => Some(|kind| kind != EventType::Init),
        Method::GraphComponent => {
            let shown: fn(EventType) -> bool = |kind| !matches!(kind, EventType::Init | EventType::Finalize);
            message.events().any(|event| shown(event.event_type())).then_some(shown)
        }
        _ => None,
    }
}

/// Rows on their way.
#[derive(Default)]
struct Rows {
    text: Vec<u8>,
    /// Number of a graph, and where its rows end; rows of the same graph that follow one another are one part.
    parts: Vec<(usize, usize)>,
}

/// All inferences, graph by graph. The viewer lists the graph met last first: its rows go straight out, those of the
/// others wait in a spool.
pub(super) fn inferences<W: Write>(
    source: impl Read + Send,
    graphs: &Graphs,
    out: &mut Output<W>,
) -> Result<Outcome, ProfileLogError> {
    let count = graphs.names.len();
    let mut spool = Spool::default();
    let outcome = in_order(
        source,
        |batch, lane| rows(batch, lane, graphs),
        |rows: &mut Rows| {
            let mut from = 0;
            for (graph, to) in rows.parts.drain(..) {
                let part = &rows.text[from..to];
                if graph + 1 == count {
                    out.pass(part)?;
                } else {
                    spool.add(graph, part)?;
                }
                from = to;
            }
            rows.text.clear();
            // One inference can have far more rows than others.
            rows.text.shrink_to(4 * ROWS_BYTES);
            Ok(())
        },
    )?;
    for graph in (0..count.saturating_sub(1)).rev() {
        spool.take(graph, |piece| out.pass(piece))?;
    }
    Ok(outcome)
}

/// Sends the rows of a batch.
fn rows(batch: &Batch, lane: &Lane<Rows>, graphs: &Graphs) -> Option<Checked> {
    let (mut rows, mut last) = (lane.again(), 0);
    let checked = batch.check(|chunk| {
        for message in chunk.messages() {
            rows.add(&message, graphs, &mut last).map_err(Stop::Failed)?;
            if rows.text.len() >= ROWS_BYTES {
                lane.send(std::mem::replace(&mut rows, lane.again())).ok_or(Stop::Gone)?;
            }
        }
        Ok(())
    })?;
    if !rows.text.is_empty() {
        lane.send(rows)?;
    }
    Some(checked)
}

impl Rows {
    /// The rows of a message, if it is an inference. `last` is the number of the graph before.
    fn add(&mut self, message: &Message<'_>, graphs: &Graphs, last: &mut usize) -> Result<(), ProfileLogError> {
        let Some(shown) = shown(message) else { return Ok(()) };
        let name = message.graph().unwrap_or_default();
        if graphs.names.get(*last).is_none_or(|known| known != name) {
            *last = graphs.numbers.get(name).copied().ok_or(ProfileLogError::Changed)?;
        }
        inference(&mut self.text, message, graphs.names.len() - 1 - *last, name, shown);
        match self.parts.last_mut() {
            Some((graph, end)) if *graph == *last => *end = self.text.len(),
            _ => self.parts.push((*last, self.text.len())),
        }
        Ok(())
    }
}

/// The rows of one inference.
fn inference(out: &mut Vec<u8>, message: &Message<'_>, number: usize, graph: &[u8], shown: fn(EventType) -> bool) {
    let whole = message.method() != Method::GraphComponent;
    let start = out.len();
    output::integer(out, if whole { message.time_us() } else { 0 });
    out.extend_from_slice(b",EXECUTE,");
    // At most 20 digits and 9 characters, so it fits.
    let prefix = Piece::new(&out[start..]);
    output::integer(out, if whole { message.netrun_us() } else { 0 });
    out.extend_from_slice(b",US,NETRUN,ROOT,");
    graph_name(out, number, graph);
    for event in message.events() {
        if shown(event.event_type()) {
            event_row(out, &prefix, &event, false);
            for event in event.events() {
                event_row(out, &prefix, &event, true);
            }
        }
    }
}

#[inline]
fn event_row(out: &mut Vec<u8>, prefix: &Piece, event: &Event<'_>, is_below: bool) {
    let (unit, value) = (event.unit(), event.value());
    if unit == Unit::Object || matches!(value, Value::Object { .. }) {
        return;
    }
    prefix.put(out);
    output::value(out, value);
    middle(unit, is_below).put(out);
    output::identifier(out, event.identifier());
    out.push(b'\n');
}
