//! Attached devices: the `qnnscope.devices/1` document and its text.

use crate::devices::{Attached, Device, DeviceError, DeviceState, Root, confounds};
use crate::event::{Confound, DeviceFacts};
use crate::text::bytes_text;
use serde::Serialize;
use std::fmt::Write;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DevicesDocument {
    schema: &'static str,
    adb: AdbDocument,
    devices: Vec<DeviceRow>,
}

/// The adb server, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdbDocument {
    server: String,
    problem: Option<String>,
    advice: Option<String>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceRow {
    id: String,
    state: DeviceState,
    /// What to do about a state that is not ready, or about a failed query.
    advice: Option<String>,
    /// Why it could not be described.
    problem: Option<String>,
    facts: Option<DeviceFacts>,
    confounds: Vec<Confound>,
}

impl AdbDocument {
    /// The server at `address`, and what went wrong if something did.
    pub fn new(address: &str, problem: Option<&DeviceError>) -> Self {
        Self {
            server: address.to_owned(),
            problem: problem.map(ToString::to_string),
            advice: problem.and_then(DeviceError::advice),
        }
    }
}

impl DeviceRow {
    /// A row; `attached` is `None` for this machine, `facts` if the device is not ready.
    pub fn new(device: &Device, attached: Option<&Attached>, facts: Option<Result<DeviceFacts, DeviceError>>) -> Self {
        let state = attached.map_or(DeviceState::Device, |attached| attached.state.clone());
        let (facts, error) = match facts {
            Some(Ok(facts)) => (Some(facts), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let advice = error.as_ref().and_then(DeviceError::advice).or_else(|| state.advice().map(ToOwned::to_owned));
        Self {
            id: device.id().to_owned(),
            state,
            advice,
            problem: error.map(|error| error.to_string()),
            confounds: facts.as_ref().map(confounds).unwrap_or_default(),
            facts,
        }
    }
}

impl DevicesDocument {
    /// The document.
    pub fn new(adb: AdbDocument, devices: Vec<DeviceRow>) -> Self {
        Self { schema: "qnnscope.devices/1", adb, devices }
    }
}

/// The document as text.
pub fn devices_text(document: &DevicesDocument) -> String {
    let mut out = String::new();
    for row in &document.devices {
        let _ = writeln!(out, "{}  ({})", row.id, row.state);
        if let Some(facts) = &row.facts {
            describe(&mut out, facts);
        }
        for confound in &row.confounds {
            let _ = writeln!(out, "  note       {}; {}", confound.observation, confound.advice);
        }
        if let Some(problem) = &row.problem {
            let _ = writeln!(out, "  problem    {problem}");
        }
        if let Some(advice) = &row.advice {
            let _ = writeln!(out, "  next       {advice}");
        }
    }
    match (&document.adb.problem, &document.adb.advice) {
        (Some(problem), advice) => {
            let _ = writeln!(out, "adb: {problem}");
            if let Some(advice) = advice {
                let _ = writeln!(out, "  next       {advice}");
            }
        }
        (None, _) if document.devices.len() == 1 => {
            let _ = writeln!(out, "adb: no device is attached (server {})", document.adb.server);
        }
        _ => {}
    }
    out
}

fn describe(out: &mut String, facts: &DeviceFacts) {
    let known = |value: Option<&str>| value.unwrap_or("unknown").to_owned();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<10} {text}");
    };
    if let Some(model) = &facts.model {
        line("model", model.clone());
    }
    let soc = &facts.soc;
    if soc.part.is_some() || soc.soc_id.is_some() {
        let name = soc.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let id = soc.soc_id.map(|id| format!(", soc_id {id}")).unwrap_or_default();
        line("SoC", format!("{}{name}{id}", known(soc.part.as_deref())));
        let vtcm = soc.vtcm_mb.map_or_else(|| "VTCM unknown".to_owned(), |mb| format!("VTCM {mb} MiB"));
        let fp16 = match soc.htp_fp16 {
            Some(true) => "float graphs run",
            Some(false) => "no float graphs",
            None => "float graphs unknown",
        };
        let model = soc.soc_model.map_or_else(|| "unknown".to_owned(), |model| model.to_string());
        line("HTP", format!("Hexagon {}, QNN soc_model {model}, {vtcm}, {fp16}", known(soc.hexagon_arch.as_deref())));
    }
    if let Some(gpu) = &facts.gpu {
        line("GPU", gpu.clone());
    }
    if !facts.clusters.is_empty() {
        line("CPU", facts.clusters.iter().map(cluster).collect::<Vec<_>>().join(" + "));
    }
    let kernel = facts.kernel.as_ref().map(|kernel| format!(", kernel {kernel}")).unwrap_or_default();
    line("system", format!("{}{kernel}, {}", facts.os, facts.abi));
    let root = match facts.root {
        Root::None => "no root",
        Root::Shell => "shell is root",
        Root::SuC | Root::Su0 => "root via su",
    };
    let uid = facts.shell_uid.map(|uid| format!(" (uid {uid})")).unwrap_or_default();
    let selinux = facts.selinux.as_ref().map(|mode| format!(", SELinux {}", mode.to_lowercase())).unwrap_or_default();
    line("access", format!("{root}{uid}{selinux}"));
    let free = facts.free_bytes.map_or_else(|| "unknown".to_owned(), |count| bytes_text(count as f64));
    let memory = facts.memory_available_bytes.map_or_else(|| "unknown".to_owned(), |count| bytes_text(count as f64));
    line("free", format!("{free} storage, {memory} memory"));
    if let Some(battery) = &facts.battery {
        let level = battery.level_percent.map(|level| format!("{level:.0} % ")).unwrap_or_default();
        let temperature = battery.temperature_celsius.map(|c| format!(", {c:.1} °C")).unwrap_or_default();
        line("battery", format!("{level}{}{temperature}", battery.status));
    }
    if let Some(status) = facts.thermal_status {
        let hottest = facts.hottest_celsius.map(|c| format!(", hottest sensor {c:.1} °C")).unwrap_or_default();
        line("thermal", format!("status {status}{hottest}"));
    }
}

fn cluster(cluster: &crate::event::Cluster) -> String {
    let ghz = cluster.max_freq_hz.map(|hz| format!(" × {:.2} GHz", hz as f64 / 1e9)).unwrap_or_default();
    let governor = cluster.governor.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}{ghz}{governor}", cluster.cpus.len())
}
