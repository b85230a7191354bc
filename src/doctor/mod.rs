//! Whether this machine and its devices are fit to run QNN models: examines every part in parallel and says
//! what to do about anything wrong. Changes nothing, except that it starts an adb server if adb exists and no
//! server is running.

mod adb;
mod build;
mod device;
mod environment;
mod item;
mod runtimes;
mod sdk;
mod start;
mod tools;
mod versions;

pub use item::{Examination, Item, Section, Status};

use crate::backends::runtime::{Env, choose};
use crate::devices::AdbServer;
use std::path::{Path, PathBuf};

/// What to examine, and where.
#[derive(Debug, Clone)]
pub struct Doctor {
    /// `--runtime`.
    pub runtime: Option<PathBuf>,
    /// `--runner`.
    pub runner: Option<PathBuf>,
    /// The requested device; `None` for this machine and every device that is ready.
    pub device: Option<String>,
    /// The adb server as specified.
    pub adb_server: Option<String>,
    /// Memory limit for trying a library, bytes.
    pub memory_bytes: Option<u64>,
    /// Environment variables that select runtimes.
    pub env: Env,
}

/// Called with the subject of each part as its examination begins, for progress display.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

impl Doctor {
    /// Examines everything.
    pub async fn examine(&self, tell: Tell<'_>) -> Examination {
        tell("tools, libraries and devices");
        let sdk = sdk::find(self.runtime.as_deref(), &self.env);
        let root = sdk.root.as_deref();
        let used = choose(self.runtime.as_deref(), &self.env).ok();
        let (tools, versions, runtimes, build, devices) = tokio::join!(
            async {
                let tools = tools::examine(root).await;
                tell("libraries and devices");
                tools
            },
            versions::examine(root, used),
            runtimes::examine(self),
            build::examine(root, &self.env),
            self.devices(root),
        );
        let (runtime_items, here) = runtimes;
        let (device_sections, able) = devices;
        let mut sections = vec![
            Section::new("sdk", "SDK and tools", None, [sdk.items, tools, versions].concat()),
            Section::new("environment", "environment variables", None, environment::examine(root)),
            Section::new("build", "Python and compilers, for the SDK's converters", None, build),
            Section::new("runtime", "libraries for this machine", None, runtime_items),
        ];
        sections.extend(device_sections);
        Examination { asked: self.device.clone(), sections, backends_here: here, devices: able }.settled()
    }

    /// The adb server and the requested devices, and those that can run a model.
    async fn devices(&self, sdk: Option<&Path>) -> (Vec<Section>, Vec<String>) {
        let server = match AdbServer::locate(self.adb_server.as_deref()) {
            Ok(server) => server,
            Err(error) => {
                let fix = error.advice().unwrap_or_default();
                let item = Item::problem("server", "adb server", error.to_string(), fix);
                return (vec![Section::new("adb", "adb and devices", None, vec![item])], Vec::new());
            }
        };
        let adb = adb::examine(server, self.device.as_deref()).await;
        let mut sections = vec![Section::new("adb", "adb and devices", None, adb.items)];
        let mut able = Vec::new();
        let mut asked = Vec::new();
        for device in adb.ready {
            let (doctor, sdk) = (self.clone(), sdk.map(Path::to_owned));
            asked.push(tokio::spawn(async move {
                let id = device.id().to_owned();
                (id, device::examine(&device, &doctor, sdk.as_deref()).await)
            }));
        }
        for answer in asked {
            // A task that panicked is our bug; the other devices are still worth showing.
            let Ok((id, (items, runs))) = answer.await else { continue };
            sections.push(Section::new(&format!("device:{id}"), &format!("device {id}"), Some(&id), items));
            if runs {
                able.push(id);
            }
        }
        (sections, able)
    }
}
