//! A view of a backend's function table: freely copied, of any version, usable from any thread.
//!
//! It knows neither the table's file nor which versions its user accepts: [`super::Library`] checks versions before
//! creating a view, and so must every other user.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::{text, version_text};
use crate::sys::{self, InterfaceHead, Version};
use std::ffi::{c_char, c_void};

/// The head and the slots of a provider record.
#[derive(Debug, Clone, Copy)]
pub struct FunctionTable {
    head: *const InterfaceHead,
    slots: usize,
}

// SAFETY: the record is only read, lives as long as the process (see `new`), and QNN allows its functions to be called
// from several threads; what a call may do with a handle is up to the handle's owner.
unsafe impl Send for FunctionTable {}
// SAFETY: as for `Send`; the view itself is never written.
unsafe impl Sync for FunctionTable {}

/// Why a function of a table failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TableError {
    #[error("{function} is missing (slot {slot} of the function table is empty)")]
    MissingFunction { function: &'static str, slot: usize },
    #[error("{call} failed with {value:#x}")]
    Call { call: &'static str, value: u64 },
}

impl FunctionTable {
    /// A view of the provider record at `head`.
    ///
    /// # Safety
    /// `head` points to a provider record whose head is followed by `slots` pointers and that lives until the process
    /// ends.
    pub(crate) unsafe fn new(head: *const InterfaceHead, slots: usize) -> Self {
        Self { head, slots }
    }

    /// A copy of the record's head.
    pub(crate) fn head(self) -> InterfaceHead {
        // SAFETY: promised by the caller of `new`.
        unsafe { *self.head }
    }

    /// QNN's backend id: 3 CPU, 4 GPU, 6 HTP, 9 IR.
    pub fn backend_id(self) -> u32 {
        self.head().backend_id
    }

    /// Provider name.
    pub fn provider_name(self) -> String {
        text(self.head().provider_name)
    }

    pub(crate) fn core_version(self) -> Version {
        self.head().core_version
    }

    /// Core API version, `major.minor.patch`.
    pub fn core_api(self) -> String {
        version_text(self.core_version())
    }

    /// The backend's own API version.
    pub fn backend_api(self) -> String {
        version_text(self.head().backend_version)
    }

    /// Number of slots.
    pub fn slots(self) -> usize {
        self.slots
    }

    /// The raw pointer in a slot; null beyond the last one.
    pub(crate) fn raw(self, slot: usize) -> *const c_void {
        if slot >= self.slots {
            return std::ptr::null();
        }
        // SAFETY: `slots` pointers follow the head (promised to `new`); the bound was checked just above.
        unsafe { *self.head.add(1).cast::<*const c_void>().add(slot) }
    }

    /// The function in a slot. `F` must be the function type of that slot.
    pub(crate) fn function<F: Copy>(self, slot: usize, function: &'static str) -> Result<F, TableError> {
        as_function(self.raw(slot)).ok_or(TableError::MissingFunction { function, slot })
    }

    /// The library's own build id; needs no handle.
    pub fn build_id(self) -> Option<String> {
        let get: sys::GetBuildIdFn = self.function(sys::slots::core::BACKEND_GET_BUILD_ID, "backendGetBuildId").ok()?;
        let mut id: *const c_char = std::ptr::null();
        // SAFETY: the out pointer is valid; the text belongs to the library.
        let code = unsafe { get(&raw mut id) };
        (code == 0 && !id.is_null()).then(|| text(id))
    }

    /// True if the library reports a capability.
    pub fn has_capability(self, key: u32) -> bool {
        let has: Result<sys::HasCapabilityFn, _> =
            self.function(sys::slots::core::PROPERTY_HAS_CAPABILITY, "propertyHasCapability");
        // SAFETY: takes a number only.
        has.is_ok_and(|has| unsafe { has(key) == 0 })
    }

    /// The library's own text for a returned value.
    pub fn message(self, value: u64) -> Option<String> {
        let get: sys::ErrorGetMessageFn = self.function(sys::slots::core::ERROR_GET_MESSAGE, "errorGetMessage").ok()?;
        let mut message: *const c_char = std::ptr::null();
        // SAFETY: needs no handle; the out pointer is valid; the text belongs to the library.
        let code = unsafe { get(value, &raw mut message) };
        (code == 0 && !message.is_null()).then(|| text(message))
    }
}

/// A non-null pointer as a function of type `F`.
pub(crate) fn as_function<F: Copy>(raw: *const c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    // SAFETY: `F` is a function pointer type of pointer size, and the slot's type is the caller's promise.
    (!raw.is_null()).then(|| unsafe { std::mem::transmute_copy::<*const c_void, F>(&raw) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Record {
        head: InterfaceHead,
        table: [*const c_void; 2],
    }

    extern "C" fn yes(key: u32) -> u64 {
        u64::from(key != 7)
    }

    #[test]
    fn any_table_can_be_viewed_from_any_thread() {
        let version = |major, minor| Version { major, minor, patch: 3 };
        // Versions no release has: the view does not judge them.
        let record: &'static Record = Box::leak(Box::new(Record {
            head: InterfaceHead {
                backend_id: 99,
                provider_name: c"made\x1b up".as_ptr(),
                core_version: version(9, 1),
                backend_version: version(8, 2),
            },
            table: [yes as *const c_void, std::ptr::null()],
        }));
        // SAFETY: the record is leaked, its head is followed by two pointers.
        let table = unsafe { FunctionTable::new(&raw const record.head, 2) };
        let seen = std::thread::spawn(move || (table.backend_id(), table.core_api(), table.backend_api())).join();
        assert_eq!(seen.unwrap(), (99, "9.1.3".to_owned(), "8.2.3".to_owned()));
        assert!(!table.provider_name().contains('\x1b'));
        assert!(table.has_capability(7) && !table.has_capability(8));
        let missing = |slot| table.function::<sys::HasCapabilityFn>(slot, "f").err();
        assert_eq!(missing(1), Some(TableError::MissingFunction { function: "f", slot: 1 }), "an empty slot");
        assert_eq!(missing(2), Some(TableError::MissingFunction { function: "f", slot: 2 }), "beyond the table");
        assert_eq!((table.build_id(), table.message(1000)), (None, None));
    }
}
