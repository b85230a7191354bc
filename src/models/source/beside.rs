//! Files named by a model, which have to be in its folder.

use std::path::{Component, Path, PathBuf};

/// The file that the model at `model` refers to as `name`, with its size. If it is absent or outside the
/// model's folder, the error is the reason, worded to follow the file's name.
pub fn beside(model: &Path, name: &str) -> Result<(PathBuf, u64), String> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if name.is_empty() {
        return Err("which has no name".to_owned());
    }
    // Backslashes are separators where the model may have been created.
    let leads_out = !Path::new(name).components().all(inside) || name.split('\\').any(|part| part == "..");
    if leads_out {
        return Err("which is outside the model's folder".to_owned());
    }
    let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = folder.join(name);
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("which is not in {}", folder.display()));
        }
        Err(error) => return Err(format!("which cannot be read: {error}")),
    };
    if !metadata.is_file() {
        return Err("which is not a file".to_owned());
    }
    // Caches of model hubs link the model and its data to a common store of blobs: a link from the model's
    // folder into the folder of the model's own link target is fine, any other is not.
    let real = path.canonicalize().map_err(|error| format!("which cannot be read: {error}"))?;
    let homes =
        [folder.canonicalize().ok(), model.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned()))];
    if !homes.iter().flatten().any(|home| real.starts_with(home)) {
        return Err("which links outside the model's folder".to_owned());
    }
    Ok((path, metadata.len()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_in_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("m/sub")).unwrap();
        std::fs::create_dir_all(at("hub/snapshot")).unwrap();
        std::fs::write(at("m/model"), "").unwrap();
        std::fs::write(at("m/sub/data"), "12345").unwrap();
        std::fs::write(at("outside"), "secret").unwrap();
        symlink(at("outside"), at("m/link")).unwrap();
        let model = at("m/model");
        assert_eq!(beside(&model, "sub/data").unwrap().1, 5);
        assert_eq!(beside(&model, "./sub/data").unwrap().1, 5);
        for (name, words) in [
            ("../outside", "outside the model's folder"),
            ("sub/../../outside", "outside the model's folder"),
            ("..\\outside", "outside the model's folder"),
            ("/etc/passwd", "outside the model's folder"),
            ("link", "links outside"),
            ("sub", "not a file"),
            ("none", "is not in"),
            ("", "no name"),
        ] {
            assert!(beside(&model, name).unwrap_err().contains(words), "{name}");
        }
        // As in a model hub's cache.
        std::fs::create_dir_all(at("hub/blobs")).unwrap();
        std::fs::write(at("hub/blobs/1"), "model").unwrap();
        std::fs::write(at("hub/blobs/2"), "data").unwrap();
        symlink("../blobs/1", at("hub/snapshot/model")).unwrap();
        symlink("../blobs/2", at("hub/snapshot/data")).unwrap();
        assert_eq!(beside(&at("hub/snapshot/model"), "data").unwrap().1, 4);
    }
}
