//! Backends the program found: a copy of each function table with our entries, created once and kept permanently.

#![expect(unsafe_code, reason = "FFI")]

use super::fork::Shared;
use super::process::{REGISTRY, Tap};
use super::{calls, system};
use crate::api::{FunctionTable, as_function, count_slots};
use crate::sys::{self, InterfaceHead};
use qnnscope_core::tap::{Provider, TapMessage};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Maximum number of backends per process; further ones are passed through.
pub(super) const MOST: usize = 16;
/// Slots of a copy, more than any table has; the surplus is zero.
const SLOTS: usize = sys::MODEL_LIBRARY_TABLE;

#[repr(C, align(16))]
struct Record {
    head: InterfaceHead,
    table: [*const c_void; SLOTS],
}

struct ProviderSlot {
    /// The library's own record.
    real: AtomicPtr<InterfaceHead>,
    slots: AtomicUsize,
    copy: UnsafeCell<Record>,
}

// SAFETY: the copy is written under the registry's lock before its address is published, and again only after its
// library was unloaded, so that nobody can be using it; everything else is atomic.
unsafe impl Sync for ProviderSlot {}

static PLACES: [ProviderSlot; MOST] = [const {
    ProviderSlot {
        real: AtomicPtr::new(std::ptr::null_mut()),
        slots: AtomicUsize::new(0),
        copy: UnsafeCell::new(Record {
            head: InterfaceHead {
                backend_id: 0,
                provider_name: std::ptr::null(),
                core_version: sys::Version { major: 0, minor: 0, patch: 0 },
                backend_version: sys::Version { major: 0, minor: 0, patch: 0 },
            },
            table: [std::ptr::null(); SLOTS],
        }),
    }
}; MOST];

/// Libraries by slot; a file is loaded once, so one that reappears at another address was unloaded in between.
pub(super) static LIBRARIES: Shared<Vec<(String, usize)>> = Shared::new(Vec::new());

/// The real functions of a provider; `None` for an unassigned number.
pub(super) fn table(provider: usize) -> Option<FunctionTable> {
    let place = PLACES.get(provider)?;
    let real = place.real.load(Ordering::Acquire);
    // SAFETY: set to a record of that many slots, which lives as long as its library; calls only come through its
    // table.
    (!real.is_null()).then(|| unsafe { FunctionTable::new(real, place.slots.load(Ordering::Relaxed)) })
}

/// The real function in a slot. `F` must be the function type of that slot.
pub(super) fn real<F: Copy>(provider: usize, slot: usize) -> Option<F> {
    as_function(table(provider)?.raw(slot))
}

/// What the program gets instead of a library's record: our copy of it, or the record itself if that is impossible.
///
/// # Safety
/// `record` is null or a provider record that `library` (a path) handed out as the `index`-th of its list.
pub(super) unsafe fn wrap(tap: &Tap, record: *const c_void, library: &str, index: usize) -> *const c_void {
    let head = record.cast::<InterfaceHead>();
    if head.is_null() {
        return record;
    }
    // SAFETY: every provider record starts with this head.
    let version = unsafe { (*head).core_version };
    let slots = if version.major == 2 && version.minor >= 9 {
        sys::known_core_slots(version.minor).or_else(|| count_slots(head)).filter(|slots| *slots <= SLOTS)
    } else {
        None
    };
    let Some(slots) = slots else {
        let why = format!("core API {}.{} is unknown: its calls are not traced", version.major, version.minor);
        // SAFETY: only the head of it is read.
        let table = unsafe { FunctionTable::new(head, 0) };
        tell(tap, u32::MAX, table, library, Some(why));
        return record;
    };
    // SAFETY: a record of this version has that many slots, or they were counted.
    let table = unsafe { FunctionTable::new(head, slots) };
    let found = LIBRARIES.with(|libraries| {
        let key = (library.to_owned(), index);
        let known = libraries.iter().position(|known| *known == key);
        let provider = known.or_else(|| {
            (libraries.len() < MOST).then(|| {
                libraries.push(key);
                libraries.len() - 1
            })
        })?;
        let place = &PLACES[provider];
        let is_new = !std::ptr::eq(place.real.load(Ordering::Acquire), head);
        if is_new {
            // Handles of an unloaded library are meaningless.
            REGISTRY.with(|registry| registry.remove_provider(provider));
            place.slots.store(slots, Ordering::Relaxed);
            place.real.store(head.cast_mut(), Ordering::Release);
            // SAFETY: see `Sync` of `Place`.
            fill(unsafe { &mut *place.copy.get() }, table, provider);
        }
        Some((provider, is_new))
    });
    let Some((provider, is_new)) = found else {
        tell(tap, u32::MAX, table, library, Some(format!("more than {MOST} backends: this one is not seen")));
        return record;
    };
    if is_new {
        tell(tap, u32::try_from(provider).unwrap_or(u32::MAX), table, library, None);
    }
    PLACES[provider].copy.get().cast_const().cast()
}

fn fill(copy: &mut Record, table: FunctionTable, provider: usize) {
    copy.head = table.head();
    copy.table = [std::ptr::null(); SLOTS];
    for (slot, entry) in copy.table.iter_mut().enumerate().take(table.slots()) {
        *entry = table.raw(slot);
    }
    for (slot, ours) in calls::entries(provider) {
        // Programs check whether a function is present.
        if let Some(entry) = copy.table.get_mut(slot).filter(|entry| !entry.is_null()) {
            *entry = ours;
        }
    }
}

fn tell(tap: &Tap, provider: u32, table: FunctionTable, library: &str, untouched: Option<String>) {
    tap.writer.say_now(&TapMessage::Provider(Provider {
        provider,
        library: library.to_owned(),
        name: table.provider_name(),
        backend_id: table.backend_id(),
        core_api: table.core_api(),
        backend_api: table.backend_api(),
        build_id: table.build_id(),
        untouched,
        t_ns: system::now_ns(),
    }));
}

/// In a fork: the backends the parent had found.
pub(super) fn announce_all(tap: &Tap) {
    let libraries = LIBRARIES.with(|libraries| libraries.clone());
    for (provider, (library, _)) in libraries.iter().enumerate() {
        if let Some(table) = table(provider) {
            tell(tap, u32::try_from(provider).unwrap_or(u32::MAX), table, library, None);
        }
    }
}
