//! A small reader of QNN profile logs, written from the description of the format and independently of the
//! program's own code: a sequence of chunks (length, FlatBuffer), each with an optional header and messages.

#![allow(dead_code, reason = "each test target uses its own part")]

use std::path::Path;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub method: u8,
    pub sequence: u64,
    pub start_us: u64,
    pub stop_us: u64,
    pub graph: Option<String>,
    pub events: Vec<Event>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub identifier: Option<String>,
    pub kind: u32,
    pub unit: u32,
    pub value: u64,
    /// 2: the value is an unsigned integer.
    pub value_kind: u32,
    pub children: Vec<Event>,
}

/// A whole log.
#[derive(Debug)]
pub struct Log {
    /// The program's version, the backend's version, the program's name.
    pub header: [Option<String>; 3],
    /// Messages of each chunk.
    pub chunks: Vec<Vec<Message>>,
}

pub const EXECUTE: u8 = 1;
pub const FINALIZE: u8 = 2;
pub const CREATE_FROM_BINARY: u8 = 4;
pub const DEINIT: u8 = 5;
pub const CONTEXT_CREATE: u8 = 6;
pub const COMPOSE: u8 = 7;
pub const IPS: u8 = 8;

impl Log {
    /// Reads a log that must be complete.
    #[track_caller]
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (chunks, rest) = split(&bytes);
        assert!(rest == 0, "{rest} bytes behind the last whole chunk of {}", path.display());
        assert!(!chunks.is_empty(), "{} is empty", path.display());
        let mut headers = chunks.iter().filter_map(|chunk| Some(chunk.root().child(0)?.table()));
        let header = headers.next().expect("a header");
        assert!(headers.next().is_none(), "one header");
        let header = [4, 5, 6].map(|slot| header.text(slot));
        let chunks = chunks.iter().map(|chunk| chunk.root().list(1).map(message).collect()).collect();
        Self { header, chunks }
    }

    pub fn messages(&self) -> Vec<&Message> {
        self.chunks.iter().flatten().collect()
    }

    /// Numbers of the methods, in order.
    pub fn methods(&self) -> Vec<u8> {
        self.messages().iter().map(|message| message.method).collect()
    }

    pub fn of(&self, method: u8) -> Vec<&Message> {
        self.messages().into_iter().filter(|message| message.method == method).collect()
    }
}

impl Message {
    /// The root event of a type.
    #[track_caller]
    pub fn event(&self, kind: u32) -> &Event {
        self.events.iter().find(|event| event.kind == kind).unwrap_or_else(|| panic!("no {kind} in {self:?}"))
    }
}

/// Whole chunks, and the number of bytes after them.
pub fn split(bytes: &[u8]) -> (Vec<Buffer<'_>>, usize) {
    let (mut chunks, mut at) = (Vec::new(), 0);
    while at + 4 <= bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let Some(chunk) = bytes.get(at + 4..at + 4 + length) else { break };
        chunks.push(Buffer(chunk));
        at += 4 + length;
    }
    (chunks, bytes.len() - at)
}

fn message(table: Table<'_>) -> Message {
    let head = table.child(0).expect("a message has a header").table();
    let span = table.child(2).map(Place::table);
    let time = |slot| span.map_or(0, |span| span.u64(slot));
    Message {
        method: table.at(1).map_or(0, |at| table.buffer.0[at]),
        sequence: head.u64(1),
        start_us: time(0),
        stop_us: time(1),
        graph: table.text(5),
        events: table.list(4).map(event).collect(),
    }
}

fn event(table: Table<'_>) -> Event {
    Event {
        identifier: table.text(0),
        kind: table.u32(1),
        unit: table.u32(3),
        value: table.u64(2),
        value_kind: table.u32(5),
        children: table.list(4).map(event).collect(),
    }
}

/// One FlatBuffer.
#[derive(Clone, Copy)]
pub struct Buffer<'a>(&'a [u8]);

impl<'a> Buffer<'a> {
    fn u32(self, at: usize) -> usize {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap()) as usize
    }

    fn root(self) -> Table<'a> {
        Place { buffer: self, at: 0 }.table()
    }
}

/// Where an offset to something is stored.
#[derive(Clone, Copy)]
struct Place<'a> {
    buffer: Buffer<'a>,
    at: usize,
}

impl<'a> Place<'a> {
    fn target(self) -> usize {
        self.at + self.buffer.u32(self.at)
    }

    fn table(self) -> Table<'a> {
        Table { buffer: self.buffer, start: self.target() }
    }
}

#[derive(Clone, Copy)]
struct Table<'a> {
    buffer: Buffer<'a>,
    start: usize,
}

impl<'a> Table<'a> {
    /// Position of a slot's value, if present. The offset to the vtable is signed: the vtable may come after
    /// the table.
    fn at(self, slot: usize) -> Option<usize> {
        let bytes = self.buffer.0;
        let back = i32::from_le_bytes(bytes[self.start..self.start + 4].try_into().unwrap());
        let slots = usize::try_from(i64::try_from(self.start).unwrap() - i64::from(back)).unwrap();
        let u16_at = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
        let entry = 4 + 2 * slot;
        (entry < u16_at(slots)).then(|| u16_at(slots + entry)).filter(|&offset| offset != 0).map(|o| self.start + o)
    }

    fn u32(self, slot: usize) -> u32 {
        self.at(slot).map_or(0, |at| u32::try_from(self.buffer.u32(at)).unwrap())
    }

    fn u64(self, slot: usize) -> u64 {
        self.at(slot).map_or(0, |at| u64::from_le_bytes(self.buffer.0[at..at + 8].try_into().unwrap()))
    }

    fn child(self, slot: usize) -> Option<Place<'a>> {
        self.at(slot).map(|at| Place { buffer: self.buffer, at })
    }

    fn text(self, slot: usize) -> Option<String> {
        let at = self.child(slot)?.target();
        let bytes = &self.buffer.0[at + 4..at + 4 + self.buffer.u32(at)];
        Some(String::from_utf8(bytes.to_vec()).expect("UTF-8"))
    }

    fn list(self, slot: usize) -> impl Iterator<Item = Table<'a>> {
        let vector = self.child(slot).map(Place::target);
        let count = vector.map_or(0, |at| self.buffer.u32(at));
        (0..count).map(move |i| Place { buffer: self.buffer, at: vector.unwrap_or(0) + 4 + 4 * i }.table())
    }
}
