//! How a model runs: where the runtime is, how it is driven, and the child process that contains its crashes.

pub mod device_runner;
pub mod local;
pub mod net_run;
pub mod on_device;
#[cfg(unix)]
pub mod onnx;
pub mod qnn;
pub mod runtime;
pub mod settings;
pub mod stopped;

pub use qnn_profile_log as profile_log;
pub use qnnscope_core::{Backend, ProfilingLevel};
pub use qnnscope_qnn::errors;

use crate::devices::Device;
use crate::event::RunId;
use crate::session::Source;
use std::pin::Pin;
use tokio::sync::watch;

/// What a run on a device does after a failure, while its folder still exists. Drivers run models; layers
/// above them know what a failure means, so this is passed in.
pub type AfterFailure = for<'a> fn(
    &'a Source,
    RunId,
    &'a Device,
    &'a watch::Receiver<bool>,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Waits until the user wants the run to end; waits forever once nobody can ask for that any more.
pub(crate) async fn asked_to_stop(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
