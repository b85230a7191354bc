//! Finds QNN libraries for a device.

use super::DeviceRunnerError;
use crate::backends::on_device::LibraryTarget;
use crate::backends::on_device::names::machine;
use crate::backends::runtime::Env;
use crate::event::{DeviceFacts, clean_text};
use std::path::Path;

/// The libraries named by `--runtime`, else those of `$QNN_SDK_ROOT`, else of `$QAIRT_SDK_ROOT`: an SDK (its
/// tools are not needed) or a plain folder. A place that only has libraries for other machines is skipped:
/// `--runtime` may name those of this machine.
pub fn find_libraries(
    option: Option<&Path>,
    env: &Env,
    facts: &DeviceFacts,
) -> Result<LibraryTarget, DeviceRunnerError> {
    let places = [
        ("--runtime", option),
        ("$QNN_SDK_ROOT", env.qnn_sdk_root.as_deref()),
        ("$QAIRT_SDK_ROOT", env.qairt_sdk_root.as_deref()),
    ];
    let needed = machine(&facts.abi);
    let mut looked = Vec::new();
    for (name, place) in places {
        match place {
            Some(place) => match LibraryTarget::of_libraries(place, facts, needed) {
                Some(target) => return Ok(target),
                None => looked.push(format!("{name} is {}, which has none", clean_text(&place.to_string_lossy()))),
            },
            None => looked.push(format!("{name} is not set")),
        }
    }
    Err(DeviceRunnerError::NoLibraries { device: facts.id.clone(), needed: format!("{}, {needed}", facts.os), looked })
}
