//! `qnnscope clean`.

use super::{CliError, Global, OK, say, setup, target};
use crate::backends::on_device::clean as clean_device;
use crate::event::LOCAL_DEVICE;
use crate::text::bytes_text;

/// Arguments of `qnnscope clean`.
#[derive(Debug, clap::Args)]
pub struct CleanArgs {}

/// Removes everything that qnnscope put on a device, and nothing else.
pub fn clean(_args: &CleanArgs, global: &Global) -> Result<u8, CliError> {
    let name = target::named(global);
    if name == LOCAL_DEVICE {
        let text = "clean needs a device: --device SERIAL; this machine's runtimes are in the data folder that `qnnscope \
                    runtime list` shows";
        return Err(CliError::Usage(text.to_owned()));
    }
    let (id, removed) = setup::block_on(async {
        let device = target::find(&name, global).await?;
        let removed = clean_device(&device).await?;
        Ok::<_, CliError>((device.id().to_owned(), removed))
    })??;
    match removed {
        Some(bytes) => say(&format!("removed {} from {id}", bytes_text(bytes as f64))),
        None => say(&format!("nothing of qnnscope is on {id}")),
    }
    Ok(OK)
}
