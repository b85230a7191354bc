//! Follows growing files on a device through one shell that answers queries.

use super::script::{self, TapPlace, is_name};
use crate::devices::{Device, DeviceError, ShellStream};
use crate::probes::process::ProcessMemory;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time for one answer.
const LIMIT: Duration = Duration::from_secs(20);
/// Maximum number of files listed; a program with more simultaneous processes is only partly reported.
const MOST_FILES: usize = 4096;
/// Maximum number of lines in an answer.
const MOST_LINES: usize = 4 * MOST_FILES;

/// The state at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The program's process id, once it runs.
    pub pid: Option<u32>,
    /// Whether a process with that pid exists.
    pub is_alive: bool,
    /// Sizes of files by their names.
    pub files: BTreeMap<String, u64>,
    /// Processes that the query asked about.
    pub asked: BTreeSet<u32>,
    /// Those of them that exist, with their memory if readable.
    pub processes: BTreeMap<u32, Option<ProcessMemory>>,
}

impl Listing {
    fn parse(lines: &[String]) -> Self {
        let mut listing = Self::default();
        let mut of: Option<u32> = None;
        let mut status: BTreeMap<u32, String> = BTreeMap::new();
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
            match word {
                "pid" => listing.pid = rest.trim().parse().ok(),
                "alive" => listing.is_alive = true,
                "f" => {
                    let file = rest.split_once(' ').and_then(|(size, name)| Some((name, size.parse().ok()?)));
                    if let Some((name, size)) = file.filter(|(name, _)| is_name(name))
                        && listing.files.len() < MOST_FILES
                    {
                        listing.files.insert(name.to_owned(), size);
                    }
                }
                "p" => {
                    of = rest.trim().parse().ok();
                    status.extend(of.map(|pid| (pid, String::new())));
                }
                _ => {
                    if let Some(text) = of.and_then(|pid| status.get_mut(&pid)) {
                        text.push_str(line);
                        text.push('\n');
                    }
                }
            }
        }
        listing.processes = status.into_iter().map(|(pid, text)| (pid, ProcessMemory::parse(&text))).collect();
        listing
    }
}

/// Does everything that is done with a device's answers about a program: for fuzzing.
///
/// # Panics
/// If a name in the answer could be special to a shell.
pub fn replay_listing(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let listing = Listing::parse(&lines);
    assert!(listing.files.len() <= MOST_FILES && listing.files.keys().all(|name| is_name(name)));
    let parts: String = listing.files.iter().map(|(name, size)| script::get(name, *size, 1)).collect();
    assert_eq!(parts.lines().count(), listing.files.len(), "a name adds nothing to what the device is asked");
    let ended = script::ended(bytes);
    assert!(ended.status.is_none() || ended.signal.is_none());
}

/// The shell that answers queries.
#[derive(Debug)]
pub struct Follower<'a> {
    device: &'a Device,
    place: &'a TapPlace,
    stream: Option<ShellStream>,
}

impl<'a> Follower<'a> {
    /// A follower that opens its shell with the first query.
    pub fn new(device: &'a Device, place: &'a TapPlace) -> Self {
        Self { device, place, stream: None }
    }

    /// Called after a lost link: the next query opens a new shell.
    pub fn restart(&mut self) {
        self.stream = None;
    }

    /// Lists the files, and which of these processes exist.
    pub async fn list(&mut self, pids: impl IntoIterator<Item = u32>) -> Result<Listing, DeviceError> {
        let asked: BTreeSet<u32> = pids.into_iter().collect();
        self.ask(&script::list(asked.iter().copied()));
        let mut lines = Vec::new();
        loop {
            let line = self.answer(async |stream| stream.next_line().await).await?;
            let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if line == "." {
                return Ok(Listing { asked, ..Listing::parse(&lines) });
            }
            if lines.len() < MOST_LINES {
                lines.push(line);
            }
        }
    }

    /// Requests these parts of files: name, offset, bytes. Their contents follow in that order, through
    /// [`Self::part`].
    pub fn want(&mut self, parts: &[(String, u64, u64)]) {
        let lines: String = parts.iter().map(|(name, offset, count)| script::get(name, *offset, *count)).collect();
        self.ask(&lines);
    }

    /// The next `bytes` bytes of the requested parts.
    pub async fn part(&mut self, bytes: usize) -> Result<Vec<u8>, DeviceError> {
        self.answer(async |stream| stream.next_bytes(bytes).await).await
    }

    /// Requests that files be removed.
    pub fn remove<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.ask(&script::remove(names));
    }

    fn ask(&mut self, lines: &str) {
        let (device, place) = (self.device, self.place);
        self.stream.get_or_insert_with(|| device.stream(&place.follow())).write(lines.as_bytes());
    }

    async fn answer(
        &mut self,
        next: impl AsyncFnOnce(&mut ShellStream) -> Option<Result<Vec<u8>, DeviceError>>,
    ) -> Result<Vec<u8>, DeviceError> {
        const ACTION: &str = "following the program";
        let id = || self.device.id().to_owned();
        let lost = || DeviceError::LinkLost { id: id(), action: ACTION.to_owned() };
        let Some(stream) = &mut self.stream else { return Err(lost()) };
        match tokio::time::timeout(LIMIT, next(stream)).await {
            Ok(answer) => answer.unwrap_or_else(|| Err(lost())),
            Err(_) => Err(DeviceError::TimedOut { id: id(), action: ACTION.to_owned(), limit: LIMIT }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(text: &str) -> Listing {
        Listing::parse(&text.lines().map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_listing_is_read_whatever_is_in_it() {
        let found = listing(
            "pid 42\nalive\nf 10 stdout\nf 300 told/42.7.tap\nf x told/43.7.tap\nf 5 told/$(reboot)\np 42\nVmHWM:\t 20 kB\nVmRSS:\t 10 kB\np 43",
        );
        assert_eq!((found.pid, found.is_alive), (Some(42), true));
        assert_eq!(found.files.keys().map(String::as_str).collect::<Vec<_>>(), ["stdout", "told/42.7.tap"]);
        assert_eq!(found.processes[&42], Some(ProcessMemory { rss: 10 << 10, rss_peak: Some(20 << 10) }));
        assert_eq!(found.processes[&43], None, "it is there, and its memory is nobody else's to read");
        assert_eq!(listing(""), Listing::default());
        assert_eq!(listing("pid \nVmRSS: 1 kB\nnoise\nf\np x\nVmRSS: 1 kB"), Listing::default());
    }
}
