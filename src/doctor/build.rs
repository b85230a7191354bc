//! What the SDK's converters and generators require besides the SDK: Python, its modules, compilers, the NDK.

use super::item::Item;
use super::start::{Started, on_path, start};
use crate::backends::runtime::Env;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for starting Python.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum depth of folders searched for the SDK's Python modules, and maximum number of files examined.
const MOST_LEVELS: usize = 8;
const MOST_FILES: usize = 20_000;
/// Modules that every converter imports.
const MODULES: [&str; 3] = ["numpy", "onnx", "yaml"];

/// Examines Python and the compilers; without an SDK nothing needs them.
pub async fn examine(sdk: Option<&Path>, env: &Env) -> Vec<Item> {
    let Some(sdk) = sdk else {
        let detail = "only the SDK's converters need them, and there is no SDK";
        return vec![Item::ok("python", "Python", detail), Item::ok("ndk", "Android NDK", detail)];
    };
    let mut items = python(sdk, &env.python).await;
    items.push(ndk());
    items.push(compilers());
    items
}

async fn python(sdk: &Path, program: &Path) -> Vec<Item> {
    let script = format!(
        "import importlib.util,platform,sys\nprint('%d.%d'%sys.version_info[:2],platform.machine())\n\
         print(' '.join(m for m in {MODULES:?} if importlib.util.find_spec(m) is None))"
    );
    let output = match start(program, &["-c", &script], &[], LIMIT).await {
        Started::Ended { status: Some(0), output } => output,
        other => {
            let detail = format!("{} does not run: {}", program.display(), describe(&other));
            let fix = "install the Python 3 version that the SDK requires, or set QNNSCOPE_PYTHON";
            return vec![Item::warning("python", "Python", detail, fix)];
        }
    };
    let mut lines = output.lines();
    let (version, machine) = lines.next().unwrap_or_default().split_once(' ').unwrap_or_default();
    let mut items = Vec::new();
    let folder = sdk.join("lib/python");
    let wanted = tokio::task::spawn_blocking(move || versions(&folder)).await.unwrap_or_default();
    items.push(if wanted.is_empty() || wanted.contains(version) {
        let note = if wanted.is_empty() {
            "; the SDK's files do not show which versions it is built for"
        } else {
            ", which the SDK supports"
        };
        Item::ok("python", "Python", format!("{version} ({machine}){note}"))
    } else {
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let detail = format!("{version} ({machine}); the SDK's modules are built for {}", wanted.join(", "));
        Item::warning(
            "python",
            "Python",
            detail,
            format!("create an environment with Python {}", wanted[wanted.len() - 1]),
        )
    });
    let missing: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    items.push(if missing.is_empty() {
        Item::ok("python-modules", "Python modules", MODULES.join(", "))
    } else {
        let detail = format!("not installed: {}", missing.join(", "));
        let names = missing.iter().map(|name| if *name == "yaml" { "pyyaml" } else { name }).collect::<Vec<_>>();
        Item::warning("python-modules", "Python modules", detail, format!("python3 -m pip install {}", names.join(" ")))
    });
    items
}

fn describe(started: &Started) -> String {
    match started {
        Started::Ended { output, .. } => output.lines().last().unwrap_or("it failed").trim().to_owned(),
        Started::Hangs => "it did not finish in time".to_owned(),
        Started::Refused(reason) => reason.clone(),
    }
}

/// Python versions in the names of compiled modules: `libPyIrGraph310.so`,
/// `x.cpython-310-x86_64-linux-gnu.so`.
fn versions(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![(folder.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, level)) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_FILES {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && level < MOST_LEVELS {
                waiting.push((entry.path(), level + 1));
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let digits =
                name.split_once(".cpython-").map(|(_, rest)| rest).or_else(|| name.strip_prefix("libPyIrGraph"));
            let digits: String = digits.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
            if let Some(minor) = digits.strip_prefix('3').filter(|minor| !minor.is_empty() && minor.len() <= 2) {
                found.insert(format!("3.{minor}"));
            }
        }
    }
    found
}

fn ndk() -> Item {
    let variable = ["ANDROID_NDK_ROOT", "ANDROID_NDK_HOME"].into_iter().find_map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name, PathBuf::from(value)))
    });
    let fix = "install the Android NDK (sdkmanager ndk) and set ANDROID_NDK_ROOT to it; only model libraries for Android need it";
    match (variable, on_path("ndk-build")) {
        (Some((name, root)), _) if root.join("ndk-build").is_file() => {
            Item::ok("ndk", "Android NDK", format!("{name} is {}", root.display()))
        }
        (Some((name, root)), _) => {
            Item::warning("ndk", "Android NDK", format!("{name} is {}, which has no ndk-build", root.display()), fix)
        }
        (None, Some(path)) => Item::ok("ndk", "Android NDK", format!("{} on PATH", path.display())),
        (None, None) => Item::warning("ndk", "Android NDK", "neither ANDROID_NDK_ROOT nor ndk-build on PATH", fix),
    }
}

fn compilers() -> Item {
    let missing: Vec<&str> = ["clang++", "make"].into_iter().filter(|name| on_path(name).is_none()).collect();
    if missing.is_empty() {
        return Item::ok("compilers", "compilers", "clang++ and make are on PATH");
    }
    let detail = format!("not on PATH: {}; qnn-model-lib-generator needs them for this machine", missing.join(", "));
    let packages: Vec<&str> = missing.iter().map(|name| if *name == "clang++" { "clang" } else { "make" }).collect();
    Item::warning("compilers", "compilers", detail, format!("sudo apt-get install {}", packages.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_off_names() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("qti/aisw");
        std::fs::create_dir_all(&deep).unwrap();
        for name in ["libPyIrGraph310.so", "x.cpython-38-x86_64-linux-gnu.so", "libPyIrGraph.so", "readme.cpython-x"] {
            std::fs::write(deep.join(name), "").unwrap();
        }
        let found: Vec<String> = versions(dir.path()).into_iter().collect();
        assert_eq!(found, ["3.10", "3.8"]);
    }
}
