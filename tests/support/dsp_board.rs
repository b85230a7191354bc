//! A virtual device with the lab's libraries, and what a board shows after each failure that the lab
//! provokes.

use super::device::Bench;
use super::dsp_lab::Lab;
use super::virtual_device::Snapshot;
use serde_json::Value;
use std::cell::RefCell;
use std::path::Path;

/// A library on the way to the DSP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Client,
    Stub,
    Skel,
    Prepare,
}

/// What can be seen on a board after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nothing is wrong with it.
    Nothing,
    /// The binary that ran, which is available.
    Binary,
    Lacks(Library),
    OfOtherRelease(Library),
    SkelAsStub,
    /// The user may not open the DSP's node; if the user is root, SELinux has denied it.
    NodeClosed,
    /// The same for the shared memory heaps.
    HeapClosed,
    Denied,
    /// The compute DSP does not run.
    Offline,
    /// The kernel has recorded its crash.
    Crashed,
    ShortMemory,
    /// Its number and part; empty if it does not report them.
    Soc(&'static str, &'static str),
}

const SESSION: &str = "fastrpc-session-open-failed";
const MISMATCH: &str = "stub-skel-build-id-mismatch";
const CONTAINER: &str = "context-binary-wrong-container";

/// Rows of the lab whose cause can be seen on a board: the row, the cause, and what the board shows.
const SHOWN: [(&str, &str, Shown); 38] = [
    ("no FastRPC client", "libcdsprpc-missing", Shown::Lacks(Library::Client)),
    ("no stub of the part", "stub-not-found", Shown::Lacks(Library::Stub)),
    ("the DSP's file in the stub's place", "wrong-elf-class", Shown::SkelAsStub),
    ("a stub of another release", MISMATCH, Shown::OfOtherRelease(Library::Stub)),
    ("a skel of another release", MISMATCH, Shown::OfOtherRelease(Library::Skel)),
    ("an unknown part", "soc-unknown-to-sdk", Shown::Soc("9999", "SM9999")),
    ("no word on the part", "soc-unknown-to-sdk", Shown::Soc("", "")),
    ("a part without HTP", "dsp-arch-not-htp", Shown::Soc("356", "SM8250")),
    ("the skel is not found", "skel-not-found", Shown::Lacks(Library::Skel)),
    ("the DSP's heap does not grow", "dsp-heap-growth-failed", Shown::ShortMemory),
    ("the DSP's process is gone", "cdsp-ssr", Shown::Crashed),
    ("the node may not be opened", "fastrpc-permission-denied", Shown::NodeClosed),
    ("the connection is refused", SESSION, Shown::Offline),
    ("the connection is reset", "cdsp-ssr", Shown::Crashed),
    ("the driver does not answer", SESSION, Shown::Offline),
    ("opening is refused without a reason", "fastrpc-permission-denied", Shown::NodeClosed),
    ("a skel of an older release", MISMATCH, Shown::OfOtherRelease(Library::Skel)),
    ("unsigned processes are refused", "unsigned-pd-unavailable", Shown::Denied),
    ("no effective domain", SESSION, Shown::Offline),
    ("the first call fails", SESSION, Shown::Offline),
    ("the DSP restarts at the first call", "cdsp-ssr", Shown::Crashed),
    ("the DSP crashes at the first call", "cdsp-ssr", Shown::Crashed),
    ("no shared memory", "rpcmem-alloc-failed", Shown::HeapClosed),
    ("a healthy board", "", Shown::Nothing),
    ("a healthy board compiles and runs", "", Shown::Nothing),
    ("a healthy board runs the binary", "", Shown::Binary),
    ("no large buffer for a model", "rpcmem-alloc-failed", Shown::ShortMemory),
    ("no large buffer for a binary", "rpcmem-alloc-failed", Shown::ShortMemory),
    ("what compiles is missing", "prepare-lib-missing", Shown::Lacks(Library::Prepare)),
    ("what compiles is of another release", MISMATCH, Shown::OfOtherRelease(Library::Prepare)),
    ("the DSP restarts at the second inference", "cdsp-ssr", Shown::Crashed),
    ("the DSP crashes at the third inference", "cdsp-ssr", Shown::Crashed),
    ("a binary that was cut", CONTAINER, Shown::Binary),
    ("an empty binary", CONTAINER, Shown::Binary),
    ("a binary for a newer part", "context-binary-arch-newer", Shown::Binary),
    ("a binary that asks for more VTCM than there is", "context-binary-vtcm-too-large", Shown::Binary),
    ("a binary of the newer release", "context-binary-sdk-newer", Shown::Binary),
    ("a binary that x86 compiled", "", Shown::Binary),
];

/// The other rows, of which no trace remains, and why.
const UNSEEN: [(&str, &str); 13] = [
    (
        "no memory for the DSP's process",
        "what the kernel has reserved is told by names that differ from board to board",
    ),
    ("no session is free", "the other processes may be gone"),
    ("the session's name is not taken", "a defect of the program"),
    ("an attribute is not known", "the client library has no version that says so"),
    ("the first call is not known", "the DSP's own software is not at hand"),
    (
        "unsigned processes are not offered, and a signed one finds no skel",
        "only the DSP's software knows which signatures it takes",
    ),
    ("the skel does not tell its build", "the session's state is gone with its process"),
    ("the DSP does not take the graph", "only the DSP's answer says so"),
    ("the DSP does not take the binary", "only the DSP's answer says so"),
    ("a model's buffers are not mapped", "the address space is gone with its process"),
    ("a binary's buffers are not mapped", "the address space is gone with its process"),
    ("the first inference fails without a reason", "there is none"),
    ("a float op, and fewer inputs than the graph has", "a model library of the board does not tell its tensors here"),
];

/// What a board shows after a row's failure, and the cause that this confirms.
#[track_caller]
pub fn shown(row: &str) -> Option<(&'static str, Shown)> {
    let found = SHOWN.iter().find(|(name, ..)| *name == row).map(|&(_, cause, shown)| (cause, shown));
    assert!(
        found.is_some() || UNSEEN.iter().any(|(name, _)| *name == row),
        "`{row}` has no word on what is to be seen"
    );
    found
}

/// A device with one of the lab's parts, with the libraries of its release in a folder.
pub struct Board<'a> {
    bench: Bench,
    lab: &'a Lab,
    soc_id: &'a str,
    arch: &'static str,
    folder: String,
    client: &'static str,
    remoteproc: &'static str,
    /// Files that were changed, with their previous contents.
    before: RefCell<Vec<(String, Option<Vec<u8>>)>>,
}

const NODE: &str = "/dev/fastrpc-cdsp";
const HEAP: &str = "/dev/dma_heap/system";
const KERNEL_LOG: &str = "/system/etc/virtual/dmesg.txt";
const SOC_ID: &str = "/sys/devices/soc0/soc_id";

impl<'a> Board<'a> {
    pub fn new(lab: &'a Lab, soc_id: &'a str) -> Self {
        let (snapshot, part, arch) = match soc_id {
            "498" => (Snapshot::Qcs6490Linux, "", "68"),
            "557" => (Snapshot::Sm8550Root, "SM8650", "75"),
            _ => (Snapshot::Sm8550Root, "SM8750", "79"),
        };
        let bench = Bench::new(snapshot);
        let folder = format!("{}/lab", bench.device.work_folder());
        bench.shell(&format!("mkdir -p {folder}"));
        let is_phone = soc_id != "498";
        if is_phone {
            bench.device.set_property("ro.soc.model", part.as_bytes());
            bench.device.write(SOC_ID, format!("{soc_id}\n"));
        }
        let client = if is_phone { "/vendor/lib64/libcdsprpc.so" } else { "/usr/local/lib/libcdsprpc.so" };
        let remoteproc = if is_phone { "remoteproc1" } else { "remoteproc3" };
        let board = Self { bench, lab, soc_id, arch, folder, client, remoteproc, before: RefCell::default() };
        board.bench.device.write(NODE, "");
        board.bench.device.write(HEAP, "");
        board.bench.device.write(client, std::fs::read(lab.client()).unwrap());
        for name in ["libQnnHtp.so", "libQnnSystem.so"] {
            board.put(&format!("{}/{name}", board.folder), &lab.libraries().join(name));
        }
        for library in [Library::Stub, Library::Skel, Library::Prepare] {
            board.put(&board.path(library), &lab.libraries().join(board.name(library)));
        }
        board
    }

    /// The SoC's number.
    pub fn soc_id(&self) -> &str {
        self.soc_id
    }

    fn is_phone(&self) -> bool {
        self.soc_id != "498"
    }

    fn name(&self, library: Library) -> String {
        match library {
            Library::Client => "libcdsprpc.so".to_owned(),
            Library::Stub => format!("libQnnHtpV{}Stub.so", self.arch),
            Library::Skel => format!("libQnnHtpV{}Skel.so", self.arch),
            Library::Prepare => "libQnnHtpPrepare.so".to_owned(),
        }
    }

    fn path(&self, library: Library) -> String {
        match library {
            Library::Client => self.client.to_owned(),
            _ => format!("{}/{}", self.folder, self.name(library)),
        }
    }

    fn put(&self, path: &str, from: &Path) {
        self.bench.device.write(path, std::fs::read(from).unwrap());
    }

    /// Remembers a file's content before it changes.
    fn keep(&self, path: &str) {
        let was = self.bench.device.has(path).then(|| std::fs::read(self.host_path(path)).unwrap());
        self.before.borrow_mut().push((path.to_owned(), was));
    }

    fn host_path(&self, path: &str) -> std::path::PathBuf {
        let tree = self.bench.device.tree();
        match path.strip_prefix("/proc/") {
            Some(file) => tree.with_file_name("proc").join(file),
            None => tree.join(&path[1..]),
        }
    }

    fn set(&self, path: &str, text: impl AsRef<[u8]>) {
        self.keep(path);
        self.bench.device.write(path, text);
    }

    /// Records that SELinux has denied something: in Android's log if there is one, else in the kernel's.
    fn deny(&self, what: &str) {
        let text = format!(
            "avc:  denied  {{ read open }} for  comm=\"app\" name=\"{what}\" scontext=u:r:untrusted_app:s0 tclass=chr_file permissive=0"
        );
        if self.is_phone() {
            let path = "/system/etc/virtual/logcat.txt";
            self.keep(path);
            self.bench.device.log(&format!("11-20 08:00:00.000  4242  4242 W app     : {text}"));
        } else {
            self.set(KERNEL_LOG, format!("[  100.000000] audit: type=1400 audit(1.0:7): {text}\n"));
        }
    }

    fn make(&self, shown: Shown) {
        let device = &self.bench.device;
        match shown {
            Shown::Nothing | Shown::Binary => {}
            Shown::Lacks(library) => {
                self.keep(&self.path(library));
                device.remove(&self.path(library));
            }
            Shown::OfOtherRelease(library) => {
                let other = std::fs::read(self.lab.other().join(self.name(library))).unwrap();
                self.set(&self.path(library), other);
            }
            Shown::SkelAsStub => {
                let skel = std::fs::read(self.lab.libraries().join(self.name(Library::Skel))).unwrap();
                self.set(&self.path(Library::Stub), skel);
            }
            Shown::NodeClosed if self.is_phone() => device.refuse(NODE),
            Shown::HeapClosed if self.is_phone() => device.refuse(HEAP),
            Shown::NodeClosed | Shown::Denied => self.deny("fastrpc-cdsp"),
            Shown::HeapClosed => self.deny("dma_heap"),
            Shown::Offline => self.set(&format!("/sys/class/remoteproc/{}/state", self.remoteproc), "offline\n"),
            Shown::Crashed => {
                let name = if self.is_phone() { "32300000.remoteproc-cdsp" } else { "a300000.remoteproc" };
                let line = format!("remoteproc {}: crash detected in {name}: type fatal error", self.remoteproc);
                self.set(KERNEL_LOG, format!("[   99.000000] usb 1-1: new device\n[  100.000000] {line}\n"));
            }
            Shown::ShortMemory => {
                self.set("/proc/meminfo", "MemTotal:  5000000 kB\nMemFree:  20000 kB\nMemAvailable:  90000 kB\n");
            }
            Shown::Soc(number, part) => {
                let property =
                    if self.is_phone() { "/system/etc/virtual/getprop.txt" } else { "/sys/devices/soc0/machine" };
                self.keep(property);
                match (self.is_phone(), part.is_empty()) {
                    (true, true) => {
                        let all = std::fs::read_to_string(self.host_path(property)).unwrap();
                        let rest = all.lines().filter(|line| !line.contains("soc"));
                        device.write(property, rest.collect::<Vec<_>>().join("\n") + "\n");
                    }
                    (true, false) => device.set_property("ro.soc.model", part.as_bytes()),
                    (false, _) => device.write(property, format!("{part}\n")),
                }
                self.keep(SOC_ID);
                if number.is_empty() {
                    device.remove(SOC_ID);
                } else {
                    device.write(SOC_ID, format!("{number}\n"));
                }
            }
        }
    }

    fn mend(&self) {
        for node in [NODE, HEAP] {
            self.bench.device.allow(node);
        }
        for (path, was) in self.before.take().into_iter().rev() {
            match was {
                Some(bytes) => self.bench.device.write(&path, bytes),
                None => self.bench.device.remove(&path),
            }
        }
    }

    /// The program's answer about a log, with the checks made on this board in this state.
    #[track_caller]
    pub fn diagnose(&self, log: &str, shown: Shown, model: Option<&Path>) -> Value {
        self.make(shown);
        let call = self.bench.on_device();
        let path = call.home().join("board.log");
        std::fs::write(&path, log).unwrap();
        let mut call = call.arg("diagnose").arg(&path).args(["--json", "--check", "--files", &self.folder]);
        if let Some(model) = model {
            call = call.arg("--model").arg(model);
        }
        let document = call.finish().expect(0).json();
        self.mend();
        document
    }
}
