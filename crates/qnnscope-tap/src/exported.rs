//! The exported names.

#![expect(unsafe_code, reason = "names that programs look for, and a jump")]

use std::ffi::c_void;

/// Taps recognise each other by this name, so that a call is seen only once.
#[unsafe(no_mangle)]
pub extern "C" fn qnnscope_tap_mark() {}

/// QNN's own entry point: returns a backend's function table.
///
/// # Safety
/// Both pointers can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn QnnInterface_getProviders(list: *mut *const *const c_void, count: *mut u32) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { qnnscope_qnn::tap::get_providers(list, count) }
}

/// The C library's dlsym, except for the name above. It jumps to the real target with the stack unchanged: dlsym
/// inspects its caller, and `RTLD_NEXT` must keep meaning "after the caller".
///
/// # Safety
/// As for dlsym.
#[cfg(all(target_env = "gnu", target_arch = "x86_64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const std::ffi::c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {route}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        route = sym qnnscope_qnn::tap::route,
    )
}

/// The same on aarch64.
///
/// # Safety
/// As for dlsym.
#[cfg(all(target_env = "gnu", target_arch = "aarch64"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const std::ffi::c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {route}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "mov x0, #0",
        "ret",
        route = sym qnnscope_qnn::tap::route,
    )
}

extern "C" fn loaded() {
    qnnscope_qnn::tap::loaded();
}

extern "C" fn unloading() {
    qnnscope_qnn::tap::unloading();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADING: extern "C" fn() = unloading;
