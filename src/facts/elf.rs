//! ELF headers: class, machine, the Hexagon architecture, and needed libraries.

use crate::files::open_regular;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::io;
use std::path::Path;

/// Maximum plausible number of needed libraries.
const MOST_NEEDED: usize = 256;

/// A machine's name for messages: that of [`std::env::consts::ARCH`] if it has one there.
pub fn machine_name(machine: Option<elf::Machine>) -> String {
    match machine {
        None => "not a 64-bit ELF library".to_owned(),
        Some(elf::EM_X86_64) => "x86_64".to_owned(),
        Some(elf::EM_AARCH64) => "aarch64".to_owned(),
        Some(elf::EM_ARM) => "arm".to_owned(),
        Some(elf::EM_HEXAGON) => "hexagon".to_owned(),
        Some(other) => format!("ELF machine {}", other.0),
    }
}

/// Facts about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfFacts {
    /// True for 64-bit files.
    pub is_64: bool,
    /// Machine, such as [`elf::EM_AARCH64`].
    pub machine: elf::Machine,
    /// Machine-specific flags; the low byte of a Hexagon file is its architecture.
    pub flags: u32,
    /// Names of needed libraries (DT_NEEDED); `None` if the file does not list them, or was not read that
    /// far.
    pub needed: Option<Vec<String>>,
    /// Search folders recorded in the file (DT_RUNPATH, DT_RPATH), unexpanded.
    pub runpath: Vec<String>,
    /// Minimum size of the file according to its segments, bytes; `None` if it was not read that far.
    pub needs_bytes: Option<u64>,
}

impl ElfFacts {
    /// Architecture of a Hexagon file, such as 75.
    pub fn hexagon_arch(&self) -> Option<u32> {
        (self.machine == elf::EM_HEXAGON).then(|| hexagon_arch(self.flags)).flatten()
    }

    /// `64-bit aarch64`.
    pub fn label(&self) -> String {
        let bits = if self.is_64 { 64 } else { 32 };
        let machine = machine_name(Some(self.machine));
        match self.hexagon_arch() {
            Some(arch) => format!("{bits}-bit {machine} v{arch}"),
            None => format!("{bits}-bit {machine}"),
        }
    }
}

/// The architecture in the flags of a Hexagon file: its low byte reads like the number (0x75 is v75).
pub fn hexagon_arch(flags: u32) -> Option<u32> {
    let byte = flags & 0xff;
    let (tens, ones) = (byte >> 4, byte & 0xf);
    (tens <= 9 && ones <= 9).then_some(tens * 10 + ones)
}

/// Reads a local file; `Ok(None)` if it is not ELF.
///
/// # Errors
/// The file cannot be read.
pub fn read_elf(path: &Path) -> io::Result<Option<ElfFacts>> {
    let cache = ReadCache::new(open_regular(path)?);
    Ok(parse(&cache))
}

/// Parses the first bytes of a file: enough for class, machine and flags.
pub fn parse_header(bytes: &[u8]) -> Option<ElfFacts> {
    if let Ok(header) = FileHeader64::<Endianness>::parse(bytes) {
        return head(header);
    }
    head(FileHeader32::<Endianness>::parse(bytes).ok()?)
}

fn parse<'a, R: ReadRef<'a>>(data: R) -> Option<ElfFacts> {
    if let Ok(header) = FileHeader64::<Endianness>::parse(data) {
        return whole(header, data);
    }
    whole(FileHeader32::<Endianness>::parse(data).ok()?, data)
}

fn head<H: FileHeader<Endian = Endianness>>(header: &H) -> Option<ElfFacts> {
    let endian = header.endian().ok()?;
    Some(ElfFacts {
        is_64: header.is_class_64(),
        machine: header.e_machine(endian),
        flags: header.e_flags(endian).0,
        needed: None,
        runpath: Vec::new(),
        needs_bytes: None,
    })
}

fn whole<'a, H: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(header: &'a H, data: R) -> Option<ElfFacts> {
    let mut facts = head(header)?;
    let endian = header.endian().ok()?;
    if let Ok(segments) = header.program_headers(endian, data) {
        let end = |segment: &H::ProgramHeader| {
            let (offset, size): (u64, u64) = (segment.p_offset(endian).into(), segment.p_filesz(endian).into());
            offset.saturating_add(size)
        };
        facts.needs_bytes = segments.iter().map(end).max();
    }
    if let Some((needed, runpath)) = dynamic(header, endian, data) {
        facts.needed = Some(needed);
        facts.runpath = runpath;
    }
    Some(facts)
}

/// Needed libraries and search folders, from the dynamic section.
fn dynamic<'a, H: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
    header: &'a H,
    endian: Endianness,
    data: R,
) -> Option<(Vec<String>, Vec<String>)> {
    let sections = header.sections(endian, data).ok()?;
    let (entries, strings) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, strings).ok()?;
    let texts = |tags: &[elf::DynamicTag]| -> Vec<String> {
        let wanted = entries.iter().filter(|entry| tags.contains(&entry.d_tag(endian)));
        let text = |entry: &H::Dyn| Some(String::from_utf8_lossy(entry.string(endian, strings).ok()?).into_owned());
        wanted.filter_map(text).take(MOST_NEEDED).collect()
    };
    Some((texts(&[elf::DT_NEEDED]), texts(&[elf::DT_RUNPATH, elf::DT_RPATH])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn our_own_program_tells_what_it_needs() {
        let own = std::env::current_exe().unwrap();
        let facts = read_elf(&own).unwrap().unwrap();
        assert!(facts.is_64 && facts.hexagon_arch().is_none());
        assert!(facts.needed.unwrap().iter().any(|name| name.starts_with("libc.so")));
        assert!(facts.needs_bytes.unwrap() <= std::fs::metadata(&own).unwrap().len());
    }

    #[test]
    fn hexagon_architectures_read_like_their_numbers() {
        for (flags, arch) in [(0x68, 68), (0x73, 73), (0x8075, 75), (0x79, 79), (0x81, 81)] {
            assert_eq!(hexagon_arch(flags), Some(arch));
        }
        assert_eq!(hexagon_arch(0x7f), None);
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(wide in any::<bool>(), bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let file = [&b"\x7fELF"[..], &[if wide { 2 } else { 1 }, 1, 1], &bytes].concat();
            let _ = parse_header(&file);
            let _ = parse(&*file);
        }
    }
}
