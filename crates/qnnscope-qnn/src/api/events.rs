//! Reads the events of a profile handle, no matter who owns it.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::text;
use super::table::{FunctionTable, TableError};
use crate::sys::{self, Handle};
use std::ffi::c_char;

/// One event of a profile, with its children.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileEvent {
    /// QNN's event type: 300 finalize, 400 execute, 404 node, from 1000 on backend-specific.
    pub kind: u32,
    /// QNN's unit: 1 us, 2 bytes, 3 cycles, 4 count, 5 object, 6 none.
    pub unit: u32,
    /// Value; floats are rounded to the nearest integer, objects have 0.
    pub value: u64,
    /// Identifier, control characters removed.
    pub identifier: String,
    /// Sub-events.
    pub children: Vec<ProfileEvent>,
}

impl ProfileEvent {
    /// `us`, `bytes`, `cycles`, `count` or nothing.
    pub fn unit_name(&self) -> &'static str {
        match self.unit {
            1 => "us",
            2 => "bytes",
            3 => "cycles",
            4 => "count",
            _ => "",
        }
    }
}

/// An event as returned by the library: the identifier lives until the next profiled call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawEvent {
    pub kind: u32,
    pub unit: u32,
    pub value: u64,
    pub identifier: *const c_char,
}

/// Maximum depth of the event tree; linting has four levels.
const MAX_DEPTH: usize = 8;

/// Reads profiles of the backend behind a table.
#[derive(Debug, Clone, Copy)]
pub struct EventReader {
    table: FunctionTable,
}

impl EventReader {
    /// A reader for this backend's profiles.
    pub fn new(table: FunctionTable) -> Self {
        Self { table }
    }

    /// The events of the last profiled call, in the backend's order. Each profiled call replaces them.
    ///
    /// # Safety
    /// `profile` is a live profile handle of this backend, and no profiled call is using it concurrently.
    ///
    /// # Errors
    /// A function missing from the table, or the code with which one failed.
    pub unsafe fn events(self, profile: Handle) -> Result<Vec<ProfileEvent>, TableError> {
        const CALL: &str = "profileGetEvents";
        let get: sys::ProfileGetEventsFn = self.table.function(sys::slots::core::PROFILE_GET_EVENTS, CALL)?;
        let (mut ids, mut count) = (std::ptr::null(), 0u32);
        // SAFETY: the profile is alive (promised), both out pointers are valid.
        check(CALL, unsafe { get(profile, &raw mut ids, &raw mut count) })?;
        self.list(ids, count, 0)
    }

    fn list(self, ids: *const u64, count: u32, depth: usize) -> Result<Vec<ProfileEvent>, TableError> {
        if ids.is_null() || count == 0 || depth >= MAX_DEPTH {
            return Ok(Vec::new());
        }
        // SAFETY: the library gave a list of `count` ids that lives until the next profiled call.
        let ids = unsafe { std::slice::from_raw_parts(ids, count as usize) };
        ids.iter().map(|&id| self.event(id, depth)).collect()
    }

    fn event(self, id: u64, depth: usize) -> Result<ProfileEvent, TableError> {
        let raw = self.raw(id)?;
        let (ids, count) = self.sub_events(id)?;
        Ok(ProfileEvent {
            kind: raw.kind,
            unit: raw.unit,
            value: raw.value,
            identifier: text(raw.identifier),
            children: self.list(ids, count, depth + 1)?,
        })
    }

    /// Shows each event of the last profiled call, depth first, without allocating anything.
    ///
    /// # Safety
    /// As for [`Self::events`].
    ///
    /// # Errors
    /// As for [`Self::events`].
    pub(crate) unsafe fn walk(self, profile: Handle, show: &mut dyn FnMut(usize, &RawEvent)) -> Result<(), TableError> {
        const CALL: &str = "profileGetEvents";
        let get: sys::ProfileGetEventsFn = self.table.function(sys::slots::core::PROFILE_GET_EVENTS, CALL)?;
        let (mut ids, mut count) = (std::ptr::null(), 0u32);
        // SAFETY: the profile is alive (promised), both out pointers are valid.
        check(CALL, unsafe { get(profile, &raw mut ids, &raw mut count) })?;
        self.walk_list(ids, count, 0, show)
    }

    fn walk_list(
        self,
        ids: *const u64,
        count: u32,
        depth: usize,
        show: &mut dyn FnMut(usize, &RawEvent),
    ) -> Result<(), TableError> {
        if ids.is_null() || count == 0 || depth >= MAX_DEPTH {
            return Ok(());
        }
        // SAFETY: as in `list`.
        for &id in unsafe { std::slice::from_raw_parts(ids, count as usize) } {
            show(depth, &self.raw(id)?);
            let (children, count) = self.sub_events(id)?;
            self.walk_list(children, count, depth + 1, show)?;
        }
        Ok(())
    }

    fn sub_events(self, id: u64) -> Result<(*const u64, u32), TableError> {
        const CALL: &str = "profileGetSubEvents";
        let get: sys::ProfileGetSubEventsFn = self.table.function(sys::slots::core::PROFILE_GET_SUB_EVENTS, CALL)?;
        let (mut ids, mut count) = (std::ptr::null(), 0u32);
        // SAFETY: the id is current, both out pointers are valid.
        check(CALL, unsafe { get(id, &raw mut ids, &raw mut count) })?;
        Ok((ids, count))
    }

    fn raw(self, id: u64) -> Result<RawEvent, TableError> {
        match self.extended(id) {
            Some(event) => Ok(event),
            None => self.basic(id),
        }
    }

    /// The CPU backend of 2.47 answers only this one.
    fn extended(self, id: u64) -> Option<RawEvent> {
        let get: sys::ProfileGetExtendedEventDataFn = self
            .table
            .function(sys::slots::core::PROFILE_GET_EXTENDED_EVENT_DATA, "profileGetExtendedEventData")
            .ok()?;
        // SAFETY: a record of plain numbers and pointers; all zero bytes are a valid value.
        let mut data: sys::ExtendedEventData = unsafe { std::mem::zeroed() };
        data.version = 1;
        // SAFETY: the id is current; the record is of version 1.
        if unsafe { get(id, &raw mut data) } != 0 {
            return None;
        }
        let v1 = data.v1;
        let value = if v1.unit == 5 { 0 } else { scalar_as_u64(&v1.value) };
        Some(RawEvent { kind: v1.kind, unit: v1.unit, value, identifier: v1.identifier })
    }

    fn basic(self, id: u64) -> Result<RawEvent, TableError> {
        const CALL: &str = "profileGetEventData";
        let get: sys::ProfileGetEventDataFn = self.table.function(sys::slots::core::PROFILE_GET_EVENT_DATA, CALL)?;
        // SAFETY: as in `extended`.
        let mut data: sys::EventData = unsafe { std::mem::zeroed() };
        // SAFETY: the id is current, the record is valid.
        check(CALL, unsafe { get(id, &raw mut data) })?;
        Ok(RawEvent { kind: data.kind, unit: data.unit, value: data.value, identifier: data.identifier })
    }
}

fn check(call: &'static str, value: u64) -> Result<(), TableError> {
    if value == 0 { Ok(()) } else { Err(TableError::Call { call, value }) }
}

/// A scalar event value as an unsigned integer; negative values become 0.
fn scalar_as_u64(scalar: &sys::Scalar) -> u64 {
    // SAFETY: the member is chosen by the data type; every bit pattern is a valid number.
    unsafe {
        match scalar.data_type {
            0x0008 => u64::try_from(scalar.value.i8).unwrap_or(0),
            0x0016 => u64::try_from(scalar.value.i16).unwrap_or(0),
            0x0032 => u64::try_from(scalar.value.i32).unwrap_or(0),
            0x0064 => u64::try_from(scalar.value.i64).unwrap_or(0),
            0x0108 | 0x0508 => u64::from(scalar.value.u8),
            0x0116 => u64::from(scalar.value.u16),
            0x0132 => u64::from(scalar.value.u32),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating by definition")]
            0x0232 => scalar.value.float.round() as u64,
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating by definition")]
            0x0264 => scalar.value.double.round() as u64,
            _ => scalar.value.u64,
        }
    }
}
