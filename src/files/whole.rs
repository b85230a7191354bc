//! Writes files whole or not at all, and creates private folders.

use super::special::{is_special, open_special};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir, TempPath};

/// Maximum number of links followed from a name to its file, as in the kernel.
const MAX_LINKS: usize = 40;

/// The file behind a name. Links are followed, including a last one that points to a missing file.
///
/// # Errors
/// The folder does not exist or cannot be searched, or the links form a loop.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    // The link behind `/dev/fd/63`, which is how shells name pipes, points to no path.
    if is_special(path) {
        return Ok(path.to_owned());
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        match std::fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => {
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                return Ok(folder_of(&path).canonicalize()?.join(name));
            }
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The folder that contains a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file whole or not at all, synced to disk on return. See [`Replacement`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_special(path) {
        return open_special(path)?.write_all(bytes);
    }
    match Replacement::begin(path) {
        Ok(replacement) => {
            std::fs::write(replacement.path(), bytes)?;
            replacement.commit()
        }
        // The file is writable, but its folder is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        }
        Err(error) => Err(error),
    }
}

/// New content for a file, collected beside it: the old content stays until the new content is complete.
/// Symbolic links are followed, and an existing file keeps its permissions. If dropped, it leaves no trace.
#[derive(Debug)]
pub struct Replacement {
    target: PathBuf,
    part: TempPath,
}

impl Replacement {
    /// Creates the empty partial file beside the file behind `path`.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let target = real_path(path)?;
        let part = beside(&target)?.into_temp_path();
        Ok(Self { target, part })
    }

    /// The path for the new content.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Puts the new content in place, synced to disk.
    pub fn commit(self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.part)?.sync_all()?;
        self.part.persist(&self.target).map_err(|error| error.error)?;
        sync_folder_of(&self.target)
    }
}

/// An empty file beside `target`, with the permissions of `target`, or those of any new file if there is
/// none.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".qnnscope-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let part = builder.tempfile_in(folder_of(target))?;
    if let Ok(old) = std::fs::metadata(target) {
        part.as_file().set_permissions(old.permissions())?;
        #[cfg(unix)]
        {
            use rustix::fs::{Gid, Uid, fchown};
            use std::os::unix::fs::MetadataExt;
            // Only root may give files away; anyone else already owns the file, or cannot change that.
            let _ = fchown(part.as_file(), Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
        }
    }
    Ok(part)
}

/// Syncs a new name in the folder of `path` to disk. Some file systems do not support this, which is not an error.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Err(error) = File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        // The last one: a folder that may be written but not read. Its files are on disk; nothing more can be
        // done.
        let harmless = [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported, io::ErrorKind::PermissionDenied];
        if !harmless.contains(&error.kind()) {
            return Err(error);
        }
    }
    Ok(())
}

/// A temporary folder that only this user can access, whatever the umask is: it may hold the user's data.
pub fn private_folder() -> io::Result<TempDir> {
    private_folder_in(&std::env::temp_dir(), "qnnscope-")
}

/// The same inside a folder, with a name that begins with `prefix`.
pub fn private_folder_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700));
    builder.tempdir_in(parent)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write_whole(&dir.path().join("none/file"), b"").is_err());
        drop(Replacement::begin(&path).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn permissions_stay_and_links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link, dangling) = (dir.path().join("real"), dir.path().join("link"), dir.path().join("dangling"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        symlink("made", &dangling).unwrap();
        write_whole(&link, b"new").unwrap();
        write_whole(&dangling, b"new").unwrap();
        assert!(link.is_symlink() && dangling.is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(std::fs::read(dir.path().join("made")).unwrap(), b"new");
        symlink("circle", dir.path().join("circle")).unwrap();
        assert!(write_whole(&dir.path().join("circle"), b"").is_err());
    }

    #[test]
    fn pipes_and_devices_are_written_to_and_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        write_whole(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(is_special(&pipe));
    }

    #[test]
    fn temporary_folders_are_private() {
        let folder = private_folder().unwrap();
        assert_eq!(std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o7777, 0o700);
    }
}
