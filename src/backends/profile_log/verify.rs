//! A chunk is checked as a whole before any of it is handed out: every table, list of fields, vector and string lies
//! inside, nesting is limited, and the work is bounded by a multiple of the chunk's length even if the same bytes are
//! used many times over.

use super::error::Damage;
use super::table::{Table, follow, i32_at, u16_at, u32_at};

/// Deepest nesting of events that is read; real logs have up to four levels.
pub const MAX_EVENT_DEPTH: usize = 32;

/// Names may be shared between events; real logs reach a few times the chunk's length at most.
const TEXT_PER_BYTE: usize = 16;

/// Tables of the format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Root,
    Header,
    Version,
    Message,
    MessageHeader,
    Interval,
    Event,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Root => "root table",
            Self::Header => "header",
            Self::Version => "format version",
            Self::Message => "message",
            Self::MessageHeader => "message header",
            Self::Interval => "interval",
            Self::Event => "event",
        }
    }

    /// Bytes of each field, by slot. Later slots are not looked at.
    fn fields(self) -> &'static [usize] {
        match self {
            Self::Root => &[4, 4],
            Self::Header => &[4, 8, 8, 4, 4, 4, 4],
            Self::Version => &[4, 4, 4, 1],
            Self::Message => &[4, 1, 4, 1, 4, 4],
            Self::MessageHeader => &[8, 8],
            Self::Interval => &[8, 8, 8, 8, 1],
            Self::Event => &[4, 4, 8, 4, 4, 4, 8, 4, 4, 4, 8, 8],
        }
    }
}

/// Most fields that a kind has.
const FIELDS: usize = 12;

/// So many lists of fields are remembered. Writers share them between tables, and use a few in turn.
const REMEMBERED: usize = 16;

/// A list of fields that was found good for a kind of table.
#[derive(Clone, Copy)]
struct Layout {
    kind: Kind,
    /// Where it is.
    at: usize,
    /// Length of its tables, bytes.
    length: usize,
    /// Offset of each field in its tables; 0 for those that are absent.
    fields: [u16; FIELDS],
}

/// A table that lies inside, with all its fields.
#[derive(Clone, Copy)]
struct Checked {
    at: usize,
    fields: [u16; FIELDS],
}

impl Checked {
    #[inline]
    fn field(&self, slot: usize) -> Option<usize> {
        match self.fields[slot] {
            0 => None,
            offset => Some(self.at + usize::from(offset)),
        }
    }
}

struct Verifier<'a> {
    bytes: &'a [u8],
    tables_left: usize,
    text_left: usize,
    /// By position of the list.
    good: [Layout; REMEMBERED],
}

/// Checks a chunk and returns its root.
pub(super) fn verify(bytes: &[u8]) -> Result<Table<'_>, Damage> {
    let mut verifier = Verifier::new(bytes);
    let at = verifier.follow(0, Kind::Root)?;
    let root = verifier.table(at, Kind::Root)?;
    if let Some(header) = verifier.child(&root, 0, Kind::Header)? {
        verifier.child(&header, 3, Kind::Version)?;
        for slot in 4..=6 {
            verifier.text(&header, slot, "header text")?;
        }
    }
    let (messages, count) = verifier.vector(&root, 1, 4, "list of messages")?;
    for index in 0..count {
        verifier.message(messages + 4 * index)?;
    }
    Table::new(bytes, at).ok_or(Damage::OutOfBounds { what: Kind::Root.name(), at })
}

/// The root of a chunk that was checked before.
pub(super) fn checked_root(bytes: &[u8]) -> Option<Table<'_>> {
    Table::new(bytes, follow(bytes, 0)?)
}

impl<'a> Verifier<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            // Every honest message and event takes at least the four bytes of its place in a vector.
            tables_left: bytes.len() / 4,
            text_left: bytes.len().saturating_mul(TEXT_PER_BYTE),
            good: [Layout { kind: Kind::Root, at: usize::MAX, length: 0, fields: [0; FIELDS] }; REMEMBERED],
        }
    }

    fn message(&mut self, place: usize) -> Result<(), Damage> {
        let message = self.element(place, Kind::Message)?;
        self.child(&message, 0, Kind::MessageHeader)?;
        self.child(&message, 2, Kind::Interval)?;
        self.text(&message, 5, "graph name")?;
        self.events(&message, 4, 1)
    }

    fn events(&mut self, parent: &Checked, slot: usize, depth: usize) -> Result<(), Damage> {
        let (events, count) = self.vector(parent, slot, 4, "list of events")?;
        if count > 0 && depth > MAX_EVENT_DEPTH {
            return Err(Damage::TooDeep { limit: MAX_EVENT_DEPTH });
        }
        for index in 0..count {
            let event = self.element(events + 4 * index, Kind::Event)?;
            self.text(&event, 0, "event name")?;
            self.text(&event, 8, "object")?;
            self.text(&event, 9, "file name")?;
            self.events(&event, 4, depth + 1)?;
        }
        Ok(())
    }

    #[inline]
    fn follow(&self, place: usize, kind: Kind) -> Result<usize, Damage> {
        follow(self.bytes, place).ok_or(Damage::OutOfBounds { what: kind.name(), at: place })
    }

    #[inline]
    fn element(&mut self, place: usize, kind: Kind) -> Result<Checked, Damage> {
        self.tables_left = self.tables_left.checked_sub(1).ok_or(Damage::TooManyEvents)?;
        let at = self.follow(place, kind)?;
        self.table(at, kind)
    }

    #[inline]
    fn child(&mut self, parent: &Checked, slot: usize, kind: Kind) -> Result<Option<Checked>, Damage> {
        let Some(place) = parent.field(slot) else { return Ok(None) };
        let at = self.follow(place, kind)?;
        self.table(at, kind).map(Some)
    }

    #[inline]
    fn table(&mut self, at: usize, kind: Kind) -> Result<Checked, Damage> {
        let outside = Damage::OutOfBounds { what: kind.name(), at };
        let table = Table::new(self.bytes, at).ok_or(outside)?;
        // They lie at multiples of two, mostly of four.
        let place = ((table.vtable >> 2) + 3 * kind as usize) % REMEMBERED;
        if self.good[place].at != table.vtable || self.good[place].kind != kind {
            self.good[place] = self.layout(&table, kind)?;
        }
        let layout = &self.good[place];
        match at.checked_add(layout.length) {
            Some(end) if end <= self.bytes.len() => Ok(Checked { at, fields: layout.fields }),
            _ => Err(outside),
        }
    }

    /// Checks a table's list of fields.
    fn layout(&self, table: &Table<'a>, kind: Kind) -> Result<Layout, Damage> {
        let at = table.vtable;
        let bad = Damage::BadLayout { what: kind.name(), at: table.at };
        let (Some(own), Some(length)) = (u16_at(self.bytes, at), u16_at(self.bytes, at + 2)) else { return Err(bad) };
        let (own, length) = (usize::from(own), usize::from(length));
        if own < 4 || own % 2 != 0 || at + own > self.bytes.len() || length < 4 {
            return Err(bad);
        }
        let mut layout = Layout { kind, at, length, fields: [0; FIELDS] };
        for (slot, (field, size)) in layout.fields.iter_mut().zip(kind.fields()).enumerate() {
            let entry = 4 + 2 * slot;
            if entry + 2 <= own {
                *field = u16_at(self.bytes, at + entry).ok_or(bad)?;
                let offset = usize::from(*field);
                if offset != 0 && (offset < 4 || offset + size > length) {
                    return Err(bad);
                }
            }
        }
        Ok(layout)
    }

    /// Position of the first element, and their number; none if the field is absent.
    #[inline]
    fn vector(&self, table: &Checked, slot: usize, size: usize, what: &'static str) -> Result<(usize, usize), Damage> {
        let Some(place) = table.field(slot) else { return Ok((0, 0)) };
        let outside = Damage::OutOfBounds { what, at: place };
        let at = follow(self.bytes, place).ok_or(outside)?;
        let count = u32_at(self.bytes, at).and_then(|count| usize::try_from(count).ok()).ok_or(outside)?;
        // The count was read, so there are at least four bytes.
        let room = self.bytes.len() - at - 4;
        if count.checked_mul(size).is_some_and(|length| length <= room) { Ok((at + 4, count)) } else { Err(outside) }
    }

    #[inline]
    fn text(&mut self, table: &Checked, slot: usize, what: &'static str) -> Result<(), Damage> {
        let (_, length) = self.vector(table, slot, 1, what)?;
        self.text_left = self.text_left.checked_sub(length).ok_or(Damage::TooMuchText)?;
        Ok(())
    }
}

/// Whether bytes could be the beginning of a first chunk of `length` bytes that has not arrived whole. The root table is
/// what FlatBuffers builders write last, so it lies in front; its list of fields may not have arrived yet.
pub(super) fn could_begin(bytes: &[u8], length: usize) -> bool {
    const FRONT: usize = 4096;
    let Some(root) = u32_at(bytes, 0).and_then(|root| usize::try_from(root).ok()) else { return true };
    if !(4..FRONT).contains(&root) || root >= length {
        return false;
    }
    let Some(back) = i32_at(bytes, root) else { return true };
    let Some(vtable) = i64::try_from(root).ok().and_then(|root| usize::try_from(root - i64::from(back)).ok()) else {
        return false;
    };
    let Some(own) = u16_at(bytes, vtable).map(usize::from) else { return vtable + 4 <= length };
    if own < 4 || own % 2 != 0 || vtable + own > length {
        return false;
    }
    let arrived = vtable + own.max(4 + 2 * Kind::Root.fields().len()) <= bytes.len();
    !arrived || Table::new(bytes, root).is_some_and(|table| Verifier::new(bytes).layout(&table, Kind::Root).is_ok())
}
