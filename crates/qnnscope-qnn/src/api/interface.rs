//! Opens backend and system libraries and reads their function tables.

#![expect(unsafe_code, reason = "FFI")]

use super::QnnError;
use super::raw::version_text;
use super::table::{FunctionTable, TableError, as_function};
use crate::sys::{self, InterfaceHead, SystemInterfaceHead, Version};
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How to handle a core API version outside the table of known ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionPolicy {
    /// Refuse it, naming the version.
    KnownOnly,
    /// On the user's request: count the table slots that point into executable memory.
    CountSlots,
}

/// An open backend library and its function table. Never unloaded: vendor libraries leave threads and exit handlers
/// behind, and the process that opened them ends soon after.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    table: FunctionTable,
}

impl Library {
    /// Opens a backend library and checks its version.
    ///
    /// # Errors
    /// The dynamic linker's message, a missing symbol, or a version not allowed by `policy`.
    pub fn open(path: &Path, policy: VersionPolicy) -> Result<Rc<Self>, QnnError> {
        let head = provider(path, c"QnnInterface_getProviders", "QnnInterface_getProviders")?.cast::<InterfaceHead>();
        // SAFETY: every provider record starts with the 40-byte head and lives until the library is unloaded, which
        // `provider` prevents.
        let version = unsafe { (*head).core_version };
        let refused = || QnnError::UnknownVersion { path: path.to_owned(), major: version.major, minor: version.minor };
        if version.major != 2 || version.minor < 9 {
            return Err(refused());
        }
        let slots = match (sys::known_core_slots(version.minor), policy) {
            (Some(slots), _) => slots,
            (None, VersionPolicy::KnownOnly) => return Err(refused()),
            (None, VersionPolicy::CountSlots) => count_slots(head).ok_or_else(refused)?,
        };
        // SAFETY: a record of this version has that many slots, or they were counted; it is never unloaded.
        let table = unsafe { FunctionTable::new(head, slots) };
        Ok(Rc::new(Self { path: path.to_owned(), table }))
    }

    /// Path it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its functions.
    pub fn table(&self) -> FunctionTable {
        self.table
    }

    /// The function in a slot. `F` must be the function type of that slot.
    pub(super) fn function<F: Copy>(&self, slot: usize, function: &'static str) -> Result<F, QnnError> {
        self.table.function(slot, function).map_err(|error| self.explain(error))
    }

    /// Turns a returned value into a result, with the library's own text for the code.
    pub(super) fn check(&self, call: &'static str, value: u64) -> Result<(), QnnError> {
        if value == 0 { Ok(()) } else { Err(self.explain(TableError::Call { call, value })) }
    }

    /// The error of a function of the table, with the file it came from and the library's own text.
    pub(super) fn explain(&self, error: TableError) -> QnnError {
        match error {
            TableError::MissingFunction { function, slot } => {
                QnnError::MissingFunction { path: self.path.clone(), function, slot }
            }
            TableError::Call { call, value } => {
                QnnError::Call { call, code: value & 0xffff, text: self.table.message(value) }
            }
        }
    }
}

/// An open libQnnSystem and its table.
#[derive(Debug)]
pub struct SystemLibrary {
    path: PathBuf,
    version: Version,
    table: *const *const c_void,
}

/// Slots of every system table with the DLC calls (1.4 and later).
const SYSTEM_SLOTS: usize = 13;
/// The same from 1.11 on, with the profile serializer. Releases in between reportedly have its slots in a broken order,
/// so they count as having none.
const SYSTEM_SLOTS_1_11: usize = 16;

impl SystemLibrary {
    /// Opens `libQnnSystem.so`.
    ///
    /// # Errors
    /// The dynamic linker's message, a missing symbol, or a system API older than 1.4.
    pub fn open(path: &Path) -> Result<Rc<Self>, QnnError> {
        let record = provider(path, c"QnnSystemInterface_getProviders", "QnnSystemInterface_getProviders")?;
        // SAFETY: every system provider record starts with this head and lives until the library is unloaded.
        let version = unsafe { (*record.cast::<SystemInterfaceHead>()).version };
        if version.major != 1 || version.minor < 4 {
            return Err(QnnError::UnknownVersion { path: path.to_owned(), major: version.major, minor: version.minor });
        }
        // SAFETY: the table follows the head.
        let table = unsafe { record.cast::<SystemInterfaceHead>().add(1).cast::<*const c_void>() };
        Ok(Rc::new(Self { path: path.to_owned(), version, table }))
    }

    /// Path it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// System API version, `major.minor.patch`.
    pub fn api(&self) -> String {
        version_text(self.version)
    }

    pub(super) fn function<F: Copy>(&self, slot: usize, function: &'static str) -> Result<F, QnnError> {
        let slots = if self.version.minor >= 11 { SYSTEM_SLOTS_1_11 } else { SYSTEM_SLOTS };
        let raw = if slot < slots {
            // SAFETY: system API 1.4 and later have at least 13 slots, 1.11 and later at least 16.
            unsafe { *self.table.add(slot) }
        } else {
            std::ptr::null()
        };
        as_function(raw).ok_or_else(|| QnnError::MissingFunction { path: self.path.clone(), function, slot })
    }

    /// Turns a returned value into a result; the system library has no texts of its own.
    #[expect(clippy::unused_self, reason = "same shape as Library::check")]
    pub(super) fn check(&self, call: &'static str, value: u64) -> Result<(), QnnError> {
        if value == 0 { Ok(()) } else { Err(QnnError::Call { call, code: value & 0xffff, text: None }) }
    }
}

/// Opens a library permanently and returns its first provider record.
fn provider(path: &Path, symbol: &CStr, symbol_name: &'static str) -> Result<*const c_void, QnnError> {
    let open_error = |e: libloading::Error| QnnError::Open { path: path.to_owned(), reason: linker_message(&e) };
    // SAFETY: running a vendor library's initialisers is the point; this happens in the runner process only.
    let library = unsafe { libloading::Library::new(path) }.map_err(open_error)?;
    // Kept open for the life of the process, see `Library`.
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: the symbol has this type in every QNN library.
    let get: libloading::Symbol<'_, sys::GetProvidersFn> =
        unsafe { library.get(symbol) }.map_err(|_| QnnError::Symbol { path: path.to_owned(), symbol: symbol_name })?;
    let mut list: *const *const c_void = std::ptr::null();
    let mut count = 0u32;
    // SAFETY: both out pointers are valid.
    let code = unsafe { get(&raw mut list, &raw mut count) };
    if code != 0 {
        return Err(QnnError::Call { call: symbol_name, code: code & 0xffff, text: None });
    }
    if count == 0 || list.is_null() {
        return Err(QnnError::NoProvider { path: path.to_owned() });
    }
    // SAFETY: the list has `count` pointers.
    let first = unsafe { *list };
    if first.is_null() { Err(QnnError::NoProvider { path: path.to_owned() }) } else { Ok(first) }
}

/// The dynamic linker's own message, without libloading's prefix.
fn linker_message(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

/// Counts the slots after the head that are null or point into executable memory.
pub(crate) fn count_slots(head: *const InterfaceHead) -> Option<usize> {
    let ranges = executable_ranges()?;
    let mut slots = 0;
    let mut last_used = 0;
    while slots < sys::MODEL_LIBRARY_TABLE {
        // SAFETY: provider records are heap or static objects of the library, followed by mapped memory of the same
        // allocation class; reading stops at the first word that is not a code pointer.
        let word = unsafe { *head.add(1).cast::<usize>().add(slots) };
        if word != 0 && !ranges.iter().any(|range| range.contains(&word)) {
            break;
        }
        slots += 1;
        if word != 0 {
            last_used = slots;
        }
    }
    (last_used >= sys::MODEL_LIBRARY_SLOTS).then_some(last_used)
}

/// Executable mappings of this process.
fn executable_ranges() -> Option<Vec<std::ops::Range<usize>>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    Some(
        maps.lines()
            .filter_map(|line| {
                let mut cells = line.split_whitespace();
                let (from, to) = cells.next()?.split_once('-')?;
                cells.next()?.contains('x').then_some(())?;
                Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
            })
            .collect(),
    )
}
