//! The environment variables used by QNN's tools and libraries.

use super::item::Item;
use super::sdk::is_sdk;
use crate::devices::AdbServer;
use std::path::{Path, PathBuf};

/// Examines each variable; an unset one is not a fault by itself.
pub fn examine(sdk: Option<&Path>) -> Vec<Item> {
    let value = |name: &str| {
        std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
    };
    let mut items: Vec<Item> =
        ["QNN_SDK_ROOT", "QAIRT_SDK_ROOT"].into_iter().map(|name| root(name, value(name).as_deref())).collect();
    if let (Some(one), Some(other)) = (value("QNN_SDK_ROOT"), value("QAIRT_SDK_ROOT"))
        && resolved(&one) != resolved(&other)
    {
        let detail = format!("QNN_SDK_ROOT is {one}, QAIRT_SDK_ROOT is {other}; QNN_SDK_ROOT is used");
        items.push(Item::warning(
            "sdk-roots",
            "both SDK variables",
            detail,
            "set both to the same SDK: versions must not be mixed",
        ));
    }
    items.push(library_path(value("LD_LIBRARY_PATH").as_deref()));
    items.push(dsp_path(value("ADSP_LIBRARY_PATH").as_deref()));
    items.push(python_path(value("PYTHONPATH").as_deref(), sdk));
    items.push(ndk_root(value("ANDROID_NDK_ROOT").as_deref()));
    items.push(Item::ok("ANDROID_SERIAL", "ANDROID_SERIAL", value("ANDROID_SERIAL").unwrap_or_else(not_set)));
    items.push(adb_socket(value("ADB_SERVER_SOCKET").as_deref()));
    items
}

fn not_set() -> String {
    "not set".to_owned()
}

fn resolved(path: &str) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path))
}

fn root(name: &str, value: Option<&str>) -> Item {
    let Some(value) = value else { return Item::ok(name, name, not_set()) };
    let path = Path::new(value);
    let fix = format!("set {name} to the SDK's root, the folder with bin/ and lib/, or unset it");
    if !path.is_dir() {
        return Item::problem(name, name, format!("{value} is not a folder"), fix);
    }
    if !is_sdk(path) {
        return Item::problem(name, name, format!("{value} has no bin/ and lib/"), fix);
    }
    Item::ok(name, name, value)
}

/// Entries that are not folders; an empty one means the working directory.
fn odd_entries(value: &str, separator: char) -> Vec<String> {
    let odd = |entry: &&str| !Path::new(entry).is_dir();
    let name = |entry: &str| {
        if entry.is_empty() { "an empty entry (the working folder)".to_owned() } else { entry.to_owned() }
    };
    value.split(separator).filter(odd).map(name).collect()
}

fn library_path(value: Option<&str>) -> Item {
    let name = "LD_LIBRARY_PATH";
    let Some(value) = value else { return Item::ok(name, name, not_set()) };
    let odd = odd_entries(value, ':');
    if odd.is_empty() {
        return Item::ok(name, name, value);
    }
    Item::warning(name, name, format!("not folders: {}", odd.join(", ")), "remove these entries")
}

fn dsp_path(value: Option<&str>) -> Item {
    let name = "ADSP_LIBRARY_PATH";
    let Some(value) = value else { return Item::ok(name, name, not_set()) };
    if value.contains(':') {
        let fix = format!("separate with ; and quote it: export ADSP_LIBRARY_PATH=\"{}\"", value.replace(':', ";"));
        return Item::problem(name, name, format!("{value}: the DSP reads a list with colons as one folder name"), fix);
    }
    let odd = odd_entries(value, ';');
    if odd.is_empty() {
        return Item::ok(name, name, value);
    }
    let fix = "it applies on the machine with the DSP: remove entries that do not exist there";
    Item::warning(name, name, format!("not folders here: {}", odd.join(", ")), fix)
}

fn python_path(value: Option<&str>, sdk: Option<&Path>) -> Item {
    let name = "PYTHONPATH";
    let own = sdk.map(|sdk| sdk.join("lib/python")).filter(|folder| folder.is_dir());
    let entries: Vec<PathBuf> = value.into_iter().flat_map(|value| value.split(':')).map(resolved).collect();
    match own {
        Some(folder) if !entries.contains(&resolved(&folder.to_string_lossy())) => {
            let detail = format!("it lacks {}, which the SDK's converters need", folder.display());
            let fix = format!("export PYTHONPATH={}:$PYTHONPATH (the SDK's bin/envsetup.sh does it)", folder.display());
            Item::warning(name, name, detail, fix)
        }
        _ => Item::ok(name, name, value.map_or_else(not_set, ToOwned::to_owned)),
    }
}

fn ndk_root(value: Option<&str>) -> Item {
    let name = "ANDROID_NDK_ROOT";
    match value {
        Some(value) if !Path::new(value).is_dir() => {
            Item::warning(name, name, format!("{value} is not a folder"), "set it to the NDK's root, or unset it")
        }
        Some(value) => Item::ok(name, name, value),
        None => Item::ok(name, name, not_set()),
    }
}

fn adb_socket(value: Option<&str>) -> Item {
    let name = "ADB_SERVER_SOCKET";
    match value.map(|value| (value, AdbServer::parse(value))) {
        Some((_, Err(error))) => Item::problem(name, name, error.to_string(), error.advice().unwrap_or_default()),
        Some((value, Ok(_))) => Item::ok(name, name, value),
        None => Item::ok(name, name, not_set()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn colons_in_the_path_of_the_dsp_are_a_problem() {
        let item = dsp_path(Some("/a:/b"));
        assert_eq!(item.status, Status::Problem);
        assert!(item.fix.unwrap().contains("\"/a;/b\""));
        assert_eq!(dsp_path(Some("/tmp;/usr")).status, Status::Ok);
        assert_eq!(dsp_path(Some("/tmp;/no/such")).status, Status::Warning);
        assert_eq!(dsp_path(None).status, Status::Ok);
    }

    #[test]
    fn roots_that_are_none_are_problems() {
        assert_eq!(root("QNN_SDK_ROOT", Some("/no/such")).status, Status::Problem);
        assert_eq!(root("QNN_SDK_ROOT", Some("/tmp")).status, Status::Problem);
        assert_eq!(root("QNN_SDK_ROOT", None).status, Status::Ok);
        assert_eq!(library_path(Some("/tmp:")).status, Status::Warning);
        assert_eq!(adb_socket(Some("tcp:nowhere:x")).status, Status::Problem);
    }
}
