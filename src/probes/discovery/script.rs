//! The script that tries every path once, and its results.

use crate::devices::{Device, DeviceError, EndMarker, Root, as_root, quote};
use crate::event::{Gap, clean_text};
use crate::probes::catalogue::{Row, rows};
use crate::probes::counter::{Counter, How, PID, how};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

/// A path that takes longer than this to read is skipped.
const PATIENCE: Duration = Duration::from_secs(6);
/// How many paths may hang before the device counts as hanging.
const MAX_HANGING: usize = 8;
/// Maximum length of a service's text.
const MAX_SERVICE_BYTES: usize = 1 << 20;
/// More files than any device has; further output is dropped.
const MAX_FILES: usize = 20_000;

/// Where to find `CLOCK_MONOTONIC` (root) and how often the device slept.
pub const TIMER_LIST: &str = "/proc/timer_list";
pub const SUSPENDS: &str = "/sys/power/suspend_stats/success";
pub const UPTIME: &str = "/proc/uptime";

const PRELUDE: &str = r#"exec 2>/dev/null
LC_ALL=C
S=$(printf '\037')
R=$(printf '\036')
Z='
'
if [ -n "$KSH_VERSION" ];then P='print -r --';else P='printf %s\n';fi
N=
(read -n 5 x </dev/null)
[ $? = 1 ]&&N='-n 512'
p(){
i=$1;m=$2;b=$3
shift 3
for f in "$@";do
if [ $m != x ];then case $f in *'*'*)
[ -d "$b" ]&&[ ! -r "$b" ]&&$P "X$S$i$S$f${S}$b: Permission denied"
continue;;esac;fi
if h "$f";then $P "Z$S$i$S$f";continue;fi
$P "R$S$i$S$f"
v=
if [ $m = t ];then n=0;while read -r a||[ -n "$a" ];do v=$v$R$a;n=$((n+1));[ $n -ge 64 ]&&break;done <"$f"
else read $N -r v <"$f";v=${v%%"$Z"*};fi
[ ${#v} -gt 60000 ]&&v=
if [ -n "$v" ];then $P "V$S$i$S$f$S$v"
elif [ ! -e "$f" ]&&[ -x "${f%/*}" ];then $P "A$S$i$S$f"
else $P "X$S$i$S$f$S$(cat "$f" 2>&1 >/dev/null)";fi
done
}
"#;

/// Everything to try: patterns, and whether to read whole tables.
#[derive(Debug)]
pub struct Requests {
    patterns: Vec<Pattern>,
    services: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    path: String,
    is_table: bool,
    /// A user's path: never a glob, whatever it contains.
    is_literal: bool,
}

/// The path of `name` in the folder of `path`.
pub fn beside(path: &str, name: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_owned(),
    }
}

/// What to try for the catalogue and the user's own counters.
pub fn requests(custom: &[Counter]) -> Requests {
    let mut patterns = BTreeSet::new();
    let mut services = BTreeSet::new();
    let mut add = |path: String, is_table: bool| {
        patterns.insert(Pattern { path, is_table, is_literal: false });
    };
    for row in rows() {
        for path in &row.paths {
            if let Some(service) = path.strip_prefix("dumpsys:") {
                services.insert(service.to_owned());
                continue;
            }
            let how = how(row.parse, &row.keys, path);
            add(path.clone(), !matches!(how, How::Line | How::Glob));
            for name in siblings(row) {
                add(beside(path, name), false);
            }
        }
        for path in row.clusters.iter().chain(&row.probe) {
            add(path.clone(), false);
        }
    }
    add(UPTIME.to_owned(), false);
    add(SUSPENDS.to_owned(), false);
    add(TIMER_LIST.to_owned(), true);
    let literal = |path: &str| Pattern { path: path.to_owned(), is_table: false, is_literal: true };
    patterns.extend(custom.iter().flat_map(|counter| &counter.files).map(|file| literal(&file.path)));
    Requests { patterns: patterns.into_iter().collect(), services }
}

fn siblings(row: &Row) -> impl Iterator<Item = &str> {
    let names = row.name.iter().chain(&row.maximum_file).chain(&row.levels).chain(&row.beside);
    names.map(String::as_str)
}

impl Requests {
    fn script(&self, hanging: &BTreeSet<String>) -> String {
        let mut script = PRELUDE.to_owned();
        let hangs: Vec<String> = hanging.iter().map(|path| quote(path)).collect();
        script.push_str("h(){\n");
        if hangs.is_empty() {
            script.push_str("return 1\n");
        } else {
            let _ = writeln!(script, "case $1 in {}) return 0;;esac\nreturn 1", hangs.join("|"));
        }
        script.push_str("}\n$P \"H$S$$$S$(getconf PAGESIZE)\"\n");
        for (index, pattern) in self.patterns.iter().enumerate() {
            let mode = match (pattern.is_table, pattern.is_literal) {
                (_, true) => 'x',
                (true, false) => 't',
                (false, false) => 'l',
            };
            let path = if pattern.is_literal { quote(&pattern.path) } else { pattern.path.replace(PID, "$$") };
            let base =
                pattern.path.split_once('*').and_then(|(before, _)| before.rsplit_once('/')).map_or("/", |cut| cut.0);
            let _ = writeln!(script, "p {index} {mode} {} {path}", quote(base));
        }
        script.push_str("if command -v dumpsys >/dev/null;then\n");
        for service in &self.services {
            let _ = writeln!(script, "$P \"B${{S}}{service}\"\ndumpsys {service} 2>&1\n$P \"E${{S}}{service}\"");
        }
        script.push_str("fi\n");
        script
    }
}

/// Why a path could not be read, with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub reason: Gap,
    pub detail: String,
}

/// What the script found.
#[derive(Debug, Default)]
pub struct Found {
    /// Contents by path, and whether only root could read it.
    files: BTreeMap<String, (Result<Vec<u8>, Failure>, bool)>,
    /// Paths of each pattern.
    paths: BTreeMap<String, Vec<String>>,
    /// Text of the services.
    pub services: BTreeMap<String, Vec<u8>>,
    /// Size of a memory page, bytes.
    pub page_bytes: Option<f64>,
}

impl Found {
    /// The content of a path, or why it is unreadable.
    pub fn content(&self, path: &str) -> Result<&[u8], Failure> {
        match self.files.get(path) {
            Some((Ok(content), _)) => Ok(content),
            Some((Err(failure), _)) => Err(failure.clone()),
            None => Err(Failure { reason: Gap::Absent, detail: Gap::Absent.text().to_owned() }),
        }
    }

    /// True if readable only by root.
    pub fn needs_root(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|(_, root)| *root)
    }

    /// The paths matching a pattern, including unreadable ones, sorted numerically.
    pub fn paths(&self, pattern: &str) -> &[String] {
        self.paths.get(pattern).map_or(&[], Vec::as_slice)
    }

    /// True if something was denied, so that root may see more.
    pub fn was_refused(&self) -> bool {
        self.files.values().any(|(content, _)| matches!(content, Err(failure) if failure.reason == Gap::Refused))
    }

    /// Adds what root can see.
    pub fn add_from_root(&mut self, root: Found) {
        for (path, (content, _)) in root.files {
            if content.is_ok() && !matches!(self.files.get(&path), Some((Ok(_), _))) {
                self.files.insert(path, (content, true));
            } else if let (Some((Err(before), _)), Err(after)) = (self.files.get_mut(&path), content) {
                *before = after;
            }
        }
        for (pattern, paths) in root.paths {
            let known = self.paths.entry(pattern).or_default();
            let new: Vec<_> = paths.into_iter().filter(|path| !known.contains(path)).collect();
            // A folder that could not be listed appears as the pattern itself.
            if !new.is_empty() {
                known.retain(|path| !path.contains('*'));
            }
            known.extend(new);
        }
    }

    fn take(&mut self, requests: &Requests, line: &[u8]) -> Option<()> {
        if self.files.len() >= MAX_FILES {
            return None;
        }
        let mut fields = line.splitn(4, |byte| *byte == 0x1f);
        let kind = fields.next()?;
        let first = std::str::from_utf8(fields.next()?).ok()?;
        if kind == b"H" {
            self.page_bytes = std::str::from_utf8(fields.next()?).ok()?.parse().ok().filter(|bytes| *bytes >= 1024.0);
            return Some(());
        }
        let pattern = requests.patterns.get(first.parse::<usize>().ok()?)?;
        let mut path = std::str::from_utf8(fields.next()?).ok()?.to_owned();
        if pattern.path.contains(PID) {
            path.clone_from(&pattern.path);
        }
        let rest = fields.next().unwrap_or_default();
        let content = match kind {
            b"V" => Ok(rest.to_vec()),
            b"A" => Err(Failure { reason: Gap::Absent, detail: Gap::Absent.text().to_owned() }),
            b"Z" => Err(Failure { reason: Gap::Hangs, detail: Gap::Hangs.text().to_owned() }),
            b"X" => Err(failure(rest)),
            _ => return None,
        };
        let absent = matches!(&content, Err(failure) if failure.reason == Gap::Absent);
        let known = self.paths.entry(pattern.path.clone()).or_default();
        if !absent && !known.contains(&path) {
            known.push(path.clone());
        }
        self.files.insert(path, (content, false));
        Some(())
    }
}

fn failure(message: &[u8]) -> Failure {
    use crate::devices::FileError;
    if message.trim_ascii().is_empty() {
        return Failure { reason: Gap::Unreadable, detail: "it is empty".to_owned() };
    }
    match FileError::from_message(message) {
        FileError::Absent => Failure { reason: Gap::Absent, detail: Gap::Absent.text().to_owned() },
        FileError::Refused => Failure { reason: Gap::Refused, detail: Gap::Refused.text().to_owned() },
        FileError::Unreadable(why) => Failure { reason: Gap::Unreadable, detail: clean_text(&why) },
    }
}

/// Runs the script; a hanging path is identified and skipped the next time.
pub async fn run(device: &Device, root: Root, requests: &Requests) -> Result<Found, DeviceError> {
    let mut hanging = BTreeSet::new();
    loop {
        match attempt(device, root, requests, &hanging).await? {
            Ok(mut found) => {
                for paths in found.paths.values_mut() {
                    paths.sort_by_key(|path| natural(path));
                }
                return Ok(found);
            }
            Err(Some(path)) if hanging.len() < MAX_HANGING && hanging.insert(path.clone()) => {}
            Err(_) => {
                return Err(DeviceError::TimedOut {
                    id: device.id().to_owned(),
                    action: "looking for counters".to_owned(),
                    limit: PATIENCE,
                });
            }
        }
    }
}

/// Tries once. The inner error is a hang, with the path that was being read.
async fn attempt(
    device: &Device,
    root: Root,
    requests: &Requests,
    hanging: &BTreeSet<String>,
) -> Result<Result<Found, Option<String>>, DeviceError> {
    let marker = EndMarker::new();
    let mut stream = device.stream(&as_root(root, &marker.wrap(&requests.script(hanging))));
    let mut found = Found::default();
    let mut reading = None;
    let mut service: Option<(String, Vec<u8>)> = None;
    loop {
        let Ok(line) = tokio::time::timeout(PATIENCE, stream.next_line()).await else { return Ok(Err(reading)) };
        let Some(line) = line else {
            let action = "looking for counters".to_owned();
            return Err(DeviceError::LinkLost { id: device.id().to_owned(), action });
        };
        let mut line = line?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        // The marker has lost its line end here, but needs one to count as complete.
        let mut whole = line.clone();
        whole.push(b'\n');
        if marker.status(&whole).is_some() {
            return Ok(Ok(found));
        }
        let field = |line: &[u8], index: usize| {
            let field = line.splitn(3, |byte| *byte == 0x1f).nth(index).unwrap_or_default();
            String::from_utf8_lossy(field).into_owned()
        };
        if line.starts_with(b"R\x1f") {
            reading = Some(field(&line, 2));
        } else if line.starts_with(b"B\x1f") {
            service = Some((field(&line, 1), Vec::new()));
        } else if line.starts_with(b"E\x1f") {
            found.services.extend(service.take());
        } else if let Some((_, text)) = &mut service {
            if text.len() < MAX_SERVICE_BYTES {
                text.extend_from_slice(&line);
                text.push(b'\n');
            }
        } else {
            // Foreign lines (a message of su) are skipped.
            let _ = found.take(requests, &line);
        }
    }
}

/// Sorts `zone10` after `zone9`.
fn natural(path: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let digits_at = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits_at);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        key.push((text.to_owned(), tail[..end].parse().unwrap_or(u64::MAX)));
        rest = &tail[end..];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::catalogue::{Cadence, Group, Parse};
    use crate::probes::counter::FileRead;
    use crate::probes::value::Parser;

    #[test]
    fn the_script_fits_into_one_command_of_adb() {
        let own = |index: usize| Counter {
            id: format!("my.{index}"),
            label: String::new(),
            group: Group::Other,
            unit: String::new(),
            maximum: None,
            about: String::new(),
            cadence: Cadence::Fast,
            needs_root: true,
            chosen: true,
            files: vec![FileRead { path: format!("/{index:0240}' "), how: How::Line }],
            parser: Parser::new(Parse::Number),
        };
        let custom: Vec<Counter> = (0..100).map(own).collect();
        let script = EndMarker::new().wrap(&requests(&custom).script(&BTreeSet::new()));
        let wrapped = as_root(Root::SuC, &script);
        assert!(wrapped.len() < 64_000, "{} bytes", wrapped.len());
    }

    #[test]
    fn numbers_in_paths_sort_as_numbers() {
        let mut paths = ["/zone10/temp", "/zone9/temp", "/zone/temp", "/zone9/type"];
        paths.sort_by_key(|path| natural(path));
        assert_eq!(paths, ["/zone9/temp", "/zone9/type", "/zone10/temp", "/zone/temp"]);
    }
}
