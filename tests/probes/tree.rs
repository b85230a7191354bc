//! A device whose `/sys` and part of `/proc` come from a snapshot: mount and user namespaces, and mksh with
//! toybox as on Android.

use super::device::{rooted_device, shell_device, tool};
use qnnscope::devices::Device;
use qnnscope::event::DeviceKind;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Makes the folder `$1` the root: this machine's programs, the snapshot's files; then runs `$4` as user `$2`
/// without capabilities (`$3` is the `-c` before it).
const ENTER: &str = r#"
cd "$1" && mount --bind . . && cd "$1" || exit 97
for folder in usr bin lib lib64 dev proc; do
    [ -e "/$folder" ] || continue
    mkdir -p "$folder" && mount --rbind "/$folder" "$folder" || exit 97
done
(cd snapshot-proc && find . -type f) | while read -r file; do
    [ -e "proc/$file" ] && mount --bind "snapshot-proc/$file" "proc/$file"
done
mkdir -p old && pivot_root . old && cd / && umount -l old || exit 97
[ "$2" = 0 ] && exec /usr/bin/env PATH=/tools mksh -c "$4"
exec /usr/bin/unshare --user --map-user="$2" --map-group="$2" /usr/bin/env PATH=/tools mksh -c "$4"
"#;

/// The snapshot's files, which may be changed while they are read.
pub struct Tree {
    folder: TempDir,
    uid: u32,
}

pub fn snapshot_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/devices").join(name)
}

impl Tree {
    /// The files of a snapshot, `as_root` or as its shell user sees them.
    pub fn new(snapshot: &str, as_root: bool) -> Self {
        let data = snapshot_folder(snapshot);
        let json = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(data.join(name)).unwrap()).unwrap() };
        let about = json("device.json");
        let uid = about["shell_uid"].as_u64().unwrap() as u32;
        let tree = Self { folder: tempfile::tempdir().unwrap(), uid: if as_root { 0 } else { uid } };
        std::fs::set_permissions(tree.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let list = |key: &str| -> Vec<String> {
            let list = about[key].as_array().cloned().unwrap_or_default();
            list.iter().map(|path| path.as_str().unwrap().trim_end_matches('*').to_owned()).collect()
        };
        let (denied, allowed) = (list("shell_denied"), list("shell_allowed"));
        for (path, content) in json("tree.json").as_object().unwrap() {
            let refused = !as_root
                && denied.iter().any(|prefix| path.starts_with(prefix))
                && !allowed.iter().any(|prefix| path == prefix);
            match content {
                Value::String(text) => {
                    tree.write(path, text.as_bytes());
                    if refused {
                        tree.refuse(path);
                    }
                }
                error if error["error"] == "EACCES" => {
                    tree.write(path, b"");
                    tree.refuse(path);
                }
                _ => {}
            }
        }
        tree.tools(&data);
        tree
    }

    /// `/tools`: toybox's commands, and `dumpsys` if the snapshot has its output.
    fn tools(&self, data: &Path) {
        let folder = self.root().join("tools");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(self.root().join("snapshot-proc")).unwrap();
        let toybox = tool("toybox");
        for name in ["cat", "printf", "sleep", "getconf", "ls", "id"] {
            std::os::unix::fs::symlink(&toybox, folder.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(tool("mksh"), folder.join("mksh")).unwrap();
        if data.join("dumpsys_battery.txt").exists() {
            let texts = self.root().join("dumpsys");
            std::fs::create_dir_all(&texts).unwrap();
            for name in ["battery", "gpu", "thermalservice"] {
                std::fs::copy(data.join(format!("dumpsys_{name}.txt")), texts.join(name)).unwrap();
            }
            let script = "#!/tools/mksh\n[ -f /dumpsys/$1 ] && exec cat /dumpsys/$1\necho \"Can't find service: $1\"\n";
            std::fs::write(folder.join("dumpsys"), script).unwrap();
            std::fs::set_permissions(folder.join("dumpsys"), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The path on this machine of a path on the device.
    pub fn here(&self, path: &str) -> PathBuf {
        match path.strip_prefix("/proc/") {
            Some(rest) => self.root().join("snapshot-proc").join(rest),
            None => self.root().join(path.trim_start_matches('/')),
        }
    }

    /// Writes a file in place, as the kernel changes its own files.
    pub fn write(&self, path: &str, content: &[u8]) {
        // The clock is this machine's own.
        if path == "/proc/uptime" {
            return;
        }
        let here = self.here(path);
        std::fs::create_dir_all(here.parent().unwrap()).unwrap();
        std::fs::write(here, content).unwrap();
    }

    /// Applies the files that differ in another state of the device (`load`, `throttle`).
    pub fn overlay(&self, snapshot: &str, scene: &str) {
        let file = snapshot_folder(snapshot).join(format!("{scene}.json"));
        let scene: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for (path, content) in scene.as_object().unwrap() {
            self.write(path, content.as_str().unwrap_or_default().as_bytes());
        }
    }

    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.here(path)).unwrap();
    }

    pub fn refuse(&self, path: &str) {
        std::fs::set_permissions(self.here(path), std::fs::Permissions::from_mode(0o000)).unwrap();
    }

    /// The device.
    pub fn device(&self) -> Device {
        let path = std::env::var("PATH").unwrap();
        shell_device("tree", DeviceKind::Adb, &self.enter(&self.uid.to_string()), &path)
    }

    /// The device, with a `su` that gives root.
    pub fn rooted_device(&self) -> Device {
        let su = self.root().join("tools/su");
        std::fs::write(&su, "#!/tools/mksh\n[ \"$1\" = -c ] && exec mksh -c \"$2\"\nexit 1\n").unwrap();
        std::fs::set_permissions(&su, std::fs::Permissions::from_mode(0o755)).unwrap();
        rooted_device(&self.enter(&self.uid.to_string()), &self.enter("0"))
    }

    fn enter<'a>(&'a self, uid: &'a str) -> [&'a str; 10] {
        let root = self.root().to_str().unwrap();
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ENTER, "enter", root, uid]
    }
}
