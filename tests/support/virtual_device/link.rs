//! One connection from the host's adb server: handshake, streams, delay and loss.

use super::core::{Core, LinkState};
use super::packet::{Command, MAX_PAYLOAD, Packet, VERSION};
use super::services;
use super::stream::Stream;
use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// `AUTH` types: from the device, a token to sign; from the host, the signature and the public key.
const AUTH_TOKEN: u32 = 1;
/// The smallest maximum payload in any version of adb.
const OLD_MAX_PAYLOAD: u32 = 4096;

/// A connection. It lives as long as a service uses it.
pub struct Link {
    core: Arc<Core>,
    socket: TcpStream,
    outgoing: Sender<(Instant, Vec<u8>)>,
    streams: Mutex<HashMap<u32, Arc<Stream>>>,
    last_id: AtomicU32,
    max_payload: AtomicU32,
}

impl Link {
    /// Serves `socket` until either side closes it.
    pub fn start(core: Arc<Core>, socket: TcpStream) -> Arc<Self> {
        socket.set_nodelay(true).unwrap();
        let (outgoing, packets) = channel();
        let link = Arc::new(Self {
            core,
            outgoing,
            socket: socket.try_clone().unwrap(),
            streams: Mutex::default(),
            last_id: AtomicU32::new(0),
            max_payload: AtomicU32::new(OLD_MAX_PAYLOAD),
        });
        let (arrived, arrivals) = channel();
        let (writer, reader, dispatcher) = (link.core.clone(), link.clone(), link.clone());
        let for_writer = socket.try_clone().unwrap();
        std::thread::spawn(move || send_in_time(&writer, for_writer, &packets));
        std::thread::spawn(move || {
            let mut from = BufReader::with_capacity(64 * 1024, socket);
            while let Ok(packet) = Packet::read(&mut from) {
                if arrived.send((Instant::now() + reader.core.delay(), packet)).is_err() {
                    break;
                }
            }
            reader.cut();
        });
        std::thread::spawn(move || {
            for (due, packet) in arrivals {
                wait_until(due);
                dispatcher.handle(packet);
            }
            dispatcher.cut();
            let streams = std::mem::take(&mut *dispatcher.streams.lock().unwrap());
            for stream in streams.into_values() {
                stream.closed_by_host();
            }
        });
        link
    }

    /// Largest payload of a packet as agreed, bytes.
    pub fn max_payload(&self) -> usize {
        self.max_payload.load(Ordering::Relaxed) as usize
    }

    /// Queues a packet, which is silently lost if the link is.
    pub fn send(&self, packet: &Packet) {
        let _ = self.outgoing.send((Instant::now() + self.core.delay(), packet.encode()));
    }

    /// Forgets a stream that has ended.
    pub fn forget(&self, local: u32) {
        self.streams.lock().unwrap().remove(&local);
    }

    /// Closes the connection; its shells get a hangup.
    pub fn cut(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Introduces the device, during the handshake or when the user has just allowed the host.
    pub fn introduce(&self) {
        let payload = self.core.banner().into_bytes();
        self.send(&Packet { command: Command::Connect, arg0: VERSION, arg1: MAX_PAYLOAD, payload });
    }

    fn ask_for_key(&self) {
        // A real device's token is random, but a host that is never allowed need not sign a new one each
        // time.
        self.send(&Packet { command: Command::Auth, arg0: AUTH_TOKEN, arg1: 0, payload: vec![0x5a; 20] });
    }

    fn handle(self: &Arc<Self>, packet: Packet) {
        let state = self.core.link_state();
        let trusted = matches!(state, LinkState::Device | LinkState::Recovery);
        match packet.command {
            Command::Connect => {
                self.max_payload.store(packet.arg1.clamp(OLD_MAX_PAYLOAD, MAX_PAYLOAD), Ordering::Relaxed);
                match state {
                    LinkState::Device | LinkState::Recovery => self.introduce(),
                    LinkState::Unauthorized => self.ask_for_key(),
                    LinkState::Offline => {}
                }
            }
            Command::Auth if state == LinkState::Unauthorized => {
                // An unknown signature is answered with another token; after the public key, the user is
                // asked.
                if packet.arg0 == 2 {
                    self.ask_for_key();
                }
            }
            Command::Open if trusted => self.open(packet.arg0, &packet.payload),
            Command::Okay | Command::Write | Command::Close => self.to_stream(packet),
            Command::Auth | Command::Open => {}
        }
    }

    fn open(self: &Arc<Self>, remote: u32, payload: &[u8]) {
        let name = payload.strip_suffix(b"\0").unwrap_or(payload);
        let Some(service) = services::find(&self.core, name) else {
            self.send(&Packet::bare(Command::Close, 0, remote));
            return;
        };
        let local = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (stream, input) = Stream::new(self.clone(), local, remote);
        self.streams.lock().unwrap().insert(local, stream.clone());
        stream.okay();
        let core = self.core.clone();
        std::thread::spawn(move || services::serve(&core, &service, &stream, input));
    }

    fn to_stream(&self, packet: Packet) {
        let stream = self.streams.lock().unwrap().get(&packet.arg1).cloned();
        match (packet.command, stream) {
            (Command::Okay, Some(stream)) => stream.acknowledged(),
            (Command::Write, Some(stream)) => stream.received(packet.payload),
            (Command::Close, Some(stream)) => {
                self.forget(packet.arg1);
                stream.closed_by_host();
                self.send(&Packet::bare(Command::Close, packet.arg1, packet.arg0));
            }
            // The answer to a write that arrived after the end of the stream.
            (Command::Write, None) => self.send(&Packet::bare(Command::Close, 0, packet.arg0)),
            _ => {}
        }
    }
}

/// Writes packets when they are due, until the link ends or its remaining bytes are used up.
fn send_in_time(core: &Core, mut socket: TcpStream, packets: &Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in packets {
        wait_until(due);
        let allowed = core.spend(bytes.len());
        let sent = socket.write_all(&bytes[..allowed]);
        if sent.is_err() || allowed < bytes.len() {
            break;
        }
    }
    let _ = socket.shutdown(Shutdown::Both);
}

fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > Duration::ZERO {
        std::thread::sleep(left);
    }
}
