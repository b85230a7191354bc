//! A device's DSP environment: libraries in the searched folders, device nodes, the state of the processor,
//! denials. Queried with our own fixed scripts that change nothing; file names are always quoted for the
//! shell.

use super::build_id::{BuildId, build_id_in};
use super::elf::{ElfFacts, parse_header};
use crate::devices::{Device, DeviceError, Output, Root, as_root, free_bytes, quote};
use crate::event::clean_text;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Where systems keep QNN and FastRPC libraries for the CPU.
pub const LIBRARY_FOLDERS: [&str; 9] = [
    "/vendor/lib64",
    "/odm/lib64",
    "/system/lib64",
    "/system_ext/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/local/lib",
];

/// Where systems keep the DSP's own files.
pub const DSP_FOLDERS: [&str; 11] = [
    "/vendor/dsp/cdsp",
    "/vendor/dsp",
    "/vendor/lib/rfsa/adsp",
    "/vendor/lib64/rfsa/adsp",
    "/odm/lib/rfsa/adsp",
    "/system/lib/rfsa/adsp",
    "/dsp/cdsp",
    "/dsp",
    "/usr/lib/rfsa/adsp",
    "/usr/lib/dsp/cdsp",
    "/usr/share/qcom",
];

/// Time limit per query: each reads small files, and a busy phone answers slowly.
const LIMIT: Duration = Duration::from_secs(15);
/// Time limit for reading build ids from libraries, which may have a hundred megabytes.
const DETAIL_LIMIT: Duration = Duration::from_secs(25);
/// Maximum number of files listed per folder.
const MOST_FILES: usize = 200;
/// Maximum number of files whose headers are read.
const MOST_DETAILS: usize = 24;
/// Largest file searched for its build id, bytes.
const MOST_BYTES: u64 = 300 << 20;
/// Bytes of a header that are read.
const HEADER: usize = 64;
/// Maximum number of folders listed.
const MOST_FOLDERS: usize = 40;

/// Result of listing a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Its files of interest.
    Files(Vec<RemoteFile>),
    /// There is no such folder.
    Absent,
    /// It may not be listed.
    Refused,
}

/// A folder that was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path.
    pub path: String,
    /// Its contents.
    pub listing: Listing,
}

impl Folder {
    /// Its files; empty if it could not be listed.
    pub fn files(&self) -> &[RemoteFile] {
        match &self.listing {
            Listing::Files(files) => files,
            _ => &[],
        }
    }

    /// A file by name.
    pub fn file(&self, name: &str) -> Option<&RemoteFile> {
        self.files().iter().find(|file| file.name == name)
    }
}

/// A file on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name on the device.
    pub name: String,
    /// Size, bytes.
    pub bytes: u64,
    /// Whether the shell's user may read it.
    pub readable: bool,
}

/// A device node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its path.
    pub path: String,
    /// Whether the shell's user may open it for reading, which FastRPC requires.
    pub readable: bool,
    /// Mode, owner and label, as `ls -lZ` shows them.
    pub shown: String,
}

impl Node {
    /// True for a node that reaches the compute DSP.
    pub fn is_compute(&self) -> bool {
        self.path.contains("cdsp") || self.path.contains("adsprpc")
    }
}

/// A remote processor known to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remoteproc {
    /// Its name.
    pub name: String,
    /// Its firmware, which identifies a nameless one.
    pub firmware: String,
    /// `running`, `offline`, `crashed`, ...
    pub state: String,
}

impl Remoteproc {
    /// True for the compute DSP.
    pub fn is_compute(&self) -> bool {
        self.name.contains("cdsp") || self.firmware.contains("cdsp")
    }
}

/// Everything that one query returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DspLook {
    /// Folders in the order in which they were requested.
    pub folders: Vec<Folder>,
    /// Nodes of the DSP.
    pub nodes: Vec<Node>,
    /// Nodes of shared memory (`/dev/dma_heap/...`).
    pub heaps: Vec<Node>,
    /// Remote processors, if the kernel reports them.
    pub remoteprocs: Vec<Remoteproc>,
    /// True if there are remote processors that may not be read.
    pub remoteproc_refused: bool,
    /// `Enforcing` or `Permissive`.
    pub selinux: Option<String>,
    /// Denials about the DSP or shared memory, oldest first; `None` if no log could be read.
    pub denials: Option<Vec<String>>,
    /// Kernel log lines about a crash of the compute DSP; `None` if the log could not be read.
    pub crashes: Option<Vec<String>>,
    /// Memory available to new processes, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Free space where the run's files are, bytes.
    pub free_bytes: Option<u64>,
    /// Architecture, as `uname -m` names it.
    pub machine: Option<String>,
}

impl DspLook {
    /// A folder by path.
    pub fn folder(&self, path: &str) -> Option<&Folder> {
        self.folders.iter().find(|folder| folder.path == path)
    }

    /// Files whose names are `wanted`, with their folders, in the order of the folders.
    pub fn files<'a>(&'a self, wanted: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = (&'a str, &'a RemoteFile)> {
        let files = self.folders.iter().flat_map(|folder| folder.files().iter().map(|file| (&*folder.path, file)));
        files.filter(move |(_, file)| wanted(&file.name))
    }
}

/// Lists what matters in the current folder: `r` or `-` for readable, `x` for a dangling link; size; name.
const LIST: &str = "for f in libQnn*.so libc++*.so* libcdsprpc.so* libadsprpc.so* QnnHtp*.dll QnnSystem.dll libqnnhtp*.cat libQnn*.cat; do \
     [ -e \"$f\" ] || [ -L \"$f\" ] || continue; r=-; [ -r \"$f\" ] && r=r; [ -e \"$f\" ] || r=x; \
     s=$(stat -L -c %s \"$f\" 2>/dev/null || echo 0); printf '%s %s %s\\n' \"$r\" \"$s\" \"$f\"; done";

const NODES: &str = "for f in /dev/fastrpc-cdsp* /dev/fastrpc-adsp* /dev/adsprpc-smd* /dev/dma_heap/* /dev/ion; do [ -e \"$f\" ] || continue; \
     r=-; [ -r \"$f\" ] && r=r; l=$(ls -ldZ \"$f\" 2>/dev/null || ls -ld \"$f\" 2>/dev/null); printf '%s %s|%s\\n' \"$r\" \"$f\" \"$l\"; done";

const REMOTEPROCS: &str = "for r in /sys/class/remoteproc/remoteproc*; do [ -e \"$r\" ] || continue; n=; s=; w=; \
     read -r n 2>/dev/null <\"$r/name\"; read -r s 2>/dev/null <\"$r/state\"; read -r w 2>/dev/null <\"$r/firmware\"; \
     printf '%s|%s|%s\\n' \"$n\" \"$s\" \"$w\"; done";

/// Queries a device. `folders` are listed in this order, `space` is the folder whose free space is measured,
/// and events more than `since_s` seconds ago are ignored. `root` gives access to files that the shell may
/// not read.
///
/// # Errors
/// The device does not answer in time.
pub async fn look(
    device: &Device,
    folders: &[String],
    space: Option<&str>,
    root: Root,
    since_s: Option<u64>,
) -> Result<DspLook, DeviceError> {
    let kernel =
        "dmesg 2>/dev/null | grep -iE 'avc.*denied|remoteproc|cdsp.*(crash|restart)|subsys.*cdsp' | tail -n 200";
    let mut scripts = vec![
        NODES.to_owned(),
        as_root(root, REMOTEPROCS),
        "getenforce 2>/dev/null".to_owned(),
        "cat /proc/meminfo".to_owned(),
        space.map_or_else(|| "false".to_owned(), |folder| format!("df -k {}", quote(folder))),
        "uname -m".to_owned(),
        "date '+%Y-%m-%d %H:%M:%S'; read -r u _ </proc/uptime; echo \"$u\"".to_owned(),
        format!("dmesg >/dev/null 2>&1 || exit 1; {kernel}; true"),
    ];
    if root.is_available() {
        let last = scripts.len() - 1;
        scripts[last] = as_root(root, &format!("{kernel}; true"));
    }
    let fixed = scripts.len();
    let folders: Vec<&String> = folders.iter().take(MOST_FOLDERS).collect();
    for folder in &folders {
        let folder = quote(folder);
        scripts.push(format!(
            "[ -e {folder} ] || exit 44; cd {folder} 2>/dev/null && ls >/dev/null 2>&1 || exit 45; {LIST}; true"
        ));
    }
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let outputs = device.run_each(&scripts, "looking at its DSP", LIMIT).await?;
    let (outputs, listings) = outputs.split_at(fixed.min(outputs.len()));
    let [nodes, procs, enforce, meminfo, df, machine, moment, kernel] = outputs else {
        return Ok(DspLook::default());
    };
    let remoteprocs = remoteprocs(&procs.text());
    let (heaps, nodes) = nodes_of(&nodes.text()).into_iter().partition(|node: &Node| is_heap(&node.path));
    let mut told = DspLook {
        folders: folders.iter().zip(listings).map(|(path, output)| listed(path, output)).collect(),
        nodes,
        heaps,
        remoteproc_refused: remoteprocs.iter().any(|remote| remote.state.is_empty()),
        remoteprocs: remoteprocs.into_iter().filter(|remote| !remote.state.is_empty()).collect(),
        selinux: Some(enforce.text().trim().to_owned()).filter(|text| enforce.status == 0 && !text.is_empty()),
        memory_available_bytes: crate::devices::meminfo(&meminfo.text(), "MemAvailable"),
        free_bytes: free_bytes(&df.text()).filter(|_| df.status == 0),
        machine: Some(machine.text().trim().to_owned()).filter(|text| !text.is_empty()),
        ..DspLook::default()
    };
    let moment = moment.text();
    let uptime_s = moment.lines().nth(1).and_then(|text| text.trim().parse::<f64>().ok());
    if kernel.status == 0 {
        let lines = kernel.text();
        let since = uptime_s.zip(since_s).map(|(now, ago)| now - ago as f64);
        let new: Vec<String> = lines.lines().filter(|line| is_since(line, since)).map(ToOwned::to_owned).collect();
        let (denied, mut crashed): (Vec<String>, Vec<String>) =
            new.into_iter().partition(|line| line.to_lowercase().contains("denied"));
        crashed.retain(|line| is_of_the_compute_dsp(line, &told.remoteprocs));
        told.crashes = Some(crashed);
        told.denials = Some(of_the_dsp(denied));
    }
    if let Some(lines) = logcat_denials(device, moment.lines().next().unwrap_or_default(), since_s).await {
        told.denials.get_or_insert_with(Vec::new).extend(of_the_dsp(lines));
    }
    Ok(told)
}

/// Denials in Android's log since a given time. The log's timestamps are local times without a year.
async fn logcat_denials(device: &Device, now: &str, since_s: Option<u64>) -> Option<Vec<String>> {
    let since = since_s.and_then(|ago| {
        let now: jiff::civil::DateTime = now.trim().replace(' ', "T").parse().ok()?;
        let ago = jiff::SignedDuration::from_secs(i64::try_from(ago).ok()?);
        Some(now.checked_sub(ago).ok()?.strftime("%m-%d %H:%M:%S.000").to_string())
    });
    let span = since.map_or_else(|| "-t 3000".to_owned(), |since| format!("-T {}", quote(&since)));
    let script = format!(
        "command -v logcat >/dev/null || exit 1; logcat -d -v threadtime {span} 2>/dev/null | grep 'avc: *denied' | tail -n 40; true"
    );
    let output = device.run_within(&script, "reading its log", LIMIT).await.ok()?;
    (output.status == 0).then(|| output.text().lines().map(ToOwned::to_owned).collect())
}

/// Whether a line of the kernel's log, `[ 1234.567890] text`, is recent enough. Lines without a timestamp
/// count.
fn is_since(line: &str, since: Option<f64>) -> bool {
    let stamp = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')?.0.trim().parse::<f64>().ok());
    since.zip(stamp).is_none_or(|(since, stamp)| stamp >= since)
}

/// Kernels of boards name a remote processor by its address; its firmware identifies it.
fn is_of_the_compute_dsp(line: &str, remoteprocs: &[Remoteproc]) -> bool {
    let named = |remote: &Remoteproc| remote.is_compute() && !remote.name.is_empty() && line.contains(&remote.name);
    line.to_lowercase().contains("cdsp") || remoteprocs.iter().any(named)
}

fn of_the_dsp(lines: Vec<String>) -> Vec<String> {
    let words = ["fastrpc", "adsprpc", "cdsp", "xdsp", "dsp_", "dma_heap", "dmabuf", "qdsp"];
    lines.into_iter().filter(|line| words.iter().any(|word| line.contains(word))).collect()
}

fn listed(path: &str, output: &Output) -> Folder {
    let listing = match output.status {
        44 => Listing::Absent,
        0 => Listing::Files(output.text().lines().filter_map(file).take(MOST_FILES).collect()),
        _ => Listing::Refused,
    };
    Folder { path: path.to_owned(), listing }
}

fn file(line: &str) -> Option<RemoteFile> {
    let (mark, rest) = line.split_once(' ')?;
    let (bytes, name) = rest.split_once(' ')?;
    // A dangling link counts as a missing file.
    (mark != "x").then(|| RemoteFile {
        name: name.to_owned(),
        bytes: bytes.parse().unwrap_or(0),
        readable: mark == "r",
    })
}

fn nodes_of(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let (head, shown) = line.split_once('|').unwrap_or((line, ""));
        let (mark, path) = head.split_once(' ')?;
        Some(Node { path: path.to_owned(), readable: mark == "r", shown: clean_text(shown.trim()) })
    };
    text.lines().filter_map(node).collect()
}

fn is_heap(path: &str) -> bool {
    path.starts_with("/dev/dma_heap") || path == "/dev/ion"
}

fn remoteprocs(text: &str) -> Vec<Remoteproc> {
    let remote = |line: &str| {
        let mut parts = line.split('|').map(|part| part.trim().to_owned());
        Some(Remoteproc { name: parts.next()?, state: parts.next()?, firmware: parts.next().unwrap_or_default() })
    };
    text.lines().filter_map(remote).collect()
}

/// Header and build id of files on a device, by path. Files that cannot be read have neither.
///
/// # Errors
/// The device does not answer in time.
pub async fn details(
    device: &Device,
    files: &[(String, u64)],
) -> Result<BTreeMap<String, (Option<ElfFacts>, Option<BuildId>)>, DeviceError> {
    let files: Vec<&(String, u64)> = files.iter().take(MOST_DETAILS).collect();
    let scripts: Vec<String> = files.iter().map(|(path, bytes)| detail(path, *bytes)).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let outputs = device.run_each(&scripts, "reading its libraries", DETAIL_LIMIT).await?;
    let told = |output: &Output| {
        let text = output.text();
        let (head, rest) = text.split_once("--").unwrap_or((&text, ""));
        let bytes: Vec<u8> = head.split_whitespace().filter_map(|word| u8::from_str_radix(word, 16).ok()).collect();
        (parse_header(&bytes), build_id_in(rest.as_bytes()))
    };
    Ok(files.iter().zip(&outputs).map(|((path, _), output)| (path.clone(), told(output))).collect())
}

fn detail(path: &str, bytes: u64) -> String {
    let file = quote(path);
    let mut script = format!("head -c {HEADER} -- {file} 2>/dev/null | od -An -v -tx1 2>/dev/null; echo --");
    if bytes <= MOST_BYTES {
        let pattern = "'v[1-9][.][0-9]+[.][0-9]+[.][0-9]{10,14}'";
        let _ = write!(
            script,
            "; {{ grep -aohE -m 1 {pattern} {file} || strings {file} | grep -oE -m 1 {pattern}; }} 2>/dev/null | head -n 1; true"
        );
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_line_by_line() {
        let output = |text: &str, status| Output { bytes: text.as_bytes().to_vec(), status };
        let folder = listed("/d", &output("r 12 libQnnHtp.so\n- 7 libQnn a$(b).so\nx 0 libQnnGone.so\n", 0));
        let names: Vec<(&str, bool)> = folder.files().iter().map(|file| (&*file.name, file.readable)).collect();
        assert_eq!(names, [("libQnnHtp.so", true), ("libQnn a$(b).so", false)]);
        assert_eq!(listed("/d", &output("", 44)).listing, Listing::Absent);
        assert_eq!(listed("/d", &output("", 45)).listing, Listing::Refused);
    }

    #[test]
    fn a_remote_processor_with_an_address_for_its_name_is_known_by_its_firmware() {
        let remoteprocs = remoteprocs("3700000.remoteproc|running|adsp.mbn\na300000.remoteproc|running|cdsp.mbn\n");
        let is = |line| is_of_the_compute_dsp(line, &remoteprocs);
        assert!(is("remoteproc remoteproc3: crash detected in a300000.remoteproc: type fatal error"));
        assert!(!is("remoteproc remoteproc0: crash detected in 3700000.remoteproc: type fatal error"));
        assert!(is("remoteproc remoteproc1: crash detected in 32300000.remoteproc-cdsp: type watchdog"));
    }

    #[test]
    fn old_lines_of_the_kernel_do_not_count() {
        assert!(is_since("[  100.5] remoteproc: crash detected in cdsp", Some(100.0)));
        assert!(!is_since("[   99.5] remoteproc: crash detected in cdsp", Some(100.0)));
        assert!(is_since("no stamp", Some(100.0)) && is_since("[1.0] x", None));
    }

    #[tokio::test]
    async fn this_machine_answers_and_hostile_names_are_only_names() {
        let dir = tempfile::tempdir().unwrap();
        let hostile = dir.path().join("libQnn $(touch owned) '`id`.so");
        std::fs::write(&hostile, [&b"\x7fELF\x01\x01\x01"[..], &[0; 60], b"v2.47.0.260601114230_1"].concat()).unwrap();
        let device = Device::local();
        let folder = dir.path().to_str().unwrap().to_owned();
        let told = look(&device, &[folder.clone(), "/no/where".to_owned()], Some(&folder), Root::None, Some(5)).await;
        let told = told.unwrap();
        assert_eq!(told.folders[0].files().len(), 1);
        assert_eq!(told.folders[1].listing, Listing::Absent);
        assert!(told.memory_available_bytes.is_some() && told.free_bytes.is_some() && told.machine.is_some());
        let path = hostile.to_str().unwrap().to_owned();
        let read = details(&device, &[(path.clone(), 90)]).await.unwrap();
        let (elf, id) = &read[&path];
        assert!(elf.is_some() || cfg!(not(target_os = "linux")));
        assert_eq!(id.as_ref().unwrap().to_string(), "v2.47.0.260601114230");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
