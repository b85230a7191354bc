//! Records of the core API, as of core 2.27 (unchanged up to 2.40). Model libraries built for core 2.14 or later agree.

use std::ffi::{c_char, c_void};

/// Every object of the API: one pointer-sized opaque value.
pub type Handle = *mut c_void;

/// Return value of every call; 0 is success, the code is the low 16 bits.
pub type ErrorCode = u64;

/// Code for anything a library lacks or does not support (QNN_COMMON_ERROR_NOT_SUPPORTED).
pub const NOT_SUPPORTED: ErrorCode = 1000;

/// Qnn_Version_t.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

/// The 40 bytes before the function table in QnnInterface_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InterfaceHead {
    pub backend_id: u32,
    pub provider_name: *const c_char,
    pub core_version: Version,
    pub backend_version: Version,
}

/// QnnInterface_t with `N` slots, for passing it by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InterfaceByValue<const N: usize> {
    pub head: InterfaceHead,
    pub table: [*const c_void; N],
}

/// The bare table by value, as model libraries take it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TableByValue<const N: usize> {
    pub slots: [*const c_void; N],
}

/// Qnn_ScaleOffset_t.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ScaleOffset {
    pub scale: f32,
    pub offset: i32,
}

/// Qnn_AxisScaleOffset_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AxisScaleOffset {
    pub axis: i32,
    pub count: u32,
    pub scale_offsets: *const ScaleOffset,
}

/// Qnn_BwScaleOffset_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BwScaleOffset {
    pub bitwidth: u32,
    pub scale: f32,
    pub offset: i32,
}

/// Qnn_BwAxisScaleOffset_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BwAxisScaleOffset {
    pub bitwidth: u32,
    pub axis: i32,
    pub count: u32,
    pub scales: *const f32,
    pub offsets: *const i32,
}

/// The union of Qnn_QuantizeParams_t, as far as decoded here.
#[repr(C)]
#[derive(Clone, Copy)]
pub union QuantizeUnion {
    pub scale_offset: ScaleOffset,
    pub axis_scale_offset: AxisScaleOffset,
    pub bw_scale_offset: BwScaleOffset,
    pub bw_axis_scale_offset: BwAxisScaleOffset,
    pub raw: [u64; 4],
}

/// Qnn_QuantizeParams_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QuantizeParams {
    pub definition: u32,
    pub encoding: u32,
    pub data: QuantizeUnion,
}

/// Value of `QuantizeParams::definition` for an encoding that is present.
pub const DEFINITION_DEFINED: u32 = 1;

/// Qnn_ClientBuffer_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientBuffer {
    pub data: *mut c_void,
    pub size: u32,
}

/// Qnn_TensorV1_t, which the layout test compares with the prefix of [`TensorV2`].
#[cfg(test)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TensorV1 {
    pub id: u32,
    pub name: *const c_char,
    pub kind: u32,
    pub data_format: u32,
    pub data_type: u32,
    pub quantize: QuantizeParams,
    pub rank: u32,
    pub dimensions: *const u32,
    pub mem_type: u32,
    pub buffer: ClientBuffer,
}

/// Qnn_SparseParams_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SparseParams {
    pub kind: u32,
    pub hybrid_coo: [u32; 2],
}

/// Qnn_TensorV2_t; a prefix of it is laid out as [`TensorV1`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TensorV2 {
    pub id: u32,
    pub name: *const c_char,
    pub kind: u32,
    pub data_format: u32,
    pub data_type: u32,
    pub quantize: QuantizeParams,
    pub rank: u32,
    pub dimensions: *const u32,
    pub mem_type: u32,
    pub buffer: ClientBuffer,
    pub dynamic_dimensions: *const u8,
    pub sparse: SparseParams,
    pub is_produced: u8,
}

/// Qnn_Tensor_t; versions 1 and 2 share every field up to the buffer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    pub version: u32,
    pub body: TensorV2,
}

/// Memory type of a tensor whose buffer the client owns.
pub const MEM_RAW: u32 = 0;

/// The union of Qnn_Scalar_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ScalarValue {
    pub float: f32,
    pub double: f64,
    pub u64: u64,
    pub i64: i64,
    pub u32: u32,
    pub i32: i32,
    pub u16: u16,
    pub i16: i16,
    pub u8: u8,
    pub i8: i8,
    pub text: *const c_char,
}

/// Qnn_Scalar_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Scalar {
    pub data_type: u32,
    pub value: ScalarValue,
}

/// The union of Qnn_Param_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ParamValue {
    pub scalar: Scalar,
    pub tensor: Tensor,
}

/// Qnn_Param_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Param {
    /// 0 scalar, 1 tensor.
    pub kind: u32,
    pub name: *const c_char,
    pub value: ParamValue,
}

/// Qnn_OpConfigV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpConfigV1 {
    pub name: *const c_char,
    pub package: *const c_char,
    pub op_type: *const c_char,
    pub param_count: u32,
    pub params: *const Param,
    pub input_count: u32,
    pub inputs: *const Tensor,
    pub output_count: u32,
    pub outputs: *const Tensor,
}

/// Qnn_OpConfig_t, passed by value (80 bytes).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpConfig {
    pub version: u32,
    pub v1: OpConfigV1,
}

/// QnnDevice_Config_t, QnnGraph_Config_t and QnnContext_Config_t share this shape if the option is a custom pointer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CustomConfig {
    /// 0: custom.
    pub option: u32,
    pub custom: *mut c_void,
}

/// QnnContext_ParamsV1_t: one context of a list for contextCreateFromBinaryListAsync.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextParamsV1 {
    pub configs: *const *const c_void,
    pub binary: *const c_void,
    pub bytes: u64,
    pub profile: Handle,
    pub notify: Option<super::ContextNotifyFn>,
    pub parameter: *mut c_void,
}

/// QnnContext_ParamsV2_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextParamsV2 {
    pub v1: ContextParamsV1,
    pub callback: *const c_void,
}

/// QnnContext_Params_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextParams {
    pub version: u32,
    pub body: ContextParamsUnion,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ContextParamsUnion {
    pub v1: ContextParamsV1,
    pub v2: *const ContextParamsV2,
}

/// The subject of a list notification.
pub const CONTEXT_NOTIFY_GRAPH: u32 = 0;
pub const CONTEXT_NOTIFY_CONTEXT: u32 = 1;

/// Option of QnnGraph_Config_t whose union holds a priority number.
pub const GRAPH_OPTION_PRIORITY: u32 = 3;

/// QnnProfile_EventData_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EventData {
    pub kind: u32,
    pub unit: u32,
    pub value: u64,
    pub identifier: *const c_char,
}

/// QnnProfile_ExtendedEventDataV1_t; if the unit is "object", the bytes of `value` hold something else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExtendedEventDataV1 {
    pub kind: u32,
    pub unit: u32,
    pub value: Scalar,
    /// Third word of the union with the 24-byte opaque object.
    pub object_tail: u64,
    pub timestamp: u64,
    pub identifier: *const c_char,
}

/// QnnProfile_ExtendedEventData_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExtendedEventData {
    pub version: u32,
    pub v1: ExtendedEventDataV1,
}

/// QnnDevice_PlatformInfoV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlatformInfoV1 {
    pub device_count: u32,
    pub devices: *const HardwareDeviceInfo,
}

/// QnnDevice_PlatformInfo_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlatformInfo {
    pub version: u32,
    pub v1: PlatformInfoV1,
}

/// QnnDevice_HardwareDeviceInfo_t, version 1.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HardwareDeviceInfo {
    pub version: u32,
    pub v1: HardwareDeviceInfoV1,
}

/// QnnDevice_HardwareDeviceInfoV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HardwareDeviceInfoV1 {
    pub device_id: u32,
    pub device_type: u32,
    pub core_count: u32,
    pub cores: *const c_void,
    pub extension: *const c_void,
}

/// `GraphInfo` of model libraries (SDK 2.25; older ones end after the outputs, and only those are read).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModelGraphInfo {
    pub graph: Handle,
    pub name: *const c_char,
    pub inputs: *const Tensor,
    pub input_count: u32,
    pub outputs: *const Tensor,
    pub output_count: u32,
}
