//! Whether tools and libraries that work together come from the same release.

use super::item::Item;
use super::sdk::names;
use crate::backends::runtime::RuntimeDir;
use crate::facts::{BuildId, build_id_of};
use std::path::{Path, PathBuf};

/// The tool.
const TOOL: &str = "qnn-net-run";
/// Libraries with a build id, smaller ones first.
const NAMING: [&str; 4] = ["libQnnCpu.so", "libQnnGpu.so", "libQnnHtp.so", "libQnnSystem.so"];
/// What to do about different releases.
const FIX: &str =
    "use tools and libraries of one SDK: an older one cannot open DLCs and context binaries made by a newer one";

/// A tool or library and its build.
type Build = (PathBuf, BuildId);

/// One line covering every target of the SDK and the libraries used on this machine; empty without build ids.
pub async fn examine(sdk: Option<&Path>, used: Option<RuntimeDir>) -> Vec<Item> {
    let Some(sdk) = sdk.map(Path::to_owned) else { return Vec::new() };
    let looked = tokio::task::spawn_blocking(move || {
        let pairs: Vec<(Build, Build)> = names(&sdk.join("bin")).iter().filter_map(|name| pair(&sdk, name)).collect();
        let used = used.and_then(|used| first(used.libraries.iter().map(|library| library.path.clone())));
        judge(&pairs, used.as_ref())
    });
    looked.await.ok().flatten().into_iter().collect()
}

/// Tool and library of a target.
fn pair(sdk: &Path, target: &str) -> Option<(Build, Build)> {
    let tool = first([sdk.join("bin").join(target).join(TOOL)].into_iter())?;
    let folder = sdk.join("lib").join(target);
    Some((tool, first(NAMING.into_iter().map(|name| folder.join(name)))?))
}

/// The first file with a build id.
fn first(mut files: impl Iterator<Item = PathBuf>) -> Option<Build> {
    files.find_map(|path| Some((path.clone(), build_id_of(&path).ok()??)))
}

fn judge(pairs: &[(Build, Build)], used: Option<&Build>) -> Option<Item> {
    let what = "versions";
    let (tool, _) = pairs.first()?;
    let told = |(path, build): &Build| format!("{} is {build}", path.display());
    if let Some((tool, library)) = pairs.iter().find(|(tool, library)| tool.1 != library.1) {
        return Some(Item::warning("versions", what, format!("{}, {}", told(tool), told(library)), FIX));
    }
    if let Some(used) = used.filter(|used| used.1.release != tool.1.release) {
        let detail = format!("{}, {} (used on this machine)", told(tool), told(used));
        return Some(Item::warning("versions", what, detail, FIX));
    }
    Some(Item::ok("versions", what, format!("tools and libraries are from {}", tool.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    const OLD: &str = "v2.25.0.240728104910";
    const NEW: &str = "v2.47.0.260601114230";

    #[tokio::test]
    async fn tools_and_libraries_of_one_sdk_are_compared() {
        let sdk = tempfile::tempdir().unwrap();
        let write = |path: &str, build: &str| {
            let path = sdk.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("\0{build}_1\0")).unwrap();
        };
        assert!(examine(Some(sdk.path()), None).await.is_empty() && examine(None, None).await.is_empty());
        write("bin/aarch64-android/qnn-net-run", NEW);
        write("lib/aarch64-android/libQnnHtp.so", NEW);
        let fine = examine(Some(sdk.path()), None).await;
        assert_eq!((fine.len(), fine[0].status), (1, Status::Ok), "{fine:?}");
        write("bin/aarch64-android/qnn-net-run", OLD);
        let mixed = examine(Some(sdk.path()), None).await;
        assert_eq!(mixed[0].status, Status::Warning);
        assert!(mixed[0].detail.contains(OLD) && mixed[0].detail.contains(NEW), "{}", mixed[0].detail);
    }

    #[test]
    fn libraries_used_here_are_compared_by_release() {
        let build = |name: &str, id: &str| (PathBuf::from(name), crate::facts::build_id_in(id.as_bytes()).unwrap());
        let pairs = [(build("tool", OLD), build("lib", OLD))];
        let other = judge(&pairs, Some(&build("used", NEW))).unwrap();
        assert!(other.status == Status::Warning && other.detail.contains("used on this machine"), "{other:?}");
        assert_eq!(judge(&pairs, Some(&build("used", "v2.25.0.240801104910"))).unwrap().status, Status::Ok);
    }
}
