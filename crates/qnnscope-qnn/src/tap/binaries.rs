//! Context binaries that the program loads: a copy of each distinct content, for inspection.
//!
//! The system library reads a binary's metadata, and is not called in the program: it may differ from the program's own
//! and may crash. HTP's metadata is at the start of a binary, so the ends of large ones suffice.

#![expect(unsafe_code, reason = "memory that the program passed")]

use super::process::Tap;
use super::settings::SinkPath;
use super::system;
use qnnscope_core::tap::{Binary, TapMessage};
use std::ffi::c_void;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum number of distinct binaries kept per process.
const MOST: usize = 64;
/// Maximum bytes kept per process.
const MOST_BYTES: u64 = 256 << 20;

/// How much is kept of one binary.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Binaries up to this size are kept whole.
    whole: u64,
    /// Of larger ones, this much of the beginning, and
    head: u64,
    /// this much of the end.
    tail: u64,
}

/// On this machine.
const HERE: Bounds = Bounds { whole: 16 << 20, head: 8 << 20, tail: 1 << 20 };
/// On a device, from which it is transferred.
const THERE: Bounds = Bounds { whole: 4 << 20, head: 2 << 20, tail: 64 << 10 };

/// Contents seen in a process.
#[derive(Debug, Default)]
pub(super) struct Binaries(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    keys: Vec<u64>,
    bytes: u64,
}

/// Keeps a binary passed to a call, and returns the number of its content.
///
/// # Safety
/// This many bytes can be read there.
pub(super) unsafe fn keep(tap: &Tap, provider: usize, binary: *const c_void, bytes: u64) -> Option<u64> {
    let length = usize::try_from(bytes).ok().filter(|length| *length > 0 && !binary.is_null())?;
    // SAFETY: promised by the caller.
    let all = unsafe { std::slice::from_raw_parts(binary.cast::<u8>(), length) };
    let bounds = if matches!(tap.settings.sink, SinkPath::Socket(_)) { HERE } else { THERE };
    let (head, tail) = ends(all, bounds);
    let key = key(head, tail, bytes);
    let size = (head.len() + tail.len()) as u64;
    let has_room = {
        let mut seen = tap.binaries.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.keys.contains(&key) {
            return Some(key);
        }
        if seen.keys.len() >= MOST || seen.bytes + size > MOST_BYTES {
            false
        } else {
            seen.keys.push(key);
            seen.bytes += size;
            true
        }
    };
    let written = if has_room {
        tap.settings.sink.folder().map_or(Err("no folder to keep it in".to_owned()), |folder| {
            write(folder, key, head, tail).map_err(|error| format!("it could not be kept: {error}"))
        })
    } else {
        // Reported each time: contents beyond the bound are not remembered, and few programs load that many.
        Err(format!("the process loaded more than {MOST} context binaries, or {} MiB of them", MOST_BYTES >> 20))
    };
    let (file, reason) = match written {
        Ok(path) => (Some(path.to_string_lossy().into_owned()), None),
        Err(reason) => (None, Some(reason)),
    };
    tap.writer.say(&TapMessage::Binary(Binary {
        t_ns: system::now_ns(),
        key,
        provider: u32::try_from(provider).unwrap_or(u32::MAX),
        bytes,
        file,
        head: head.len() as u64,
        tail: tail.len() as u64,
        reason,
    }));
    Some(key)
}

/// The parts kept.
fn ends(all: &[u8], bounds: Bounds) -> (&[u8], &[u8]) {
    let part = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(all.len());
    if all.len() <= part(bounds.whole) {
        return (all, &[]);
    }
    (&all[..part(bounds.head)], &all[all.len() - part(bounds.tail)..])
}

/// A hash of the content: eight bytes at a time, because the program waits for it.
fn key(head: &[u8], tail: &[u8], bytes: u64) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = bytes ^ PRIME;
    for part in [head, tail] {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(29);
        }
        for byte in rest {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    sum ^ (sum >> 32)
}

/// Writes a new file; a partial one is removed again.
fn write(folder: &Path, key: u64, head: &[u8], tail: &[u8]) -> io::Result<PathBuf> {
    let path = folder.join(format!("{}.{key}.binary", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    if let Err(error) = file.write_all(head).and_then(|()| file.write_all(tail)) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ones_are_known_by_their_ends_and_small_ones_whole() {
        let bounds = Bounds { whole: 100, head: 40, tail: 10 };
        let bytes: Vec<u8> = (0..=200).collect();
        assert_eq!(ends(&bytes[..100], bounds), (&bytes[..100], &[][..]));
        assert_eq!(ends(&bytes[..101], bounds), (&bytes[..40], &bytes[91..101]));
        let number = |bytes: &[u8]| {
            let (head, tail) = ends(bytes, bounds);
            key(head, tail, bytes.len() as u64)
        };
        let mut numbers =
            vec![number(&bytes[..99]), number(&bytes[..100]), number(&bytes), number(&[0; 8]), number(&[0; 9])];
        for at in [0, 7, 8, 39, 191, 200] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            numbers.push(number(&other));
        }
        assert_eq!(number(&bytes.clone()), number(&bytes), "the same bytes have the same number");
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }

    #[test]
    fn a_file_holds_both_ends_and_is_nobody_elses() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("qnnscope-binaries-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = write(&folder, 5, b"head", b"tail").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"headtail");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write(&folder, 5, b"", b"").is_err(), "nothing is written over");
        assert_eq!(std::fs::read(&path).unwrap(), b"headtail", "nor removed");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
