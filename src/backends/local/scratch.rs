//! The only folder that a confined runner may write to, unless its task names others.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Prefix of the folders' names.
const PREFIX: &str = "qnnscope-scratch-";

/// A private folder of one runner, removed on drop. While this lives, the folder is locked, so that leftovers
/// of a killed process can be distinguished from folders in use.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _lock: Option<File>,
}

impl Scratch {
    /// Creates one, and removes those whose owners are gone.
    pub fn new() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        remove_left(&parent);
        let dir = crate::files::private_folder_in(&parent, PREFIX)?;
        let lock = File::open(dir.path()).ok().filter(|file| file.try_lock().is_ok());
        Ok(Self { dir, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes folders that nobody holds. Other users' folders cannot be removed, and just-created ones are not locked yet,
/// so young ones stay.
fn remove_left(parent: &Path) {
    for path in left_in(parent) {
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn left_in(parent: &Path) -> impl Iterator<Item = PathBuf> {
    const YOUNG: std::time::Duration = std::time::Duration::from_secs(10);
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        let is_old = meta.modified().ok()?.elapsed().is_ok_and(|age| age > YOUNG);
        (meta.is_dir() && is_old && entry.file_name().to_string_lossy().starts_with(PREFIX)).then(|| entry.path())
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    #[test]
    fn folders_of_the_dead_are_removed_and_those_in_use_stay() {
        let parent = tempfile::tempdir().unwrap();
        let made = |name: &str, age_s| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            File::open(&path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
            path
        };
        let dead = made("qnnscope-scratch-dead", 60);
        let used = made("qnnscope-scratch-used", 60);
        let young = made("qnnscope-scratch-young", 0);
        let other = made("other", 60);
        let lock = File::open(&used).unwrap();
        lock.try_lock().unwrap();
        remove_left(parent.path());
        assert!(!dead.exists());
        assert!(used.exists() && young.exists() && other.exists());
    }

    #[test]
    fn only_its_user_may_enter() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(!path.exists());
    }
}
