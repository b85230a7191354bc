//! The tap data of a device program's processes, each in its own files.

use super::follow::{Follower, Listing};
use super::script::TOLD;
use crate::backends::on_device::clock::WallClock;
use crate::devices::DeviceError;
use crate::tap::binaries::{LARGEST_COPY, is_copy};
use crate::tap::feed::{Feed, LARGEST_RING};
use crate::tap::server::Server;
use qnnscope_core::tap::{Execution, unread};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a file requested at once.
pub const PIECE: u64 = 256 << 10;
/// Maximum number of files requested from at once.
const AT_ONCE: usize = 32;
/// Listings without a copy before giving up: the current one may be older than the copy.
const MOST_MISSED: u32 = 3;
/// The file processes write to when the tap is loaded into them.
const LOADED: &str = "told/loaded";

/// One process.
struct Teller {
    pid: u32,
    feed: Feed,
    /// Its files; if the program closes the tap's file, another one follows.
    files: Vec<String>,
    /// It is gone, or its pid belongs to another program by now; what it wrote before is still read.
    is_gone: bool,
    /// Number of listings without the copy of a context binary.
    missed: u32,
}

/// All processes.
pub struct Tellers<'s> {
    server: &'s Server,
    clock: WallClock,
    /// Bytes read so far, by file.
    read: BTreeMap<String, u64>,
    going: Vec<Teller>,
    loaded: Option<Feed>,
    /// Files of ended processes, no longer needed.
    over: BTreeSet<String>,
}

/// `told/PID.MOMENT.tap`: process and moment.
fn of_process(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(TOLD)?.strip_prefix('/')?.strip_suffix(".tap")?.split('.');
    let (pid, moment) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((pid, moment))
}

impl<'s> Tellers<'s> {
    /// A collection without any processes yet.
    pub fn new(server: &'s Server, clock: WallClock) -> Self {
        let loaded = Some(server.feed(clock));
        Self { server, clock, read: BTreeMap::new(), going: Vec::new(), loaded, over: BTreeSet::new() }
    }

    /// Processes that have not announced their end.
    pub fn pids(&self) -> Vec<u32> {
        self.going.iter().map(|teller| teller.pid).collect()
    }

    /// True once the tap was loaded into any process.
    pub fn any(&self) -> bool {
        self.read.get(LOADED).is_some_and(|bytes| *bytes > 0)
    }

    /// Reads new data from the files; true if any grew. If it fails, data read so far counts.
    pub async fn take(&mut self, follower: &mut Follower<'_>, listing: &Listing) -> Result<bool, DeviceError> {
        let mut files: Vec<(&String, u64)> = listing
            .files
            .iter()
            .filter(|(name, _)| *name == LOADED || of_process(name).is_some() && !self.over.contains(*name))
            .map(|(name, size)| (name, *size))
            .collect();
        // After an exec, another program has the pid: its file is the later one.
        files.sort_by_key(|(name, _)| of_process(name).map_or((0, 0), |(pid, moment)| (moment, u64::from(pid))));
        let mut parts = Vec::new();
        for (name, size) in files {
            let read = self.read.get(name).copied().unwrap_or(0);
            if size > read && parts.len() < AT_ONCE {
                parts.push((name.clone(), read, (size - read).min(PIECE)));
            }
        }
        if parts.is_empty() {
            return Ok(false);
        }
        follower.want(&parts);
        for (name, _, count) in parts {
            let bytes = follower.part(usize::try_from(count).unwrap_or(0)).await?;
            *self.read.entry(name.clone()).or_default() += bytes.len() as u64;
            match of_process(&name) {
                Some((pid, _)) => self.told(pid, &name, &bytes).await,
                None => {
                    if let Some(loaded) = &mut self.loaded
                        && !loaded.take(&bytes).await
                    {
                        self.loaded = None;
                    }
                }
            }
        }
        Ok(true)
    }

    async fn told(&mut self, pid: u32, name: &str, bytes: &[u8]) {
        let known = self.going.iter().position(|teller| teller.files.iter().any(|file| file == name));
        let at = known.unwrap_or_else(|| self.began(pid, name, bytes));
        if !self.going[at].feed.take(bytes).await {
            // This tap is of another version: the rest cannot be understood.
            self.over.insert(name.to_owned());
        }
    }

    /// A new file: from a new process, from another program with the same pid, or from one that closed the previous
    /// file.
    fn began(&mut self, pid: u32, name: &str, bytes: &[u8]) -> usize {
        if let Some(at) = self.going.iter().rposition(|teller| teller.pid == pid && !teller.is_gone) {
            if !bytes.starts_with(b"{\"hello\"") {
                self.going[at].files.push(name.to_owned());
                return at;
            }
            self.going[at].is_gone = true;
        }
        let (feed, files) = (self.server.feed(self.clock), vec![name.to_owned()]);
        self.going.push(Teller { pid, feed, files, is_gone: false, missed: 0 });
        self.going.len() - 1
    }

    /// Ends processes that are gone, and records the memory of the others. If it fails, the rest is done next time.
    pub async fn settle(&mut self, follower: &mut Follower<'_>, listing: &Listing) -> Result<(), DeviceError> {
        for (pid, memory) in &listing.processes {
            if let Some(memory) = memory {
                self.server.remember(*pid, *memory).await;
            }
        }
        let mut at = 0;
        while let Some(teller) = self.going.get_mut(at) {
            fetch_binaries(teller, follower, listing).await?;
            let is_read = teller.files.iter().all(|file| self.read.get(file) >= listing.files.get(file));
            let has_ended = is_read && teller.feed.wanted().is_none() && (teller.is_gone || teller.feed.is_orderly());
            // Counts only from the next listing on: the sizes in this one may be older.
            teller.is_gone |= listing.asked.contains(&teller.pid) && !listing.processes.contains_key(&teller.pid);
            if !has_ended {
                at += 1;
                continue;
            }
            let ring = ring(&teller.feed).filter(|ring| listing.files.contains_key(ring));
            let left = match &ring {
                Some(ring) if !teller.feed.is_orderly() => read_ring(follower, listing, ring).await?,
                _ => Vec::new(),
            };
            let Teller { feed, files, .. } = self.going.remove(at);
            // They may be large, so they are removed.
            follower.remove(files.iter().map(String::as_str).chain(ring.as_deref()));
            self.over.extend(files);
            feed.end(left).await;
        }
        Ok(())
    }

    /// Called when the program has ended, and with it all remaining processes.
    pub async fn end(mut self) {
        for teller in std::mem::take(&mut self.going) {
            teller.feed.end(Vec::new()).await;
        }
        if let Some(loaded) = self.loaded.take() {
            loaded.end(Vec::new()).await;
        }
        self.server.end().await;
    }
}

/// The ring file a process may have left, if it is one of ours.
fn ring(feed: &Feed) -> Option<String> {
    let name = feed.ring()?.rsplit('/').next()?;
    let name = format!("{TOLD}/{name}");
    (name.strip_suffix(".ring").is_some() && super::script::is_name(&name)).then_some(name)
}

/// Fetches the reported copies of context binaries; one missing from the listing is fetched next time.
async fn fetch_binaries(
    teller: &mut Teller,
    follower: &mut Follower<'_>,
    listing: &Listing,
) -> Result<(), DeviceError> {
    let feed = &mut teller.feed;
    while let Some(binary) = feed.wanted() {
        let name = binary.file.as_deref().and_then(|file| file.rsplit('/').next()).filter(|name| is_copy(name));
        let Some(name) = name.map(|name| format!("{TOLD}/{name}")) else {
            let reason =
                binary.reason.clone().unwrap_or_else(|| "its copy is missing from the tap's folder".to_owned());
            feed.kept(Err(reason)).await;
            continue;
        };
        let Some(size) = listing.files.get(&name).copied() else {
            teller.missed += 1;
            if teller.missed <= MOST_MISSED {
                return Ok(());
            }
            teller.missed = 0;
            feed.kept(Err("its copy has disappeared from the device".to_owned())).await;
            continue;
        };
        if size > LARGEST_COPY {
            feed.kept(Err(format!("its copy has more than {} MiB", LARGEST_COPY >> 20))).await;
            continue;
        }
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let read = bytes.len() as u64;
            let count = (size - read).min(PIECE);
            follower.want(&[(name.clone(), read, count)]);
            bytes.extend(follower.part(usize::try_from(count).unwrap_or(0)).await?);
        }
        follower.remove([name.as_str()]);
        feed.kept(Ok(bytes)).await;
    }
    Ok(())
}

async fn read_ring(follower: &mut Follower<'_>, listing: &Listing, ring: &str) -> Result<Vec<Execution>, DeviceError> {
    let size = listing.files.get(ring).copied().unwrap_or(0);
    if size > LARGEST_RING {
        return Ok(Vec::new());
    }
    follower.want(&[(ring.to_owned(), 0, size)]);
    Ok(unread(&follower.part(usize::try_from(size).unwrap_or(0)).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_of_processes_or_nobodys() {
        assert_eq!(of_process("told/12.345.tap"), Some((12, 345)));
        for name in
            ["told/loaded", "told/12.345.ring", "12.345.tap", "told/x.1.tap", "told/1.2.3.tap", "told/1.tap", "stdout"]
        {
            assert_eq!(of_process(name), None, "{name}");
        }
    }
}
