//! Messages of a profile log in the driver's form.

use crate::backends::profile_log::{self, Chunk, EventType, Method, Unit, Value};
use crate::backends::qnn::api::ProfileEvent;
use crate::event::{Stage, SubStage, clean_text};

/// Data from a round's log. Times are on the device's steady clock.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolMessage {
    /// How the steady clock relates to the device's wall clock, and who wrote the log.
    Header {
        /// Steady clock, microseconds.
        steady_us: u64,
        /// Wall clock at the same moment, microseconds since 1970.
        epoch_us: u64,
        /// Version of the backend, if logged.
        backend_version: Option<String>,
    },
    /// A stage was carried out.
    Stage {
        /// Which.
        stage: Stage,
        /// Wall time, microseconds.
        duration_us: u64,
        /// Its parts, timed by the backend.
        parts: Vec<SubStage>,
    },
    /// An inference ran.
    Inference {
        /// Start, microseconds.
        start_us: u64,
        /// Wall time, microseconds.
        latency_us: u64,
        /// What the backend reported.
        events: Vec<ProfileEvent>,
    },
}

/// Everything in a chunk about `graph` (any graph, if the running one is unknown).
pub fn told(chunk: &Chunk<'_>, graph: Option<&str>) -> Vec<ToolMessage> {
    let mut found = Vec::new();
    if let Some(header) = chunk.header() {
        let text = |bytes: &[u8]| clean_text(&String::from_utf8_lossy(bytes));
        found.push(ToolMessage::Header {
            steady_us: header.steady_us(),
            epoch_us: header.epoch_us(),
            backend_version: header.backend_version().map(text),
        });
    }
    for message in chunk.messages().filter(|message| !message.is_private()) {
        let other = |name: &str| message.graph_name().is_some_and(|found| found != name);
        if graph.is_some_and(other) {
            continue;
        }
        let stage = match message.method() {
            Method::Execute | Method::ExecuteAsync => {
                let start_us = message.interval().map_or(0, |interval| interval.start_us);
                let events = message.events().map(|event| own(&event)).collect();
                found.push(ToolMessage::Inference { start_us, latency_us: message.netrun_us(), events });
                continue;
            }
            Method::LibraryLoad => Stage::LibraryLoad,
            Method::ContextCreate | Method::CreateFromBinary => Stage::ContextCreate,
            Method::ComposeGraphs => Stage::Compose,
            Method::Finalize => Stage::Finalize,
            Method::DeInit => Stage::Teardown,
            _ => continue,
        };
        let parts = message.events().filter_map(|event| part(stage, &event)).collect();
        found.push(ToolMessage::Stage { stage, duration_us: message.netrun_us(), parts });
    }
    found
}

/// Parts of a stage: anything with a time at the root, or below it (HTP's finalize stages), except ops.
fn part(stage: Stage, event: &profile_log::Event<'_>) -> Option<SubStage> {
    if event.event_type() == EventType::Node || event.unit() != Unit::Microseconds {
        return None;
    }
    let name = clean_text(&event.name()?);
    Some(SubStage { stage, name, value: number(event.value()) as f64, unit: "us".to_owned() })
}

/// The event with its sub-events, in the form a local runner gets from the API.
fn own(event: &profile_log::Event<'_>) -> ProfileEvent {
    ProfileEvent {
        kind: type_number(event.event_type()),
        unit: unit_number(event.unit()),
        value: number(event.value()),
        identifier: event.name().map(|name| clean_text(&name)).unwrap_or_default(),
        children: event.events().map(|event| own(&event)).collect(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times and counts; negative ones are 0")]
fn number(value: Value<'_>) -> u64 {
    match value {
        Value::Unsigned(value) => value,
        Value::Signed(value) => u64::try_from(value).unwrap_or(0),
        Value::Float(value) => value.round() as u64,
        Value::Double(value) => value.round() as u64,
        Value::Object { .. } => 0,
    }
}

/// QNN's number for a type; the runner's events carry the API's numbers.
fn type_number(kind: EventType) -> u32 {
    match kind {
        EventType::Init => 100,
        EventType::Finalize => 300,
        EventType::Execute => 400,
        EventType::Node => 404,
        EventType::QueueWait => 405,
        EventType::PreProcess => 406,
        EventType::Device => 407,
        EventType::PostProcess => 408,
        EventType::DeInit => 500,
        EventType::Trace => 600,
        EventType::Backend(number) | EventType::Other(number) => number,
    }
}

/// QNN's number for a unit.
fn unit_number(unit: Unit) -> u32 {
    match unit {
        Unit::Microseconds => 1,
        Unit::Bytes => 2,
        Unit::Cycles => 3,
        Unit::Count => 4,
        Unit::Object => 5,
        Unit::NoUnit => 6,
        Unit::Other(number) => number,
    }
}
