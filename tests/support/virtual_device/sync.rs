//! The `sync:` service: status, listing, sending and receiving files, with the permissions of the device's
//! shell user.

use super::stream::{Input, Stream};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest name in a request, bytes.
const MAX_PATH: usize = 1024;
/// Maximum data in one `DATA` block, bytes.
const MAX_DATA: usize = 64 * 1024;

const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;

/// The stream is unusable: the host closed it, or violated the protocol.
struct Over;

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<super::stream::Closed> for Over {
    fn from(_: super::stream::Closed) -> Self {
        Self
    }
}

struct Service<'a> {
    root: &'a OwnedFd,
    uid: u32,
    stream: &'a Stream,
    input: Input,
}

/// Serves until the host quits. Needs a thread of its own: for users other than 0 it gives up this thread's
/// capabilities, so that the kernel refuses what it would refuse to the shell.
pub fn serve(root: &OwnedFd, uid: u32, stream: &Stream, input: Input) {
    if uid != 0 {
        let mut sets = capabilities(None).unwrap();
        sets.effective = CapabilitySet::empty();
        set_capabilities(None, sets).unwrap();
    }
    let mut service = Service { root, uid, stream, input };
    while service.answer().is_ok() {}
}

impl Service<'_> {
    fn answer(&mut self) -> Result<(), Over> {
        let (id, length) = self.header()?;
        if length > MAX_PATH {
            self.fail("path too long")?;
            return Err(Over);
        }
        let mut name = vec![0; length];
        self.input.read_exact(&mut name)?;
        let path = Path::new(OsStr::from_bytes(&name));
        match &id {
            b"STAT" => self.status_v1(path),
            b"STA2" => self.status_v2(*b"STA2", self.stat(path, OFlags::empty())),
            b"LST2" => self.status_v2(*b"LST2", self.stat(path, OFlags::NOFOLLOW)),
            b"LIST" => self.list(path, false),
            b"LIS2" => self.list(path, true),
            b"RECV" => self.give(path),
            b"SEND" => self.take(&name),
            b"QUIT" => Err(Over),
            _ => {
                self.fail("unknown command")?;
                Err(Over)
            }
        }
    }

    fn header(&mut self) -> Result<([u8; 4], usize), Over> {
        let mut bytes = [0; 8];
        self.input.read_exact(&mut bytes)?;
        let [a, b, c, d, e, f, g, h] = bytes;
        Ok(([a, b, c, d], u32::from_le_bytes([e, f, g, h]) as usize))
    }

    fn send(&self, data: &[u8]) -> Result<(), Over> {
        Ok(self.stream.write(data)?)
    }

    fn fail(&self, message: &str) -> Result<(), Over> {
        self.send(&Fields::new(*b"FAIL").u32(size(message.len())).bytes(message.as_bytes()).0)
    }

    /// Opens a file of the device; links point to where they would on the device.
    fn open(&self, path: &Path, flags: OFlags, mode: u32) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        rustix::fs::openat2(self.root, path, flags | OFlags::CLOEXEC, Mode::from(mode), ResolveFlags::IN_ROOT)
    }

    fn stat(&self, path: &Path, flags: OFlags) -> Result<Stat, Errno> {
        rustix::fs::fstat(self.open(path, OFlags::PATH | flags, 0)?)
    }

    fn status_v1(&self, path: &Path) -> Result<(), Over> {
        let answer = Fields::new(*b"STAT");
        let answer = match self.stat(path, OFlags::NOFOLLOW) {
            Ok(stat) => answer.brief(&stat),
            Err(_) => answer.bytes(&[0; 12]),
        };
        self.send(&answer.0)
    }

    fn status_v2(&self, id: [u8; 4], stat: Result<Stat, Errno>) -> Result<(), Over> {
        self.send(&Fields::new(id).full(stat, self.uid).0)
    }

    fn list(&self, path: &Path, v2: bool) -> Result<(), Over> {
        let id = if v2 { *b"DNT2" } else { *b"DENT" };
        // A folder that cannot be opened looks empty: the protocol cannot report the reason.
        if let Ok(folder) = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, 0) {
            for entry in Dir::read_from(&folder).into_iter().flatten().flatten() {
                let stat = rustix::fs::statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                let fields = match (v2, stat) {
                    (true, stat) => Fields::new(id).full(stat, self.uid),
                    (false, Ok(stat)) => Fields::new(id).brief(&stat),
                    (false, Err(_)) => continue,
                };
                let name = entry.file_name().to_bytes();
                self.send(&fields.u32(size(name.len())).bytes(name).0)?;
            }
        }
        self.send(&Fields::new(*b"DONE").bytes(&[0; 72][..if v2 { 72 } else { 16 }]).0)
    }

    fn give(&self, path: &Path) -> Result<(), Over> {
        let mut file = match self.open(path, OFlags::RDONLY, 0) {
            Ok(file) => File::from(file),
            Err(error) => return self.fail(&format!("open failed: {}", text(error))),
        };
        let mut data = vec![0; 8 + MAX_DATA];
        loop {
            match file.read(&mut data[8..]) {
                Ok(0) => break,
                Ok(count) => {
                    data[..4].copy_from_slice(b"DATA");
                    data[4..8].copy_from_slice(&size(count).to_le_bytes());
                    self.send(&data[..8 + count])?;
                }
                Err(error) => return self.fail(&format!("read failed: {}", text_of(&error))),
            }
        }
        self.send(&Fields::new(*b"DONE").u32(0).0)
    }

    fn take(&mut self, name: &[u8]) -> Result<(), Over> {
        let comma = name.iter().rposition(|byte| *byte == b',');
        let mode = comma.and_then(|at| std::str::from_utf8(&name[at + 1..]).ok()?.parse::<u32>().ok());
        let (Some(comma), Some(mode)) = (comma, mode) else {
            self.fail("missing , in ID_SEND")?;
            return Err(Over);
        };
        let path = Path::new(OsStr::from_bytes(&name[..comma]));
        let outcome = if mode & KIND == LINK { self.take_link(path)? } else { self.take_file(path, mode & 0o777)? };
        match outcome {
            Ok(()) => self.send(&Fields::new(*b"OKAY").u32(0).0),
            Err(message) => self.fail(&message),
        }
    }

    /// The next block of a file, or, at the end, `None` and the modification time in seconds since 1970.
    fn block(&mut self, buffer: &mut Vec<u8>) -> Result<Option<u32>, Over> {
        match self.header()? {
            (id, time_s) if &id == b"DONE" => {
                buffer.clear();
                Ok(Some(size(time_s)))
            }
            (id, length) if &id == b"DATA" && length <= MAX_DATA => {
                buffer.resize(length, 0);
                self.input.read_exact(buffer)?;
                Ok(None)
            }
            _ => {
                self.fail("invalid data message")?;
                Err(Over)
            }
        }
    }

    fn take_link(&mut self, path: &Path) -> Result<Result<(), String>, Over> {
        let (mut target, mut buffer) = (Vec::new(), Vec::new());
        while self.block(&mut buffer)?.is_none() {
            target.extend(&buffer);
        }
        let target = target.strip_suffix(b"\0").unwrap_or(&target);
        let made = self.folder_of(path).and_then(|(folder, name)| {
            let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
            rustix::fs::symlinkat(OsStr::from_bytes(target), &folder, name)
        });
        Ok(made.map_err(|error| format!("couldn't create symlink: {}", text(error))))
    }

    fn take_file(&mut self, path: &Path, mode: u32) -> Result<Result<(), String>, Over> {
        let mut outcome = self.create(path, mode).map_err(|error| format!("couldn't create file: {}", text(error)));
        let mut buffer = Vec::new();
        // All blocks are read even after a failure: the host reads the answer only after it has sent
        // everything.
        let time_s = loop {
            if let Some(time_s) = self.block(&mut buffer)? {
                break time_s;
            }
            if let Ok(file) = &mut outcome
                && let Err(error) = file.write_all(&buffer)
            {
                outcome = Err(format!("write failed: {}", text_of(&error)));
                if let Ok((folder, name)) = self.folder_of(path) {
                    let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
                }
            }
        };
        Ok(outcome
            .and_then(|file| finish(&file, mode, time_s).map_err(|error| format!("fchmod failed: {}", text(error)))))
    }

    /// A new file in place of one with this name; a link or device node is written through instead.
    fn create(&self, path: &Path, mode: u32) -> Result<File, Errno> {
        let (folder, name) = self.folder_of(path)?;
        let is_file = |stat: Stat| stat.st_mode & KIND == 0o100_000;
        if rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_file) {
            rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
        }
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::openat(&folder, name, new, Mode::from(mode)) {
            Err(Errno::EXIST) => Ok(self.open(path, OFlags::WRONLY | OFlags::TRUNC, 0)?.into()),
            other => Ok(other?.into()),
        }
    }

    /// The folder that contains `path`, created if missing, and the last part of the name.
    fn folder_of<'p>(&self, path: &'p Path) -> Result<(OwnedFd, &'p OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = match self.open(parent, flags, 0) {
            Err(Errno::NOENT) if parent != Path::new("") => {
                let (above, missing) = self.folder_of(parent)?;
                rustix::fs::mkdirat(&above, missing, Mode::from(0o775))?;
                self.open(parent, flags, 0)?
            }
            other => other?,
        };
        Ok((folder, name))
    }
}

fn finish(file: &File, mode: u32, time_s: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(file, Mode::from(mode))?;
    let time = Timespec { tv_sec: i64::from(time_s), tv_nsec: 0 };
    rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time })
}

/// A message under construction; all numbers are little-endian.
struct Fields(Vec<u8>);

impl Fields {
    fn new(id: [u8; 4]) -> Self {
        Self(id.to_vec())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Mode, size, modification time: the old form.
    fn brief(self, stat: &Stat) -> Self {
        let length = u32::try_from(stat.st_size).unwrap_or(u32::MAX);
        self.u32(stat.st_mode).u32(length).u32(u32::try_from(stat.st_mtime).unwrap_or(0))
    }

    /// Error number and everything else. All files belong to the shell's user.
    fn full(self, stat: Result<Stat, Errno>, uid: u32) -> Self {
        match stat {
            Err(error) => self.u32(error.raw_os_error().unsigned_abs()).bytes(&[0; 64]),
            Ok(stat) => self
                .u32(0)
                .u64(stat.st_dev)
                .u64(stat.st_ino)
                .u32(stat.st_mode)
                .u32(u32::try_from(stat.st_nlink).unwrap_or(u32::MAX))
                .u32(uid)
                .u32(uid)
                .u64(stat.st_size.unsigned_abs())
                .bytes(&stat.st_atime.to_le_bytes())
                .bytes(&stat.st_mtime.to_le_bytes())
                .bytes(&stat.st_ctime.to_le_bytes()),
        }
    }
}

fn size(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The C library's text for an error.
fn text(error: Errno) -> String {
    text_of(&io::Error::from(error))
}

fn text_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
