//! Statistics of a log, graph by graph.

use super::budget::NameBudget;
use super::chunk::{Message, Value};
use super::error::ProfileLogError;
use super::kinds::{EventType, Method, Unit};
use super::lines::Lines;
use super::times::Times;
use std::collections::HashMap;

/// Inferences of one graph.
#[derive(Debug, Clone, Default)]
pub struct GraphFold {
    /// The graph's name, as bytes; empty if the messages have none.
    pub name: Vec<u8>,
    /// Sessions in which it ran; 0 while a session is being folded.
    pub sessions: u64,
    /// Inferences as timed by the host, microseconds.
    pub netrun: Times,
    /// Inferences as timed by the backend (its event of type 400), microseconds.
    pub backend: Times,
    /// Totals of the backend's events, two levels deep.
    pub events: Lines,
}

/// Everything executed, graph by graph. Private messages do not count.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    graphs: Vec<GraphFold>,
    index: HashMap<Vec<u8>, usize>,
    last: usize,
    asynchronous: bool,
    budget: NameBudget,
}

/// Other cost of a graph.
const PER_GRAPH: usize = 1024;

impl Fold {
    /// Of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graphs, in the order of their first inference.
    pub fn graphs(&self) -> &[GraphFold] {
        &self.graphs
    }

    /// True if any inference was asynchronous.
    pub fn has_asynchronous(&self) -> bool {
        self.asynchronous
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`ProfileLogError::TooManyNames`].
    pub fn add(&mut self, message: &Message<'_>) -> Result<(), ProfileLogError> {
        if message.is_private() {
            return Ok(());
        }
        match message.method() {
            method if method.is_inference() => {
                self.asynchronous |= method == Method::ExecuteAsync;
                let at = self.graph(message.graph().unwrap_or_default())?;
                let graph = &mut self.graphs[at];
                graph.netrun.push(message.netrun_us());
                let backend = message.events().find(|event| event.event_type() == EventType::Execute);
                if let Some(event) = backend
                    && event.unit() == Unit::Microseconds
                    && let Value::Unsigned(us) = event.value()
                {
                    graph.backend.push(us);
                }
                graph.events.add(message.events(), |kind| kind != EventType::Init, &mut self.budget)
            }
            Method::GraphComponent => {
                let counts = |kind| !matches!(kind, EventType::Init | EventType::Finalize);
                if !message.events().any(|event| counts(event.event_type())) {
                    return Ok(());
                }
                let at = self.graph(message.graph().unwrap_or_default())?;
                self.graphs[at].events.add(message.events(), counts, &mut self.budget)
            }
            _ => Ok(()),
        }
    }

    /// Adds a whole session.
    ///
    /// # Errors
    /// [`ProfileLogError::TooManyNames`].
    pub fn merge_session(&mut self, session: &Self) -> Result<(), ProfileLogError> {
        self.asynchronous |= session.asynchronous;
        for graph in &session.graphs {
            let at = self.graph(&graph.name)?;
            let own = &mut self.graphs[at];
            own.sessions += 1;
            own.netrun.merge(&graph.netrun);
            own.backend.merge(&graph.backend);
            own.events.merge(&graph.events, &mut self.budget)?;
        }
        Ok(())
    }

    /// Index of a graph, new or known.
    fn graph(&mut self, name: &[u8]) -> Result<usize, ProfileLogError> {
        if self.graphs.get(self.last).is_some_and(|graph| graph.name == name) {
            return Ok(self.last);
        }
        if let Some(&at) = self.index.get(name) {
            self.last = at;
            return Ok(at);
        }
        self.budget.take(2 * name.len() + PER_GRAPH)?;
        self.last = self.graphs.len();
        self.index.insert(name.to_vec(), self.last);
        self.graphs.push(GraphFold { name: name.to_vec(), ..GraphFold::default() });
        Ok(self.last)
    }
}
