//! Tiny wheels and environments for the tests of this folder.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{Env, Platform};

pub const X86: Platform = Platform { os: "linux", arch: "x86_64" };
pub const ARM: Platform = Platform { os: "linux", arch: "aarch64" };

/// An environment with nothing set and data folder `data`, on an `x86_64` machine.
pub fn env_in(data: &Path) -> Env {
    Env {
        runtime: None,
        qnn_sdk_root: None,
        qairt_sdk_root: None,
        onnxruntime: None,
        data_dir: Some(data.to_path_buf()),
        python: PathBuf::from("python3"),
        platform: X86,
    }
}

/// The header of a library, with nothing after it.
pub fn elf(platform: Platform) -> Vec<u8> {
    let mut header = vec![0_u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16] = 3;
    header[18] = if platform == ARM { 183 } else { 62 };
    header[20] = 1;
    header[52] = 64;
    header
}

/// The description of [`FakeWheel::new`]; only the end of the folder's name counts.
pub const METADATA: &str = "onnxruntime_qnn-2.3.0.dist-info/METADATA";

enum Kind {
    File(Vec<u8>),
    Link(String),
}

/// A wheel under construction.
pub struct FakeWheel {
    version: String,
    platform: String,
    entries: Vec<(String, Kind)>,
    /// Names that replace placeholders of the same length: the writer refuses or rewrites some.
    raw: Vec<(String, String)>,
}

/// A wheel on disk, in its own folder.
pub struct BuiltWheel {
    dir: TempDir,
    name: String,
}

impl FakeWheel {
    /// A small wheel like the real ones.
    pub fn new() -> Self {
        Self::empty()
            .entry("onnxruntime_qnn/LICENSE", b"MIT")
            .entry("onnxruntime_qnn/Privacy.md", b"privacy")
            .entry("onnxruntime_qnn/Qualcomm_LICENSE.pdf", b"%PDF")
            .entry("onnxruntime_qnn/ThirdPartyNotices.txt", b"notices")
            .entry("onnxruntime_qnn/__init__.py", b"import x")
            .entry("onnxruntime_qnn/libGenie.so", b"genie")
            .entry("onnxruntime_qnn/libHtpPrepare.so", b"prepare")
            .entry("onnxruntime_qnn/libQnnCpu.so", b"cpu-code")
            .entry("onnxruntime_qnn/libQnnSystem.so", &elf(X86))
            .entry("onnxruntime_qnn/libonnxruntime_providers_qnn.so", b"x")
            .entry("onnxruntime_qnn.libs/libc++-71bc274c.so.1.0", b"c++")
            .entry("onnxruntime_qnn-2.3.0.dist-info/licenses/LICENSE", b"MIT")
            .entry(METADATA, b"Metadata-Version: 2.1\nName: onnxruntime-qnn\nVersion: 2.3.0\n\nA package.\n")
            .entry("onnxruntime_qnn-2.3.0.dist-info/RECORD", b"")
    }

    /// A wheel with no entries.
    pub fn empty() -> Self {
        Self {
            version: "2.3.0".to_owned(),
            platform: "manylinux_2_35_x86_64".to_owned(),
            entries: Vec::new(),
            raw: Vec::new(),
        }
    }

    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        let text = format!("Name: onnxruntime-qnn\nVersion: {version}\n");
        self.entry(METADATA, text.as_bytes())
    }

    /// The platform tag in the name; the libraries stay the same.
    pub fn platform(mut self, tag: &str) -> Self {
        tag.clone_into(&mut self.platform);
        self
    }

    /// Adds an entry, or replaces the one with that name.
    pub fn entry(mut self, name: &str, content: &[u8]) -> Self {
        self.entries.retain(|(other, _)| other != name);
        self.entries.push((name.to_owned(), Kind::File(content.to_vec())));
        self
    }

    /// Adds an entry under a name the archive writer would change.
    pub fn raw_entry(mut self, name: &str, content: &[u8]) -> Self {
        let stand_in = format!("{:#<1$}", "raw", name.len());
        self.raw.push((stand_in.clone(), name.to_owned()));
        self.entry(&stand_in, content)
    }

    pub fn link(mut self, name: &str, target: &str) -> Self {
        self.entries.push((name.to_owned(), Kind::Link(target.to_owned())));
        self
    }

    pub fn build(self) -> BuiltWheel {
        let name = format!("onnxruntime_qnn-{}-cp312-cp312-{}.whl", self.version, self.platform);
        let wheel = BuiltWheel { dir: tempfile::tempdir().expect("temp dir"), name };
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let mut writer = ZipWriter::new(fs::File::create(wheel.path()).expect("create"));
        for (name, kind) in self.entries {
            match kind {
                Kind::File(content) => {
                    writer.start_file(name, options).expect("entry");
                    writer.write_all(&content).expect("content");
                }
                Kind::Link(target) => writer.add_symlink(name, target, options).expect("link entry"),
            }
        }
        writer.finish().expect("archive");
        for (stand_in, real) in self.raw {
            wheel.patch(stand_in.as_bytes(), real.as_bytes());
        }
        wheel
    }
}

impl BuiltWheel {
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Replaces every occurrence of some bytes by the same number of others.
    fn patch(&self, from: &[u8], to: &[u8]) {
        let mut bytes = fs::read(self.path()).expect("readable");
        for place in 0..bytes.len() {
            if bytes[place..].starts_with(from) {
                bytes[place..place + to.len()].copy_from_slice(to);
            }
        }
        fs::write(self.path(), bytes).expect("written");
    }

    /// Makes the archive's directory claim a different size for an entry.
    pub fn claim_size(&self, name: &str, size: u32) {
        let mut bytes = fs::read(self.path()).expect("readable");
        let place = (0..bytes.len())
            .find(|place| {
                let rest = &bytes[*place..];
                rest.starts_with(b"PK\x01\x02") && rest.get(46..).is_some_and(|at| at.starts_with(name.as_bytes()))
            })
            .expect("the entry is there");
        bytes[place + 24..place + 28].copy_from_slice(&size.to_le_bytes());
        fs::write(self.path(), bytes).expect("written");
    }
}

/// A Python that is a shell script: the test decides pip's output.
#[cfg(target_os = "linux")]
pub fn fake_python(dir: &Path, script: &str) -> PathBuf {
    let path = dir.join("fake-python");
    // Written by a child: a file that another test's child has open for writing, even if only inherited, cannot be
    // executed.
    let status = std::process::Command::new("sh")
        .args(["-c", r#"printf '%s\n' "$1" > "$2" && chmod +x "$2""#, "sh"])
        .arg(format!("#!/bin/sh\n{script}"))
        .arg(&path)
        .status()
        .expect("there is a shell");
    assert!(status.success());
    path
}
