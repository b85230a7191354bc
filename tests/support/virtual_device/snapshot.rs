//! The snapshots in `tests/data/devices`: which device it is, and what its files contain.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which device to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// An Android 14 phone that is not rooted.
    Sm8650User,
    /// An Android 13 phone with `su`.
    Sm8550Root,
    /// A Qualcomm Linux board whose adb shell is root.
    Qcs6490Linux,
}

/// The situation that the device's readings show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scene {
    #[default]
    Idle,
    /// A model is running.
    Load,
    /// A model has run until the device got hot.
    Throttle,
}

/// What is at a path of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Text(String),
    /// Exists, but the adb shell may not read it.
    Refused(String),
}

impl Entry {
    /// The file's content, for those who may read it.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Refused(text) => text,
        }
    }
}

/// A snapshot as read from its folder.
pub struct Data {
    folder: PathBuf,
    pub android: bool,
    pub uid: u32,
    pub has_su: bool,
    pub entries: BTreeMap<String, Entry>,
    load: BTreeMap<String, String>,
    throttle: BTreeMap<String, String>,
}

impl Snapshot {
    fn folder(self) -> PathBuf {
        let name = match self {
            Self::Sm8650User => "sm8650-user",
            Self::Sm8550Root => "sm8550-root",
            Self::Qcs6490Linux => "qcs6490-linux",
        };
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/devices").join(name)
    }

    /// Reads the snapshot's files.
    pub fn read(self) -> Data {
        let folder = self.folder();
        let device = json(&folder, "device.json");
        let (denied, allowed) = (texts(&device["shell_denied"]), texts(&device["shell_allowed"]));
        let refused = |path: &str| {
            denied.iter().any(|pattern| matches(pattern, path)) && !allowed.iter().any(|pattern| matches(pattern, path))
        };
        let mut entries = BTreeMap::new();
        for (path, value) in json(&folder, "tree.json").as_object().unwrap() {
            let entry = match (value.as_str(), value["error"].as_str()) {
                (Some(text), _) if refused(path) => Entry::Refused(text.to_owned()),
                (Some(text), _) => Entry::Text(text.to_owned()),
                (None, Some("EACCES")) => Entry::Refused(String::new()),
                (None, Some("ENOENT")) => continue,
                other => panic!("{path} of {}: {other:?}", folder.display()),
            };
            entries.insert(path.clone(), entry);
        }
        let overlay = |name| {
            let value = json(&folder, name);
            value
                .as_object()
                .unwrap()
                .iter()
                .map(|(path, text)| (path.clone(), text.as_str().unwrap().to_owned()))
                .collect()
        };
        let (load, throttle) = (overlay("load.json"), overlay("throttle.json"));
        Data {
            android: device["kind"] == "android",
            uid: device["shell_uid"].as_u64().and_then(|uid| uid.try_into().ok()).unwrap(),
            has_su: device["root"] == "su",
            folder,
            entries,
            load,
            throttle,
        }
    }
}

impl Data {
    /// A text file in the snapshot's folder, if it exists.
    pub fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(name)).ok()
    }

    /// An Android property; empty if there is none.
    pub fn property(&self, name: &str) -> String {
        let start = format!("[{name}]: [");
        let all = self.text("getprop.txt").unwrap_or_default();
        all.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(']')).unwrap_or_default().to_owned()
    }

    /// The content, in `scene`, of every file that any scene changes, by path.
    pub fn scene(&self, scene: Scene) -> BTreeMap<String, String> {
        let overlay = match scene {
            Scene::Idle => None,
            Scene::Load => Some(&self.load),
            Scene::Throttle => Some(&self.throttle),
        };
        let touched = self.load.keys().chain(self.throttle.keys());
        touched
            .filter_map(|path| {
                let there = overlay.and_then(|overlay| overlay.get(path)).map(String::as_str);
                Some((path.clone(), there.or_else(|| self.entries.get(path).map(Entry::text))?.to_owned()))
            })
            .collect()
    }

    /// The text of `dumpsys thermalservice` in `scene`: the hot scene is `severe`, in line with the skin
    /// limits in the text.
    pub fn thermal_service(&self, scene: Scene) -> Option<String> {
        let text = self.text("dumpsys_thermalservice.txt")?;
        if scene != Scene::Throttle {
            return Some(text);
        }
        let hot = |line: &str| match line.split_once("mName=skin, mStatus=") {
            Some((before, _)) if line.trim_start().starts_with("Temperature{") => {
                let indent = before.len() - before.trim_start().len();
                format!("{}Temperature{{mValue=47.1, mType=3, mName=skin, mStatus=3}}\n", &before[..indent])
            }
            _ => line.replace("Thermal Status: 0", "Thermal Status: 3") + "\n",
        };
        Some(text.lines().map(hot).collect())
    }
}

fn json(folder: &std::path::Path, name: &str) -> Value {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A pattern is a path, or, with `*` at its end, everything that begins with the rest.
fn matches(pattern: &str, path: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == path, |start| path.starts_with(start))
}
