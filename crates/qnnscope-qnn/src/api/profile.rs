//! Profile handles and their event trees.

#![expect(unsafe_code, reason = "FFI")]

use super::interface::{NULL, text};
use super::{Backend, QnnError, handles};
use crate::sys::{self, Handle};
use qnnscope_core::ProfilingLevel;
use std::rc::Rc;

/// One event of a profile, with its children.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileEvent {
    /// QNN's event type: 300 finalize, 400 execute, 404 node, from 1000 on the backend's own.
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

/// A profile handle.
pub struct Profile {
    backend: Rc<Backend>,
    handle: Handle,
}

/// Deepest event tree that is followed; linting has four levels.
const MAX_DEPTH: usize = 8;

impl Profile {
    /// profileCreate; `None` for [`ProfilingLevel::Off`].
    pub fn create(backend: &Rc<Backend>, level: ProfilingLevel) -> Result<Option<Self>, QnnError> {
        let number = match level {
            ProfilingLevel::Off => return Ok(None),
            ProfilingLevel::Basic => 1,
            ProfilingLevel::Detailed => 2,
        };
        let library = backend.library();
        let create: sys::ProfileCreateFn = library.function(sys::slots::core::PROFILE_CREATE, "profileCreate")?;
        let mut handle = NULL;
        // SAFETY: the backend is alive, the out pointer is valid.
        library.check("profileCreate", unsafe { create(backend.handle(), number, &raw mut handle) })?;
        Ok(Some(Self { backend: backend.clone(), handle }))
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// The events of the last profiled call, in the backend's order. Each profiled call replaces them.
    pub fn events(&self) -> Result<Vec<ProfileEvent>, QnnError> {
        let library = self.backend.library();
        let get: sys::ProfileGetEventsFn =
            library.function(sys::slots::core::PROFILE_GET_EVENTS, "profileGetEvents")?;
        let (mut ids, mut count) = (std::ptr::null(), 0u32);
        // SAFETY: the profile is alive, both out pointers are valid.
        library.check("profileGetEvents", unsafe { get(self.handle, &raw mut ids, &raw mut count) })?;
        self.read_list(ids, count, 0)
    }

    fn read_list(&self, ids: *const u64, count: u32, depth: usize) -> Result<Vec<ProfileEvent>, QnnError> {
        if ids.is_null() || count == 0 || depth >= MAX_DEPTH {
            return Ok(Vec::new());
        }
        // SAFETY: the library gave a list of `count` ids that lives until the next profiled call.
        let ids = unsafe { std::slice::from_raw_parts(ids, count as usize) };
        ids.iter().map(|&id| self.read_event(id, depth)).collect()
    }

    fn read_event(&self, id: u64, depth: usize) -> Result<ProfileEvent, QnnError> {
        let mut event = match self.read_extended(id) {
            Some(event) => event,
            None => self.read_basic(id)?,
        };
        let library = self.backend.library();
        let get: sys::ProfileGetSubEventsFn =
            library.function(sys::slots::core::PROFILE_GET_SUB_EVENTS, "profileGetSubEvents")?;
        let (mut ids, mut count) = (std::ptr::null(), 0u32);
        // SAFETY: the id is current, both out pointers are valid.
        library.check("profileGetSubEvents", unsafe { get(id, &raw mut ids, &raw mut count) })?;
        event.children = self.read_list(ids, count, depth + 1)?;
        Ok(event)
    }

    /// The CPU backend of 2.47 answers only this one.
    fn read_extended(&self, id: u64) -> Option<ProfileEvent> {
        let get: sys::ProfileGetExtendedEventDataFn = self
            .backend
            .library()
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
        Some(ProfileEvent {
            kind: v1.kind,
            unit: v1.unit,
            value,
            identifier: text(v1.identifier),
            children: Vec::new(),
        })
    }

    fn read_basic(&self, id: u64) -> Result<ProfileEvent, QnnError> {
        let library = self.backend.library();
        let get: sys::ProfileGetEventDataFn =
            library.function(sys::slots::core::PROFILE_GET_EVENT_DATA, "profileGetEventData")?;
        // SAFETY: as in `read_extended`.
        let mut data: sys::EventData = unsafe { std::mem::zeroed() };
        // SAFETY: the id is current, the record is valid.
        library.check("profileGetEventData", unsafe { get(id, &raw mut data) })?;
        Ok(ProfileEvent {
            kind: data.kind,
            unit: data.unit,
            value: data.value,
            identifier: text(data.identifier),
            children: Vec::new(),
        })
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        handles::free(self.backend.library(), sys::slots::core::PROFILE_FREE, self.handle);
    }
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
