//! A device's files on this machine: built from a snapshot, changed while the device runs, removed at the
//! end.

use super::namespaces::tool;
use super::snapshot::{Data, Entry};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

/// Texts printed by the stand-in commands.
const TEXTS: &str = "/system/etc/virtual";

const SCRIPTS: [(&str, &str); 16] = [
    ("dmesg", include_str!("commands/dmesg")),
    ("getprop", include_str!("commands/getprop")),
    ("dumpsys", include_str!("commands/dumpsys")),
    ("logcat", include_str!("commands/logcat")),
    ("id", include_str!("commands/id")),
    ("uname", include_str!("commands/uname")),
    ("getenforce", include_str!("commands/getenforce")),
    ("settings", include_str!("commands/settings")),
    ("su", include_str!("commands/su")),
    ("run-as", include_str!("commands/run-as")),
    ("setprop", include_str!("commands/setprop")),
    ("am", include_str!("commands/am")),
    ("cmd", include_str!("commands/cmd")),
    ("pm", include_str!("commands/pm")),
    ("pidof", include_str!("commands/pidof")),
    ("app_process64", include_str!("commands/app_process64")),
];

/// This machine's folders that the device needs for its programs: the loader, the C library, util-linux.
const HOST: [&str; 7] = ["usr/bin", "usr/sbin", "usr/lib", "usr/lib32", "usr/lib64", "usr/libexec", "usr/share"];
/// The same outside `/usr`: on most systems, links into it.
const HOST_ROOT: [&str; 5] = ["lib", "lib32", "lib64", "bin", "sbin"];

/// Android commands that Debian's toybox lacks; this machine's are used instead.
const BORROWED: [&str; 7] = ["awk", "dd", "diff", "expr", "gzip", "stty", "tr"];

/// The files of one device.
pub struct Tree {
    folder: TempDir,
    android: bool,
    /// Held while a file is changed, since its mode may temporarily be another.
    changing: Mutex<()>,
}

impl Tree {
    /// Builds the tree of a snapshot.
    pub fn build(data: &Data) -> Self {
        let folder = tempfile::Builder::new().prefix("virtual-device-").tempdir().unwrap();
        let tree = Self { folder, android: data.android, changing: Mutex::default() };
        fs::create_dir(tree.proc()).unwrap();
        for part in ["proc", "sys", "dev", ".host"].iter().chain(&HOST) {
            tree.make_folder(part);
        }
        for node in ["null", "zero", "full", "random", "urandom"] {
            fs::write(tree.root().join("dev").join(node), "").unwrap();
        }
        let host_root = HOST_ROOT.iter().filter(|name| !data.android || name.starts_with("lib"));
        for name in host_root {
            match fs::read_link(Path::new("/").join(name)) {
                Ok(target) => symlink(target, tree.root().join(name)).unwrap(),
                Err(_) if Path::new("/").join(name).is_dir() => tree.make_folder(name),
                Err(_) => {}
            }
        }
        if data.android {
            tree.add_android(data);
        } else {
            tree.add_board(data);
        }
        for (path, entry) in &data.entries {
            // Not taken from the snapshot: the namespaces have their own clock.
            if path == "/proc/uptime" {
                continue;
            }
            let (text, mode) = match entry {
                Entry::Text(text) => (text, 0o444),
                Entry::Refused(text) => (text, 0o000),
            };
            let file = tree.host_path(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            set_mode(&file, mode);
        }
        tree.set_folder_modes();
        tree
    }

    fn add_android(&self, data: &Data) {
        for folder in
            ["system/bin", "system/xbin", "system/lib64", "system/etc/virtual/dumpsys", "vendor/bin", "vendor/lib64"]
        {
            self.make_folder(folder);
        }
        for folder in ["data/local/tmp", "data/app", "data/data", "storage/emulated/0", "vendor/dsp/cdsp"] {
            self.make_folder(folder);
        }
        for (link, target) in [("bin", "/system/bin"), ("etc", "/system/etc"), ("sdcard", "/storage/emulated/0")] {
            symlink(target, self.root().join(link)).unwrap();
        }
        let bin = self.root().join("system/bin");
        for program in ["mksh", "toybox"] {
            fs::copy(tool(program), bin.join(program)).unwrap();
        }
        symlink("mksh", bin.join("sh")).unwrap();
        for (name, text) in SCRIPTS.iter().filter(|(name, _)| *name != "su" || data.has_su) {
            add_program(&bin.join(name), text);
        }
        let applets = Command::new(tool("toybox")).output().unwrap();
        for name in String::from_utf8(applets.stdout).unwrap().split_whitespace() {
            let link = bin.join(name);
            // Without a script for it, there is no `su`.
            if name != "su" && link.symlink_metadata().is_err() {
                symlink("toybox", link).unwrap();
            }
        }
        for name in BORROWED {
            let program = fs::canonicalize(tool(name)).unwrap();
            let link = bin.join(name);
            if link.symlink_metadata().is_err() {
                symlink(program, link).unwrap();
            }
        }
        self.add_users("system/etc");
        let texts = self.host_path(TEXTS);
        for (name, file) in [
            ("getprop.txt", "getprop.txt"),
            ("logcat.txt", "logcat.txt"),
            ("id.txt", "id.txt"),
            ("id_su.txt", "id_root.txt"),
            ("dumpsys_battery.txt", "dumpsys/battery"),
            ("dumpsys_gpu.txt", "dumpsys/gpu"),
            ("dumpsys_thermalservice.txt", "dumpsys/thermalservice"),
        ] {
            if let Some(text) = data.text(name) {
                fs::write(texts.join(file), text).unwrap();
            }
        }
        // Nothing is ever written to it: whoever waits for it waits until the time is up.
        let never = texts.join("never");
        make_fifo(&never);
        set_mode(&never, 0o666);
    }

    fn add_board(&self, data: &Data) {
        for folder in
            ["etc", "home/root", "tmp", "opt", "usr/local/bin", "usr/local/lib", "run", "system/etc/virtual", "var"]
        {
            self.make_folder(folder);
        }
        self.add_users("etc");
        let bin = self.root().join("usr/local/bin");
        fs::copy(tool("mksh"), bin.join("mksh")).unwrap();
        for (name, text) in SCRIPTS.iter().filter(|(name, _)| matches!(*name, "dmesg" | "uname")) {
            let text = text.replace("/system/bin/sh", "/usr/local/bin/mksh").replace("toybox ", "/usr/bin/");
            add_program(&bin.join(name), &text);
        }
        debug_assert!(!data.has_su);
    }

    fn add_users(&self, etc: &str) {
        let etc = self.root().join(etc);
        fs::write(etc.join("passwd"), "root:x:0:0::/:/bin/sh\nshell:x:2000:2000::/:/bin/sh\n").unwrap();
        fs::write(etc.join("group"), "root:x:0:\nshell:x:2000:\n").unwrap();
    }

    /// As on Android, where the shell owns few folders and may not even look into some; a board's shell is
    /// root anyway.
    fn set_folder_modes(&self) {
        if !self.android {
            return;
        }
        for_each_folder(&self.root(), &mut |folder| set_mode(folder, 0o555));
        for (folder, mode) in
            [("data", 0o111), ("data/local", 0o111), ("data/local/tmp", 0o771), ("storage/emulated/0", 0o770)]
        {
            set_mode(&self.root().join(folder), mode);
        }
    }

    fn make_folder(&self, path: &str) {
        fs::create_dir_all(self.root().join(path)).unwrap();
    }

    /// The folder that serves as the device's `/`.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// The folder with the files laid over those of `/proc`.
    pub fn proc(&self) -> PathBuf {
        self.folder.path().join("proc")
    }

    /// The path on this machine of a path on the device. Anything in memory (a limited disk) is not there.
    pub fn host_path(&self, path: &str) -> PathBuf {
        assert!(path.starts_with('/'), "{path} is not an absolute path");
        match path.strip_prefix("/proc/") {
            Some(file) => self.proc().join(file),
            None => self.root().join(&path[1..]),
        }
    }

    /// Replaces a file's content in place, since the file may be mounted somewhere; creates a missing file.
    /// The new text is written over the old one, so a reader never finds the file empty.
    pub fn write(&self, path: &str, text: &[u8]) {
        let _changing = self.changing.lock().unwrap();
        let file = self.host_path(path);
        match fs::symlink_metadata(&file) {
            Ok(about) => {
                let mode = about.permissions().mode() & 0o7777;
                set_mode(&file, mode | 0o200);
                overwrite(&file, text);
                set_mode(&file, mode);
            }
            Err(_) => {
                assert!(!path.starts_with("/proc/"), "{path} is not laid over /proc, which is fixed at the start");
                self.with_folder_of(&file, &|| fs::write(&file, text).unwrap());
                set_mode(&file, 0o444);
            }
        }
    }

    /// Appends bytes to a file.
    pub fn append(&self, path: &str, text: &[u8]) {
        let _changing = self.changing.lock().unwrap();
        OpenOptions::new().append(true).open(self.host_path(path)).unwrap().write_all(text).unwrap();
    }

    /// Removes a file or a whole folder.
    pub fn remove(&self, path: &str) {
        assert!(!path.starts_with("/proc/"), "files laid over /proc cannot go away; refuse {path} instead");
        let _changing = self.changing.lock().unwrap();
        let file = self.host_path(path);
        self.with_folder_of(&file, &|| {
            if file.symlink_metadata().unwrap().is_dir() {
                for_each_folder(&file, &mut |folder| set_mode(folder, 0o755));
                fs::remove_dir_all(&file).unwrap();
            } else {
                fs::remove_file(&file).unwrap();
            }
        });
    }

    /// Sets a file's mode.
    pub fn set_mode(&self, path: &str, mode: u32) {
        let _changing = self.changing.lock().unwrap();
        set_mode(&self.host_path(path), mode);
    }

    /// Puts a new FIFO in place of `file` in one step; those who have the old file open keep it.
    pub fn put_fifo(&self, file: &Path) {
        let _changing = self.changing.lock().unwrap();
        self.with_folder_of(file, &|| {
            let fresh = file.with_extension("fresh");
            make_fifo(&fresh);
            // Its owner, who is also the shell's user, must be able to open it for writing.
            set_mode(&fresh, 0o644);
            fs::rename(&fresh, file).unwrap();
        });
    }

    /// Removes everything. A service's thread that is about to end may still add a file, so this is tried
    /// more than once.
    pub fn clear(&self) {
        for _ in 0..50 {
            // Folders without write permission, the device's or a test's, could not be emptied.
            for_each_folder(self.folder.path(), &mut |_| {});
            match fs::remove_dir_all(self.folder.path()) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(10))
                }
                _ => return,
            }
        }
    }

    /// Does something with a folder's entries that the folder's mode may not allow; creates the folder if it
    /// is missing.
    fn with_folder_of(&self, file: &Path, action: &dyn Fn()) {
        let folder = file.parent().unwrap();
        if !folder.is_dir() {
            self.with_folder_of(folder, &|| fs::create_dir(folder).unwrap());
        }
        let mode = folder.metadata().unwrap().permissions().mode() & 0o7777;
        set_mode(folder, 0o755);
        action();
        set_mode(folder, mode);
    }
}

impl Drop for Tree {
    /// Removes whatever was left when the device stopped.
    fn drop(&mut self) {
        self.clear();
    }
}

/// Calls `action` for a folder, then for those inside it, without following links.
fn for_each_folder(folder: &Path, action: &mut impl FnMut(&Path)) {
    // Opened first, so that its contents can be reached; the action then has the last word.
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o755));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            for_each_folder(&entry.path(), action);
        }
    }
    action(folder);
}

fn overwrite(file: &Path, text: &[u8]) {
    let mut open: File = OpenOptions::new().write(true).open(file).unwrap();
    open.write_all(text).unwrap();
    open.set_len(text.len() as u64).unwrap();
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, Permissions::from_mode(mode))
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

fn add_program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    set_mode(file, 0o555);
}

fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
}
