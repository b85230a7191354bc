//! DLC files through the system library.

#![expect(unsafe_code, reason = "FFI")]

use super::interpose::{self, Composition};
use super::raw::{NULL, text};
use super::recording::Recording;
use super::tensor::{OwnedTensor, records};
use super::{QnnError, SystemLibrary, log};
use crate::sys::{self, Handle, InterfaceByValue};
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// A composed graph, with its inputs and outputs in execution order.
pub struct ComposedGraph {
    /// Name.
    pub name: String,
    /// Inputs.
    pub inputs: Vec<OwnedTensor>,
    /// Outputs.
    pub outputs: Vec<OwnedTensor>,
}

/// An open DLC.
pub struct Dlc {
    system: Rc<SystemLibrary>,
    handle: Handle,
    logger: Handle,
}

/// Log level of the system library: errors and warnings.
const SYSTEM_LOG_LEVEL: u32 = 2;

impl Dlc {
    /// systemDlcCreateFromFile.
    pub fn open(system: &Rc<SystemLibrary>, path: &Path) -> Result<Self, QnnError> {
        let create: sys::DlcCreateFromFileFn =
            system.function(sys::slots::system::DLC_CREATE_FROM_FILE, "systemDlcCreateFromFile")?;
        let c_path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| QnnError::Unexpected { what: "the path contains a zero byte".to_owned() })?;
        let mut dlc = Self { system: system.clone(), handle: NULL, logger: system_logger(system) };
        // SAFETY: a living logger or null, a terminated path, a valid out pointer.
        let code = unsafe { create(dlc.logger, c_path.as_ptr(), &raw mut dlc.handle) };
        system.check("systemDlcCreateFromFile", code)?;
        Ok(dlc)
    }

    /// Composes every graph of the DLC through the interposer.
    ///
    /// The recording is returned on failure too: it shows which op was refused.
    pub fn compose(&self, composition: &Composition<'_>) -> (Result<Vec<ComposedGraph>, QnnError>, Recording) {
        let table = interpose::begin(composition);
        let (mut infos, mut count) = (std::ptr::null_mut(), 0u32);
        let composed = self.call(composition, &table, &mut infos, &mut count);
        let recording = interpose::finish();
        let graphs = composed.map(|()| {
            if infos.is_null() {
                return Vec::new();
            }
            // SAFETY: the call wrote `count` records, which live as long as the DLC.
            let infos = unsafe { std::slice::from_raw_parts(infos, count as usize) };
            infos.iter().map(|info| composed_graph(&info.v3)).collect()
        });
        (graphs, recording)
    }

    /// systemDlcComposeGraphs with an interface record of exactly `table.len()` slots by value.
    fn call(
        &self,
        composition: &Composition<'_>,
        table: &[*const c_void],
        infos: &mut *mut sys::GraphInfo,
        count: &mut u32,
    ) -> Result<(), QnnError> {
        let Composition { library, backend, context, .. } = *composition;
        macro_rules! with_slots {
            ($($n:literal)*) => {
                match table.len() {
                    $($n => {
                        let compose: sys::DlcComposeGraphsFn<$n> = self
                            .system
                            .function(sys::slots::system::DLC_COMPOSE_GRAPHS, "systemDlcComposeGraphs")?;
                        let mut slots = [std::ptr::null(); $n];
                        slots.copy_from_slice(table);
                        let interface = InterfaceByValue { head: library.table().head(), table: slots };
                        // SAFETY: the record has the size that the system library of this release was built with; both
                        // out pointers are valid; version 1 infos are prefixes of what is read.
                        unsafe {
                            compose(
                                self.handle, std::ptr::null(), 0, backend, context, interface, 1, infos, count,
                            )
                        }
                    })*
                    other => {
                        return Err(QnnError::Unexpected {
                            what: format!("a function table of {other} slots is outside what can be passed by value"),
                        });
                    }
                }
            };
        }
        let code = with_slots!(
            48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80
            81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96
        );
        self.system.check("systemDlcComposeGraphs", code)
    }
}

impl Drop for Dlc {
    fn drop(&mut self) {
        use sys::slots::system::{DLC_FREE, LOG_FREE};
        for (slot, handle) in [(DLC_FREE, self.handle), (LOG_FREE, self.logger)] {
            if let (Ok(free), false) = (self.system.function::<sys::FreeFn>(slot, "free"), handle.is_null()) {
                // SAFETY: the handle is ours and not used again; copies of everything were made.
                unsafe { free(handle) };
            }
        }
    }
}

/// A logger of the system library, so that it reports why it refuses a file; null if unavailable.
fn system_logger(system: &SystemLibrary) -> Handle {
    let mut logger = NULL;
    if let Ok(create) = system.function::<sys::LogCreateFn>(sys::slots::system::LOG_CREATE, "systemLogCreate") {
        // SAFETY: the callback lives for the whole process; the out pointer is valid.
        let code = unsafe { create(Some(log::callback), SYSTEM_LOG_LEVEL, &raw mut logger) };
        if code != 0 {
            return NULL;
        }
    }
    logger
}

pub(super) fn composed_graph(info: &sys::GraphInfoV3) -> ComposedGraph {
    let copies = |pointer, count| records(pointer, count).iter().map(OwnedTensor::copy_of).collect();
    ComposedGraph {
        name: text(info.name),
        inputs: copies(info.inputs, info.input_count),
        outputs: copies(info.outputs, info.output_count),
    }
}
