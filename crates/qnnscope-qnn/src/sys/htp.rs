//! Records of the HTP backend's extensions.

use super::records::ErrorCode;
use std::ffi::c_void;

/// QnnHtpDevice_CustomConfig_t in the one form every runtime can read: the union moved from offset 4 to offset 8 in HTP
/// API 5.47, so the number is stored in both places.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct HtpDeviceCustomConfig {
    /// 0: SoC, 1: architecture.
    pub option: u32,
    /// Old place.
    pub old_value: u32,
    /// New place.
    pub value: u32,
    /// Second word of the new union.
    pub value_tail: u32,
}

/// Option of [`HtpDeviceCustomConfig`]: QNN's SoC number.
pub const HTP_DEVICE_OPTION_SOC: u32 = 0;
/// Option of [`HtpDeviceCustomConfig`]: Hexagon architecture.
pub const HTP_DEVICE_OPTION_ARCH: u32 = 1;

/// QnnHtpGraph_OptimizationOption_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HtpOptimization {
    pub kind: u32,
    pub value: f32,
}

/// The union of QnnHtpGraph_CustomConfig_t (48 bytes).
#[repr(C)]
#[derive(Clone, Copy)]
pub union HtpGraphUnion {
    pub optimization: HtpOptimization,
    pub precision: u32,
    pub vtcm_mb: u32,
    pub hvx_threads: u64,
    pub raw: [u64; 6],
}

/// QnnHtpGraph_CustomConfig_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HtpGraphCustomConfig {
    pub option: u32,
    pub value: HtpGraphUnion,
}

pub const HTP_GRAPH_OPTION_OPTIMIZATION: u32 = 1;
pub const HTP_GRAPH_OPTION_PRECISION: u32 = 2;
pub const HTP_GRAPH_OPTION_VTCM_MB: u32 = 3;
pub const HTP_GRAPH_OPTION_HVX_THREADS: u32 = 6;
/// Optimisation kind: finalize optimisation level.
pub const HTP_OPTIMIZATION_LEVEL: u32 = 3;
/// Optimisation kind: compression of activations in DDR.
pub const HTP_OPTIMIZATION_DLBC: u32 = 4;

/// QnnHtpPerfInfrastructure_DcvsV3_t.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct DcvsV3 {
    pub context_id: u32,
    pub set_dcvs_enable: u32,
    pub dcvs_enable: u32,
    pub power_mode: u32,
    pub set_sleep_latency: u32,
    pub sleep_latency_us: u32,
    pub set_sleep_disable: u32,
    pub sleep_disable: u32,
    pub set_bus_params: u32,
    pub bus_min: u32,
    pub bus_target: u32,
    pub bus_max: u32,
    pub set_core_params: u32,
    pub core_min: u32,
    pub core_target: u32,
    pub core_max: u32,
}

/// The union of QnnHtpPerfInfrastructure_PowerConfig_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub union PowerUnion {
    pub dcvs_v3: DcvsV3,
    pub rpc_control_latency_us: u32,
    pub rpc_polling_time_us: u32,
}

/// QnnHtpPerfInfrastructure_PowerConfig_t (68 bytes).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PowerConfig {
    pub option: u32,
    pub value: PowerUnion,
}

pub const POWER_OPTION_DCVS_V3: u32 = 1;
pub const POWER_OPTION_RPC_CONTROL_LATENCY: u32 = 2;
pub const POWER_OPTION_RPC_POLLING_TIME: u32 = 3;

/// QnnHtpDevice_PerfInfrastructure_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PerfInfrastructure {
    pub create_power_config_id: Option<unsafe extern "C" fn(u32, u32, *mut u32) -> ErrorCode>,
    pub destroy_power_config_id: Option<unsafe extern "C" fn(u32) -> ErrorCode>,
    pub set_power_config: Option<unsafe extern "C" fn(u32, *const *const PowerConfig) -> ErrorCode>,
    pub set_memory_config: *const c_void,
}

/// QnnHtpDevice_Infrastructure_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HtpInfrastructure {
    /// 0: perf.
    pub kind: u32,
    pub perf: PerfInfrastructure,
}

/// QnnHtpDevice_OnChipDeviceInfoExtension_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OnChipDeviceInfo {
    pub vtcm_mb: usize,
    pub soc_model: u32,
    pub signed_pd: u8,
    pub dlbc: u8,
    pub arch: u32,
}

/// QnnHtpDevice_DeviceInfoExtension_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HtpDeviceInfoExtension {
    /// 0: on chip.
    pub kind: u32,
    pub on_chip: OnChipDeviceInfo,
}

/// QnnHtpSystemContext_GraphBlobInfoV1_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GraphBlobInfoV1 {
    pub spill_fill_bytes: u64,
    pub vtcm_bytes: u32,
    pub optimization_level: u32,
    pub dlbc: u8,
    pub hvx_threads: u64,
}

/// QnnHtpSystemContext_GraphBlobInfo_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GraphBlobInfo {
    pub version: u32,
    pub v1: GraphBlobInfoV1,
}

/// QnnHtpSystemContext_ContextBlobInfo_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextBlobInfo {
    pub version: u32,
    pub dsp_arch: u32,
}
