//! A phone or board that does not exist: it speaks adb's device transport on loopback, so that the real adb
//! server lists it, and runs real shells in namespaces over the files of a snapshot.
//!
//! Needs Linux 5.6 with user namespaces, and the programs `adb`, `mksh`, `toybox`, `unshare`, `nsenter`, `setsid`.

mod adb;
mod core;
mod link;
mod listener;
mod motion;
mod namespaces;
mod packet;
mod services;
mod shell;
mod slow;
mod snapshot;
mod stream;
mod sync;
mod tree;

#[allow(unused_imports, reason = "each user needs its own part")]
pub use self::{
    adb::AdbServer,
    core::LinkState,
    snapshot::{Scene, Snapshot},
};

use self::core::Core;
use self::slow::SlowFile;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often moving readings are written.
const MOVE_EVERY: Duration = Duration::from_millis(100);

/// Initial state of a device; most of it can be changed while it runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Without shell v2 and the newer file services, as before Android 7.
    pub shell_v1: bool,
    pub state: LinkState,
    /// Added to each packet in both directions: about 4 ms is like USB, 30 ms like Wi-Fi.
    pub delay: Duration,
    /// Size of the file system in the folder that the shell can write to, bytes, if it is limited.
    pub disk_bytes: Option<u64>,
    /// `su` exists, and the user has denied it.
    pub su_refused: bool,
    /// Duration of a reboot requested by the host.
    pub reboot_time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shell_v1: false,
            state: LinkState::Device,
            delay: Duration::ZERO,
            disk_bytes: None,
            su_refused: false,
            reboot_time: Duration::from_secs(1),
        }
    }
}

struct Motion {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// A running device; everything that belongs to it is removed on drop.
pub struct VirtualDevice {
    core: Arc<Core>,
    scene: Mutex<Scene>,
    /// Locked while a path is a FIFO but not in this map, or the other way round: writing to a FIFO as if it
    /// were a file would never end.
    slow: Arc<Mutex<BTreeMap<String, SlowFile>>>,
    motion: Mutex<Option<Motion>>,
}

impl VirtualDevice {
    /// Boots a device and lets hosts connect.
    pub fn start(snapshot: Snapshot, options: Options) -> Self {
        let core = Core::boot(snapshot.read(), options);
        core.listen();
        Self { core, scene: Mutex::default(), slow: Arc::default(), motion: Mutex::default() }
    }

    /// The name that adb uses for the device, and the address for `adb connect`.
    pub fn serial(&self) -> String {
        format!("127.0.0.1:{}", self.core.listener.port())
    }

    /// The device's `/` on this machine. It contains neither a limited disk nor the files over `/proc`.
    pub fn tree(&self) -> PathBuf {
        self.core.tree.root()
    }

    /// The folder in which the shell's user can create files.
    pub fn work_folder(&self) -> &'static str {
        self.core.work_folder()
    }

    /// Changes the readings. Counters grow from scene to scene, and shrink if the scenes go back.
    pub fn set_scene(&self, scene: Scene) {
        *self.scene.lock().unwrap() = scene;
        for (path, text) in self.core.data.scene(scene) {
            self.write_reading(&path, &text);
        }
        if let Some(text) = self.core.data.thermal_service(scene) {
            self.dumpsys("thermalservice", &text);
        }
        // Moving files restart from this scene.
        if self.is_moving() {
            self.set_moving(false);
            self.set_moving(true);
        }
    }

    fn is_moving(&self) -> bool {
        self.motion.lock().unwrap().is_some()
    }

    /// Makes clocks, temperatures, busy shares and `/proc/stat` change over time, ten times a second, or
    /// stand still again. Files that were removed, refused or made slow stay that way; texts written by a
    /// test are overwritten.
    pub fn set_moving(&self, moving: bool) {
        let mut motion = self.motion.lock().unwrap();
        if let Some(motion) = motion.take() {
            motion.stop.store(true, Ordering::Relaxed);
            let _ = motion.thread.join();
        }
        if !moving {
            return;
        }
        let mut base: BTreeMap<String, String> = BTreeMap::new();
        for (path, entry) in &self.core.data.entries {
            base.insert(path.clone(), entry.text().to_owned());
        }
        base.extend(self.core.data.scene(*self.scene.lock().unwrap()));
        let (core, slow) = (self.core.clone(), self.slow.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                for (path, text) in motion::readings(&base, begun.elapsed().as_secs_f64()) {
                    let slow = slow.lock().unwrap();
                    if !slow.contains_key(&path) && core.tree.host_path(&path).exists() {
                        core.tree.write(&path, text.as_bytes());
                    }
                }
                std::thread::sleep(MOVE_EVERY);
            }
        });
        *motion = Some(Motion { stop, thread });
    }

    fn write_reading(&self, path: &str, text: &str) {
        let slow = self.slow.lock().unwrap();
        if !slow.contains_key(path) && self.core.tree.host_path(path).exists() {
            self.core.tree.write(path, text.as_bytes());
        }
    }

    /// Whether the device has this file, readable or not.
    pub fn has(&self, path: &str) -> bool {
        path.starts_with('/') && self.core.tree.host_path(path).symlink_metadata().is_ok()
    }

    /// Whether [`Self::write`] can change or create this file: the kernel's own files in `/proc` are fixed.
    pub fn can_write(&self, path: &str) -> bool {
        path.starts_with('/') && (self.has(path) || !path.starts_with("/proc/"))
    }

    /// Changes a file's content to any bytes; creates a missing file. Its permissions stay the same.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        self.make_fast(path);
        self.core.tree.write(path, text.as_ref());
    }

    /// Removes a file or folder.
    pub fn remove(&self, path: &str) {
        let mut slow = self.slow.lock().unwrap();
        slow.remove(path);
        self.core.tree.remove(path);
    }

    /// From now on, the shell's user may not read this file; root still may.
    pub fn refuse(&self, path: &str) {
        self.core.tree.set_mode(path, 0);
    }

    /// From now on, everybody may read this file.
    pub fn allow(&self, path: &str) {
        self.core.tree.set_mode(path, 0o444);
    }

    /// Makes each reader of `path` wait for `delay` before it gets `text`.
    pub fn slow_down(&self, path: &str, delay: Duration, text: &str) {
        let mut slow = self.slow.lock().unwrap();
        slow.remove(path);
        slow.insert(path.to_owned(), SlowFile::start(&self.core.tree, path, delay, text));
    }

    fn make_fast(&self, path: &str) {
        let mut slow = self.slow.lock().unwrap();
        if slow.remove(path).is_some() {
            self.core.tree.remove(path);
        }
    }

    /// Adds a line to the log, which running `logcat` processes print.
    pub fn log(&self, line: &str) {
        self.core.tree.append("/system/etc/virtual/logcat.txt", format!("{line}\n").as_bytes());
    }

    /// Changes what `dumpsys SERVICE` prints; creates a missing service.
    pub fn dumpsys(&self, service: &str, text: &str) {
        self.core.tree.write(&format!("/system/etc/virtual/dumpsys/{service}"), text.as_bytes());
    }

    /// Sets a property to any bytes without a line break; creates a missing one.
    pub fn set_property(&self, name: &str, value: &[u8]) {
        let path = "/system/etc/virtual/getprop.txt";
        let before = std::fs::read(self.core.tree.host_path(path)).unwrap();
        let start = format!("[{name}]: [").into_bytes();
        let mut after = Vec::new();
        for line in before.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(&start)) {
            after.extend(line);
        }
        for part in [&start[..], value, b"]\n"] {
            after.extend(part);
        }
        self.core.tree.write(path, &after);
    }

    /// Drops the connection; the device continues to accept new ones.
    pub fn drop_link(&self) {
        self.core.cut_links();
    }

    /// Drops the connection when `bytes` more have been sent to the host.
    pub fn drop_after_bytes(&self, bytes: usize) {
        self.core.set_budget(bytes);
    }

    /// Drops the connection when a command containing this part arrives, after `after` such commands that
    /// work.
    pub fn drop_link_at(&self, part: &str, after: usize) {
        self.core.set_cut_at(part, after);
    }

    /// True once that has happened.
    pub fn dropped_link_at(&self) -> bool {
        self.core.is_cut_at()
    }

    /// Sets whether connections are refused, as by a device out of reach. Existing ones stay.
    pub fn refuse_connections(&self, refuse: bool) {
        if refuse {
            self.core.listener.close();
        } else {
            self.core.listen();
        }
    }

    /// Changes what is added to each packet, in both directions.
    pub fn set_delay(&self, delay: Duration) {
        self.core.set_delay(delay);
    }

    /// Changes how the device answers hosts. A host that waits for its key to be accepted learns at once that
    /// it is allowed.
    pub fn set_state(&self, state: LinkState) {
        self.core.set_link_state(state);
    }

    /// Kills everything and comes back after `time`, with the clock since boot near 0. A limited disk comes
    /// back empty.
    pub fn reboot(&self, time: Duration) {
        self.core.reboot(time);
    }
}

impl Drop for VirtualDevice {
    fn drop(&mut self) {
        self.set_moving(false);
        self.slow.lock().unwrap().clear();
        self.core.stop();
    }
}
