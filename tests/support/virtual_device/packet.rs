//! Packets of adb's device transport: a 24-byte header (command, two arguments, length, checksum, magic;
//! little-endian), then data.

use std::io::{self, Read};

/// Protocol version from which on checksums are not verified.
pub const VERSION: u32 = 0x0100_0001;
/// Largest payload this device accepts, bytes.
pub const MAX_PAYLOAD: u32 = 1024 * 1024;

/// What a packet requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Connect,
    Auth,
    Open,
    Okay,
    Write,
    Close,
}

impl Command {
    const ALL: [(Self, &'static [u8; 4]); 6] = [
        (Self::Connect, b"CNXN"),
        (Self::Auth, b"AUTH"),
        (Self::Open, b"OPEN"),
        (Self::Okay, b"OKAY"),
        (Self::Write, b"WRTE"),
        (Self::Close, b"CLSE"),
    ];

    fn code(self) -> u32 {
        Self::ALL.iter().find(|(command, _)| *command == self).map(|(_, name)| u32::from_le_bytes(**name)).unwrap()
    }

    fn of(code: u32) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| u32::from_le_bytes(**name) == code).map(|(command, _)| *command)
    }
}

/// One packet.
#[derive(Debug)]
pub struct Packet {
    pub command: Command,
    pub arg0: u32,
    pub arg1: u32,
    pub payload: Vec<u8>,
}

impl Packet {
    /// A packet without data.
    pub fn bare(command: Command, arg0: u32, arg1: u32) -> Self {
        Self { command, arg0, arg1, payload: Vec::new() }
    }

    /// Header and data, ready to send. The checksum is filled in for sides that still verify it.
    pub fn encode(&self) -> Vec<u8> {
        let sum = match self.command {
            Command::Connect | Command::Auth => self.payload.iter().map(|byte| u32::from(*byte)).sum(),
            _ => 0u32,
        };
        let code = self.command.code();
        let length = u32::try_from(self.payload.len()).unwrap();
        let mut bytes = Vec::with_capacity(24 + self.payload.len());
        for word in [code, self.arg0, self.arg1, length, sum, !code] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&self.payload);
        bytes
    }

    /// Reads the next packet; an unknown or damaged one is an error, after which the link is unusable.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut header = [0u8; 24];
        from.read_exact(&mut header)?;
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {header:02x?}"));
        if word(20) != !word(0) {
            return Err(damaged("magic does not fit the command"));
        }
        let command = Command::of(word(0)).ok_or_else(|| damaged("unknown command"))?;
        if word(12) > MAX_PAYLOAD {
            return Err(damaged("payload too long"));
        }
        let mut payload = vec![0; word(12) as usize];
        from.read_exact(&mut payload)?;
        Ok(Self { command, arg0: word(4), arg1: word(8), payload })
    }
}
