//! Files on the device: each stored once, by content, in our own folder.
//!
//! `…/qnnscope/objects/SHA256` holds the contents, `…/qnnscope/run-N/` a run's names for them. A second run with the same
//! files sends nothing. Nothing outside `…/qnnscope` is ever touched.

use super::OnDeviceError;
use crate::devices::{Device, DeviceError, Progress, quote};
use crate::event::{Transfer, clean_text, epoch_us};
use crate::files::sha256_hex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Space left free on the device beyond what is sent, for logs and outputs of the run.
const SPARE_BYTES: u64 = 64 << 20;

/// Removing a few hundred megabytes takes a moment on slow storage.
const REMOVE_LIMIT: Duration = Duration::from_mins(2);

/// Called as files are sent.
pub type Tell = Arc<dyn Fn(Transfer) + Send + Sync>;

/// A local file with its content's hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashed {
    /// Where it is.
    pub path: PathBuf,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size.
    pub bytes: u64,
}

/// Hashes a file.
pub async fn hash(path: &Path) -> Result<Hashed, OnDeviceError> {
    let path = path.to_owned();
    let action = format!("read {}", clean_text(&path.to_string_lossy()));
    let hashed = tokio::task::spawn_blocking(move || {
        let (sha256, bytes) = sha256_hex(std::fs::File::open(&path)?)?;
        Ok(Hashed { path, sha256, bytes })
    });
    let hashed = hashed.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    hashed.map_err(|source| OnDeviceError::Io { action, source })
}

/// Our folder on a device: where its shell user may execute files.
pub async fn remote_root(device: &Device) -> Result<String, DeviceError> {
    let script = "if [ -d /data/local/tmp ]; then echo /data/local/tmp; else echo /var/tmp; fi";
    let base = device.run_ok(script, "looking for a folder").await?.text();
    Ok(format!("{}/qnnscope", base.trim()))
}

/// The files sent for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// The run's folder on the device.
    pub folder: String,
    /// Files and bytes actually sent.
    pub sent: (usize, u64),
    /// Files and bytes already there.
    pub kept: (usize, u64),
}

/// Sends what is missing and creates a folder with `files` under their names.
pub async fn deploy(
    device: &Device,
    files: &BTreeMap<String, PathBuf>,
    tell: &Tell,
) -> Result<Deployed, OnDeviceError> {
    let root = remote_root(device).await?;
    let mut hashed = BTreeMap::new();
    for (name, path) in files {
        hashed.insert(name.clone(), hash(path).await?);
    }
    let there = objects(device, &root).await?;
    // Two names may share one content.
    let mut missing: BTreeMap<&str, &Hashed> = BTreeMap::new();
    let mut kept = (0, 0);
    for file in hashed.values() {
        if there.get(&file.sha256) == Some(&file.bytes) {
            kept = (kept.0 + 1, kept.1 + file.bytes);
        } else {
            missing.insert(&file.sha256, file);
        }
    }
    let total_bytes: u64 = missing.values().map(|file| file.bytes).sum();
    check_space(device, &root, total_bytes).await?;
    let mut done_bytes = 0;
    for (index, file) in missing.values().enumerate() {
        let name = file.path.file_name().map(|name| clean_text(&name.to_string_lossy())).unwrap_or_default();
        let progress: Progress = {
            let (tell, name, files) = (tell.clone(), name.clone(), missing.len());
            Arc::new(move |bytes| {
                let done_bytes = done_bytes + bytes;
                tell(Transfer { name: name.clone(), file: index + 1, files, done_bytes, total_bytes });
            })
        };
        send(device, &root, file, &name, progress).await?;
        done_bytes += file.bytes;
    }
    let folder = format!("{root}/run-{:x}", epoch_us());
    // Links to the user's models and inputs, and later their results: private.
    let mut script = format!("umask 077 && mkdir -p {folder} && chmod 700 {folder} && cd {folder} && umask 022");
    for (name, file) in &hashed {
        let object = quote(&format!("{root}/objects/{}", file.sha256));
        let name = quote(name);
        // Some file systems lack links.
        let _ = write!(script, " && {{ ln -s {object} {name} 2>/dev/null || cp {object} {name}; }}");
    }
    device.run_ok(&script, "making the folder of the run").await?;
    Ok(Deployed { folder, sent: (missing.len(), total_bytes), kept })
}

/// Objects on the device: sizes by hash.
async fn objects(device: &Device, root: &str) -> Result<BTreeMap<String, u64>, DeviceError> {
    let script = format!(
        "umask 022; mkdir -p {root}/objects && chmod 700 {root} && cd {root}/objects && rm -f .part-* && for f in *; do [ -f \"$f\" ] && \
         echo \"$f $(stat -c %s \"$f\" 2>/dev/null || wc -c <\"$f\")\"; done; true"
    );
    let output = device.run_ok(&script, "looking what is on it already").await?;
    let row = |line: &str| {
        let (name, size) = line.trim().split_once(' ')?;
        Some((name.to_owned(), size.trim().parse().ok()?))
    };
    Ok(output.text().lines().filter_map(row).collect())
}

async fn check_space(device: &Device, root: &str, needed_bytes: u64) -> Result<(), DeviceError> {
    if needed_bytes == 0 {
        return Ok(());
    }
    let output = device.run_ok(&format!("df -k {root}"), "asking for its free space").await?;
    let free_bytes = crate::devices::free_bytes(&output.text());
    let reserve_bytes = SPARE_BYTES.min(needed_bytes);
    match free_bytes {
        Some(free_bytes) if free_bytes < needed_bytes + reserve_bytes => Err(DeviceError::NoSpace {
            id: device.id().to_owned(),
            what: "the files of the run".to_owned(),
            folder: root.to_owned(),
            needed_bytes,
            reserve_bytes,
            free_bytes,
        }),
        _ => Ok(()),
    }
}

/// Sends one file under a temporary name, and renames it when complete.
async fn send(device: &Device, root: &str, file: &Hashed, name: &str, progress: Progress) -> Result<(), DeviceError> {
    let part = format!("{root}/objects/.part-{}", file.sha256);
    device.push(&file.path, &part, progress).await?;
    let script = format!(
        "[ \"$(wc -c <{part})\" -eq {} ] && chmod 755 {part} && mv {part} {root}/objects/{}",
        file.bytes, file.sha256
    );
    let output = device.run(&script, "checking what was sent").await?;
    if output.status == 0 {
        return Ok(());
    }
    Err(DeviceError::Refused {
        action: format!("sending {name}"),
        message: format!("it did not arrive whole ({} bytes); {}", file.bytes, output.text().trim()),
    })
}

/// Removes everything qnnscope put on a device; returns its size, bytes. `None` if there was nothing.
pub async fn clean(device: &Device) -> Result<Option<u64>, DeviceError> {
    let root = remote_root(device).await?;
    let script = format!("[ -e {root} ] || exit 44; du -sk {root}; rm -rf {root} && [ ! -e {root} ]");
    let action = "removing qnnscope's files";
    let output = device.run_within(&script, action, REMOVE_LIMIT).await?;
    let text = output.text();
    match output.status {
        0 => {
            let kib = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            Ok(Some(kib.unwrap_or(0) * 1024))
        }
        44 => Ok(None),
        status => Err(DeviceError::Command {
            id: device.id().to_owned(),
            action: action.to_owned(),
            status,
            message: text.lines().last().unwrap_or_default().to_owned(),
        }),
    }
}
