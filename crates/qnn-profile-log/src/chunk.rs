//! Views into a checked chunk. Nothing is copied; an absent field reads as the format's default.

use super::kinds::{EventType, Method, Unit};
use super::table::{Table, Vector};
use std::borrow::Cow;

/// One chunk of a log, checked as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    pub(super) root: Table<'a>,
    pub(super) index: u64,
    pub(super) offset: u64,
}

impl<'a> Chunk<'a> {
    /// Number of the chunk, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Offset of its length word in the log, bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The header, which begins a session. Most chunks have none.
    pub fn header(&self) -> Option<Header<'a>> {
        self.root.table(0).map(|table| Header { table })
    }

    /// The messages in order.
    pub fn messages(&self) -> Messages<'a> {
        Messages { vector: self.root.vector(1, 4).unwrap_or_default(), next: 0 }
    }
}

/// Who wrote the log, and when.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    table: Table<'a>,
}

impl<'a> Header<'a> {
    /// Seconds per tick of all time stamps; 1e-6 in every log seen.
    pub fn time_scale_s(&self) -> f32 {
        self.table.f32(0)
    }

    /// Wall clock at creation, microseconds since 1970.
    pub fn epoch_us(&self) -> u64 {
        self.table.u64(1)
    }

    /// Steady clock at the same moment, microseconds.
    pub fn steady_us(&self) -> u64 {
        self.table.u64(2)
    }

    /// Version of the format: major, minor, third part.
    pub fn format_version(&self) -> [u32; 3] {
        self.table.table(3).map_or([0; 3], |version| [version.u32(0), version.u32(1), version.u32(2)])
    }

    /// Version of the writing program, as bytes. ONNX Runtime writes its API number.
    pub fn writer_version(&self) -> Option<&'a [u8]> {
        self.table.bytes(4)
    }

    /// Version of the backend, as bytes. ONNX Runtime writes the version of the QNN API.
    pub fn backend_version(&self) -> Option<&'a [u8]> {
        self.table.bytes(5)
    }

    /// Name of the writing program, as bytes; qnn-net-run writes none.
    pub fn writer_name(&self) -> Option<&'a [u8]> {
        self.table.bytes(6)
    }

    /// True if ONNX Runtime wrote it: its sequence numbers are always 0.
    pub fn is_onnx_runtime(&self) -> bool {
        self.writer_name() == Some(b"OnnxRuntime")
    }

    /// Wall clock for a steady-clock time, microseconds since 1970. Valid as long as the machine stays up.
    pub fn wall_clock_us(&self, steady_us: u64) -> u64 {
        self.epoch_us().wrapping_add(steady_us.wrapping_sub(self.steady_us()))
    }
}

/// The messages of a chunk.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    vector: Vector<'a>,
    next: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    #[inline]
    fn next(&mut self) -> Option<Message<'a>> {
        let table = self.vector.table(self.next)?;
        self.next += 1;
        Some(Message { table })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.vector.len - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Messages<'_> {}

/// Start and end of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Steady clock at the start, microseconds.
    pub start_us: u64,
    /// Steady clock at the stop, microseconds.
    pub stop_us: u64,
    /// Memory at the start, bytes; no known writer sets it.
    pub start_memory: u64,
    /// Memory at the stop, bytes.
    pub stop_memory: u64,
}

/// One message: an operation timed by the host, with the backend's events.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    table: Table<'a>,
}

impl<'a> Message<'a> {
    /// The operation.
    #[inline]
    pub fn method(&self) -> Method {
        Method::from_number(self.table.u8(1))
    }

    /// The format's number for the method.
    pub fn method_number(&self) -> u8 {
        self.table.u8(1)
    }

    /// Steady clock when the message was created, shortly after the stop, microseconds.
    #[inline]
    pub fn time_us(&self) -> u64 {
        self.table.table(0).map_or(0, |header| header.u64(0))
    }

    /// Number of the message in its session, from 0; `None` if the message has no header of its own.
    pub fn seq(&self) -> Option<u64> {
        self.table.table(0).map(|header| header.u64(1))
    }

    /// Start and end, if the message has them.
    #[inline]
    pub fn interval(&self) -> Option<Interval> {
        self.table.table(2).map(|interval| Interval {
            start_us: interval.u64(0),
            stop_us: interval.u64(1),
            start_memory: interval.u64(2),
            stop_memory: interval.u64(3),
        })
    }

    /// Time measured by the host, microseconds: stop - start, or 0 if invalid.
    #[inline]
    pub fn netrun_us(&self) -> u64 {
        match self.table.table(2).map(|interval| (interval.u64(0), interval.u64(1))) {
            Some((start @ 1.., stop)) => stop.saturating_sub(start),
            _ => 0,
        }
    }

    /// Not meant for users; the vendor's viewer omits such messages.
    #[inline]
    pub fn is_private(&self) -> bool {
        self.table.u8(3) != 0
    }

    /// Name of the graph, as bytes.
    #[inline]
    pub fn graph(&self) -> Option<&'a [u8]> {
        self.table.bytes(5)
    }

    /// Name of the graph as text; invalid UTF-8 is replaced.
    pub fn graph_name(&self) -> Option<Cow<'a, str>> {
        self.graph().map(String::from_utf8_lossy)
    }

    /// The backend's events, in order.
    #[inline]
    pub fn events(&self) -> Events<'a> {
        Events { vector: self.table.vector(4, 4).unwrap_or_default(), next: 0 }
    }
}

/// Events of a message, or below an event.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    vector: Vector<'a>,
    next: usize,
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    #[inline]
    fn next(&mut self) -> Option<Event<'a>> {
        let table = self.vector.table(self.next)?;
        self.next += 1;
        Some(Event { table })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.vector.len - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Events<'_> {}

/// Value of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// The usual kind.
    Unsigned(u64),
    /// Of extended events.
    Signed(i64),
    /// Of extended events.
    Float(f32),
    /// Of extended events.
    Double(f64),
    /// Of extended events: opaque bytes, and the name of the file they belong to.
    Object {
        /// The bytes.
        bytes: &'a [u8],
        /// The file's name, as bytes.
        file: Option<&'a [u8]>,
    },
}

/// A measurement by a backend.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    table: Table<'a>,
}

impl<'a> Event<'a> {
    /// Name, as bytes.
    #[inline]
    pub fn identifier(&self) -> Option<&'a [u8]> {
        self.table.bytes(0)
    }

    /// Name as text; invalid UTF-8 is replaced.
    pub fn name(&self) -> Option<Cow<'a, str>> {
        self.identifier().map(String::from_utf8_lossy)
    }

    /// What it is.
    #[inline]
    pub fn event_type(&self) -> EventType {
        EventType::from_number(self.table.u32(1))
    }

    /// Unit of the value.
    #[inline]
    pub fn unit(&self) -> Unit {
        Unit::from_number(self.table.u32(3))
    }

    /// The value. Plain events carry an unsigned number.
    #[inline]
    pub fn value(&self) -> Value<'a> {
        match self.table.u32(5) {
            1 => Value::Signed(self.table.u64(6).cast_signed()),
            3 => Value::Float(self.table.f32(7)),
            4 => Value::Object { bytes: self.table.bytes(8).unwrap_or_default(), file: self.table.bytes(9) },
            5 => Value::Double(self.table.f64(11)),
            _ => Value::Unsigned(self.table.u64(2)),
        }
    }

    /// Time stamp of an extended event.
    pub fn timestamp(&self) -> Option<u64> {
        self.table.field(10).map(|_| self.table.u64(10))
    }

    /// Events below this one, in order.
    #[inline]
    pub fn events(&self) -> Events<'a> {
        Events { vector: self.table.vector(4, 4).unwrap_or_default(), next: 0 }
    }
}
