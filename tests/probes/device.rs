//! Devices whose shell is a real shell of this machine, and whose files may come from a snapshot.

use qnnscope::devices::{Device, DeviceError, Pending, Piece, Progress, ShellStream, StreamFeed, Transport};
use qnnscope::event::DeviceKind;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A shell that takes a script as its last argument.
#[derive(Debug, Clone)]
pub struct ShellTransport {
    id: String,
    kind: DeviceKind,
    program: Vec<String>,
    /// Runs scripts that begin with `su`, if root is reached in another way than through the shell's own.
    root_program: Option<Vec<String>>,
    path: String,
}

/// The path of a tool; if it is missing, fails with the command that installs it.
pub fn tool(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{name} is missing: sudo apt-get install mksh toybox busybox dash util-linux"))
}

/// A device with this shell and this machine's files; its time is queried like that of a device behind adb.
pub fn device(shell: &[&str]) -> Device {
    let path = std::env::var("PATH").unwrap();
    shell_device("shell", DeviceKind::Adb, shell, &path)
}

pub fn shell_device(id: &str, kind: DeviceKind, shell: &[&str], path: &str) -> Device {
    let (program, id, path) = (words(shell), id.to_owned(), path.to_owned());
    Device::new(ShellTransport { id, kind, program, root_program: None, path })
}

/// The same, with another program for scripts that begin with `su`.
pub fn rooted_device(shell: &[&str], root_shell: &[&str]) -> Device {
    let path = std::env::var("PATH").unwrap();
    let (program, root_program) = (words(shell), Some(words(root_shell)));
    Device::new(ShellTransport { id: "rooted".to_owned(), kind: DeviceKind::Adb, program, root_program, path })
}

fn words(shell: &[&str]) -> Vec<String> {
    let mut program: Vec<String> = shell.iter().map(|word| (*word).to_owned()).collect();
    program[0] = tool(shell[0]).to_str().unwrap().to_owned();
    program.push("-c".to_owned());
    program
}

impl Transport for ShellTransport {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn shell(&self, script: &str) -> ShellStream {
        let (stream, StreamFeed { pieces, mut stdin, .. }) = ShellStream::new();
        let program = self.root_program.as_ref().filter(|_| script.starts_with("su ")).unwrap_or(&self.program);
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).arg(script).env_clear().env("PATH", &self.path).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            while let Some(bytes) = stdin.blocking_recv().filter(|bytes| !bytes.is_empty()) {
                if input.write_all(&bytes).is_err() {
                    break;
                }
            }
        });
        let closed = pieces.clone();
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if pieces.blocking_send(Piece::Output(buffer[..count].to_vec())).is_err() {
                    break;
                }
            }
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = child.wait();
            drop(ended);
        });
        // A shell that prints nothing more must end as well when nobody listens.
        tokio::spawn(async move {
            tokio::select! {
                () = closed.closed() => {
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                _ = end => {}
            }
        });
        stream
    }

    fn revive(&self) -> Pending<'_, Result<(), DeviceError>> {
        Box::pin(async { Ok(()) })
    }

    fn push<'a>(&'a self, _: &'a Path, _: &'a str, _: Progress) -> Pending<'a, Result<(), DeviceError>> {
        unreachable!("counters need no files on the device")
    }

    fn pull<'a>(&'a self, _: &'a str, _: PathBuf, _: Progress) -> Pending<'a, Result<(), DeviceError>> {
        unreachable!("counters need no files on the device")
    }
}
