//! Owners of run folders on a device: which runs are active, and which have ended and left their folder behind.
//!
//! A run claims its folder with a shell on the device that lives as long as the connection, and a file that names the
//! shell, the machine and the process the run belongs to. A folder whose shell is gone is unowned, unless its run may
//! only have lost the link and be waiting for the device.

use crate::devices::{Device, DeviceError, ShellStream, quote};
use crate::event::{Confound, clean_text, epoch_us};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The file in a run's folder that names its owner.
const OWNER: &str = "owner";
/// The file in a run's folder in which runs that start later leave their names.
const VISITORS: &str = "visitors";
/// A folder without a claim comes from a version without claims, or its run is about to claim it.
const UNCLAIMED_LIMIT_S: u64 = 3600;
/// Margin on top of a run's wait for a lost device, for clock differences and a slow return.
const RETURN_MARGIN_S: u64 = 60;
/// Removing a few hundred megabytes takes a moment on slow storage.
const REMOVE_LIMIT: Duration = Duration::from_mins(2);
/// How long the process waits at exit for removals still under way.
const LAST_LIMIT: Duration = Duration::from_secs(5);
/// Id of the confound.
const CONFOUND: &str = "another_run";

/// A machine and a process on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    host: String,
    pid: u32,
}

impl Process {
    /// This one.
    fn own() -> Self {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // Many machines are called localhost; the boot id tells them apart where the system has one.
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let word =
            |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect::<String>();
        let (name, boot) = (word(&name), word(boot.trim()));
        Self {
            host: format!("{}/{}", if name.is_empty() { "host" } else { &name }, &boot[..boot.len().min(8)]),
            pid: std::process::id(),
        }
    }

    /// True if it is known to be gone: only possible for this machine's own processes.
    fn is_gone(&self, own: &Self) -> bool {
        let exists = || {
            let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
            // Another user's process cannot be signalled, but exists.
            pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
        };
        self.host == own.host && (self.pid == own.pid || !exists())
    }
}

/// A run's folder as found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tenant {
    folder: String,
    /// Its shell is alive.
    is_held: bool,
    /// Its owner, and since when, seconds on the owner's clock.
    owner: Option<(Process, u64)>,
    /// Seconds on the device's clock since the claim was made or released, or since the folder changed.
    age_s: u64,
}

impl Tenant {
    /// `NAME HELD MTIME NOW [SHELL HOST PID SINCE]`.
    fn parse(line: &str, root: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| name.starts_with("run-") && !name.contains('/'))?;
        let is_held = words.next()? == "y";
        let (changed, now): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let owner = words.nth(1).zip(words.next()).zip(words.next()).and_then(|((host, pid), since)| {
            Some((Process { host: clean_text(host), pid: pid.parse().ok()? }, since.parse().ok()?))
        });
        Some(Self { folder: format!("{root}/{name}"), is_held, owner, age_s: now.saturating_sub(changed) })
    }

    /// True if it no longer belongs to anyone.
    fn is_stale(&self, own: &Process) -> bool {
        match &self.owner {
            _ if self.is_held => false,
            Some((owner, _)) => {
                owner.is_gone(own) || self.age_s > super::link::RETURN_LIMIT.as_secs() + RETURN_MARGIN_S
            }
            None => self.age_s > UNCLAIMED_LIMIT_S,
        }
    }

    /// The effect of another active run on this one.
    fn disturbs(&self, own: &Process) -> Option<Confound> {
        let (owner, since_s) = self.owner.as_ref().filter(|(owner, _)| self.is_held && owner != own)?;
        let ago_s = (epoch_us() / 1_000_000).saturating_sub(*since_s);
        let machine = owner.host.split('/').next().unwrap_or(&owner.host);
        Some(Confound {
            id: CONFOUND.to_owned(),
            observation: format!(
                "another qnnscope run started on this device {ago_s} s ago and is still going: process {} of {machine}; the two disturb each \
                 other",
                owner.pid
            ),
            advice: "wait for it to finish, then run again".to_owned(),
        })
    }
}

/// Handles other runs' folders when a run starts: removes stale ones and reports active ones.
pub async fn tidy(device: &Device, root: &str) -> Result<Vec<Confound>, DeviceError> {
    let own = Process::own();
    let tenants = look(device, root).await?;
    let mut script = String::new();
    for tenant in tenants.iter().filter(|tenant| tenant.is_stale(&own)) {
        let _ = writeln!(script, "rm -rf {}", quote(&tenant.folder));
    }
    if !script.is_empty() {
        device.run_within(&script, "removing folders of runs that have ended", REMOVE_LIMIT).await?;
    }
    // Reporting one is enough.
    Ok(tenants.iter().find_map(|tenant| tenant.disturbs(&own)).into_iter().collect())
}

async fn look(device: &Device, root: &str) -> Result<Vec<Tenant>, DeviceError> {
    let script = format!(
        "cd {root} 2>/dev/null || exit 0\nn=$(date +%s)\nfor d in run-*; do [ -d \"$d\" ] || continue\no=;t=$d\nif [ -f \
         \"$d/{OWNER}\" ]; then read -r o <\"$d/{OWNER}\"; t=$d/{OWNER}; fi\nh=n;p=${{o%% *}}\ncase $p in ''|*[!0-9]*);; *) grep \
         -q \"$d\" /proc/$p/cmdline 2>/dev/null && h=y;; esac\necho \"$d $h $(stat -c %Y \"$t\") $n $o\"\ndone\ntrue"
    );
    let output = device.run(&script, "looking for other runs on it").await?;
    Ok(output.text().lines().filter_map(|line| Tenant::parse(line, root)).collect())
}

/// Holds a run's folder. Dropping it removes the folder, if the device is still reachable.
#[derive(Debug)]
pub struct Claim {
    device: Device,
    folder: String,
    stream: ShellStream,
    is_removed: bool,
}

impl Claim {
    /// Claims an existing folder.
    pub fn new(device: &Device, folder: &str) -> Self {
        Self { device: device.clone(), folder: folder.to_owned(), stream: hold(device, folder), is_removed: false }
    }

    /// The folder.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Claims it again, after a lost link.
    pub fn renew(&mut self) {
        self.stream = hold(&self.device, &self.folder);
    }

    /// A run that started on the device after this one.
    pub async fn visitor(&self) -> Result<Option<Confound>, DeviceError> {
        let script = format!("cat {} 2>/dev/null; true", quote(&format!("{}/{VISITORS}", self.folder)));
        let visitors = self.device.run(&script, "looking for other runs on it").await?.text();
        let own = Process::own();
        Ok(visitors.lines().find_map(|line| Tenant::parse(&format!("run-0 y 0 0 {line}"), "")?.disturbs(&own)))
    }

    /// Removes the folder; the linked files stay for the next run.
    pub async fn remove(mut self) -> Result<(), DeviceError> {
        remove_folder(&self.device, &self.folder).await?;
        self.is_removed = true;
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        // Its shell does it, if it is already running and the connection works.
        self.stream.write(b"remove\n");
        if let Ok(events) = tokio::runtime::Handle::try_current() {
            let (device, folder) = (self.device.clone(), self.folder.clone());
            let removal = events.spawn(async move {
                let _ = remove_folder(&device, &folder).await;
            });
            removals().push(removal);
        }
    }
}

async fn remove_folder(device: &Device, folder: &str) -> Result<(), DeviceError> {
    let script = format!("rm -rf {}", quote(folder));
    device.run_within(&script, "removing the folder of the run", REMOVE_LIMIT).await.map(drop)
}

/// Folders of dropped claims being removed.
static REMOVALS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn removals() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    REMOVALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the folders of dropped claims are removed, only briefly for a lost device. Called on the event loop they
/// were dropped on, before it ends.
pub async fn removed() {
    let _ = tokio::time::timeout(LAST_LIMIT, async {
        // Taken out at once: no lock is held while waiting.
        while let Some(removal) = { removals().pop() } {
            let _ = removal.await;
        }
    })
    .await;
}

/// The shell that holds a folder. When the connection ends silently, the file's timestamp records when.
fn hold(device: &Device, folder: &str) -> ShellStream {
    let Process { host, pid } = Process::own();
    let since_s = epoch_us() / 1_000_000;
    let inner = format!(
        "trap '' HUP\ncd {folder} || exit 1\necho \"$$ {host} {pid} {since_s}\" >.{OWNER}.$$ && mv .{OWNER}.$$ {OWNER}\nfor f in ../run-*; do \
         [ \"$f\" != {beside} ] && [ -e $f/{OWNER} ] && read -r o <{OWNER} && echo \"$o\" >>$f/{VISITORS}; done\nx=\nread -r \
         x\ncase $x in remove) cd / && rm -rf {folder};; *) [ -e {OWNER} ] && touch {OWNER};; esac",
        folder = quote(folder),
        beside = quote(&format!("../{}", folder.rsplit('/').next().unwrap_or_default()))
    );
    device.stream(&format!("sh -c {}", quote(&inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(line: &str) -> Tenant {
        Tenant::parse(line, "/d").unwrap()
    }

    #[test]
    fn folders_are_stale_when_their_run_cannot_come_back() {
        let own = Process::own();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (host, dead) = (&own.host, ended.id());
        let parent = std::os::unix::process::parent_id();
        for (line, stale) in [
            (format!("run-1 y 1000 9000 77 {host} {dead} 1"), false),
            (format!("run-1 n 1000 1001 77 {host} {dead} 1"), true),
            (format!("run-1 n 1000 1001 77 {host} {} 1", own.pid), true),
            // Its run waits for the device.
            (format!("run-1 n 1000 1001 77 {host} {parent} 1"), false),
            (format!("run-1 n 1000 9000 77 {host} {parent} 1"), true),
            ("run-1 n 1000 1100 77 elsewhere/0 1 1".to_owned(), false),
            ("run-1 n 1000 1300 77 elsewhere/0 1 1".to_owned(), true),
            ("run-1 n 1000 1300".to_owned(), false),
            ("run-1 n 1000 9000".to_owned(), true),
            ("run-1 n 1000 1300 garbage".to_owned(), false),
        ] {
            assert_eq!(tenant(&line).is_stale(&own), stale, "{line}");
        }
        for line in ["", "objects n 1 2", "run-1/.. n 1 2", "run-1 n x 2"] {
            assert_eq!(Tenant::parse(line, "/d"), None, "{line}");
        }
    }

    #[test]
    fn only_others_that_are_at_work_disturb() {
        let own = Process::own();
        let disturbs = |line: &str| tenant(line).disturbs(&own);
        let other = disturbs("run-1 y 1000 1001 77 desk.lab/1234 4711 1").unwrap();
        assert!(other.observation.contains("process 4711 of desk.lab;"), "{}", other.observation);
        assert_eq!(disturbs("run-1 n 1000 1001 77 desk.lab/1234 4711 1"), None);
        assert_eq!(disturbs(&format!("run-1 y 1000 1001 77 {} {} 1", own.host, own.pid)), None);
    }
}
