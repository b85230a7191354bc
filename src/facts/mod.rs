//! Facts about files and devices: build ids, ELF headers, library dependencies, the DSP's files and nodes.
//! Everything here is read-only. The confirming checks ([`crate::checks`]) and `qnnscope doctor` both build
//! on it.

mod build_id;
mod context;
mod dsp;
mod elf;
mod interpreter;
mod loader;
mod missing;

pub use build_id::{BuildId, build_id_in, build_id_of, release};
pub use context::{ContextText, context_text};
pub use dsp::{DSP_FOLDERS, DspLook, Folder, LIBRARY_FOLDERS, Listing, Node, RemoteFile, Remoteproc, details, look};
pub use elf::{ElfFacts, hexagon_arch, machine_name, parse_header, read_elf};
pub use interpreter::{loader, loader_in};
pub use loader::{Wanted, absent, is_glibc, own_folders};
pub use missing::{LinkSearch, missing_libraries};
