//! Types of the functions in the tables.

use super::records::{ErrorCode, EventData, ExtendedEventData, Handle, ModelGraphInfo, OpConfig, PlatformInfo, Tensor};
use super::system::{BinaryInfo, GraphInfo};
use super::system_profile::{ProfileData, ProfileTarget, ProfileTargetConfig};
use super::{InterfaceByValue, TableByValue};
use std::ffi::{c_char, c_int, c_void};

/// Callback of loggers: format, level, timestamp, `va_list` (one pointer on x86_64 and aarch64).
pub type LogCallback = unsafe extern "C" fn(*const c_char, u32, u64, *mut c_void);

pub type GetProvidersFn = unsafe extern "C" fn(*mut *const *const c_void, *mut u32) -> ErrorCode;
pub type HasCapabilityFn = unsafe extern "C" fn(u32) -> ErrorCode;
pub type GetBuildIdFn = unsafe extern "C" fn(*mut *const c_char) -> ErrorCode;
pub type LogCreateFn = unsafe extern "C" fn(Option<LogCallback>, u32, *mut Handle) -> ErrorCode;
pub type FreeFn = unsafe extern "C" fn(Handle) -> ErrorCode;
pub type BackendCreateFn = unsafe extern "C" fn(Handle, *const *const c_void, *mut Handle) -> ErrorCode;
pub type DeviceCreateFn = unsafe extern "C" fn(Handle, *const *const c_void, *mut Handle) -> ErrorCode;
pub type GetPlatformInfoFn = unsafe extern "C" fn(Handle, *mut *const PlatformInfo) -> ErrorCode;
pub type FreePlatformInfoFn = unsafe extern "C" fn(Handle, *const PlatformInfo) -> ErrorCode;
pub type GetInfrastructureFn = unsafe extern "C" fn(*mut *const c_void) -> ErrorCode;
pub type ContextCreateFn = unsafe extern "C" fn(Handle, Handle, *const *const c_void, *mut Handle) -> ErrorCode;
pub type ContextCreateFromBinaryFn =
    unsafe extern "C" fn(Handle, Handle, *const *const c_void, *const c_void, u64, *mut Handle, Handle) -> ErrorCode;
pub type ContextGetBinarySizeFn = unsafe extern "C" fn(Handle, *mut u64) -> ErrorCode;
pub type ContextGetBinaryFn = unsafe extern "C" fn(Handle, *mut c_void, u64, *mut u64) -> ErrorCode;
pub type ContextFreeFn = unsafe extern "C" fn(Handle, Handle) -> ErrorCode;
pub type ValidateOpConfigFn = unsafe extern "C" fn(Handle, OpConfig) -> ErrorCode;
pub type GraphCreateFn = unsafe extern "C" fn(Handle, *const c_char, *const *const c_void, *mut Handle) -> ErrorCode;
pub type GraphAddNodeFn = unsafe extern "C" fn(Handle, OpConfig) -> ErrorCode;
pub type GraphFinalizeFn = unsafe extern "C" fn(Handle, Handle, Handle) -> ErrorCode;
pub type GraphRetrieveFn = unsafe extern "C" fn(Handle, *const c_char, *mut Handle) -> ErrorCode;
pub type GraphExecuteFn =
    unsafe extern "C" fn(Handle, *const Tensor, u32, *mut Tensor, u32, Handle, Handle) -> ErrorCode;
/// Called when an asynchronous execution ends: the caller's parameter and the returned value (a record of one number,
/// passed in a register like the number itself).
pub type NotifyFn = unsafe extern "C" fn(*mut c_void, u64);
pub type GraphExecuteAsyncFn = unsafe extern "C" fn(
    Handle,
    *const Tensor,
    u32,
    *mut Tensor,
    u32,
    Handle,
    Handle,
    Option<NotifyFn>,
    *mut c_void,
) -> ErrorCode;
pub type ContextCreateFromBinaryWithSignalFn = unsafe extern "C" fn(
    Handle,
    Handle,
    *const *const c_void,
    *const c_void,
    u64,
    *mut Handle,
    Handle,
    Handle,
) -> ErrorCode;
pub type ContextCreateFromBinaryWithCallbackFn = unsafe extern "C" fn(
    Handle,
    Handle,
    *const *const c_void,
    *const c_void,
    *const c_void,
    u64,
    *mut Handle,
    Handle,
    Handle,
) -> ErrorCode;
/// Notification for a context of a list, or a graph in one: context, graph, the graph's name, which of the two it is,
/// the record's parameter, status.
pub type ContextNotifyFn = unsafe extern "C" fn(Handle, Handle, *const c_char, u32, *mut c_void, ErrorCode);
pub type ContextCreateFromBinaryListAsyncFn =
    unsafe extern "C" fn(Handle, Handle, *const *const c_void, *const *const c_void, Handle) -> ErrorCode;
pub type LogSetLevelFn = unsafe extern "C" fn(Handle, u32) -> ErrorCode;
pub type MemRegisterFn = unsafe extern "C" fn(Handle, *const c_void, u32, *mut Handle) -> ErrorCode;
pub type MemDeregisterFn = unsafe extern "C" fn(*const Handle, u32) -> ErrorCode;
pub type CreatePowerConfigIdFn = unsafe extern "C" fn(u32, u32, *mut u32) -> ErrorCode;
pub type DestroyPowerConfigIdFn = unsafe extern "C" fn(u32) -> ErrorCode;
pub type SetPowerConfigFn = unsafe extern "C" fn(u32, *const *const super::PowerConfig) -> ErrorCode;
pub type CreateTensorFn = unsafe extern "C" fn(Handle, *mut Tensor) -> ErrorCode;
pub type ProfileCreateFn = unsafe extern "C" fn(Handle, u32, *mut Handle) -> ErrorCode;
pub type ProfileGetEventsFn = unsafe extern "C" fn(Handle, *mut *const u64, *mut u32) -> ErrorCode;
pub type ProfileGetSubEventsFn = unsafe extern "C" fn(u64, *mut *const u64, *mut u32) -> ErrorCode;
pub type ProfileGetEventDataFn = unsafe extern "C" fn(u64, *mut EventData) -> ErrorCode;
pub type ProfileGetExtendedEventDataFn = unsafe extern "C" fn(u64, *mut ExtendedEventData) -> ErrorCode;
pub type ErrorGetMessageFn = unsafe extern "C" fn(u64, *mut *const c_char) -> ErrorCode;

pub type SystemContextCreateFn = unsafe extern "C" fn(*mut Handle) -> ErrorCode;
pub type SystemGetMetadataFn = unsafe extern "C" fn(Handle, *const c_void, u64, *mut *const BinaryInfo) -> ErrorCode;
pub type DlcCreateFromFileFn = unsafe extern "C" fn(Handle, *const c_char, *mut Handle) -> ErrorCode;
pub type ProfileCreateTargetFn =
    unsafe extern "C" fn(ProfileTarget, *const ProfileTargetConfig, u32, *mut Handle) -> ErrorCode;
pub type ProfileSerializeFn = unsafe extern "C" fn(Handle, *const *const ProfileData, u32) -> ErrorCode;
/// systemDlcComposeGraphs for a system library that was built with `N` slots.
pub type DlcComposeGraphsFn<const N: usize> = unsafe extern "C" fn(
    Handle,
    *const *const c_void,
    u32,
    Handle,
    Handle,
    InterfaceByValue<N>,
    u32,
    *mut *mut GraphInfo,
    *mut u32,
) -> ErrorCode;

/// QnnModel_composeGraphs; `N` may exceed what the library was built with.
pub type ModelComposeGraphsFn<const N: usize> = unsafe extern "C" fn(
    Handle,
    TableByValue<N>,
    Handle,
    *const *const c_void,
    u32,
    *mut *mut *mut ModelGraphInfo,
    *mut u32,
    bool,
    Option<LogCallback>,
    u32,
) -> u32;
pub type ModelFreeGraphsInfoFn = unsafe extern "C" fn(*mut *mut *mut ModelGraphInfo, u32) -> u32;

#[expect(unsafe_code, reason = "FFI")]
unsafe extern "C" {
    /// From the C library. The `va_list` is one pointer on the targets of this project.
    pub fn vsnprintf(buffer: *mut c_char, size: usize, format: *const c_char, arguments: *mut c_void) -> c_int;
}
