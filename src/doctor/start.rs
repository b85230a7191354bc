//! Starts a program to see whether it works: in a scratch folder, with a time limit, and without leaving anything
//! behind.

use crate::devices::Group;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Maximum output read, bytes.
const MOST_OUTPUT: u64 = 64 << 10;

/// Outcome of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It ended by itself, with this status and output.
    Ended {
        /// Exit status; `None` for a signal.
        status: Option<i32>,
        /// Stdout and stderr, truncated.
        output: String,
    },
    /// It did not end in time.
    Hangs,
    /// It could not be started at all.
    Refused(String),
}

/// Starts a program and waits for its end. Its input is empty, and `variables` are set for it.
pub async fn start(program: &Path, arguments: &[&str], variables: &[(&str, &OsStr)], limit: Duration) -> Started {
    let Ok(scratch) = crate::files::private_folder() else {
        return Started::Refused("there is no temporary folder".to_owned());
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).current_dir(scratch.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Its own process group, so that whatever it starts ends with it.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Started::Refused(error.to_string()),
    };
    let _group = Group(child.id());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let whole = async {
        let first = async {
            if let Some(pipe) = stdout {
                let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut out).await;
            }
        };
        let second = async {
            if let Some(pipe) = stderr {
                let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut err).await;
            }
        };
        tokio::join!(first, second);
        child.wait().await
    };
    match tokio::time::timeout(limit, whole).await {
        Err(_) => Started::Hangs,
        Ok(Err(error)) => Started::Refused(error.to_string()),
        Ok(Ok(status)) => {
            out.push(b'\n');
            out.extend(err);
            Started::Ended { status: status.code(), output: String::from_utf8_lossy(&out).into_owned() }
        }
    }
}

/// Finds a program in the folders of `PATH`.
pub fn on_path(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_executable(file))
}

/// Whether a file may be executed.
#[cfg(unix)]
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether a file may be executed.
#[cfg(not(unix))]
pub fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The Debian or Ubuntu package of a library, if known.
pub fn package_of(library: &str) -> Option<&'static str> {
    let packages = [
        ("libc++abi.so", "libc++abi1"),
        ("libc++.so", "libc++1"),
        ("libunwind.so", "libunwind8"),
        ("libatomic.so", "libatomic1"),
        ("libgomp.so", "libgomp1"),
        ("libflatbuffers", "libflatbuffers-dev"),
    ];
    packages.into_iter().find(|(name, _)| library.starts_with(name)).map(|(_, package)| package)
}

/// What to do about missing libraries.
pub fn advice_for(missing: &[String]) -> String {
    let packages: Vec<&str> = missing.iter().filter_map(|name| package_of(name)).collect();
    if packages.is_empty() {
        return format!("install the package that has {}, or add its folder to LD_LIBRARY_PATH", missing.join(", "));
    }
    format!("sudo apt-get install {}", packages.join(" "))
}
