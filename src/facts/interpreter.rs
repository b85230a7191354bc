//! The interpreter (dynamic loader) recorded in a program's file.

use crate::files::open_regular;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use std::io::Read;
use std::path::Path;

/// Bytes at the start of a file that contain the program headers, and the loader's name after them.
const HEAD_BYTES: u64 = 64 << 10;

/// The loader that this program requests; `None` if it needs none.
///
/// # Errors
/// The file cannot be read.
pub fn loader(path: &Path) -> std::io::Result<Option<String>> {
    let mut head = Vec::new();
    open_regular(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(loader_in(&head))
}

/// The same, from the first bytes of the program.
pub fn loader_in(head: &[u8]) -> Option<String> {
    interpreter(head).map(|name| String::from_utf8_lossy(name).into_owned())
}

fn interpreter(head: &[u8]) -> Option<&[u8]> {
    let header = FileHeader64::<Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head).ok()?;
    segments.iter().find_map(|segment| segment.interpreter(endian, head).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn the_loader_of_this_program_is_known() {
        let name = loader(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(Path::new(&name).is_file(), "{name}");
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
    }
}
