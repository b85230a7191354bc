//! Requests to the adb server.

use crate::devices::{DeviceError, DeviceState};
use crate::event::clean_text;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Default port of an adb server.
pub const DEFAULT_PORT: u16 = 5037;

/// Time limit for one answer. A `connect` to an address where nothing listens takes longest.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// Maximum plausible length of a device list.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The adb server to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdbServer {
    address: SocketAddrV4,
    /// True if we may start it: it is on this machine, at a port that adb can be given.
    startable: bool,
}

/// A device as listed by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Serial, or `HOST:PORT` for wireless ones.
    pub serial: String,
    /// Whether it can be used.
    pub state: DeviceState,
    /// Model name from adb, with `_` for spaces.
    pub model: Option<String>,
}

impl Default for AdbServer {
    fn default() -> Self {
        Self { address: SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, DEFAULT_PORT), startable: true }
    }
}

impl AdbServer {
    /// The server named by the option, `$ADB_SERVER_SOCKET` or `$ANDROID_ADB_SERVER_PORT`, or the default one.
    pub fn locate(option: Option<&str>) -> Result<Self, DeviceError> {
        let socket = || std::env::var("ADB_SERVER_SOCKET").ok().filter(|text| !text.is_empty());
        let port = || std::env::var("ANDROID_ADB_SERVER_PORT").ok().filter(|text| !text.is_empty());
        match (option, socket(), port()) {
            (Some(text), _, _) => Self::parse(text),
            (None, Some(text), _) => Self::parse(&text),
            (None, None, Some(port)) => Self::parse(&format!("127.0.0.1:{port}")),
            (None, None, None) => Ok(Self::default()),
        }
    }

    /// A server from `HOST:PORT`, `tcp:HOST:PORT` or `tcp:PORT`.
    pub fn parse(text: &str) -> Result<Self, DeviceError> {
        let failed = |reason: &str| DeviceError::ServerAddress { text: clean_text(text), reason: reason.to_owned() };
        let bare = text.strip_prefix("tcp:").unwrap_or(text);
        let full = if bare.contains(':') { bare.to_owned() } else { format!("127.0.0.1:{bare}") };
        let found = full.to_socket_addrs().map_err(|error| failed(&error.to_string()))?;
        let v4 = |address| match address {
            SocketAddr::V4(v4) => Some(v4),
            SocketAddr::V6(_) => None,
        };
        let address = found.into_iter().find_map(v4).ok_or_else(|| failed("it has no IPv4 address"))?;
        Ok(Self { address, startable: address.ip().is_loopback() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Ensures that the server runs: starts one if none answers and it would be on this machine.
    pub async fn ensure(&self) -> Result<(), DeviceError> {
        match self.ask("host:version").await {
            Err(DeviceError::NoServer { .. }) if self.startable => self.start().await,
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    async fn start(&self) -> Result<(), DeviceError> {
        let mut command = tokio::process::Command::new("adb");
        command.arg("-P").arg(self.address.port().to_string()).arg("start-server");
        // With the variable set, adb considers the server remote and does not start it.
        command.env_remove("ADB_SERVER_SOCKET").stdin(std::process::Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(ANSWER_LIMIT, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => return Err(DeviceError::NoAdb),
            Ok(Err(error)) => return Err(DeviceError::ServerStart { reason: error.to_string() }),
            Err(_) => {
                let reason = format!("it took longer than {} s", ANSWER_LIMIT.as_secs());
                return Err(DeviceError::ServerStart { reason });
            }
        };
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(DeviceError::ServerStart { reason: clean_text(text.trim().lines().last().unwrap_or("no reason given")) })
    }

    /// The devices currently attached.
    pub async fn devices(&self) -> Result<Vec<Attached>, DeviceError> {
        Ok(parse_devices(&self.ask("host:devices-l").await?))
    }

    /// Connects the server to a device on the network. Returns the server's own message on success.
    pub async fn connect_to(&self, address: &str) -> Result<String, DeviceError> {
        let action = format!("connecting to {}", clean_text(address));
        let answer = clean_text(self.ask(&format!("host:connect:{address}")).await?.trim());
        // The server answers OKAY in either case; only its message shows the result.
        if answer.starts_with("connected to") || answer.starts_with("already connected") {
            return Ok(answer);
        }
        Err(DeviceError::Refused { action, message: answer })
    }

    async fn ask(&self, request: &str) -> Result<String, DeviceError> {
        let answer = async {
            let mut stream = self.request(request).await?;
            self.text(&mut stream).await
        };
        tokio::time::timeout(ANSWER_LIMIT, answer).await.unwrap_or_else(|_| Err(self.silent("it does not answer")))
    }

    async fn request(&self, request: &str) -> Result<TcpStream, DeviceError> {
        let gone = |error: std::io::Error| self.silent(&error.to_string());
        let mut stream = TcpStream::connect(self.address).await.map_err(gone)?;
        stream.write_all(format!("{:04x}{request}", request.len()).as_bytes()).await.map_err(gone)?;
        let mut status = [0; 4];
        stream.read_exact(&mut status).await.map_err(gone)?;
        match &status {
            b"OKAY" => Ok(stream),
            b"FAIL" => {
                let message = self.text(&mut stream).await?;
                let action = request.split(':').nth(1).unwrap_or(request).to_owned();
                Err(DeviceError::Refused { action, message: clean_text(message.trim()) })
            }
            _ => Err(self.silent("something other than an adb server answered")),
        }
    }

    /// A text preceded by its length as four hexadecimal digits.
    async fn text(&self, stream: &mut TcpStream) -> Result<String, DeviceError> {
        let gone = |error: std::io::Error| self.silent(&error.to_string());
        let mut length = [0; 4];
        stream.read_exact(&mut length).await.map_err(gone)?;
        let length = std::str::from_utf8(&length).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let length = length.filter(|length| *length <= MAX_ANSWER_BYTES);
        let Some(length) = length else { return Err(self.silent("something other than an adb server answered")) };
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await.map_err(gone)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn silent(self, reason: &str) -> DeviceError {
        DeviceError::NoServer { server: self.address.to_string(), reason: reason.to_owned() }
    }
}

impl std::fmt::Display for AdbServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

/// Lines of `adb devices -l`: serial, state (of one or more words), then `key:value` pairs.
pub(crate) fn parse_devices(text: &str) -> Vec<Attached> {
    text.lines().filter_map(parse_device).collect()
}

fn parse_device(line: &str) -> Option<Attached> {
    let (serial, rest) = line.split_once([' ', '\t'])?;
    let rest = rest.trim();
    let is_pair = |word: &&str| {
        ["usb:", "product:", "model:", "device:", "transport_id:", "features:"].iter().any(|key| word.starts_with(key))
    };
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    // `device` is also a state: the pairs begin at the first word that has a key and a value.
    let first_pair = words.iter().position(is_pair).unwrap_or(words.len());
    let model = words[first_pair..].iter().find_map(|word| word.strip_prefix("model:"));
    let state = words[..first_pair].join(" ");
    // adb prints the bus path of USB devices without a key, as in `device 1-2 product:…`.
    let state = match state.split_once(' ') {
        Some((word, _)) if !word.eq("no") => word.to_owned(),
        _ => state,
    };
    Some(Attached { serial: clean_text(serial), state: DeviceState::parse(&state), model: model.map(clean_text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_adb_prints_them() {
        let text = "0123456789ABCDEF       device usb:1-2 product:kalama model:SM_S911B device:dm1q transport_id:3\n\
                    127.0.0.1:6001         offline transport_id:4\n\
                    FA77\tunauthorized usb:1-1 transport_id:5\n\
                    88Y0  no permissions (user in plugdev group; are your udev rules wrong?); see [http://developer.android.com/tools/device.html] usb:1-3 transport_id:6\n\
                    emulator-5554 device product:x model:y device:z\n\
                    X recovery\n\nbroken\n";
        let devices = parse_devices(text);
        let states: Vec<_> = devices.iter().map(|device| (device.serial.as_str(), device.state.clone())).collect();
        assert_eq!(
            states,
            [
                ("0123456789ABCDEF", DeviceState::Device),
                ("127.0.0.1:6001", DeviceState::Offline),
                ("FA77", DeviceState::Unauthorized),
                ("88Y0", DeviceState::NoPermissions),
                ("emulator-5554", DeviceState::Device),
                ("X", DeviceState::Recovery),
            ]
        );
        assert_eq!(devices[0].model.as_deref(), Some("SM_S911B"));
    }

    #[test]
    fn addresses_are_taken_in_every_usual_form() {
        for (text, address) in [
            ("127.0.0.1:5038", "127.0.0.1:5038"),
            ("tcp:127.0.0.1:5039", "127.0.0.1:5039"),
            ("tcp:5040", "127.0.0.1:5040"),
            ("5041", "127.0.0.1:5041"),
        ] {
            assert_eq!(AdbServer::parse(text).unwrap().to_string(), address);
        }
        for text in ["", "tcp:", "host:notaport", "127.0.0.1:70000"] {
            assert!(matches!(AdbServer::parse(text), Err(DeviceError::ServerAddress { .. })), "{text}");
        }
    }
}
