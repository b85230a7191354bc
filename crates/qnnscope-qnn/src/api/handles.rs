//! Owned handles: logger, backend, device, context, graph.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::NULL;
use super::{Library, Profile, QnnError, log};
use crate::sys::{self, Handle};
use qnnscope_core::event::LogLevel;
use std::ffi::{CStr, CString, c_void};
use std::rc::Rc;

/// A logger of a backend library.
pub struct Logger {
    library: Rc<Library>,
    handle: Handle,
}

impl Logger {
    /// Creates a logger that writes to the sink of [`super::set_sink`].
    pub fn create(library: &Rc<Library>, level: LogLevel) -> Result<Rc<Self>, QnnError> {
        let create: sys::LogCreateFn = library.function(sys::slots::core::LOG_CREATE, "logCreate")?;
        let mut handle = NULL;
        // SAFETY: the callback lives for the whole process; the out pointer is valid.
        library.check("logCreate", unsafe { create(Some(log::callback), level.to_qnn(), &raw mut handle) })?;
        Ok(Rc::new(Self { library: library.clone(), handle }))
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        free(&self.library, sys::slots::core::LOG_FREE, self.handle);
    }
}

/// An initialised backend.
pub struct Backend {
    logger: Rc<Logger>,
    handle: Handle,
}

impl Backend {
    /// backendCreate.
    pub fn create(logger: &Rc<Logger>) -> Result<Rc<Self>, QnnError> {
        let library = &logger.library;
        let create: sys::BackendCreateFn = library.function(sys::slots::core::BACKEND_CREATE, "backendCreate")?;
        let mut handle = NULL;
        // SAFETY: the logger is alive, no config, the out pointer is valid.
        library.check("backendCreate", unsafe { create(logger.handle, std::ptr::null(), &raw mut handle) })?;
        Ok(Rc::new(Self { logger: logger.clone(), handle }))
    }

    /// The library behind it.
    pub fn library(&self) -> &Rc<Library> {
        &self.logger.library
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    pub(super) fn logger_handle(&self) -> Handle {
        self.logger.handle
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        free(&self.logger.library, sys::slots::core::BACKEND_FREE, self.handle);
    }
}

/// A device of a backend; for backends without devices (CPU) it is null.
pub struct Device {
    backend: Rc<Backend>,
    handle: Handle,
}

impl Device {
    /// deviceCreate. `custom` are backend-specific option records, which the call copies.
    ///
    /// Returns the device and whether the backend has devices at all.
    pub(super) fn create_with(
        backend: &Rc<Backend>,
        custom: &mut [sys::HtpDeviceCustomConfig],
    ) -> Result<(Rc<Self>, bool), QnnError> {
        let library = backend.library();
        let null_device = || Rc::new(Self { backend: backend.clone(), handle: NULL });
        let Ok(create) = library.function::<sys::DeviceCreateFn>(sys::slots::core::DEVICE_CREATE, "deviceCreate")
        else {
            return Ok((null_device(), false));
        };
        let configs: Vec<sys::CustomConfig> = custom
            .iter_mut()
            .map(|record| sys::CustomConfig { option: 0, custom: std::ptr::from_mut(record).cast() })
            .collect();
        let mut list: Vec<*const c_void> = configs.iter().map(|c| std::ptr::from_ref(c).cast()).collect();
        list.push(std::ptr::null());
        let pointer = if configs.is_empty() { std::ptr::null() } else { list.as_ptr() };
        let mut handle = NULL;
        // SAFETY: the list is null-terminated and, with its records, outlives the call; the logger is alive.
        let code = unsafe { create(backend.logger_handle(), pointer, &raw mut handle) };
        if code & 0xffff == sys::NOT_SUPPORTED {
            return Ok((null_device(), false));
        }
        library.check("deviceCreate", code)?;
        Ok((Rc::new(Self { backend: backend.clone(), handle }), true))
    }

    /// The backend it belongs to.
    pub fn backend(&self) -> &Rc<Backend> {
        &self.backend
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        free(self.backend.library(), sys::slots::core::DEVICE_FREE, self.handle);
    }
}

/// A context: holds graphs.
pub struct Context {
    device: Rc<Device>,
    handle: Handle,
}

impl Context {
    /// contextCreate.
    pub fn create(device: &Rc<Device>) -> Result<Rc<Self>, QnnError> {
        let library = device.backend.library();
        let create: sys::ContextCreateFn = library.function(sys::slots::core::CONTEXT_CREATE, "contextCreate")?;
        let mut handle = NULL;
        // SAFETY: backend and device are alive, no config, the out pointer is valid.
        let code = unsafe { create(device.backend.handle, device.handle, std::ptr::null(), &raw mut handle) };
        library.check("contextCreate", code)?;
        Ok(Rc::new(Self { device: device.clone(), handle }))
    }

    /// contextCreateFromBinary. The backend reads `binary` only during the call.
    pub fn from_binary(device: &Rc<Device>, binary: &[u8], profile: Option<&Profile>) -> Result<Rc<Self>, QnnError> {
        let library = device.backend.library();
        let create: sys::ContextCreateFromBinaryFn =
            library.function(sys::slots::core::CONTEXT_CREATE_FROM_BINARY, "contextCreateFromBinary")?;
        let mut handle = NULL;
        // SAFETY: backend, device and profile are alive; pointer and size describe one live slice.
        let code = unsafe {
            create(
                device.backend.handle,
                device.handle,
                std::ptr::null(),
                binary.as_ptr().cast(),
                binary.len() as u64,
                &raw mut handle,
                profile.map_or(NULL, Profile::handle),
            )
        };
        library.check("contextCreateFromBinary", code)?;
        Ok(Rc::new(Self { device: device.clone(), handle }))
    }

    /// contextGetBinary: the serialised context.
    pub fn binary(&self) -> Result<Vec<u8>, QnnError> {
        let library = self.library();
        let size_of: sys::ContextGetBinarySizeFn =
            library.function(sys::slots::core::CONTEXT_GET_BINARY_SIZE, "contextGetBinarySize")?;
        let get: sys::ContextGetBinaryFn =
            library.function(sys::slots::core::CONTEXT_GET_BINARY, "contextGetBinary")?;
        let mut size = 0u64;
        // SAFETY: the context is alive, the out pointer is valid.
        library.check("contextGetBinarySize", unsafe { size_of(self.handle, &raw mut size) })?;
        let length = usize::try_from(size)
            .map_err(|_| QnnError::Unexpected { what: format!("a context binary of {size} bytes does not fit") })?;
        let mut bytes = vec![0u8; length];
        let mut written = 0u64;
        // SAFETY: the buffer has `size` bytes.
        let code = unsafe { get(self.handle, bytes.as_mut_ptr().cast(), size, &raw mut written) };
        library.check("contextGetBinary", code)?;
        bytes.truncate(usize::try_from(written).unwrap_or(length).min(length));
        Ok(bytes)
    }

    /// graphRetrieve.
    pub fn graph(self: &Rc<Self>, name: &str) -> Result<Graph, QnnError> {
        let c_name = CString::new(name)
            .map_err(|_| QnnError::Unexpected { what: "a graph name contains a zero byte".to_owned() })?;
        self.graph_by_c_name(&c_name)
    }

    pub(super) fn graph_by_c_name(self: &Rc<Self>, name: &CStr) -> Result<Graph, QnnError> {
        let library = self.library();
        let retrieve: sys::GraphRetrieveFn = library.function(sys::slots::core::GRAPH_RETRIEVE, "graphRetrieve")?;
        let mut handle = NULL;
        // SAFETY: the context is alive, the name is terminated, the out pointer is valid.
        library.check("graphRetrieve", unsafe { retrieve(self.handle, name.as_ptr(), &raw mut handle) })?;
        Ok(Graph { context: self.clone(), handle })
    }

    /// The library behind it.
    pub fn library(&self) -> &Rc<Library> {
        self.device.backend.library()
    }

    /// The backend behind it.
    pub fn backend(&self) -> &Rc<Backend> {
        &self.device.backend
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// contextFree with a profile, which then holds its events. `false`, without any effect yet, if a graph or another
    /// owner still holds the context: the last of them frees it.
    pub fn release(self: Rc<Self>, profile: &Profile) -> Result<bool, QnnError> {
        let Ok(mut context) = Rc::try_unwrap(self) else { return Ok(false) };
        let library = context.library().clone();
        let free: sys::ContextFreeFn = library.function(sys::slots::core::CONTEXT_FREE, "contextFree")?;
        let handle = std::mem::replace(&mut context.handle, NULL);
        // SAFETY: the handle is ours alone and is not used again; the profile is alive.
        library.check("contextFree", unsafe { free(handle, profile.handle()) })?;
        Ok(true)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return;
        }
        if let Ok(free) = self.library().function::<sys::ContextFreeFn>(sys::slots::core::CONTEXT_FREE, "contextFree") {
            // SAFETY: the handle is ours and is not used again; graphs hold the context, so none is left.
            unsafe { free(self.handle, NULL) };
        }
    }
}

/// A graph of a context; freed with it.
pub struct Graph {
    context: Rc<Context>,
    handle: Handle,
}

impl Graph {
    /// graphFinalize.
    pub fn finalize(&self, profile: Option<&Profile>) -> Result<(), QnnError> {
        let library = self.context.library();
        let finalize: sys::GraphFinalizeFn = library.function(sys::slots::core::GRAPH_FINALIZE, "graphFinalize")?;
        // SAFETY: graph and profile are alive; no signal.
        let code = unsafe { finalize(self.handle, profile.map_or(NULL, Profile::handle), NULL) };
        library.check("graphFinalize", code)
    }

    /// The context it lives in.
    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }
}

/// Calls a one-handle free function; its failure cannot be handled.
pub(super) fn free(library: &Library, slot: usize, handle: Handle) {
    if handle.is_null() {
        return;
    }
    if let Ok(free) = library.function::<sys::FreeFn>(slot, "free") {
        // SAFETY: the handle is owned by the caller, was made by this library and is not used again.
        unsafe { free(handle) };
    }
}
