//! A message with the same shape as an earlier one, except for numbers, needs no walk through its parts: it is compared
//! as a whole.
//!
//! Writers place the parts of a message next to each other, so the messages of a graph differ in their timestamps and
//! values, and in the distance to the field lists they all share. A checked message is remembered as a [`Shape`]: all
//! bytes from its first part to its last, of which some are numbers that nothing else depends on. What has the same
//! bytes there is as sound.

use super::format::{Kind, MAX_EVENT_DEPTH};
use super::kinds::{EventType, Method, Unit};
use super::table::{Table, u32_at};
use std::ops::Range;

/// Longest message remembered, bytes.
const LONGEST: usize = 64 << 10;
/// Words compared between two checks of the result.
const BLOCK: usize = 16;

/// A remembered message. Positions are bytes from its start unless stated otherwise.
#[derive(Debug)]
pub(super) struct Shape {
    /// Distance from the start to the message's table.
    before: usize,
    /// The words, and which of their bits must match.
    words: Vec<u32>,
    masks: Vec<u32>,
    /// Where tables store the distance to a field list outside, and that distance.
    outward: Vec<(usize, u32)>,
    /// Position of the message's table in its chunk.
    at: usize,
    /// How much of its chunk's limits the message uses.
    pub(super) tables: usize,
    pub(super) text: usize,
    pub(super) method: Method,
    pub(super) is_private: bool,
    pub(super) graph: Option<Range<usize>>,
    pub(super) time: Option<usize>,
    pub(super) seq: Option<usize>,
    pub(super) start: Option<usize>,
    pub(super) stop: Option<usize>,
    /// The events in order, except those of the third level and below.
    pub(super) events: Vec<ShapedEvent>,
}

/// An event of a shape.
#[derive(Debug)]
pub(super) struct ShapedEvent {
    pub(super) depth: usize,
    pub(super) event_type: EventType,
    pub(super) unit: Unit,
    /// Its value is an unsigned number.
    pub(super) is_unsigned: bool,
    /// Its position, if present.
    pub(super) value: Option<usize>,
    pub(super) identifier: Option<Range<usize>>,
}

/// A message of a shape.
#[derive(Clone, Copy)]
pub(super) struct Again<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Again<'a> {
    /// The number at a position of the shape, 0 if there is none.
    #[inline]
    pub(super) fn number(&self, place: Option<usize>) -> u64 {
        let word = place.and_then(|place| self.bytes.get(place..)?.first_chunk());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// The text at a position of the shape.
    #[inline]
    pub(super) fn text(&self, place: Option<&Range<usize>>) -> Option<&'a [u8]> {
        self.bytes.get(place?.clone())
    }
}

impl Shape {
    /// True if the shape is also valid in other chunks.
    pub(super) fn stands_alone(&self) -> bool {
        self.outward.is_empty()
    }

    /// The message with its table at `at`, if it has this shape.
    #[inline]
    pub(super) fn find<'a>(&self, bytes: &'a [u8], at: usize) -> Option<Again<'a>> {
        let start = at.checked_sub(self.before)?;
        let bytes = bytes.get(start..start.checked_add(4 * self.words.len())?)?;
        let (mut words, mut masks) = (self.words.chunks(BLOCK), self.masks.chunks(BLOCK));
        for (block, (words, masks)) in bytes.chunks(4 * BLOCK).zip((&mut words).zip(&mut masks)) {
            let (there, _) = block.as_chunks::<4>();
            let pairs = there.iter().zip(words.iter().zip(masks));
            let differ = pairs.fold(0, |all, (there, (word, mask))| all | (u32::from_le_bytes(*there) ^ word) & mask);
            if differ != 0 {
                return None;
            }
        }
        // These lists stay in place: the further away the message, the larger the distance.
        let further = u32::try_from(at).ok()?.wrapping_sub(u32::try_from(self.at).ok()?);
        let is_same = |&(place, way): &(usize, u32)| u32_at(bytes, place) == Some(way.wrapping_add(further));
        self.outward.iter().all(is_same).then_some(Again { bytes })
    }

    /// The shape of a sound message; `is_alone` if its chunk holds no other. `None` if it is too long or unusual.
    pub(super) fn of(bytes: &[u8], at: usize, is_alone: bool) -> Option<Self> {
        let mut parts = Parts { bytes, touched: Vec::new(), tables: Vec::new(), left: LONGEST, count: 0, text: 0 };
        let message = parts.table(at, Kind::Message)?;
        let header = parts.child(&message, 0, Kind::MessageHeader)?;
        let interval = parts.child(&message, 2, Kind::Interval)?;
        let graph = parts.text(&message, 5)?;
        let mut events = Vec::new();
        parts.events(&message, 1, &mut events)?;
        // Where everything lies.
        let lists = parts.tables.iter().map(|table| table.vtable..table.vtable + usize::from(table.vtable_len()));
        let all = parts.touched.iter().map(|(range, _)| range.clone());
        let all: Vec<Range<usize>> = if is_alone { all.chain(lists.clone()).collect() } else { all.collect() };
        let first = all.iter().map(|range| range.start).min()?;
        let end = all.iter().map(|range| range.end).max()?;
        let before = at.checked_sub(first)?.next_multiple_of(4);
        let start = at.checked_sub(before)?;
        let region = bytes.get(start..start + (end - start).next_multiple_of(4)).filter(|all| all.len() <= LONGEST)?;
        let inside = |range: &Range<usize>| range.start >= start && range.end <= start + region.len();
        for list in lists.filter(inside) {
            parts.touched.push((list, false));
        }
        // How many parts own each byte: a number that shares its bytes with anything is compared like the rest.
        let mut owners = vec![0_u8; region.len()];
        for (range, _) in &parts.touched {
            for owner in owners.get_mut(range.start - start..range.end - start)? {
                *owner = owner.saturating_add(1);
            }
        }
        let (there, _) = region.as_chunks::<4>();
        let words = there.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut masks = vec![u32::MAX; there.len()];
        for (range, is_number) in &parts.touched {
            let own = range.start - start..range.end - start;
            if *is_number && own.start % 4 == 0 && owners.get(own.clone())?.iter().all(|owner| *owner == 1) {
                masks.get_mut(own.start / 4..own.end / 4)?.fill(0);
            }
        }
        let mut outward = Vec::new();
        for table in &parts.tables {
            let list = table.vtable..table.vtable + usize::from(table.vtable_len());
            let place = table.at - start;
            if !inside(&list) {
                if place % 4 != 0 || owners.get(place..place + 4)?.iter().any(|owner| *owner != 1) {
                    return None;
                }
                *masks.get_mut(place / 4)? = 0;
                outward.push((place, u32_at(region, place)?));
            }
        }
        let place = |table: &Option<Table<'_>>, slot| Some(table.as_ref()?.field(slot)? - start);
        let moved = |range: Range<usize>| range.start - start..range.end - start;
        for event in &mut events {
            event.value = event.value.map(|value| value - start);
            event.identifier = event.identifier.take().map(moved);
        }
        Some(Self {
            before,
            words,
            masks,
            outward,
            at,
            tables: parts.count,
            text: parts.text,
            method: Method::from_number(message.u8(1)),
            is_private: message.u8(3) != 0,
            graph: graph.map(moved),
            time: place(&header, 0),
            seq: place(&header, 1),
            start: place(&interval, 0),
            stop: place(&interval, 1),
            events,
        })
    }
}

/// Walks through the parts of a sound message.
struct Parts<'a> {
    bytes: &'a [u8],
    /// The visited ranges, and whether each is a number that nothing depends on.
    touched: Vec<(Range<usize>, bool)>,
    tables: Vec<Table<'a>>,
    /// Remaining bytes to visit: shared parts could add up to many times the message.
    left: usize,
    count: usize,
    text: usize,
}

impl<'a> Parts<'a> {
    fn touch(&mut self, range: Range<usize>, is_number: bool) -> Option<()> {
        self.left = self.left.checked_sub(range.len().max(1))?;
        self.touched.push((range, is_number));
        Some(())
    }

    fn table(&mut self, at: usize, kind: Kind) -> Option<Table<'a>> {
        let table = Table::new(self.bytes, at)?;
        self.touch(at..at + 4, false)?;
        for (slot, size) in kind.fields().iter().enumerate() {
            if let Some(at) = table.field(slot) {
                self.touch(at..at + size, kind.is_number(slot))?;
            }
        }
        // A table's length limits its position, so its end counts as visited.
        let length = usize::from(table.length());
        self.touch(at + length..at + length, false)?;
        self.tables.push(table);
        Some(table)
    }

    /// The outer `None` means that the message is too unusual, the inner one that the part is absent.
    #[expect(clippy::option_option, reason = "a part may be absent, and the message may be too odd")]
    fn child(&mut self, parent: &Table<'a>, slot: usize, kind: Kind) -> Option<Option<Table<'a>>> {
        match parent.table(slot) {
            Some(child) => Some(Some(self.table(child.at, kind)?)),
            None => Some(None),
        }
    }

    /// As for [`Self::child`].
    #[expect(clippy::option_option, reason = "a part may be absent, and the message may be too odd")]
    fn text(&mut self, table: &Table<'a>, slot: usize) -> Option<Option<Range<usize>>> {
        let Some(vector) = table.vector(slot, 1) else { return Some(None) };
        self.text += vector.len;
        self.touch(vector.at - 4..vector.at + vector.len, false)?;
        Some(Some(vector.at..vector.at + vector.len))
    }

    fn events(&mut self, parent: &Table<'a>, depth: usize, events: &mut Vec<ShapedEvent>) -> Option<()> {
        self.count += 1;
        let Some(vector) = parent.vector(4, 4) else { return Some(()) };
        if depth > MAX_EVENT_DEPTH {
            return None;
        }
        self.touch(vector.at - 4..vector.at + 4 * vector.len, false)?;
        for index in 0..vector.len {
            let event = self.table(vector.table(index)?.at, Kind::Event)?;
            let identifier = self.text(&event, 0)?;
            self.text(&event, 8)?;
            self.text(&event, 9)?;
            if depth <= 2 {
                events.push(ShapedEvent {
                    depth,
                    event_type: EventType::from_number(event.u32(1)),
                    unit: Unit::from_number(event.u32(3)),
                    is_unsigned: !matches!(event.u32(5), 1 | 3 | 4 | 5),
                    value: event.field(2),
                    identifier,
                });
            }
            self.events(&event, depth + 1, events)?;
        }
        Some(())
    }
}

/// The last shape seen, and the visitor's plan for it.
#[derive(Debug)]
pub(super) struct Shapes<P> {
    pub(super) known: Option<(Shape, P)>,
    /// Deriving a shape costs as much as several checks, so it is done only once in many messages.
    credit: u32,
}

impl<P> Default for Shapes<P> {
    fn default() -> Self {
        Self { known: None, credit: 4 * Self::COST }
    }
}

impl<P> Shapes<P> {
    const COST: u32 = 64;

    /// Another chunk begins.
    pub(super) fn next_chunk(&mut self) {
        self.known.take_if(|(shape, _)| !shape.stands_alone());
    }

    /// Another message begins.
    #[inline]
    pub(super) fn next_message(&mut self) {
        self.credit = (self.credit + 1).min(8 * Self::COST);
    }

    /// Remembers the shape of a sound message in place of the previous one, if likely to pay off.
    #[inline]
    pub(super) fn learn(
        &mut self,
        bytes: &[u8],
        at: usize,
        is_alone: bool,
        plan: impl FnOnce(&Shape, &Again<'_>) -> Option<P>,
    ) {
        if self.credit >= Self::COST {
            self.credit -= Self::COST;
            self.known = Shape::of(bytes, at, is_alone).and_then(|shape| {
                let plan = plan(&shape, &shape.find(bytes, at)?)?;
                Some((shape, plan))
            });
        }
    }
}

#[cfg(test)]
mod tests;
