//! How programs get here instead of to the real library: by the name they look up, or by the file they open.

#![expect(unsafe_code, reason = "FFI")]

use super::fork::Shared;
use super::process::current;
use super::{guard, is_on, providers, system};
use crate::api::as_function;
use crate::sys;
use qnnscope_core::tap::REAL_VARIABLE;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The one function through which every program finds a backend.
const GET_PROVIDERS: &CStr = c"QnnInterface_getProviders";
/// A name that only libraries of this kind export.
const MARK: &CStr = c"qnnscope_tap_mark";
/// Longest plausible list of providers; all libraries seen have one.
const LONGEST_LIST: usize = 8;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The C library's dlsym.
fn real_dlsym() -> Option<Dlsym> {
    static REAL: OnceLock<Option<usize>> = OnceLock::new();
    let address = REAL.get_or_init(|| {
        // The symbol version changed with glibc 2.34; aarch64 started with 2.17.
        [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"].iter().find_map(|version| dlsym_of(version))
    });
    as_function((*address)? as *const c_void)
}

#[cfg(target_env = "gnu")]
fn dlsym_of(version: &CStr) -> Option<usize> {
    // SAFETY: terminated strings; the answer is an address or null.
    let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
    (!found.is_null()).then(|| found.addr())
}

#[cfg(not(target_env = "gnu"))]
fn dlsym_of(_: &CStr) -> Option<usize> {
    // Preloading needs versioned lookups; without them only the folder method works.
    Some((libc::dlsym as *const c_void).addr())
}

/// The target of a dlsym call: the C library's own, with nothing on the stack that would hide its caller, or ours. Null
/// if there is no dlsym at all.
///
/// # Safety
/// `name` is what a caller of dlsym passed.
pub unsafe extern "C" fn route(_handle: *mut c_void, name: *const c_char) -> *const c_void {
    let Some(real) = real_dlsym() else { return std::ptr::null() };
    // SAFETY: a caller of dlsym passes a terminated string; null would be its own fault, and is checked.
    let is_ours = !name.is_null() && is_on() && unsafe { CStr::from_ptr(name) } == GET_PROVIDERS;
    if is_ours { look_up as *const c_void } else { real as *const c_void }
}

unsafe extern "C" fn look_up(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let Some(real) = real_dlsym() else { return std::ptr::null_mut() };
    // SAFETY: forwards the caller's arguments.
    let found = unsafe { real(handle, name) };
    if found.is_null() {
        return found;
    }
    guard(|| bound(found)).flatten().map_or(found, |ours| ours as *mut c_void)
}

/// Functions called in place of real ones: `BOUND[i]` belongs to `REAL[i]`.
static REAL: [AtomicPtr<c_void>; providers::MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; providers::MOST];
/// Lists handed out.
static LISTS: [[AtomicPtr<c_void>; LONGEST_LIST]; providers::MOST] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; LONGEST_LIST] }; providers::MOST];
/// Files of the real functions.
pub(super) static FILES: Shared<Vec<String>> = Shared::new(Vec::new());

unsafe extern "C" fn ask<const I: usize>(list: *mut *const *const c_void, count: *mut u32) -> u64 {
    // SAFETY: forwards the caller's arguments to the function found for this number.
    unsafe { providers_of(I, list, count) }
}

static BOUND: [sys::GetProvidersFn; providers::MOST] = numbered!(ask);

/// The function to return for a real one; `None` to leave it as it is.
fn bound(real: *mut c_void) -> Option<sys::GetProvidersFn> {
    let file = system::file_of(real)?;
    if is_a_tap(&file) {
        return None;
    }
    current()?;
    let number = FILES.with(|files| {
        let known = files.iter().position(|known| *known == file);
        known.or_else(|| {
            (files.len() < providers::MOST).then(|| {
                files.push(file);
                files.len() - 1
            })
        })
    })?;
    REAL[number].store(real, Ordering::Release);
    Some(BOUND[number])
}

/// True for other copies of the tap: a preloaded one and one in place of a backend may meet in one process, and each
/// call must be seen only once.
fn is_a_tap(file: &str) -> bool {
    let (Ok(path), Some(dlsym)) = (CString::new(file), real_dlsym()) else { return false };
    // SAFETY: opens a library that is already loaded.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() {
        return false;
    }
    // SAFETY: the handle was just returned; it is closed once.
    unsafe {
        let mark = dlsym(library, MARK.as_ptr());
        let is_its_own = !mark.is_null() && system::file_of(mark).as_deref() == Some(file);
        libc::dlclose(library);
        is_its_own
    }
}

unsafe fn providers_of(number: usize, list: *mut *const *const c_void, count: *mut u32) -> u64 {
    let real: Option<sys::GetProvidersFn> = as_function(REAL[number].load(Ordering::Acquire));
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(list, count) };
    if code != 0 || list.is_null() || count.is_null() {
        return code;
    }
    guard(|| {
        let (Some(tap), Some(file)) = (current(), FILES.with(|files| files.get(number).cloned())) else { return };
        // SAFETY: the call succeeded, so both were written.
        let (theirs, length) = unsafe { (*list, *count as usize) };
        if theirs.is_null() || length == 0 || length > LONGEST_LIST {
            return;
        }
        for (index, entry) in LISTS[number].iter().enumerate().take(length) {
            // SAFETY: the list has `length` records of this library.
            let ours = unsafe { providers::wrap(tap, *theirs.add(index), &file, index) };
            entry.store(ours.cast_mut(), Ordering::Release);
        }
        // SAFETY: the caller's out pointer. An array of atomic pointers is one of pointers, and lives for ever.
        unsafe { *list = LISTS[number].as_ptr().cast() };
    });
    code
}

/// This library's own implementation of the function: for programs that opened it in place of a backend, and for those
/// linked with a backend.
///
/// # Safety
/// As for QnnInterface_getProviders.
pub unsafe fn get_providers(list: *mut *const *const c_void, count: *mut u32) -> u64 {
    static FOUND: OnceLock<Option<usize>> = OnceLock::new();
    let real =
        *FOUND.get_or_init(|| std::panic::catch_unwind(|| stood_in_for().map(<*mut c_void>::addr)).ok().flatten());
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    let real = std::ptr::with_exposed_provenance_mut::<c_void>(real);
    if let Some(Some(ours)) = guard(|| bound(real)) {
        // SAFETY: forwards the caller's arguments.
        return unsafe { ours(list, count) };
    }
    match as_function::<sys::GetProvidersFn>(real) {
        // SAFETY: as above.
        Some(real) => unsafe { real(list, count) },
        None => sys::NOT_SUPPORTED,
    }
}

/// The real function behind this library.
fn stood_in_for() -> Option<*mut c_void> {
    let dlsym = real_dlsym()?;
    let own = system::file_of(stood_in_for as *const c_void)?;
    let name = Path::new(&own).file_name()?.to_owned();
    let found = match std::env::var_os(REAL_VARIABLE) {
        Some(real) if name.to_string_lossy().starts_with("libQnn") => {
            let mut real = std::path::PathBuf::from(real);
            if real.is_dir() {
                real.push(name);
            }
            let path = CString::new(real.into_os_string().into_encoded_bytes()).ok()?;
            // SAFETY: opens the library the program wanted; kept open for the life of the process.
            let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if library.is_null() {
                return None;
            }
            // SAFETY: the handle was just returned.
            unsafe { dlsym(library, GET_PROVIDERS.as_ptr()) }
        }
        // SAFETY: searches after this library in the program's own order.
        _ => unsafe { dlsym(libc::RTLD_NEXT, GET_PROVIDERS.as_ptr()) },
    };
    (!found.is_null()).then(|| {
        let _ = found.expose_provenance();
        found
    })
}
