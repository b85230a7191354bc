//! What the first pass over a log collects: everything in its CSV except the inferences, and the names of their graphs.

use super::batch::{Batch, Checked, Stop};
use super::chunk::Chunk;
use super::error::ProfileLogError;
use super::kinds::EventType;
use super::overview::Overview;
use super::reader::{ReadOutcome, read_all};
use super::session::SessionSplitter;
use super::shape::{Again, Shape, ShapedEvent, Shapes};
use super::shown::{Graphs, is_shown};
use super::turns::{Turn, Workers};
use super::visit::{EventParts, MessageParts, Visit};
use std::io::Read;

/// What was found so far.
#[derive(Default)]
pub(super) struct Found {
    /// Versions of the writing program and of the backend.
    pub(super) header: Option<[Vec<u8>; 2]>,
    pub(super) overview: Overview,
    pub(super) graphs: Graphs,
    sessions: SessionSplitter,
}

impl Found {
    /// With several threads checking the chunks. Their results are taken in log order.
    pub(super) fn in_file(source: impl Read + Send, workers: &Workers) -> Result<(Self, ReadOutcome), ProfileLogError> {
        let mut found = Self::default();
        let mut outcome = workers.in_order(source, &mut found, survey)?;
        outcome.sessions = found.sessions.sessions();
        Ok((found, outcome))
    }

    /// With this thread alone, so that nobody waits for more of a stream already known to be damaged.
    pub(super) fn in_stream(source: impl Read) -> Result<(Self, ReadOutcome), ProfileLogError> {
        let mut found = Self::default();
        let mut outcome = read_all(source, |chunk| found.add(chunk))?;
        outcome.sessions = found.sessions.sessions();
        Ok((found, outcome))
    }

    fn add(&mut self, chunk: &Chunk<'_>) -> Result<(), ProfileLogError> {
        if let Some(header) = chunk.header() {
            self.sessions.header(&header);
            let text = |bytes: Option<&[u8]>| bytes.unwrap_or_default().to_vec();
            self.header.get_or_insert_with(|| [text(header.writer_version()), text(header.backend_version())]);
        }
        for message in chunk.messages() {
            self.sessions.message(&message);
            self.overview.add(&message)?;
            if is_shown(&message) {
                self.graphs.number(message.graph().unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// The same for a chunk that holds only inferences: just the graph and the first and last number matter.
    fn add_inferences(&mut self, chunk: &Chunk<'_>, inferences: &Inferences<'_>) -> Result<(), ProfileLogError> {
        if let Some(first) = chunk.messages().next() {
            self.sessions.message(&first);
            self.sessions.went_on(inferences.last_seq);
            self.graphs.number(inferences.graph)?;
        }
        Ok(())
    }
}

/// Checks a batch. Most chunks hold only inferences of one graph, which a short summary describes.
fn survey(batch: &Batch, shapes: &mut Shapes<()>, turn: &mut Turn<'_, &mut Found>) -> Option<Checked> {
    let mut chunks = Vec::new();
    let mut checked = batch.check(shapes, &mut Survey::default(), |survey, chunk| {
        let survey = std::mem::take(survey);
        let is_short = !survey.is_mixed && chunk.header().is_none();
        chunks.push((chunk, if is_short { survey.inferences } else { None }));
        Ok(())
    })?;
    let found = turn.wait()?;
    let added = chunks.iter().try_for_each(|(chunk, inferences)| match inferences {
        Some(inferences) => found.add_inferences(chunk, inferences),
        None => found.add(chunk),
    });
    if let Err(error) = added {
        checked.error = Some(error);
    }
    Some(checked)
}

/// Inferences of one graph with increasing numbers, without initialisation events.
#[derive(Clone, Copy)]
struct Inferences<'a> {
    graph: &'a [u8],
    last_seq: u64,
}

/// Checks whether a chunk is that simple.
#[derive(Default)]
struct Survey<'a> {
    inferences: Option<Inferences<'a>>,
    is_mixed: bool,
}

impl<'a> Survey<'a> {
    #[inline]
    fn inference(&mut self, graph: &'a [u8], last_seq: u64) {
        self.is_mixed |= self.inferences.is_some_and(|before| last_seq <= before.last_seq || before.graph != graph);
        self.inferences = Some(Inferences { graph, last_seq });
    }
}

impl<'a> Visit<'a> for Survey<'a> {
    type Error = Stop;
    type Plan = ();

    /// For numbered inferences without initialisation events.
    fn plan(&mut self, shape: &Shape, _: &Again<'_>) -> Option<()> {
        let is_init = |event: &ShapedEvent| event.depth == 1 && event.event_type == EventType::Init;
        let is_simple = shape.method.is_inference() && !shape.is_private && shape.seq.is_some();
        (is_simple && !shape.events.iter().any(is_init)).then_some(())
    }

    #[inline]
    fn again(&mut self, message: &Again<'a>, shape: &Shape, (): &()) -> Result<(), Stop> {
        self.inference(message.text(shape.graph.as_ref()).unwrap_or_default(), message.number(shape.seq));
        Ok(())
    }

    #[inline]
    fn message(&mut self, message: &MessageParts<'a>) -> Result<(), Stop> {
        let graph = message.graph.unwrap_or_default();
        match message.seq() {
            Some(last_seq) if message.method().is_inference() && !message.is_private() => {
                self.inference(graph, last_seq);
            }
            _ => self.is_mixed = true,
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, event: &EventParts<'a>, depth: usize) -> Result<(), Stop> {
        self.is_mixed |= depth == 1 && event.event_type() == EventType::Init;
        Ok(())
    }
}
