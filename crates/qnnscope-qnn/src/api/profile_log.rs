//! Writes QNN profile logs through the system library's own serializer, in the format of `qnn-profiling-data.log`.
//!
//! The serializer collects messages and writes them from its own thread, about a thousand at a time and the rest when
//! the log is finished.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::NULL;
use super::{ProfileEvent, QnnError, SystemLibrary};
use crate::sys::{self, Handle};
use std::ffi::CString;
use std::path::Path;
use std::rc::Rc;

/// The operation a message is about, with QNN's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// graphExecute.
    Execute = 1,
    /// graphFinalize.
    Finalize = 2,
    /// contextCreateFromBinary.
    CreateFromBinary = 4,
    /// contextFree.
    Deinit = 5,
    /// contextCreate.
    ContextCreate = 6,
    /// Building the graphs of a model.
    ComposeGraphs = 7,
    /// The inferences of a whole run and their time.
    ExecuteIps = 8,
}

/// One message of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message<'a> {
    /// The operation.
    pub method: Method,
    /// Start and stop on the monotonic clock, microseconds; absent for [`Method::ExecuteIps`].
    pub span_us: Option<(u64, u64)>,
    /// The graph concerned.
    pub graph: Option<&'a str>,
    /// The backend's events. Those with an object as value are left out with their children: their bytes are not kept.
    pub events: &'a [ProfileEvent],
}

/// The log's writer, for its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogWriter<'a> {
    /// Program.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The backend's build id.
    pub backend_version: &'a str,
}

/// A log being written.
pub struct ProfileLog {
    library: Rc<SystemLibrary>,
    target: Handle,
    serialize: sys::ProfileSerializeFn,
}

/// QNN's unit of events that hold an object.
const UNIT_OBJECT: u32 = 5;

impl ProfileLog {
    /// True if this system library has the serializer, available since system API 1.11.
    pub fn is_supported(library: &Rc<SystemLibrary>) -> bool {
        use sys::slots::system::{PROFILE_CREATE_TARGET, PROFILE_FREE_TARGET, PROFILE_SERIALIZE};
        library.function::<sys::ProfileCreateTargetFn>(PROFILE_CREATE_TARGET, "").is_ok()
            && library.function::<sys::ProfileSerializeFn>(PROFILE_SERIALIZE, "").is_ok()
            && library.function::<sys::FreeFn>(PROFILE_FREE_TARGET, "").is_ok()
    }

    /// Opens a log. `path` must be an empty file: the serializer appends to existing content, and does not report a
    /// file it cannot open.
    ///
    /// # Errors
    /// [`QnnError::MissingFunction`] if this system library has no serializer (system API below 1.11).
    pub fn create(library: &Rc<SystemLibrary>, path: &Path, writer: LogWriter<'_>) -> Result<Self, QnnError> {
        let create: sys::ProfileCreateTargetFn =
            library.function(sys::slots::system::PROFILE_CREATE_TARGET, "systemProfileCreateSerializationTarget")?;
        let serialize = library.function(sys::slots::system::PROFILE_SERIALIZE, "systemProfileSerializeEventData")?;
        library
            .function::<sys::FreeFn>(sys::slots::system::PROFILE_FREE_TARGET, "systemProfileFreeSerializationTarget")?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = path.file_name().unwrap_or_default();
        let (folder, file) = (c_text(folder.as_os_str().as_encoded_bytes())?, c_text(file.as_encoded_bytes())?);
        let name = c_text(writer.name.as_bytes())?;
        let version = c_text(writer.version.as_bytes())?;
        let backend_version = c_text(writer.backend_version.as_bytes())?;
        let header = sys::ProfileFileHeader {
            app_name: name.as_ptr(),
            app_version: version.as_ptr(),
            backend_version: backend_version.as_ptr(),
        };
        let config = sys::ProfileTargetConfig {
            option: sys::PROFILE_TARGET_OPTION_HEADER,
            value: sys::ProfileTargetUnion { header },
        };
        let target = sys::ProfileTarget {
            kind: sys::PROFILE_TARGET_FILE,
            file: sys::ProfileTargetFile { name: file.as_ptr(), directory: folder.as_ptr() },
        };
        let mut handle = NULL;
        // SAFETY: the records and the texts they point to outlive the call, which copies them.
        let code = unsafe { create(target, &raw const config, 1, &raw mut handle) };
        library.check("systemProfileCreateSerializationTarget", code)?;
        Ok(Self { library: library.clone(), target: handle, serialize })
    }

    /// Passes a message to the serializer, which assigns its number and timestamp.
    pub fn append(&self, message: &Message<'_>) -> Result<(), QnnError> {
        let graph = message.graph.map(|name| c_text(name.as_bytes())).transpose()?;
        let mut records = Records::default();
        let (events, event_count) = records.list(message.events)?;
        let (start_us, stop_us) = message.span_us.unwrap_or((0, 0));
        let data = sys::ProfileData {
            version: 1,
            v1: sys::ProfileDataV1 {
                header: sys::ProfileHeader {
                    start_us,
                    stop_us,
                    start_memory: 0,
                    stop_memory: 0,
                    method: message.method as u32,
                    visibility: 0,
                    graph_name: graph.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
                },
                events,
                event_count,
            },
        };
        let list = [&raw const data];
        // SAFETY: the target is alive; the list has one record, which with its events and texts outlives the call, and
        // the call copies all of it.
        let code = unsafe { (self.serialize)(self.target, list.as_ptr(), 1) };
        self.library.check("systemProfileSerializeEventData", code)
    }

    /// Writes what is still collected and closes the file. A full disk is not reported: check the file.
    pub fn finish(mut self) -> Result<(), QnnError> {
        self.free()
    }

    /// Discards what is still collected. The target stays open until the process ends.
    pub fn abandon(mut self) {
        self.target = NULL;
    }

    fn free(&mut self) -> Result<(), QnnError> {
        let target = std::mem::replace(&mut self.target, NULL);
        if target.is_null() {
            return Ok(());
        }
        let call = "systemProfileFreeSerializationTarget";
        let free: sys::FreeFn = self.library.function(sys::slots::system::PROFILE_FREE_TARGET, call)?;
        // SAFETY: the target was made by this library and is not used again.
        self.library.check(call, unsafe { free(target) })
    }
}

impl Drop for ProfileLog {
    fn drop(&mut self) {
        let _ = self.free();
    }
}

/// Event records of one message with everything they point to.
#[derive(Default)]
struct Records {
    texts: Vec<CString>,
    /// Pushing moves the inner vectors, not the records in them.
    lists: Vec<Vec<sys::ProfileEventRecord>>,
}

impl Records {
    /// The records of a list of events, as pointer and length.
    fn list(&mut self, events: &[ProfileEvent]) -> Result<(*const sys::ProfileEventRecord, u32), QnnError> {
        let mut list = Vec::with_capacity(events.len());
        for event in events.iter().filter(|event| event.unit != UNIT_OBJECT) {
            let (sub_events, sub_event_count) = self.list(&event.children)?;
            let identifier = c_text(event.identifier.as_bytes())?;
            let plain = sys::EventData {
                kind: event.kind,
                unit: event.unit,
                value: event.value,
                identifier: identifier.as_ptr(),
            };
            self.texts.push(identifier);
            let data = sys::ProfileEventUnion { plain };
            list.push(sys::ProfileEventRecord { kind: 0, data, sub_events, sub_event_count });
        }
        if list.is_empty() {
            return Ok((std::ptr::null(), 0));
        }
        let (pointer, count) = (list.as_ptr(), u32::try_from(list.len()).unwrap_or(u32::MAX));
        self.lists.push(list);
        Ok((pointer, count))
    }
}

fn c_text(bytes: &[u8]) -> Result<CString, QnnError> {
    CString::new(bytes)
        .map_err(|_| QnnError::Unexpected { what: "a text for the profile log contains a zero byte".to_owned() })
}
