//! Which libraries fit this machine: wheel tags, SDK target folders, ELF machines.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::FileHeader;

/// The operating system and processor libraries must be built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// As in [`std::env::consts::OS`].
    pub os: &'static str,
    /// As in [`std::env::consts::ARCH`].
    pub arch: &'static str,
}

impl fmt::Display for Platform {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.os, self.arch)
    }
}

impl Platform {
    /// The platform qnnscope was built for.
    pub const fn here() -> Self {
        Self { os: std::env::consts::OS, arch: std::env::consts::ARCH }
    }

    /// Whether a wheel with this platform tag (several are joined by dots) can contain libraries for this platform.
    ///
    /// The C library version in the tag is left to pip, which knows this machine's.
    pub fn fits_wheel_tag(self, tag: &str) -> bool {
        tag.split('.').any(|tag| {
            let linux = ["linux_", "manylinux", "musllinux_"].iter().any(|family| tag.starts_with(family));
            tag == "any"
                || (self.os == "linux" && linux && tag.strip_suffix(self.arch).is_some_and(|rest| rest.ends_with('_')))
        })
    }

    /// Name prefixes of the SDK's `lib/` folders for this platform, best first.
    pub fn sdk_targets(self) -> &'static [&'static str] {
        match (self.os, self.arch) {
            ("linux", "x86_64") => &["x86_64-linux-clang"],
            ("linux", "aarch64") => &["aarch64-ubuntu-gcc", "aarch64-oe-linux-gcc"],
            ("android", "aarch64") => &["aarch64-android"],
            _ => &[],
        }
    }

    /// Whether a library of this ELF machine runs here.
    pub fn fits_machine(self, machine: elf::Machine) -> bool {
        match self.arch {
            "x86_64" => machine == elf::EM_X86_64,
            "aarch64" => machine == elf::EM_AARCH64,
            _ => false,
        }
    }
}

/// The ELF machine of a library; `None` if the file is not 64-bit ELF.
pub fn elf_machine(path: &Path) -> io::Result<Option<elf::Machine>> {
    let mut head = Vec::with_capacity(64);
    File::open(path)?.take(64).read_to_end(&mut head)?;
    let Ok(header) = FileHeader64::<Endianness>::parse(&*head) else {
        return Ok(None);
    };
    Ok(header.endian().ok().map(|endian| header.e_machine(endian)))
}

/// Orders version numbers and other names with numbers in them: `2.10` after `2.9`, `gcc11.2` after `gcc9.4`.
pub fn version_key(name: &str) -> Vec<u64> {
    let mut key: Vec<u64> = name
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().unwrap_or(u64::MAX))
        .collect();
    // 2.3 and 2.3.0 are the same version.
    while key.last() == Some(&0) {
        key.pop();
    }
    key
}

/// Whether `text` can be used as a version in a requirement: nothing in it can start an option or another requirement.
pub fn is_version(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+!-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: Platform = Platform { os: "linux", arch: "x86_64" };
    const ARM: Platform = Platform { os: "linux", arch: "aarch64" };

    #[test]
    fn wheel_tags_of_this_machine_only() {
        assert!(X86.fits_wheel_tag("manylinux_2_35_x86_64"));
        assert!(X86.fits_wheel_tag("manylinux_2_17_x86_64.manylinux2014_x86_64"));
        assert!(X86.fits_wheel_tag("linux_x86_64"));
        assert!(!X86.fits_wheel_tag("manylinux_2_34_aarch64"));
        assert!(!X86.fits_wheel_tag("win_amd64"));
        assert!(!X86.fits_wheel_tag("macosx_11_0_x86_64"));
        assert!(ARM.fits_wheel_tag("manylinux_2_34_aarch64"));
        assert!(!ARM.fits_wheel_tag("manylinux_2_35_x86_64"));
    }

    #[test]
    fn versions_in_number_order() {
        assert!(version_key("2.10.0") > version_key("2.9.1"));
        assert!(version_key("aarch64-oe-linux-gcc11.2") > version_key("aarch64-oe-linux-gcc9.3"));
        assert_eq!(version_key("2.3"), version_key("2.3.0"));
    }

    #[test]
    fn versions_cannot_carry_options() {
        for good in ["2.3.0", "2.7.0rc1", "1!2.0", "2.3.0+local.1", "2.3-1"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "--index-url=x", "2.3.0 --pre", "2.*", "2.3;x", "v2", "../2", "2\n3"] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn a_text_file_has_no_machine() {
        let file = tempfile::NamedTempFile::new().expect("temp file");
        std::fs::write(file.path(), "not a library").expect("write");
        assert_eq!(elf_machine(file.path()).expect("readable"), None);
    }
}
