//! The vendor's SDK: its location and contents.

use super::item::Item;
use crate::backends::runtime::Env;
use crate::facts::build_id_of;
use std::path::{Path, PathBuf};

/// What to do if there is none.
pub const NO_SDK: &str = "get Qualcomm's AI Runtime SDK (needs a login) and set QAIRT_SDK_ROOT to its root; profiling on this \
                          machine works without it: `qnnscope runtime install`";

/// The SDK and the findings about it.
pub struct Found {
    /// Its root.
    pub root: Option<PathBuf>,
    /// Its lines.
    pub items: Vec<Item>,
}

/// Finds the SDK named by `--runtime`, `$QNN_SDK_ROOT` or `$QAIRT_SDK_ROOT`.
pub fn find(option: Option<&Path>, env: &Env) -> Found {
    let places = [option, env.qnn_sdk_root.as_deref(), env.qairt_sdk_root.as_deref()];
    let Some(root) = places.into_iter().flatten().find(|root| is_sdk(root)).map(Path::to_owned) else {
        let named = ["--runtime", "QNN_SDK_ROOT", "QAIRT_SDK_ROOT"].into_iter().zip(places);
        let named: Vec<String> =
            named.filter_map(|(name, place)| Some(format!("{name} names {}", place?.display()))).collect();
        let detail = if named.is_empty() {
            "none of --runtime, QNN_SDK_ROOT, QAIRT_SDK_ROOT is set".to_owned()
        } else {
            format!("{}: not an SDK (a folder with bin/ and lib/)", named.join(", "))
        };
        let items = vec![Item::warning("sdk", "QNN SDK", detail, NO_SDK)];
        return Found { root: None, items };
    };
    let version = version(&root).map_or_else(|| "version unknown".to_owned(), |version| format!("version {version}"));
    let targets = names(&root.join("bin")).join(", ");
    let targets = if targets.is_empty() { "no tools".to_owned() } else { format!("tools for {targets}") };
    let mut items = vec![Item::ok("sdk", "QNN SDK", format!("{}: {version}, {targets}", root.display()))];
    let skels: Vec<String> =
        names(&root.join("lib")).into_iter().filter(|name| name.starts_with("hexagon-v")).collect();
    items.push(if skels.is_empty() {
        Item::warning(
            "skels",
            "DSP libraries",
            "the SDK has no lib/hexagon-v*",
            "use an SDK with the DSP libraries to run HTP on devices",
        )
    } else {
        Item::ok("skels", "DSP libraries", skels.join(", "))
    });
    Found { root: Some(root), items }
}

/// True for a folder with tools and libraries per target.
pub fn is_sdk(root: &Path) -> bool {
    root.join("bin").is_dir() && root.join("lib").is_dir()
}

/// Version from `sdk.yaml`, else from a library's build id.
pub fn version(root: &Path) -> Option<String> {
    let yaml = crate::files::read_text_at_most(&root.join("sdk.yaml"), 1 << 20).ok();
    let told = yaml.and_then(|text| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("version:").map(ToOwned::to_owned))?;
        Some(line.trim().trim_matches(['"', '\'']).to_owned()).filter(|version| !version.is_empty())
    });
    told.or_else(|| {
        let folders = names(&root.join("lib")).into_iter().map(|name| root.join("lib").join(name));
        let files =
            folders.flat_map(|folder| ["libQnnCpu.so", "libQnnHtp.so", "libQnnGpu.so"].map(|name| folder.join(name)));
        files.filter(|file| file.is_file()).find_map(|file| Some(build_id_of(&file).ok()??.to_string()))
    })
}

/// Subfolders of a folder, by name.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
