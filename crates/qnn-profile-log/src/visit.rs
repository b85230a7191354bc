//! Processing messages and events while a chunk is checked, so that their bytes are traversed only once.

use super::chunk::Value;
use super::error::Damage;
use super::kinds::{EventType, Method, Unit};
use super::shape::{Again, Shape};
use super::table::{u32_at, u64_at};

/// Most fields that a kind of table has.
pub(super) const FIELDS: usize = 12;

/// A table that lies inside, with all its fields.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Offset of each field; 0 for those that are absent.
    pub(super) fields: [u16; FIELDS],
}

impl Part<'_> {
    /// Position of a field, if the table has it.
    #[inline]
    pub(super) fn field(&self, slot: usize) -> Option<usize> {
        match self.fields[slot] {
            0 => None,
            offset => Some(self.at + usize::from(offset)),
        }
    }

    #[inline]
    fn u8(&self, slot: usize) -> u8 {
        self.field(slot).and_then(|at| self.bytes.get(at)).copied().unwrap_or_default()
    }

    #[inline]
    fn u32(&self, slot: usize) -> u32 {
        self.field(slot).and_then(|at| u32_at(self.bytes, at)).unwrap_or_default()
    }

    #[inline]
    pub(super) fn u64(&self, slot: usize) -> u64 {
        self.field(slot).and_then(|at| u64_at(self.bytes, at)).unwrap_or_default()
    }
}

/// A message whose events have not been checked yet.
pub(super) struct MessageParts<'a> {
    pub(super) message: Part<'a>,
    pub(super) header: Option<Part<'a>>,
    pub(super) interval: Option<Part<'a>>,
    pub(super) graph: Option<&'a [u8]>,
}

impl MessageParts<'_> {
    #[inline]
    pub(super) fn method(&self) -> Method {
        Method::from_number(self.message.u8(1))
    }

    #[inline]
    pub(super) fn is_private(&self) -> bool {
        self.message.u8(3) != 0
    }

    #[inline]
    pub(super) fn time_us(&self) -> u64 {
        self.header.map_or(0, |header| header.u64(0))
    }

    #[inline]
    pub(super) fn seq(&self) -> Option<u64> {
        self.header.map(|header| header.u64(1))
    }

    /// As `Message::netrun_us`.
    #[inline]
    pub(super) fn netrun_us(&self) -> u64 {
        match self.interval.map(|interval| (interval.u64(0), interval.u64(1))) {
            Some((start @ 1.., stop)) => stop.saturating_sub(start),
            _ => 0,
        }
    }
}

/// An event whose sub-events have not been checked yet.
pub(super) struct EventParts<'a> {
    pub(super) event: Part<'a>,
    pub(super) identifier: Option<&'a [u8]>,
    /// Of extended events: an opaque object and its file's name.
    pub(super) object: Option<&'a [u8]>,
    pub(super) file: Option<&'a [u8]>,
}

impl<'a> EventParts<'a> {
    #[inline]
    pub(super) fn event_type(&self) -> EventType {
        EventType::from_number(self.event.u32(1))
    }

    #[inline]
    pub(super) fn unit(&self) -> Unit {
        Unit::from_number(self.event.u32(3))
    }

    #[inline]
    pub(super) fn value(&self) -> Value<'a> {
        match self.event.u32(5) {
            1 => Value::Signed(self.event.u64(6).cast_signed()),
            3 => Value::Float(f32::from_bits(self.event.u32(7))),
            4 => Value::Object { bytes: self.object.unwrap_or_default(), file: self.file },
            5 => Value::Double(f64::from_bits(self.event.u64(11))),
            _ => Value::Unsigned(self.event.u64(2)),
        }
    }
}

/// Sees the parts of a chunk while they are checked. Later parts may turn out damaged, so nothing of a chunk may be
/// kept before all of it is checked.
pub(super) trait Visit<'a> {
    /// Ends the checking.
    type Error: From<Damage>;
    /// What it derives from messages with the same shape.
    type Plan;

    /// A message, before its events.
    #[inline]
    fn message(&mut self, message: &MessageParts<'a>) -> Result<(), Self::Error> {
        let _ = message;
        Ok(())
    }

    /// An event, before its sub-events. A message's own events have depth 1.
    #[inline]
    fn event(&mut self, event: &EventParts<'a>, depth: usize) -> Result<(), Self::Error> {
        let _ = (event, depth);
        Ok(())
    }

    /// A message was seen with all its events, and others may have the same shape. `None` to visit them as usual.
    fn plan(&mut self, shape: &Shape, message: &Again<'_>) -> Option<Self::Plan>;

    /// A message with the shape the plan was made for: only its numbers differ.
    fn again(&mut self, message: &Again<'a>, shape: &Shape, plan: &Self::Plan) -> Result<(), Self::Error>;
}

/// Only the checks.
pub(super) struct Nothing;

impl Visit<'_> for Nothing {
    type Error = Damage;
    type Plan = ();

    fn plan(&mut self, _: &Shape, _: &Again<'_>) -> Option<()> {
        Some(())
    }

    #[inline]
    fn again(&mut self, _: &Again<'_>, _: &Shape, (): &()) -> Result<(), Damage> {
        Ok(())
    }
}
