//! A context binary's own description, read by the system library.

#![expect(unsafe_code, reason = "FFI")]

use super::dlc::{ComposedGraph, composed_graph};
use super::raw::{NULL, text, version_text};
use super::{QnnError, SystemLibrary};
use crate::sys;
use qnnscope_core::models::{ContextBinaryInfo, ContextGraphInfo};
use std::ffi::c_void;

/// Reads the metadata of a context binary; no backend is needed.
///
/// # Errors
/// The system library does not recognise it as a context binary.
pub fn read_binary_info(
    system: &SystemLibrary,
    binary: &[u8],
) -> Result<(ContextBinaryInfo, Vec<ComposedGraph>), QnnError> {
    let create: sys::SystemContextCreateFn =
        system.function(sys::slots::system::CONTEXT_CREATE, "systemContextCreate")?;
    let get: sys::SystemGetMetadataFn =
        system.function(sys::slots::system::CONTEXT_GET_METADATA, "systemContextGetMetaData")?;
    let free: sys::FreeFn = system.function(sys::slots::system::CONTEXT_FREE, "systemContextFree")?;
    let mut handle = NULL;
    // SAFETY: the out pointer is valid.
    system.check("systemContextCreate", unsafe { create(&raw mut handle) })?;
    let mut info: *const sys::BinaryInfo = std::ptr::null();
    // SAFETY: pointer and size describe one live slice, which is not changed.
    let code = unsafe { get(handle, binary.as_ptr().cast(), binary.len() as u64, &raw mut info) };
    let result = system.check("systemContextGetMetaData", code).and_then(|()| {
        // SAFETY: on success the tree is valid until the handle is freed, below.
        let info = unsafe { info.as_ref() }
            .ok_or_else(|| QnnError::Unexpected { what: "the system library returned no binary info".to_owned() })?;
        copy(info)
    });
    // SAFETY: the handle is ours; everything was copied.
    unsafe { free(handle) };
    result
}

fn copy(info: &sys::BinaryInfo) -> Result<(ContextBinaryInfo, Vec<ComposedGraph>), QnnError> {
    let (result, graphs) = match info.version {
        1 | 2 => {
            // SAFETY: versions 1 and 2 share this prefix.
            let v = unsafe { info.info.v1 };
            let row = ContextBinaryInfo {
                info_version: info.version,
                backend_id: v.backend_id,
                build_id: text(v.build_id),
                core_api: version_text(v.core_api),
                backend_api: version_text(v.backend_api),
                soc_version: Some(text(v.soc_version)).filter(|t| !t.is_empty()),
                soc_model: None,
                hexagon_arch: None,
                blob_version: version_text(v.context_blob_version),
                blob_bytes: v.context_blob_size,
                graphs: Vec::new(),
            };
            (row, (v.graphs, v.graph_count))
        }
        3 => {
            // SAFETY: the version names the member.
            let v = unsafe { info.info.v3 };
            let row = ContextBinaryInfo {
                info_version: 3,
                backend_id: v.backend_id,
                build_id: text(v.build_id),
                core_api: version_text(v.core_api),
                backend_api: version_text(v.backend_api),
                soc_version: Some(text(v.soc_version)).filter(|t| !t.is_empty()),
                soc_model: Some(v.soc_model),
                hexagon_arch: hexagon_arch(v.backend_id, v.metadata, v.metadata_size),
                blob_version: version_text(v.context_blob_version),
                blob_bytes: v.context_blob_size,
                graphs: Vec::new(),
            };
            (row, (v.graphs, v.graph_count))
        }
        other => {
            return Err(QnnError::Unexpected {
                what: format!("the context binary's info has version {other}; versions 1 to 3 are supported"),
            });
        }
    };
    let mut result = result;
    let mut composed = Vec::new();
    if !graphs.0.is_null() {
        // SAFETY: `graph_count` records of 88 bytes.
        for graph in unsafe { std::slice::from_raw_parts(graphs.0, graphs.1 as usize) } {
            let entry = composed_graph(&graph.v3);
            let blob = (result.backend_id == HTP && graph.version >= 3).then(|| graph_blob(&graph.v3)).flatten();
            result.graphs.push(ContextGraphInfo {
                name: entry.name.clone(),
                inputs: entry.inputs.iter().map(|t| t.info().clone()).collect(),
                outputs: entry.outputs.iter().map(|t| t.info().clone()).collect(),
                spill_fill_bytes: blob.map(|b| b.spill_fill_bytes),
                vtcm_bytes: blob.map(|b| u64::from(b.vtcm_bytes)),
                optimization_level: blob.map(|b| b.optimization_level),
                hvx_threads: blob.map(|b| b.hvx_threads),
            });
            composed.push(entry);
        }
    }
    Ok((result, composed))
}

const HTP: u32 = 6;

fn hexagon_arch(backend_id: u32, metadata: *const c_void, size: u32) -> Option<u32> {
    if backend_id != HTP || metadata.is_null() || (size as usize) < size_of::<sys::ContextBlobInfo>() {
        return None;
    }
    // SAFETY: HTP metadata is this record (measured on 2.47 and 2.51); the size was checked, alignment is not assumed.
    let record = unsafe { metadata.cast::<sys::ContextBlobInfo>().read_unaligned() };
    (record.version == 1).then_some(record.dsp_arch)
}

fn graph_blob(graph: &sys::GraphInfoV3) -> Option<sys::GraphBlobInfoV1> {
    if graph.blob_info.is_null() || (graph.blob_info_size as usize) < size_of::<sys::GraphBlobInfo>() {
        return None;
    }
    // SAFETY: HTP graph blobs start with this record (measured); the size was checked.
    let record = unsafe { graph.blob_info.cast::<sys::GraphBlobInfo>().read_unaligned() };
    (record.version == 1).then_some(record.v1)
}
