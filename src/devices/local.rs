//! This machine: the same interface, with its own shell and files.

use super::device::{Device, Pending, Progress, Transport};
use super::error::DeviceError;
use super::process_group::Group;
use super::stream::{Piece, ShellStream, StreamFeed};
use crate::event::{DeviceInfo, DeviceKind, LOCAL_DEVICE, clean_text};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use sysinfo::{CpuRefreshKind, RefreshKind, System};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Identity of this machine.
pub fn local_device() -> DeviceInfo {
    let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing())).ok();
    let cpu = system.as_ref().and_then(|system| system.cpus().first());
    let brand = cpu.map(|cpu| clean_text(cpu.brand().trim())).filter(|brand| !brand.is_empty());
    let name =
        System::long_os_version().or_else(|_| System::name()).unwrap_or_else(|_| std::env::consts::OS.to_owned());
    let kernel = System::kernel_version().map_or_else(|_| String::new(), |version| format!(", kernel {version}"));
    DeviceInfo {
        id: LOCAL_DEVICE.to_owned(),
        kind: DeviceKind::Local,
        model: brand,
        soc: soc_name(),
        hexagon_arch: None,
        abi: std::env::consts::ARCH.to_owned(),
        os: clean_text(&format!("{name}{kernel}")),
    }
}

/// Name of the SoC if the kernel reports it (Snapdragon boards that run qnnscope themselves).
fn soc_name() -> Option<String> {
    let name = std::fs::read_to_string("/sys/devices/soc0/machine").ok()?;
    Some(clean_text(name.trim())).filter(|name| !name.is_empty())
}

/// True if this process runs as root.
#[cfg(unix)]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Root does not exist here.
#[cfg(not(unix))]
pub fn is_root() -> bool {
    false
}

/// True on a Snapdragon that runs qnnscope itself.
pub fn is_snapdragon() -> bool {
    Path::new("/sys/devices/soc0/soc_id").exists()
}

/// This machine as a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalTransport;

impl Device {
    /// This machine.
    pub fn local() -> Self {
        Self::new(LocalTransport)
    }
}

impl Transport for LocalTransport {
    fn id(&self) -> &'static str {
        LOCAL_DEVICE
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Local
    }

    fn shell(&self, script: &str) -> ShellStream {
        let (stream, feed) = ShellStream::new();
        let mut command = tokio::process::Command::new("sh");
        // One pipe for both outputs, as on devices behind adb.
        command.arg("-c").arg(format!("exec 2>&1\n{script}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        tokio::spawn(serve(command, feed));
        stream
    }

    fn revive(&self) -> Pending<'_, Result<(), DeviceError>> {
        Box::pin(async { Ok(()) })
    }

    fn push<'a>(&'a self, from: &'a Path, to: &'a str, progress: Progress) -> Pending<'a, Result<(), DeviceError>> {
        Box::pin(copy(from.to_owned(), PathBuf::from(to), progress))
    }

    fn pull<'a>(&'a self, from: &'a str, to: PathBuf, progress: Progress) -> Pending<'a, Result<(), DeviceError>> {
        Box::pin(copy(PathBuf::from(from), to, progress))
    }
}

/// Runs a command until it ends or the receiver is gone.
async fn serve(mut command: tokio::process::Command, feed: StreamFeed) {
    let StreamFeed { pieces, mut stdin, wake: _ } = feed;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(source) => {
            let error = DeviceError::Io { action: "start a shell".to_owned(), source };
            let _ = pieces.send(Piece::Failed(error)).await;
            return;
        }
    };
    let _group = Group(child.id());
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let write = async move {
        let Some(mut input) = input else { return };
        while let Some(bytes) = stdin.recv().await.filter(|bytes| !bytes.is_empty()) {
            if input.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    let read = async {
        let Some(mut output) = output else { return };
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count) = output.read(&mut buffer).await {
            if count == 0 || pieces.send(Piece::Output(buffer[..count].to_vec())).await.is_err() {
                break;
            }
        }
    };
    tokio::pin!(read);
    tokio::select! {
        () = &mut read => {}
        // The receiver is gone: dropping the group kills it.
        () = pieces.closed() => {}
        () = write => {
            tokio::select! {
                () = &mut read => {}
                () = pieces.closed() => {}
            }
        }
    }
}

async fn copy(from: PathBuf, to: PathBuf, progress: Progress) -> Result<(), DeviceError> {
    let action = format!("copy {} to {}", clean_text(&from.to_string_lossy()), clean_text(&to.to_string_lossy()));
    let copied = tokio::task::spawn_blocking(move || std::fs::copy(from, to)).await;
    match copied.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
        Ok(bytes) => {
            progress(bytes);
            Ok(())
        }
        Err(source) => Err(DeviceError::Io { action, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::FileError;
    use std::time::Duration;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_command_gives_its_output_and_status() {
        block_on(async {
            let device = Device::local();
            let output = device.run("echo out; echo err >&2; exit 3", "testing").await.unwrap();
            assert_eq!((output.text().as_str(), output.status), ("out\nerr", 3));
            let error = device.run_ok("echo why; exit 3", "testing").await.unwrap_err();
            assert!(error.to_string().ends_with("testing failed on local (exit status 3): why"), "{error}");
        });
    }

    #[test]
    fn a_command_that_hangs_or_dies_is_no_success() {
        block_on(async {
            let device = Device::local();
            let limit = Duration::from_millis(200);
            let hung = device.run_within("sleep 60", "waiting", limit).await;
            assert!(matches!(hung, Err(DeviceError::TimedOut { .. })), "{hung:?}");
            let killed = device.run("echo before; kill -9 $$", "dying").await;
            assert!(matches!(killed, Err(DeviceError::LinkLost { .. })), "{killed:?}");
        });
    }

    #[test]
    fn dropping_a_stream_ends_what_it_started() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("alive");
            let script = format!("while :; do echo x >> {}; sleep 0.02; done & echo $!; wait", file.display());
            let mut stream = Device::local().stream(&script);
            assert!(stream.next_line().await.unwrap().is_ok());
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            drop(stream);
            // Ending takes a moment; what matters is that the file stops growing.
            let mut before = u64::MAX;
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                let now = file.metadata().unwrap().len();
                if now == before {
                    break;
                }
                before = now;
            }
        });
    }

    #[test]
    fn many_files_are_read_at_once_and_their_errors_told_apart() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
            let hostile = path("a 'quoted' $(name)\nof two lines");
            std::fs::write(&hostile, "one\ntwo").unwrap();
            std::fs::write(path("empty"), "").unwrap();
            let absent = path("absent");
            let files = Device::local()
                .read_files(&[&hostile, &absent, &path("empty"), "/proc/self/mem", folder.path().to_str().unwrap()])
                .await
                .unwrap();
            assert_eq!(files[0], Ok(b"one\ntwo".to_vec()));
            assert_eq!(files[1], Err(FileError::Absent));
            assert_eq!(files[2], Ok(Vec::new()));
            assert!(matches!(&files[3], Err(FileError::Unreadable(why)) if !why.is_empty()), "{files:?}");
            assert!(matches!(&files[4], Err(FileError::Unreadable(_))), "{files:?}");
        });
    }
}
