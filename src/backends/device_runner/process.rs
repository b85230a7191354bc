//! A runner's process on a device, driven by the supervisor.

use super::error::BUILD_ADVICE;
use super::filter::FrameFilter;
use super::script::Start;
use crate::backends::local::{Exit, Process, Running};
use crate::devices::{Device, DeviceError, EndMarker, Piece, ShellStream};
use crate::probes::process::ProcessMemory;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Buffer for frames and for console lines before the device is slowed down, bytes each.
const PIPE_BYTES: usize = 256 << 10;
/// Time a killed runner gets before its stream is abandoned.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Time for the supervisor to learn how a runner ended.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// Time to fetch the last output.
const REST_LIMIT: Duration = Duration::from_secs(10);
/// Maximum bytes of it to fetch: more than any failure needs.
const REST_BYTES: u64 = 1 << 20;

/// Advice if the link broke and the run was not resumed.
const LOST_ADVICE: &str = "check the cable or the network and run again; a run goes on when the device is back within two \
                           minutes";

/// Ends a task when dropped.
#[derive(Debug)]
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A runner on a device. Dropping it closes the runner's input, which ends the runner.
#[derive(Debug)]
pub struct DeviceProcess {
    orders: mpsc::UnboundedSender<Order>,
    driver: Task<Exit>,
}

#[derive(Debug)]
enum Order {
    Write(Vec<u8>),
    Kill,
}

impl Process for DeviceProcess {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.orders.send(Order::Write(bytes.to_vec())).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    fn kill(&mut self) {
        // Fails if it has ended.
        let _ = self.orders.send(Order::Kill);
    }

    fn has_ended(&mut self) -> bool {
        self.driver.0.is_finished()
    }

    async fn wait(&mut self) -> Option<Exit> {
        tokio::time::timeout(WAIT_LIMIT, &mut self.driver.0).await.ok()?.ok()
    }

    /// Not observed from here: the runner reports its memory itself.
    fn memory(&self) -> Option<ProcessMemory> {
        None
    }
}

/// A runner on a device with its pipes.
pub type DeviceRunning = Running<DeviceProcess, BufReader<DuplexStream>, BufReader<DuplexStream>>;

/// Starts the runner and reports its process id once known. Failures, including those to start, count as its end.
pub fn start(device: &Device, start: Start) -> (DeviceRunning, oneshot::Receiver<u32>) {
    let (frames, frames_out) = tokio::io::duplex(PIPE_BYTES);
    let (console, console_out) = tokio::io::duplex(PIPE_BYTES);
    let (orders, given) = mpsc::unbounded_channel();
    let (tell_pid, pid) = oneshot::channel();
    let marker = EndMarker::new();
    let driver = Driver {
        stream: device.stream(&format!("{}{}", start.script(), marker.after())),
        console: Some(device.stream(&start.follow())),
        console_bytes: 0,
        filter: FrameFilter::new(marker),
        tell_pid: Some(tell_pid),
        killer: None,
        device: device.clone(),
        start,
    };
    let driver = Task(tokio::spawn(driver.drive(given, frames_out, console_out)));
    let running = Running {
        process: DeviceProcess { orders, driver },
        frames: BufReader::with_capacity(1 << 16, frames),
        console: BufReader::new(console),
    };
    (running, pid)
}

/// Moves bytes between the streams and the supervisor.
struct Driver {
    device: Device,
    start: Start,
    stream: ShellStream,
    /// What the runner prints; `None` once that stream has ended.
    console: Option<ShellStream>,
    console_bytes: u64,
    filter: FrameFilter,
    tell_pid: Option<oneshot::Sender<u32>>,
    /// Since when the runner is being killed, and the task doing so.
    killer: Option<(Instant, Task<()>)>,
}

impl Driver {
    async fn drive(
        mut self,
        mut orders: mpsc::UnboundedReceiver<Order>,
        mut frames: DuplexStream,
        mut console: DuplexStream,
    ) -> Exit {
        let mut tick = tokio::time::interval(Duration::from_millis(500));
        let mut given = true;
        let exit = loop {
            tokio::select! {
                order = orders.recv(), if given => match order {
                    Some(Order::Write(bytes)) => self.stream.write(&bytes),
                    Some(Order::Kill) => if !self.kill() {
                        break Exit::Signal(9);
                    },
                    None => given = false,
                },
                piece = self.stream.next() => match piece {
                    Some(Piece::Output(bytes)) => {
                        let mut passed = Vec::with_capacity(bytes.len());
                        let status = self.filter.take(&bytes, &mut passed);
                        if let Some(pid) = self.filter.pid()
                            && let Some(tell_pid) = self.tell_pid.take()
                        {
                            let _ = tell_pid.send(pid);
                        }
                        // Fails when the supervisor has abandoned it.
                        let _ = frames.write_all(&passed).await;
                        if let Some(status) = status {
                            break self.exit(status);
                        }
                    }
                    Some(Piece::Failed(error)) => break lost(error),
                    None => {
                        let (id, action) = (self.device.id().to_owned(), "the runner was running".to_owned());
                        break lost(DeviceError::LinkLost { id, action });
                    }
                },
                piece = next(&mut self.console) => match piece {
                    Some(Piece::Output(bytes)) => {
                        self.console_bytes += bytes.len() as u64;
                        let _ = console.write_all(&bytes).await;
                    }
                    // The runner's own stream shows whether the link is lost.
                    _ => self.console = None,
                },
                _ = tick.tick() => if self.killer.as_ref().is_some_and(|(since, _)| since.elapsed() > KILL_LIMIT) {
                    // Not even a kill ends it; all that remains is to hang up.
                    break Exit::Signal(9);
                },
            }
        };
        drop(frames);
        if !matches!(exit, Exit::Lost { .. }) {
            self.rest(&mut console).await;
        }
        exit
    }

    /// Kills the runner, once. False if its process id is unknown: then only hanging up ends it.
    fn kill(&mut self) -> bool {
        let Some(pid) = self.filter.pid() else { return false };
        let device = &self.device;
        self.killer.get_or_insert_with(|| {
            let device = device.clone();
            let killing = async move {
                // The stream shows whether it worked.
                let _ = device.run(&format!("kill -KILL {pid}"), "ending the runner").await;
            };
            (Instant::now(), Task(tokio::spawn(killing)))
        });
        true
    }

    /// Output since the last fetch.
    async fn rest(&mut self, console: &mut DuplexStream) {
        self.console = None;
        let script = self.start.rest(self.console_bytes, REST_BYTES);
        if let Ok(rest) = self.device.run_within(&script, "reading what the runner printed", REST_LIMIT).await {
            let _ = console.write_all(&rest.bytes).await;
        }
    }

    fn exit(&self, status: i32) -> Exit {
        match status {
            // A runner sends its hello first. Shells and loaders that cannot execute a file end with 1, 126 or 127.
            1..=127 if !self.filter.any() => Exit::NotExecuted { status, advice: BUILD_ADVICE.to_owned() },
            129.. => Exit::Signal(status - 128),
            status => Exit::Status(Some(status)),
        }
    }
}

fn lost(error: DeviceError) -> Exit {
    Exit::Lost { error, advice: LOST_ADVICE.to_owned() }
}

async fn next(stream: &mut Option<ShellStream>) -> Option<Piece> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}
