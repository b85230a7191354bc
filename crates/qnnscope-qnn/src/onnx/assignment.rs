//! Which provider took which node, as ONNX Runtime recorded it.

#![expect(unsafe_code, reason = "ort has no safe call for the record; it is read through ONNX Runtime's own table")]

use super::error::OnnxError;
use ort::session::Session;
use ort::{AsPointer, sys};
use std::ffi::{CStr, c_char};
use std::ptr;

/// A node as ONNX Runtime has it after its layout change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedNode {
    /// Its name after that: the model's `conv1` may be `conv1_token_1`.
    pub name: String,
    /// Operator.
    pub op_type: String,
    /// Domain of the operator; empty for ONNX's own.
    pub domain: String,
}

/// A part of the graph that a provider took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The provider.
    pub provider: String,
    /// Its nodes.
    pub nodes: Vec<AssignedNode>,
}

/// Maximum number of parts, and of nodes per part: bounds the effect of a library with a different table.
const MOST: usize = 1 << 22;

/// The parts, in ONNX Runtime's order. The session must be created with `session.record_ep_graph_assignment_info`.
pub(super) fn of(session: &Session) -> Result<Vec<Assignment>, OnnxError> {
    let mut pieces: *const *const sys::OrtEpAssignedSubgraph = ptr::null();
    let mut count = 0usize;
    // SAFETY: the session is alive, and both pointers lead to locals that outlive the call.
    let status =
        unsafe { (ort::api().Session_GetEpGraphAssignmentInfo)(session.ptr(), &raw mut pieces, &raw mut count) };
    check("Session_GetEpGraphAssignmentInfo", status)?;
    let mut found = Vec::new();
    for &piece in listed(&pieces, count) {
        let mut provider: *const c_char = ptr::null();
        // SAFETY: `piece` comes from the session's own list, which lives as long as the session.
        let status = unsafe { (ort::api().EpAssignedSubgraph_GetEpName)(piece, &raw mut provider) };
        check("EpAssignedSubgraph_GetEpName", status)?;
        let mut nodes: *const *const sys::OrtEpAssignedNode = ptr::null();
        let mut count = 0usize;
        // SAFETY: as above; both pointers lead to locals.
        let status = unsafe { (ort::api().EpAssignedSubgraph_GetNodes)(piece, &raw mut nodes, &raw mut count) };
        check("EpAssignedSubgraph_GetNodes", status)?;
        let nodes = listed(&nodes, count).iter().map(|&node| read(node)).collect::<Result<_, _>>()?;
        found.push(Assignment { provider: text(&provider), nodes });
    }
    Ok(found)
}

fn read(node: *const sys::OrtEpAssignedNode) -> Result<AssignedNode, OnnxError> {
    let (mut name, mut op_type, mut domain): (*const c_char, *const c_char, *const c_char) =
        (ptr::null(), ptr::null(), ptr::null());
    // SAFETY: `node` comes from the session's own list, which lives as long as the session; the other pointer leads to a local.
    let status = unsafe { (ort::api().EpAssignedNode_GetName)(node, &raw mut name) };
    check("EpAssignedNode_GetName", status)?;
    // SAFETY: as above.
    let status = unsafe { (ort::api().EpAssignedNode_GetOperatorType)(node, &raw mut op_type) };
    check("EpAssignedNode_GetOperatorType", status)?;
    // SAFETY: as above.
    let status = unsafe { (ort::api().EpAssignedNode_GetDomain)(node, &raw mut domain) };
    check("EpAssignedNode_GetDomain", status)?;
    Ok(AssignedNode { name: text(&name), op_type: text(&op_type), domain: text(&domain) })
}

/// The entries of a list lent by ONNX Runtime; none if nothing was recorded, when its pointer is null.
fn listed<T>(list: &*const *const T, count: usize) -> &[*const T] {
    if list.is_null() || count == 0 || count > MOST {
        return &[];
    }
    // SAFETY: ONNX Runtime says that `count` pointers are there, in memory of the session, which is alive while this is read.
    unsafe { std::slice::from_raw_parts(*list, count) }
}

fn text(text: &*const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: ONNX Runtime's strings are NUL-terminated, and this one lives as long as the session.
    unsafe { CStr::from_ptr(*text) }.to_string_lossy().into_owned()
}

fn check(call: &'static str, status: sys::OrtStatusPtr) -> Result<(), OnnxError> {
    // SAFETY: the status comes from ONNX Runtime's table just now, and nobody else frees it.
    unsafe { ort::Error::result_from_status(status) }.map_err(OnnxError::of(call))
}
