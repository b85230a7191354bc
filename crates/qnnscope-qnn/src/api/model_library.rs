//! Model libraries: shared objects that compose their graphs through the passed function table.

#![expect(unsafe_code, reason = "FFI")]

use super::dlc::ComposedGraph;
use super::interpose::{self, Composition};
use super::raw::text;
use super::recording::Recording;
use super::tensor::{OwnedTensor, records};
use super::{QnnError, log};
use crate::sys::{self, TableByValue};
use std::path::{Path, PathBuf};

/// An open model library. Like backends, never unloaded.
pub struct ModelLibrary {
    path: PathBuf,
    library: std::mem::ManuallyDrop<libloading::Library>,
}

impl ModelLibrary {
    /// Opens a model library.
    pub fn open(path: &Path) -> Result<Self, QnnError> {
        // A bare file name would be searched on the library path instead of here.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // SAFETY: running the library's initialisers is what the user requested; this is the runner process.
        let library = unsafe { libloading::Library::new(&absolute) }.map_err(|e| QnnError::Open {
            path: path.to_owned(),
            reason: std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string),
        })?;
        Ok(Self { path: path.to_owned(), library: std::mem::ManuallyDrop::new(library) })
    }

    /// Composes every graph through the interposer, see [`super::Dlc::compose`].
    pub fn compose(&self, composition: &Composition<'_>) -> (Result<Vec<ComposedGraph>, QnnError>, Recording) {
        let symbol = "QnnModel_composeGraphs";
        // SAFETY: the symbol has this type in every model library; the table's size may differ, see below.
        let compose = unsafe {
            self.library.get::<sys::ModelComposeGraphsFn<{ sys::MODEL_LIBRARY_TABLE }>>(c"QnnModel_composeGraphs")
        };
        let Ok(compose) = compose else {
            return (Err(QnnError::Symbol { path: self.path.clone(), symbol }), Recording::default());
        };
        let full = interpose::begin(composition);
        // The callee reads debug, callback and level right after a table of the size *it* was built with. Only the
        // slots used by composing are filled: whatever that size is, it finds zeros there, so debug is off.
        let mut table = TableByValue { slots: [std::ptr::null(); sys::MODEL_LIBRARY_TABLE] };
        table.slots[..sys::MODEL_LIBRARY_SLOTS].copy_from_slice(&full[..sys::MODEL_LIBRARY_SLOTS]);
        let (mut infos, mut count) = (std::ptr::null_mut(), 0u32);
        // SAFETY: handles are alive (or stand-ins that only our own entries see); out pointers are valid.
        let code = unsafe {
            compose(
                composition.backend,
                table,
                composition.context,
                std::ptr::null(),
                0,
                &raw mut infos,
                &raw mut count,
                false,
                Some(log::callback),
                0,
            )
        };
        let recording = interpose::finish();
        if code != 0 {
            return (Err(QnnError::ModelCompose { code }), recording);
        }
        let graphs = read_infos(infos, count);
        // SAFETY: the symbol has this type; the library frees what it made, copies were taken.
        unsafe {
            if let Ok(free) = self.library.get::<sys::ModelFreeGraphsInfoFn>(c"QnnModel_freeGraphsInfo")
                && !infos.is_null()
            {
                free(&raw mut infos, count);
            }
        }
        (Ok(graphs), recording)
    }
}

fn read_infos(infos: *mut *mut sys::ModelGraphInfo, count: u32) -> Vec<ComposedGraph> {
    if infos.is_null() {
        return Vec::new();
    }
    // SAFETY: the library wrote an array of `count` pointers to graph infos.
    let pointers = unsafe { std::slice::from_raw_parts(infos, count as usize) };
    pointers
        .iter()
        // SAFETY: each is null or a valid info.
        .filter_map(|&pointer| unsafe { pointer.as_ref() })
        .map(|info| {
            let copies = |pointer, count| records(pointer, count).iter().map(OwnedTensor::copy_of).collect();
            ComposedGraph {
                name: text(info.name),
                inputs: copies(info.inputs, info.input_count),
                outputs: copies(info.outputs, info.output_count),
            }
        })
        .collect()
}
