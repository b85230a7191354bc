//! Executing a graph with buffers of our own.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::NULL;
use super::tensor::OwnedTensor;
use super::{Graph, Profile, QnnError};
use crate::sys;
use qnnscope_core::models::Tensor;

/// A graph with its input and output buffers, ready to run any number of times.
pub struct Execution {
    graph: Graph,
    execute: sys::GraphExecuteFn,
    inputs: Vec<OwnedTensor>,
    outputs: Vec<OwnedTensor>,
    input_buffers: Vec<Vec<u8>>,
    output_buffers: Vec<Vec<u8>>,
    input_records: Vec<sys::Tensor>,
    output_records: Vec<sys::Tensor>,
}

impl Execution {
    /// Allocates the buffers.
    ///
    /// # Errors
    /// A tensor of unknown size (types below 8 bits), or larger than 4 GiB.
    pub fn new(graph: Graph, inputs: Vec<OwnedTensor>, outputs: Vec<OwnedTensor>) -> Result<Self, QnnError> {
        let execute = graph.context().library().function(sys::slots::core::GRAPH_EXECUTE, "graphExecute")?;
        let mut execution = Self {
            graph,
            execute,
            input_buffers: inputs.iter().map(buffer).collect::<Result<_, _>>()?,
            output_buffers: outputs.iter().map(buffer).collect::<Result<_, _>>()?,
            inputs,
            outputs,
            input_records: Vec::new(),
            output_records: Vec::new(),
        };
        execution.bind();
        Ok(execution)
    }

    /// The heap buffers do not move when the struct does, so the records stay valid.
    fn bind(&mut self) {
        self.input_records = self.inputs.iter().zip(&mut self.input_buffers).map(|(t, b)| t.bind(b)).collect();
        self.output_records = self.outputs.iter().zip(&mut self.output_buffers).map(|(t, b)| t.bind(b)).collect();
    }

    /// Inputs in order.
    pub fn inputs(&self) -> Vec<Tensor> {
        self.inputs.iter().map(|t| t.info().clone()).collect()
    }

    /// Outputs in order.
    pub fn outputs(&self) -> Vec<Tensor> {
        self.outputs.iter().map(|t| t.info().clone()).collect()
    }

    /// Replaces the data of an input; `false` if the length differs from the tensor's size.
    #[must_use]
    pub fn set_input(&mut self, index: usize, data: &[u8]) -> bool {
        match self.input_buffers.get_mut(index) {
            Some(buffer) if buffer.len() == data.len() => {
                buffer.copy_from_slice(data);
                true
            }
            _ => false,
        }
    }

    /// Data of an output as the backend wrote it.
    pub fn output(&self, index: usize) -> Option<&[u8]> {
        self.output_buffers.get(index).map(Vec::as_slice)
    }

    /// graphExecute, blocking.
    pub fn run(&mut self, profile: Option<&Profile>) -> Result<(), QnnError> {
        let code = self.run_raw(profile);
        if code == 0 { Ok(()) } else { self.graph.context().library().check("graphExecute", code) }
    }

    /// graphExecute without checking the result, for the measuring loop.
    fn run_raw(&mut self, profile: Option<&Profile>) -> u64 {
        // SAFETY: graph and profile are alive; records point into buffers and names owned by `self`, which outlive the
        // blocking call; counts are the lengths.
        unsafe {
            (self.execute)(
                self.graph.handle(),
                self.input_records.as_ptr(),
                u32::try_from(self.input_records.len()).unwrap_or(u32::MAX),
                self.output_records.as_mut_ptr(),
                u32::try_from(self.output_records.len()).unwrap_or(u32::MAX),
                profile.map_or(NULL, Profile::handle),
                NULL,
            )
        }
    }
}

fn buffer(tensor: &OwnedTensor) -> Result<Vec<u8>, QnnError> {
    let info = tensor.info();
    let bytes = info.bytes().filter(|&bytes| u32::try_from(bytes).is_ok()).ok_or_else(|| QnnError::Unexpected {
        what: format!(
            "the size of tensor `{}` ({} {}) is undefined, so no buffer can be allocated",
            info.name,
            info.dtype,
            info.shape_text()
        ),
    })?;
    Ok(vec![0; usize::try_from(bytes).unwrap_or(0)])
}
