//! Profile handles of our own.

#![expect(unsafe_code, reason = "FFI")]

use super::events::{EventReader, ProfileEvent};
use super::raw::NULL;
use super::{Backend, QnnError, handles};
use crate::sys::{self, Handle};
use qnnscope_core::ProfilingLevel;
use std::rc::Rc;

/// A profile handle.
pub struct Profile {
    backend: Rc<Backend>,
    handle: Handle,
}

impl Profile {
    /// profileCreate; `None` for [`ProfilingLevel::Off`].
    pub fn create(backend: &Rc<Backend>, level: ProfilingLevel) -> Result<Option<Self>, QnnError> {
        let number = match level {
            ProfilingLevel::Off => return Ok(None),
            ProfilingLevel::Basic => 1,
            ProfilingLevel::Detailed => 2,
        };
        let library = backend.library();
        let create: sys::ProfileCreateFn = library.function(sys::slots::core::PROFILE_CREATE, "profileCreate")?;
        let mut handle = NULL;
        // SAFETY: the backend is alive, the out pointer is valid.
        library.check("profileCreate", unsafe { create(backend.handle(), number, &raw mut handle) })?;
        Ok(Some(Self { backend: backend.clone(), handle }))
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// The events of the last profiled call, in the backend's order. Each profiled call replaces them.
    pub fn events(&self) -> Result<Vec<ProfileEvent>, QnnError> {
        let library = self.backend.library();
        // SAFETY: the handle is ours and alive; a profiled call borrows the profile, so none is in progress.
        let events = unsafe { EventReader::new(library.table()).events(self.handle) };
        events.map_err(|error| library.explain(error))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        handles::free(self.backend.library(), sys::slots::core::PROFILE_FREE, self.handle);
    }
}
