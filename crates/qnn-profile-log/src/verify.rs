//! A chunk is fully checked before any of it is returned: every table, list of fields, vector and string lies inside,
//! nesting is limited, and the work is bounded by a multiple of the chunk's length even if the same bytes are used many
//! times.

use super::error::Damage;
use super::format::{Kind, MAX_EVENT_DEPTH};
use super::shape::Shapes;
use super::table::{Table, follow, i32_at, u16_at, u32_at};
use super::visit::{EventParts, FIELDS, MessageParts, Part, Visit};

/// Events may share names; in real logs they add up to a few times the chunk's length at most.
const TEXT_PER_BYTE: usize = 16;

/// Number of field lists remembered. Writers share them between tables and alternate between a few.
const REMEMBERED: usize = 16;

/// A list of fields found valid for a kind of table.
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

struct Verifier<'a> {
    bytes: &'a [u8],
    tables_left: usize,
    text_left: usize,
    /// Indexed by position of the list.
    good: [Layout; REMEMBERED],
}

/// Checks a chunk and returns its root, showing messages and events to a visitor on the way, which may stop it.
/// `shapes` holds what is known about messages from earlier chunks.
pub(super) fn visit<'a, V: Visit<'a>>(
    bytes: &'a [u8],
    shapes: &mut Shapes<V::Plan>,
    visitor: &mut V,
) -> Result<Table<'a>, V::Error> {
    shapes.next_chunk();
    let mut verifier = Verifier::new(bytes);
    let at = verifier.follow(0, Kind::Root)?;
    let root = verifier.table(at, Kind::Root)?;
    if let Some(header) = verifier.child(&root, 0, Kind::Header)? {
        verifier.child(&header, 3, Kind::Version)?;
        for slot in 4..=6 {
            verifier.text(&header, slot, "header text")?;
        }
    }
    if let Some(place) = root.field(1) {
        let (messages, count) = verifier.vector(place, 4, "list of messages")?;
        for index in 0..count {
            verifier.message(messages + 4 * index, count == 1, shapes, visitor)?;
        }
    }
    Ok(Table::new(bytes, at).ok_or(Damage::OutOfBounds { what: Kind::Root.name(), at })?)
}

impl<'a> Verifier<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            // Every valid message and event takes at least the four bytes of its slot in a vector.
            tables_left: bytes.len() / 4,
            text_left: bytes.len().saturating_mul(TEXT_PER_BYTE),
            good: [Layout { kind: Kind::Root, at: usize::MAX, length: 0, fields: [0; FIELDS] }; REMEMBERED],
        }
    }

    #[inline]
    fn message<V: Visit<'a>>(
        &mut self,
        place: usize,
        is_alone: bool,
        shapes: &mut Shapes<V::Plan>,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        let at = self.follow(place, Kind::Message)?;
        shapes.next_message();
        if let Some((shape, plan)) = &shapes.known
            && let Some(again) = shape.find(self.bytes, at)
            && let Some(tables_left) = self.tables_left.checked_sub(shape.tables)
            && let Some(text_left) = self.text_left.checked_sub(shape.text)
        {
            (self.tables_left, self.text_left) = (tables_left, text_left);
            return visitor.again(&again, shape, plan);
        }
        let message = self.element(place, Kind::Message)?;
        let header = self.child(&message, 0, Kind::MessageHeader)?;
        let interval = self.child(&message, 2, Kind::Interval)?;
        let graph = self.text(&message, 5, "graph name")?;
        visitor.message(&MessageParts { message, header, interval, graph })?;
        if let Some(place) = message.field(4) {
            self.events(place, 1, visitor)?;
        }
        shapes.learn(self.bytes, at, is_alone, |shape, again| visitor.plan(shape, again));
        Ok(())
    }

    fn events<V: Visit<'a>>(&mut self, place: usize, depth: usize, visitor: &mut V) -> Result<(), V::Error> {
        let (events, count) = self.vector(place, 4, "list of events")?;
        if count > 0 && depth > MAX_EVENT_DEPTH {
            return Err(Damage::TooDeep { limit: MAX_EVENT_DEPTH }.into());
        }
        for index in 0..count {
            let event = self.element(events + 4 * index, Kind::Event)?;
            let identifier = self.text(&event, 0, "event name")?;
            let object = self.text(&event, 8, "object")?;
            let file = self.text(&event, 9, "file name")?;
            visitor.event(&EventParts { event, identifier, object, file }, depth)?;
            if let Some(place) = event.field(4) {
                self.events(place, depth + 1, visitor)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn follow(&self, place: usize, kind: Kind) -> Result<usize, Damage> {
        follow(self.bytes, place).ok_or(Damage::OutOfBounds { what: kind.name(), at: place })
    }

    #[inline]
    fn element(&mut self, place: usize, kind: Kind) -> Result<Part<'a>, Damage> {
        self.tables_left = self.tables_left.checked_sub(1).ok_or(Damage::TooManyEvents)?;
        let at = self.follow(place, kind)?;
        self.table(at, kind)
    }

    #[expect(clippy::inline_always, reason = "its result would go through memory otherwise: 5 % of the CSV's time")]
    #[inline(always)]
    fn child(&mut self, parent: &Part<'a>, slot: usize, kind: Kind) -> Result<Option<Part<'a>>, Damage> {
        let Some(place) = parent.field(slot) else { return Ok(None) };
        let at = self.follow(place, kind)?;
        self.table(at, kind).map(Some)
    }

    #[inline]
    fn table(&mut self, at: usize, kind: Kind) -> Result<Part<'a>, Damage> {
        let outside = Damage::OutOfBounds { what: kind.name(), at };
        let table = Table::new(self.bytes, at).ok_or(outside)?;
        // Field lists are aligned to two bytes, mostly to four.
        let place = ((table.vtable >> 2) + 3 * kind as usize) % REMEMBERED;
        if self.good[place].at != table.vtable || self.good[place].kind != kind {
            self.good[place] = self.layout(&table, kind)?;
        }
        let layout = &self.good[place];
        match at.checked_add(layout.length) {
            Some(end) if end <= self.bytes.len() => Ok(Part { bytes: self.bytes, at, fields: layout.fields }),
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

    /// Position of the first element of the vector a field at `place` points at, and the number of elements.
    #[inline]
    fn vector(&self, place: usize, size: usize, what: &'static str) -> Result<(usize, usize), Damage> {
        let outside = Damage::OutOfBounds { what, at: place };
        let at = follow(self.bytes, place).ok_or(outside)?;
        let count = u32_at(self.bytes, at).and_then(|count| usize::try_from(count).ok()).ok_or(outside)?;
        // The count was read, so there are at least four bytes.
        let room = self.bytes.len() - at - 4;
        if count.checked_mul(size).is_some_and(|length| length <= room) { Ok((at + 4, count)) } else { Err(outside) }
    }

    /// A string or a vector of bytes, if the table has it.
    #[inline]
    fn text(&mut self, table: &Part<'a>, slot: usize, what: &'static str) -> Result<Option<&'a [u8]>, Damage> {
        let Some(place) = table.field(slot) else { return Ok(None) };
        let (at, length) = self.vector(place, 1, what)?;
        self.text_left = self.text_left.checked_sub(length).ok_or(Damage::TooMuchText)?;
        Ok(self.bytes.get(at..at + length))
    }
}

/// Whether bytes could be the start of a first chunk of `length` bytes that has not fully arrived. FlatBuffers builders
/// write the root table last, so it lies in front; its list of fields may not have arrived yet.
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
