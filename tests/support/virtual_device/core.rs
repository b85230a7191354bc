//! What the threads of one device share: its files, its namespaces, its links and their state.

use super::link::Link;
use super::namespaces::{Layout, Namespaces, environment};
use super::snapshot::{Data, Entry};
use super::tree::Tree;
use super::{Options, listener::Listener};
use rustix::fd::OwnedFd;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

/// How the device answers a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    #[default]
    Device,
    /// Runs its recovery system, and says so.
    Recovery,
    /// Asks for a key and never accepts one.
    Unauthorized,
    /// Accepts the connection but sends nothing.
    Offline,
}

/// Shared by all threads of a device.
pub struct Core {
    pub data: Data,
    pub tree: Arc<Tree>,
    options: Options,
    namespaces: RwLock<Option<Namespaces>>,
    links: Mutex<Vec<Weak<Link>>>,
    pub listener: Listener,
    state: Mutex<LinkState>,
    delay_us: AtomicU64,
    /// Bytes that may still be sent to the host before the link is lost.
    budget: Mutex<Option<usize>>,
    /// Part of a command at whose arrival the link is lost, and how many such commands work before that.
    cut_at: Mutex<Option<(String, usize)>>,
    stopped: AtomicBool,
}

impl Core {
    /// A device that has booted but does not listen yet.
    pub fn boot(data: Data, options: Options) -> Arc<Self> {
        let tree = Arc::new(Tree::build(&data));
        if options.su_refused {
            tree.write("/system/etc/virtual/su_refused", b"");
        }
        let core = Self {
            data,
            tree,
            namespaces: RwLock::default(),
            links: Mutex::default(),
            listener: Listener::new(),
            state: Mutex::new(options.state),
            delay_us: AtomicU64::new(0),
            budget: Mutex::default(),
            cut_at: Mutex::default(),
            stopped: AtomicBool::new(false),
            options,
        };
        core.set_delay(core.options.delay);
        let uptime = core.data.entries.get("/proc/uptime").map_or("600", Entry::text);
        let uptime_s = uptime.split('.').next().and_then(|text| text.trim().parse().ok()).unwrap();
        core.start_namespaces(uptime_s);
        Arc::new(core)
    }

    fn start_namespaces(&self, uptime_s: i64) {
        let limited = self.options.disk_bytes.map(|bytes| (self.work_folder(), bytes));
        *self.namespaces.write().unwrap() = Some(Namespaces::boot(&Layout {
            tree: &self.tree.root(),
            proc: &self.tree.proc(),
            shell: self.shell(),
            limited,
            uptime_s,
        }));
    }

    /// The folder in which the shell's user can create files.
    pub fn work_folder(&self) -> &'static str {
        if self.data.android { "/data/local/tmp" } else { "/tmp" }
    }

    fn shell(&self) -> &'static str {
        if self.data.android { "/system/bin/sh" } else { "/usr/local/bin/mksh" }
    }

    /// The adb shell's user id.
    pub fn uid(&self) -> u32 {
        self.data.uid
    }

    /// Whether the device supports shell v2.
    pub fn shell_v2(&self) -> bool {
        !self.options.shell_v1
    }

    /// Duration of a reboot requested by the host.
    pub fn reboot_time(&self) -> Duration {
        self.options.reboot_time
    }

    /// How the device introduces itself.
    pub fn banner(&self) -> String {
        let kind = if self.link_state() == LinkState::Recovery { "recovery" } else { "device" };
        let names: String = ["ro.product.name", "ro.product.model", "ro.product.device"]
            .iter()
            .map(|name| format!("{name}={};", self.data.property(name)))
            .collect();
        let features = if self.shell_v2() { "shell_v2,cmd,stat_v2,ls_v2" } else { "cmd" };
        let names = if self.data.android { names } else { String::new() };
        format!("{kind}::{names}features={features}")
    }

    /// The shell inside the device, to which arguments are added; `None` while the device is off.
    pub fn shell_command(&self) -> Option<Command> {
        let namespaces = self.namespaces.read().unwrap();
        let mut command = namespaces.as_ref()?.command(self.uid(), self.shell());
        command.envs(environment(self.data.android).iter().copied());
        Some(command)
    }

    /// The device's `/`; `None` while it is off.
    pub fn root(&self) -> Option<OwnedFd> {
        self.namespaces.read().unwrap().as_ref().map(|namespaces| namespaces.root().try_clone().unwrap())
    }

    pub fn link_state(&self) -> LinkState {
        *self.state.lock().unwrap()
    }

    /// Changes how hosts are answered. A host that is allowed now is notified on its connection; any other
    /// change makes the device lose its link.
    pub fn set_link_state(&self, state: LinkState) {
        let before = std::mem::replace(&mut *self.state.lock().unwrap(), state);
        if before == LinkState::Unauthorized && state == LinkState::Device {
            self.each_link(|link| link.introduce());
        } else if before != state {
            self.cut_links();
        }
    }

    pub fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us.load(Ordering::Relaxed))
    }

    pub fn set_delay(&self, delay: Duration) {
        self.delay_us.store(u64::try_from(delay.as_micros()).unwrap(), Ordering::Relaxed);
    }

    /// Makes the link fail after `bytes` more have been sent to the host.
    pub fn set_budget(&self, bytes: usize) {
        *self.budget.lock().unwrap() = Some(bytes);
    }

    /// How many of `bytes` may be sent to the host. A used-up budget is removed, so the next link works.
    pub fn spend(&self, bytes: usize) -> usize {
        let mut budget = self.budget.lock().unwrap();
        let Some(left) = *budget else { return bytes };
        *budget = left.checked_sub(bytes);
        left.min(bytes)
    }

    pub fn set_cut_at(&self, part: &str, after: usize) {
        *self.cut_at.lock().unwrap() = Some((part.to_owned(), after));
    }

    pub fn is_cut_at(&self) -> bool {
        self.cut_at.lock().unwrap().is_none()
    }

    /// Whether the link is lost when this command arrives; happens once.
    pub fn cuts(&self, command: &str) -> bool {
        let mut cut_at = self.cut_at.lock().unwrap();
        match &mut *cut_at {
            Some((part, after)) if command.contains(&**part) => match after.checked_sub(1) {
                Some(left) => {
                    *after = left;
                    return false;
                }
                None => *cut_at = None,
            },
            _ => return false,
        }
        drop(cut_at);
        self.cut_links();
        true
    }

    fn each_link(&self, action: impl Fn(&Link)) {
        let links: Vec<Arc<Link>> = {
            let mut links = self.links.lock().unwrap();
            links.retain(|link| link.strong_count() > 0);
            links.iter().filter_map(Weak::upgrade).collect()
        };
        for link in links {
            action(&link);
        }
    }

    pub fn cut_links(&self) {
        self.each_link(Link::cut);
    }

    /// Starts accepting hosts.
    pub fn listen(self: &Arc<Self>) {
        let core = Arc::downgrade(self);
        self.listener.open(move |socket: TcpStream| {
            if let Some(core) = core.upgrade() {
                let link = Link::start(core.clone(), socket);
                core.links.lock().unwrap().push(Arc::downgrade(&link));
            }
        });
    }

    /// Kills everything, is away for `time`, and boots again with its clock since boot near 0. The contents
    /// of a limited disk are lost.
    pub fn reboot(self: &Arc<Self>, time: Duration) {
        self.listener.close();
        self.cut_links();
        // The processes are gone when this returns, so nobody can see the old boot afterwards.
        drop(self.namespaces.write().unwrap().take());
        let core = Arc::downgrade(self);
        std::thread::spawn(move || {
            std::thread::sleep(time);
            if let Some(core) = core.upgrade()
                && !core.stopped.load(Ordering::SeqCst)
            {
                core.start_namespaces(1);
                core.listen();
                // The device may have been dropped while it was booting.
                if core.stopped.load(Ordering::SeqCst) {
                    core.stop();
                }
            }
        });
    }

    /// Ends everything and removes the files. The services' threads notice that their links and processes are
    /// gone, and end too.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.listener.close();
        self.cut_links();
        drop(self.namespaces.write().unwrap().take());
        self.tree.clear();
    }
}
