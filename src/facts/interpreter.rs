//! The interpreter (loader) named in a program's file.

use crate::files::open_regular;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use std::io::Read;
use std::path::Path;

/// The program headers, and the loader's name behind them, are at the beginning of a file.
const HEAD_BYTES: u64 = 64 << 10;

/// The loader this program names; `None` if it needs none.
///
/// # Errors
/// The system's, when the file cannot be read.
pub fn loader(path: &Path) -> std::io::Result<Option<String>> {
    let mut head = Vec::new();
    open_regular(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(loader_in(&head))
}

/// The same, by the first bytes of the program.
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
