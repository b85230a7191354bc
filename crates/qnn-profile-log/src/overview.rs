//! Everything except the inferences, as selected by the vendor's viewer: of repeated messages the last one counts.

use super::budget::NameBudget;
use super::chunk::{Event, Events, Message, Value};
use super::error::ProfileLogError;
use super::kinds::{EventType, Method, Unit};
use super::output;
use std::collections::HashMap;

/// One printed event: the event itself or a direct sub-event.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) is_below: bool,
    pub(super) identifier: Option<Vec<u8>>,
    pub(super) unit: Unit,
    /// Decimal digits.
    pub(super) value: Vec<u8>,
}

/// One message that is printed.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub(super) time_us: u64,
    pub(super) netrun_us: u64,
    pub(super) rows: Vec<Row>,
}

/// A graph and its finalize.
#[derive(Debug, Clone, Default)]
pub(super) struct Finalized {
    pub(super) graph: Vec<u8>,
    pub(super) section: Section,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Overview {
    context: Section,
    pub(super) compose: Section,
    pub(super) binary: Option<Section>,
    /// Graphs in the order of their first finalize. Those without events have no section.
    finalized: Vec<Finalized>,
    index: HashMap<Vec<u8>, usize>,
    /// There was a finalize, with or without events.
    finalize_seen: bool,
    pub(super) de_init: Section,
    /// Init events found in other messages.
    pub(super) init_rows: Vec<Row>,
    /// Timestamp, and inferences per second.
    pub(super) ips: Option<(u64, f32)>,
    /// Timestamp, and the value of the first event as decimal digits.
    pub(super) load: Option<(u64, Vec<u8>)>,
    budget: NameBudget,
}

impl Overview {
    /// Adds a message.
    pub(super) fn add(&mut self, message: &Message<'_>) -> Result<(), ProfileLogError> {
        let method = message.method();
        if message.is_private() {
            // The viewer's rule: their timestamps stay, their durations do not.
            let section = match method {
                Method::ContextCreate => &mut self.context,
                Method::ComposeGraphs => &mut self.compose,
                _ => return Ok(()),
            };
            *section = Section { time_us: message.time_us(), ..Section::default() };
            return Ok(());
        }
        match method {
            Method::Execute | Method::ExecuteAsync => self.init_events(message),
            Method::Finalize => self.finalize(message),
            Method::CreateFromBinary => {
                let rows = rows(message.events(), |_| true);
                self.exchange(self.binary.as_ref().map_or(0, |section| weight(&section.rows)), weight(&rows))?;
                self.binary = Some(section(message, rows));
                Ok(())
            }
            Method::DeInit => {
                let rows = rows(message.events(), |_| true);
                self.exchange(weight(&self.de_init.rows), weight(&rows))?;
                self.de_init = section(message, rows);
                Ok(())
            }
            Method::ContextCreate => {
                self.context = section(message, Vec::new());
                Ok(())
            }
            Method::ComposeGraphs => {
                self.compose = section(message, Vec::new());
                Ok(())
            }
            Method::ExecuteIps => {
                let find =
                    |unit| message.events().filter(|event| event.unit() == unit).find_map(|event| unsigned(&event));
                if let (Some(count), Some(time_us)) = (find(Unit::Count), find(Unit::Microseconds)) {
                    self.ips = Some((message.time_us(), inferences_per_second(count, time_us)));
                }
                Ok(())
            }
            Method::GraphComponent => {
                self.init_events(message)?;
                let rows = rows(message.events(), |kind| kind == EventType::Finalize);
                if rows.is_empty() { Ok(()) } else { self.put(message, Section { rows, ..Section::default() }) }
            }
            Method::LibraryLoad => {
                let mut digits = Vec::new();
                output::value(&mut digits, message.events().next().map_or(Value::Unsigned(0), |event| event.value()));
                self.load = Some((message.time_us(), digits));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finalize(&mut self, message: &Message<'_>) -> Result<(), ProfileLogError> {
        self.init_events(message)?;
        self.finalize_seen = true;
        if message.events().len() == 0 {
            return Ok(());
        }
        let rows = rows(message.events(), |kind| kind != EventType::Init);
        self.put(message, section(message, rows))
    }

    fn put(&mut self, message: &Message<'_>, section: Section) -> Result<(), ProfileLogError> {
        self.finalize_seen = true;
        let graph = message.graph().unwrap_or_default();
        if let Some(known) = self.index.get(graph).and_then(|&at| self.finalized.get_mut(at)) {
            let old = std::mem::replace(&mut known.section, section);
            let new = weight(&known.section.rows);
            return self.exchange(weight(&old.rows), new);
        }
        self.budget.take(2 * graph.len() + weight(&section.rows))?;
        self.index.insert(graph.to_vec(), self.finalized.len());
        self.finalized.push(Finalized { graph: graph.to_vec(), section });
        Ok(())
    }

    fn init_events(&mut self, message: &Message<'_>) -> Result<(), ProfileLogError> {
        if !message.events().any(|event| event.event_type() == EventType::Init) {
            return Ok(());
        }
        let rows = rows(message.events(), |kind| kind == EventType::Init);
        self.exchange(weight(&self.init_rows), weight(&rows))?;
        self.init_rows = rows;
        Ok(())
    }

    fn exchange(&mut self, old: usize, new: usize) -> Result<(), ProfileLogError> {
        self.budget.give_back(old);
        self.budget.take(new)
    }

    /// Timestamp and duration of the initialisation, microseconds: creating the context, composing and finalizing, or
    /// else loading a context binary.
    pub(super) fn init(&self) -> (u64, u64) {
        if self.finalize_seen {
            let finalize = self.finalized.iter().map(|graph| graph.section.netrun_us);
            let parts = [self.context.netrun_us, self.compose.netrun_us].into_iter().chain(finalize);
            return (self.context.time_us, parts.fold(0, u64::wrapping_add));
        }
        self.binary.as_ref().map_or((0, 0), |section| (section.time_us, section.netrun_us))
    }

    /// Finalized graphs in the viewer's order: the last one comes first.
    pub(super) fn finalized(&self) -> impl Iterator<Item = &Finalized> {
        self.finalized.iter().rev()
    }
}

fn section(message: &Message<'_>, rows: Vec<Row>) -> Section {
    Section { time_us: message.time_us(), netrun_us: message.netrun_us(), rows }
}

/// Bytes that rows keep, about.
fn weight(rows: &[Row]) -> usize {
    rows.iter().map(|row| size_of::<Row>() + row.identifier.as_ref().map_or(0, Vec::len) + row.value.len()).sum()
}

/// Rows of the events for which `shown` is true, and of their direct sub-events. Objects have none.
fn rows(events: Events<'_>, shown: impl Fn(EventType) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for event in events.filter(|event| shown(event.event_type())) {
        rows.extend(row(&event, false));
        rows.extend(event.events().filter_map(|event| row(&event, true)));
    }
    rows
}

fn row(event: &Event<'_>, is_below: bool) -> Option<Row> {
    let (unit, value) = (event.unit(), event.value());
    if unit == Unit::Object || matches!(value, Value::Object { .. }) {
        return None;
    }
    let mut digits = Vec::new();
    output::value(&mut digits, value);
    Some(Row { is_below, identifier: event.identifier().map(<[u8]>::to_vec), unit, value: digits })
}

fn unsigned(event: &Event<'_>) -> Option<u64> {
    match event.value() {
        Value::Unsigned(value) => Some(value),
        _ => None,
    }
}

/// In 32-bit floats, as the viewer computes it.
fn inferences_per_second(count: u64, time_us: u64) -> f32 {
    if time_us == 0 { 0.0 } else { count as f32 * 1e6 / time_us as f32 }
}
