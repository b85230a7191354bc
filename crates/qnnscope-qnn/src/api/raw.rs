//! Helpers for every call: text from the libraries, and null handles.

#![expect(unsafe_code, reason = "FFI")]

use crate::sys::{Handle, Version};
use std::ffi::{CStr, c_char};

/// Copies a C string, empty for null, control characters removed.
pub(crate) fn text(raw: *const c_char) -> String {
    if raw.is_null() {
        return String::new();
    }
    // SAFETY: the libraries hand out terminated strings that live at least until the next call.
    qnnscope_core::event::clean_text(&unsafe { CStr::from_ptr(raw) }.to_string_lossy())
}

pub(super) fn version_text(version: Version) -> String {
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

/// A null handle.
pub(super) const NULL: Handle = std::ptr::null_mut();
