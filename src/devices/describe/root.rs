//! Finds the way to root by trying `id`.

use crate::devices::{Device, DeviceError, Root, as_root};
use std::time::Duration;

/// A root manager may ask the user on the device's screen the first time; this limits the wait.
const LIMIT: Duration = Duration::from_secs(8);

/// User id, and whether it is root, from what `id` prints.
pub fn user(id: &str) -> (Option<u32>, bool) {
    let digits = id.trim().strip_prefix("uid=").map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let uid = digits.flatten().and_then(|digits| digits.parse().ok());
    (uid, uid == Some(0))
}

/// Tries each form of `su`. A device without `su` is not asked twice.
pub async fn find(device: &Device) -> Result<Root, DeviceError> {
    let there = device.run("command -v su", "looking for su").await?;
    if there.status != 0 {
        return Ok(Root::None);
    }
    for root in [Root::SuC, Root::Su0] {
        match device.run_within(&as_root(root, "id -u"), "asking for root", LIMIT).await {
            Ok(output) if output.status == 0 && output.text().trim() == "0" => return Ok(root),
            // Refused, or nobody answered the prompt on the screen.
            Ok(_) | Err(DeviceError::TimedOut { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Root::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read() {
        assert_eq!(user("uid=2000(shell) gid=2000(shell) context=u:r:shell:s0\n"), (Some(2000), false));
        assert_eq!(user("uid=0(root) gid=0(root)"), (Some(0), true));
        assert_eq!(user("sh: id: not found"), (None, false));
    }
}
