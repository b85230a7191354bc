//! Our entries for composing: what a graph consists of, and what a backend refuses.

#![expect(unsafe_code, reason = "FFI")]

use super::process::current;
use super::{calls, guard, logs, providers, system};
use crate::api::{ContextKey, GraphKey, Owner, lone_op};
use crate::sys::slots::core as slots;
use crate::sys::{self, Handle};
use qnnscope_core::tap::{RefusedOp, TapMessage};

/// Ops per message of a graph being composed.
const OPS: usize = 64;

pub(super) unsafe extern "C" fn validate_op<const P: usize>(backend: Handle, op: sys::OpConfig) -> u64 {
    let real = providers::real::<sys::ValidateOpConfigFn>(P, slots::BACKEND_VALIDATE_OP_CONFIG);
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let (code, reasons) = logs::errors_during(|| unsafe { real(backend, op) });
    refused(P, "backendValidateOpConfig", &op, code, reasons);
    code
}

pub(super) unsafe extern "C" fn add_node<const P: usize>(graph: Handle, op: sys::OpConfig) -> u64 {
    let Some(real) = providers::real::<sys::GraphAddNodeFn>(P, slots::GRAPH_ADD_NODE) else {
        return sys::NOT_SUPPORTED;
    };
    // SAFETY: forwards the caller's arguments.
    let (code, reasons) = logs::errors_during(|| unsafe { real(graph, op) });
    if code == 0 {
        guard(|| op_added(P, graph, &op));
    } else {
        refused(P, "graphAddNode", &op, code, reasons);
    }
    code
}

/// Records an op, and passes on what has accumulated: a graph may have many more ops than a program wants to store
/// twice.
fn op_added(provider: usize, graph: Handle, op: &sys::OpConfig) -> Option<()> {
    let tap = current()?;
    let key = GraphKey::of(graph);
    tap.recorder.op_added(key, op)?;
    let ops = tap.recorder.take_ops(key, OPS);
    if !ops.is_empty() {
        let graph = calls::id_of_graph(provider, graph)?;
        tap.writer.say_now(&TapMessage::GraphOps { graph, ops });
    }
    Some(())
}

fn refused(provider: usize, call: &str, op: &sys::OpConfig, code: u64, reasons: Vec<String>) {
    if code == 0 {
        return;
    }
    guard(|| {
        let Some(tap) = current() else { return };
        tap.writer.say(&TapMessage::Refused(Box::new(RefusedOp {
            t_ns: system::now_ns(),
            provider: u32::try_from(provider).unwrap_or(u32::MAX),
            call: call.to_owned(),
            op: lone_op(op),
            code: code & 0xffff,
            reasons,
        })));
    });
}

pub(super) unsafe extern "C" fn graph_tensor<const P: usize>(graph: Handle, tensor: *mut sys::Tensor) -> u64 {
    let real = providers::real::<sys::CreateTensorFn>(P, slots::TENSOR_CREATE_GRAPH_TENSOR);
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(graph, tensor) };
    if code == 0 {
        // SAFETY: the call succeeded with it.
        unsafe { tensor_made(Owner::Graph(GraphKey::of(graph)), tensor) };
    }
    code
}

pub(super) unsafe extern "C" fn context_tensor<const P: usize>(context: Handle, tensor: *mut sys::Tensor) -> u64 {
    let real = providers::real::<sys::CreateTensorFn>(P, slots::TENSOR_CREATE_CONTEXT_TENSOR);
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(context, tensor) };
    if code == 0 {
        // SAFETY: the call succeeded with it.
        unsafe { tensor_made(Owner::Context(ContextKey::of(context)), tensor) };
    }
    code
}

/// # Safety
/// `tensor` is null or a tensor record.
unsafe fn tensor_made(owner: Owner, tensor: *const sys::Tensor) {
    guard(|| {
        // SAFETY: promised by the caller.
        if let (Some(tap), Some(tensor)) = (current(), unsafe { tensor.as_ref() }) {
            tap.recorder.tensor_created(owner, tensor);
        }
    });
}
