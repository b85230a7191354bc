//! Where a device's loader searches for libraries, and which are missing.

use crate::devices::{Device, DeviceError, quote};
use std::fmt::Write;

/// Whether files with these dependencies are loaded by glibc's loader instead of Android's: names of its
/// libraries carry a number.
pub fn is_glibc(needed: &[String]) -> bool {
    needed.iter().any(|name| name.starts_with("libc.so.") || name.starts_with("ld-linux"))
}

/// A needed library and the file that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name.
    pub name: String,
    /// The file that needs it.
    pub by: String,
    /// Search folders recorded in that file, with `$ORIGIN` expanded.
    pub own_folders: Vec<String>,
    /// Whether glibc's loader searches for it.
    pub glibc: bool,
    /// Whether it is a 64-bit library.
    pub is_64: bool,
}

/// Folders of a file's own run path, as paths on the device.
pub fn own_folders(runpath: &[String], file: &str) -> Vec<String> {
    let origin = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let filled = |path: &str| path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin);
    runpath.iter().flat_map(|paths| paths.split(':')).filter(|path| !path.is_empty()).map(filled).collect()
}

/// Folders that Android's loader searches for the libraries of the shell user's programs.
fn android_folders(is_64: bool) -> Vec<String> {
    let lib = if is_64 { "lib64" } else { "lib" };
    let partitions = ["/system", "/system_ext", "/product", "/odm", "/vendor"].map(|base| format!("{base}/{lib}"));
    let apexes =
        ["com.android.art", "com.android.i18n", "com.android.runtime"].map(|name| format!("/apex/{name}/{lib}"));
    partitions.into_iter().chain(apexes).chain([format!("/apex/com.android.runtime/{lib}/bionic")]).collect()
}

/// The script that prints 1 or 0 for each library: found or not. For glibc's loader, the folders of its own
/// configuration and its cache count too.
fn script(wanted: &[Wanted], searched: &[String]) -> String {
    let mut script = "m=$(uname -m); c=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null); \
                      g=$(cat /etc/ld.so.conf /etc/ld.so.conf.d/*.conf 2>/dev/null | grep '^/'); \
                      g=\"/lib/$m-linux-gnu /usr/lib/$m-linux-gnu /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib64 /usr/lib64 /lib \
                      /usr/lib $g\"; "
        .to_owned();
    for library in wanted {
        let name = quote(&library.name);
        let folders = searched.iter().chain(&library.own_folders).map(|folder| quote(folder));
        let rest = if library.glibc {
            "$g".to_owned()
        } else {
            let lib = if library.is_64 { "lib64" } else { "lib" };
            format!("{} /apex/com.android.vndk.v*/{lib}", android_folders(library.is_64).join(" "))
        };
        let folders: Vec<String> = folders.collect();
        let _ = write!(
            script,
            "f=0; for d in {} {rest}; do [ -e \"$d\"/{name} ] && f=1 && break; done; ",
            folders.join(" ")
        );
        if library.glibc {
            let _ = write!(script, "case \"$c\" in *\" \"{name}\" \"*|*\"\t\"{name}\" \"*) f=1;; esac; ");
        }
        script += "echo $f; ";
    }
    script + "true"
}

/// The libraries that a device's loader would not find, in the order of `wanted`; `searched` are the folders
/// of `LD_LIBRARY_PATH`. `None` if the device's answer is invalid.
///
/// # Errors
/// The device does not answer.
pub async fn absent(
    device: &Device,
    wanted: &[Wanted],
    searched: &[String],
) -> Result<Option<Vec<(String, String)>>, DeviceError> {
    if wanted.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let output = device.run_ok(&script(wanted, searched), "looking for needed libraries").await?.text();
    let answers: Vec<&str> = output.lines().map(str::trim).collect();
    if answers.len() != wanted.len() || answers.iter().any(|answer| !matches!(*answer, "0" | "1")) {
        return Ok(None);
    }
    let gone = wanted.iter().zip(answers).filter(|(_, answer)| *answer == "0");
    Ok(Some(gone.map(|(library, _)| (library.name.clone(), library.by.clone())).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, glibc: bool, own: &[&str]) -> Wanted {
        let own_folders = own.iter().map(|&folder| folder.to_owned()).collect();
        Wanted { name: name.to_owned(), by: "/run/libQnnHtp.so".to_owned(), own_folders, glibc, is_64: true }
    }

    #[tokio::test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    async fn each_loader_looks_in_its_own_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        std::fs::write(folder.path().join("libmine $(x)'.so"), "").unwrap();
        let list = [
            wanted("libc.so.6", true, &[]),
            wanted("libc.so.6", false, &[]),
            wanted("libmine $(x)'.so", false, &[]),
            wanted("libmine $(x)'.so", false, &[&path]),
            wanted("libno-such-library.so", true, &[]),
        ];
        let gone = |searched: Vec<String>| {
            let list = &list;
            async move { absent(&Device::local(), list, &searched).await.unwrap().unwrap().len() }
        };
        assert_eq!(
            gone(Vec::new()).await,
            3,
            "glibc's for Android, the one of ours without a folder, and the one that is nowhere"
        );
        assert_eq!(gone(vec![path.clone()]).await, 2);
    }

    #[test]
    fn a_file_names_folders_of_its_own() {
        let paths = ["$ORIGIN/../lib:/opt/x".to_owned(), "${ORIGIN}".to_owned()];
        assert_eq!(own_folders(&paths, "/run/a/lib.so"), ["/run/a/../lib", "/opt/x", "/run/a"]);
        assert!(is_glibc(&["libm.so.6".to_owned(), "libc.so.6".to_owned()]) && !is_glibc(&["libc.so".to_owned()]));
    }
}
