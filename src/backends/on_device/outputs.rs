//! Fetches a run's outputs from the device.

use super::OnDeviceError;
use crate::devices::{Device, quote};
use crate::event::clean_text;
use crate::files::{Guard, OutputError, Replacement, make_output_folder};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fetches `Result_*/*.raw` of a folder on the device, and the `.npy` files beside them, into `folder`; returns the files.
/// qnn-net-run writes float32 and no .npy.
pub async fn fetch(device: &Device, remote: &str, folder: &Path, guard: &Guard) -> Result<Vec<String>, OnDeviceError> {
    let option = "--save-outputs";
    let refused = |error: OutputError| OnDeviceError::Input(error.to_string());
    guard.check_folder(option, folder).map_err(refused)?;
    let script = format!(
        "cd {} && for f in Result_*/*.raw Result_*/*.npy; do [ -f \"$f\" ] && echo \"$f\"; done",
        quote(remote)
    );
    let listed = device.run(&script, "looking for outputs").await?;
    let failed = |path: &Path| {
        let action = format!("write {}", clean_text(&path.to_string_lossy()));
        |source| OnDeviceError::Io { action, source }
    };
    make_output_folder(folder).map_err(failed(folder))?;
    let mut files = Vec::new();
    for name in String::from_utf8_lossy(&listed.bytes).lines() {
        let Some(to) = local_path(folder, name) else { continue };
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|source| OnDeviceError::Io { action: format!("make {}", parent.display()), source })?;
        }
        guard.clear(option, &to).map_err(refused)?;
        let replacement = Replacement::begin(&to).map_err(failed(&to))?;
        device.pull(&format!("{remote}/{name}"), replacement.path().to_owned(), Arc::new(|_| ())).await?;
        replacement.commit().map_err(failed(&to))?;
        files.push(clean_text(&to.to_string_lossy()));
    }
    Ok(files)
}

/// Local path of a device's file: below `folder`, whatever its name contains.
fn local_path(folder: &Path, name: &str) -> Option<PathBuf> {
    let (result, file) = name.split_once('/')?;
    let index: u32 = result.strip_prefix("Result_")?.parse().ok()?;
    let plain = !file.starts_with('.') && !file.contains('/');
    plain.then(|| folder.join(format!("Result_{index}")).join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_cannot_leave_their_folder() {
        let folder = Path::new("/o");
        assert_eq!(local_path(folder, "Result_0/y.raw"), Some(PathBuf::from("/o/Result_0/y.raw")));
        for name in ["Result_0/../x.raw", "../Result_0/x.raw", "Result_x/y.raw", "Result_0/.hidden.raw", "y.raw"] {
            assert_eq!(local_path(folder, name), None, "{name}");
        }
    }
}
