//! The socket that tapped processes connect to.

use crate::files::private_folder;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};

/// Why the tap's socket cannot be opened.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    #[error("cannot create the folder of the tap's socket: {0}; $TMPDIR must name a writable folder")]
    Folder(std::io::Error),
    #[error("cannot listen on {path}: {source}")]
    Listen { path: PathBuf, source: std::io::Error },
    #[error("{0} already exists and is not an unused socket")]
    Taken(PathBuf),
}

/// A socket that processes connect to. It is removed on drop.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    folder: Option<TempDir>,
    /// Device and inode of the path while it is ours.
    file: Option<(u64, u64)>,
}

fn file(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|made| (made.dev(), made.ino()))
}

impl Listener {
    /// A socket in its own folder, which no other user can access.
    ///
    /// # Errors
    /// There is no room for temporary files, or the path of their folder is too long.
    pub fn private() -> Result<Self, ServeError> {
        let folder = private_folder().map_err(ServeError::Folder)?;
        let path = folder.path().join("tap");
        let socket = UnixListener::bind(&path).map_err(|source| ServeError::Listen { path: path.clone(), source })?;
        Ok(Self { socket, file: file(&path), path, folder: Some(folder) })
    }

    /// A socket of the user's choice. One left there by a dead process is replaced; nothing else is.
    ///
    /// # Errors
    /// The path is in use, or cannot be used.
    pub fn at(path: &Path) -> Result<Self, ServeError> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(metadata) = std::fs::symlink_metadata(&path) {
            let is_dead = metadata.file_type().is_socket() && std::os::unix::net::UnixStream::connect(&path).is_err();
            if !is_dead || std::fs::remove_file(&path).is_err() {
                return Err(ServeError::Taken(path));
            }
        }
        let listen = |source| ServeError::Listen { path: path.clone(), source };
        let socket = UnixListener::bind(&path).map_err(listen)?;
        // Other users must not read what programs report.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(listen)?;
        Ok(Self { socket, file: file(&path), path, folder: None })
    }

    /// The next connection.
    pub(super) async fn accept(&self) -> std::io::Result<UnixStream> {
        self.socket.accept().await.map(|(stream, _)| stream)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True while processes can find it under its path.
    pub(super) fn is_there(&self) -> bool {
        self.file.is_some() && self.file == file(&self.path)
    }

    /// Its own folder, if it has one, for small files.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
