//! The services that a host can open on the device, by name.

use super::core::Core;
use super::shell::{self, Request};
use super::stream::{Input, Stream};
use super::sync;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

/// A service that exists on this device.
pub enum Service {
    Shell(Request),
    Sync,
    Reboot,
    /// Prints a line and ends.
    Say(&'static str),
}

/// The service that `name` stands for; `None` if this device does not know it, so that the host sees the
/// stream closed.
pub fn find(core: &Core, name: &[u8]) -> Option<Service> {
    let colon = name.iter().position(|byte| *byte == b':')?;
    let (kind, rest) = (std::str::from_utf8(&name[..colon]).ok()?, &name[colon + 1..]);
    let mut words = kind.split(',');
    match words.next()? {
        "shell" => {
            let mut request =
                Request { command: OsString::from_vec(rest.to_vec()), v2: false, exec: false, term: None };
            for word in words {
                match word {
                    "v2" => request.v2 = true,
                    // There is no terminal here: both are pipes.
                    "raw" | "pty" => {}
                    _ => request.term = request.term.or(word.strip_prefix("TERM=").map(str::to_owned)),
                }
            }
            (!request.v2 || core.shell_v2()).then_some(Service::Shell(request))
        }
        "exec" => {
            let command = OsString::from_vec(rest.to_vec());
            Some(Service::Shell(Request { command, v2: false, exec: true, term: None }))
        }
        "sync" => Some(Service::Sync),
        "reboot" => Some(Service::Reboot),
        "root" if core.uid() == 0 => Some(Service::Say("adbd is already running as root\n")),
        "root" => Some(Service::Say("adbd cannot run as root in production builds\n")),
        _ => None,
    }
}

/// Serves the stream to its end.
pub fn serve(core: &Arc<Core>, service: &Service, stream: &Arc<Stream>, input: Input) {
    match service {
        Service::Shell(request) => shell::run(core, stream, input, request),
        Service::Sync => {
            if let Some(root) = core.root() {
                sync::serve(&root, core.uid(), stream, input);
            }
            stream.close();
        }
        Service::Reboot => {
            stream.close();
            core.reboot(core.reboot_time());
        }
        Service::Say(text) => {
            let _ = stream.write(text.as_bytes());
            stream.close();
        }
    }
}
