//! A port on loopback that can be closed and reopened.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ports below those that the system assigns to outgoing connections, so that a closed one stays free, and
/// outside 5555 to 5585, where adb looks for emulators on its own.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// How often to check for a waiting connection.
const POLL: Duration = Duration::from_millis(2);

struct Open {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The port, open or not.
pub struct Listener {
    port: u16,
    /// Bound, but without a thread that listens yet.
    reserved: Mutex<Option<TcpListener>>,
    open: Mutex<Option<Open>>,
}

impl Listener {
    /// Reserves a free port. Connections wait until it is opened.
    pub fn new() -> Self {
        let (port, listener) = free_port();
        Self { port, reserved: Mutex::new(Some(listener)), open: Mutex::default() }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, calls `accept` for every connection; no effect if already open.
    pub fn open(&self, accept: impl Fn(TcpStream) + Send + 'static) {
        let mut open = self.open.lock().unwrap();
        if open.is_some() {
            return;
        }
        let listener = self.reserved.lock().unwrap().take().unwrap_or_else(|| bind(self.port).unwrap());
        listener.set_nonblocking(true).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((socket, _)) => {
                        socket.set_nonblocking(false).unwrap();
                        accept(socket);
                    }
                    Err(_) => std::thread::sleep(POLL),
                }
            }
        });
        *open = Some(Open { stop, thread });
    }

    /// From now on, refuses connections.
    pub fn close(&self) {
        drop(self.reserved.lock().unwrap().take());
        if let Some(open) = self.open.lock().unwrap().take() {
            open.stop.store(true, Ordering::Relaxed);
            let _ = open.thread.join();
        }
    }
}

fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// A bound port that nobody else has.
pub fn free_port() -> (u16, TcpListener) {
    let span = u64::from(PORTS.end - PORTS.start);
    for _ in 0..1000 {
        // Every hasher state gets a new seed, which is random enough here.
        let offset = u16::try_from(RandomState::new().build_hasher().finish() % span).unwrap();
        if let Ok(listener) = bind(PORTS.start + offset) {
            return (PORTS.start + offset, listener);
        }
    }
    panic!("no free port among {PORTS:?} on 127.0.0.1");
}
