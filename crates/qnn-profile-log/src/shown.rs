//! Which messages have rows, and the graphs that number them.

use super::budget::NameBudget;
use super::chunk::Message;
use super::error::ProfileLogError;
use super::kinds::{EventType, Method};
use std::collections::HashMap;

/// Graphs in the order of their first inference.
#[derive(Default)]
pub(super) struct Graphs {
    pub(super) names: Vec<Vec<u8>>,
    pub(super) numbers: HashMap<Vec<u8>, usize>,
    last: usize,
    budget: NameBudget,
}

impl Graphs {
    /// Number of a graph; a new one if not seen before.
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

    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        match self.names.get(self.last) {
            Some(last) if last == name => Some(self.last),
            _ => self.numbers.get(name).copied(),
        }
    }
}

/// Whether a message has rows: it is an inference or part of one.
pub(super) fn is_shown(message: &Message<'_>) -> bool {
    let method = message.method();
    let mut events = message.events();
    !message.is_private()
        && (method.is_inference()
            || method == Method::GraphComponent && events.any(|event| has_row_of_component(event.event_type())))
}

/// Of parts of an inference.
pub(super) fn has_row_of_component(kind: EventType) -> bool {
    !matches!(kind, EventType::Init | EventType::Finalize)
}
