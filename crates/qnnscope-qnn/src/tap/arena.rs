//! Room for the profiling events of one call, allocated once and reused: nothing is allocated while a graph executes.

#![expect(unsafe_code, reason = "FFI")]

use crate::api::RawEvent;
use qnnscope_core::event::clean_text;
use qnnscope_core::tap::{Detail, FlatEvent};
use std::ffi::c_char;

/// Bytes of an arena; a graph of 5,000 ops with names of 60 letters needs 400 KB. Pages are only committed once used.
const BYTES: usize = 768 * 1024;
/// Longest name kept.
const NAME: usize = 512;
/// Fixed part of an event: depth, kind, unit, value, length of the name.
const HEAD: usize = 4 + 4 + 4 + 8 + 2;

/// Events of one call as read, and the call.
pub(super) struct Arena {
    pub graph: u32,
    pub thread: u32,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub read_ns: u64,
    pub is_host: bool,
    pub is_async: bool,
    cut: u32,
    used: usize,
    bytes: Box<[u8]>,
}

impl Arena {
    pub fn new() -> Self {
        let bytes = vec![0; BYTES].into_boxed_slice();
        Self {
            graph: 0,
            thread: 0,
            start_ns: 0,
            duration_ns: 0,
            read_ns: 0,
            is_host: false,
            is_async: false,
            cut: 0,
            used: 0,
            bytes,
        }
    }

    pub fn clear(&mut self) {
        (self.used, self.cut) = (0, 0);
    }

    /// Adds an event, or counts it if there is no room.
    pub fn push(&mut self, depth: usize, event: &RawEvent) {
        let name = bounded(event.identifier);
        let size = HEAD + name.len();
        let Some(room) = self.bytes.get_mut(self.used..self.used + size) else {
            self.cut = self.cut.saturating_add(1);
            return;
        };
        room[..4].copy_from_slice(&u32::try_from(depth).unwrap_or(u32::MAX).to_le_bytes());
        room[4..8].copy_from_slice(&event.kind.to_le_bytes());
        room[8..12].copy_from_slice(&event.unit.to_le_bytes());
        room[12..20].copy_from_slice(&event.value.to_le_bytes());
        room[20..22].copy_from_slice(&u16::try_from(name.len()).unwrap_or(0).to_le_bytes());
        room[22..].copy_from_slice(name);
        self.used += size;
    }

    /// The message; allocates, so the writer calls it.
    pub fn detail(&self) -> Detail {
        let call = if self.is_async { "graphExecuteAsync" } else { "graphExecute" };
        Detail {
            call: call.to_owned(),
            graph: self.graph,
            thread: self.thread,
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            read_ns: self.read_ns,
            host: self.is_host,
            cut: self.cut,
            events: self.events(),
        }
    }

    fn events(&self) -> Vec<FlatEvent> {
        let mut events = Vec::new();
        let mut rest = &self.bytes[..self.used];
        while let Some((head, tail)) = rest.split_at_checked(HEAD) {
            let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let value = u64::from(u32_at(12)) | u64::from(u32_at(16)) << 32;
            let length = usize::from(u16::from_le_bytes([head[20], head[21]]));
            let Some((name, tail)) = tail.split_at_checked(length) else { break };
            events.push(FlatEvent {
                depth: u32_at(0),
                kind: u32_at(4),
                unit: u32_at(8),
                value,
                identifier: clean_text(&String::from_utf8_lossy(name)),
            });
            rest = tail;
        }
        events
    }
}

/// The bytes of a terminated string, up to the limit.
fn bounded<'a>(raw: *const c_char) -> &'a [u8] {
    if raw.is_null() {
        return &[];
    }
    // SAFETY: the libraries hand out terminated strings that live at least until the next profiled call; no more than up
    // to the terminator is looked at.
    unsafe {
        let length = libc::strnlen(raw, NAME);
        std::slice::from_raw_parts(raw.cast(), length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_as_they_went_in_and_overflow_is_counted() {
        let mut arena = Arena::new();
        let event = |value, identifier: &std::ffi::CStr| RawEvent {
            kind: 404,
            unit: 3,
            value,
            identifier: identifier.as_ptr(),
        };
        arena.push(0, &event(u64::MAX - 1, c"conv\x1b[1m:OpId_7 (cycles)"));
        arena.push(1, &RawEvent { identifier: std::ptr::null(), ..event(2, c"") });
        let detail = arena.detail();
        assert_eq!(detail.events.len(), 2);
        assert_eq!((detail.events[0].value, detail.events[0].kind, detail.events[0].unit), (u64::MAX - 1, 404, 3));
        assert!(detail.events[0].identifier.starts_with("conv") && !detail.events[0].identifier.contains('\x1b'));
        assert_eq!((detail.events[1].depth, &*detail.events[1].identifier), (1, ""));
        arena.clear();
        assert!(arena.detail().events.is_empty());
        let fit = BYTES / (HEAD + 4);
        for _ in 0..fit + 5 {
            arena.push(0, &event(1, c"name"));
        }
        let detail = arena.detail();
        assert_eq!((detail.events.len(), detail.cut), (fit, 5));
    }
}
