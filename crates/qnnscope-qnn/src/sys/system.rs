//! Records of the system library: graph infos and context-binary infos.

use super::records::{Tensor, Version};
use std::ffi::{c_char, c_void};

/// The 32 bytes before the function table in QnnSystemInterface_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SystemInterfaceHead {
    pub backend_id: u32,
    pub provider_name: *const c_char,
    pub version: Version,
}

/// QnnSystemContext_GraphInfoV3_t; versions 1 and 2 are prefixes of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GraphInfoV3 {
    pub name: *const c_char,
    pub input_count: u32,
    pub inputs: *const Tensor,
    pub output_count: u32,
    pub outputs: *const Tensor,
    pub updateable_count: u32,
    pub updateable: *const Tensor,
    pub blob_info_size: u32,
    pub blob_info: *const c_void,
    pub start_op_index: u32,
    pub end_op_index: u32,
}

/// QnnSystemContext_GraphInfo_t (88 bytes, whatever the version).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GraphInfo {
    pub version: u32,
    pub v3: GraphInfoV3,
}

/// QnnSystemContext_BinaryInfoV1_t; version 2 adds one pointer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BinaryInfoV1 {
    pub backend_id: u32,
    pub build_id: *const c_char,
    pub core_api: Version,
    pub backend_api: Version,
    pub soc_version: *const c_char,
    pub hw_blob_version: Version,
    pub context_blob_version: Version,
    pub hw_blob_size: u32,
    pub hw_blob: *const c_void,
    pub context_blob_size: u64,
    pub context_tensor_count: u32,
    pub context_tensors: *const Tensor,
    pub graph_count: u32,
    pub graphs: *const GraphInfo,
}

/// QnnSystemContext_BinaryInfoV3_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BinaryInfoV3 {
    pub backend_id: u32,
    pub build_id: *const c_char,
    pub core_api: Version,
    pub backend_api: Version,
    pub soc_version: *const c_char,
    pub context_blob_version: Version,
    pub context_blob_size: u64,
    pub context_tensor_count: u32,
    pub context_tensors: *const Tensor,
    pub graph_count: u32,
    pub graphs: *const GraphInfo,
    pub platform_info: *const c_void,
    pub metadata_size: u32,
    pub metadata: *const c_void,
    pub soc_model: u32,
}

/// The union of QnnSystemContext_BinaryInfo_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub union BinaryInfoUnion {
    pub v1: BinaryInfoV1,
    pub v3: BinaryInfoV3,
}

/// QnnSystemContext_BinaryInfo_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BinaryInfo {
    pub version: u32,
    pub info: BinaryInfoUnion,
}
