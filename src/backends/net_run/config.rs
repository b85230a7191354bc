//! The configuration for qnn-net-run's HTP extension.

use crate::backends::on_device::kit::HTP_EXTENSIONS;
use crate::backends::settings::Resolved;
use crate::event::{DeviceFacts, Setting, SettingOutcome};
use serde_json::{Map, Value, json};

/// Name of the outer file, passed with `--config_file`.
pub const OUTER: &str = "config.json";
/// Name of the inner file.
pub const INNER: &str = "htp.json";

/// The outer file: which extension reads which configuration. `folder` is on the device.
pub fn outer(folder: &str) -> Value {
    json!({"backend_extensions": {
        "shared_library_path": format!("{folder}/{HTP_EXTENSIONS}"),
        "config_file_path": format!("{folder}/{INNER}"),
    }})
}

/// The inner file for a graph. The device's own SoC is named only if the configuration has a device section
/// anyway: otherwise the backend detects it, and is always right.
pub fn inner(resolved: &Resolved, graph: Option<&str>, facts: &DeviceFacts) -> Option<Value> {
    let mut options = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(key.to_owned(), value);
        }
    };
    put("vtcm_mb", resolved.vtcm_mb.map(Value::from));
    put("fp16_relaxed_precision", resolved.precision.map(Value::from));
    put("hvx_threads", resolved.hvx_threads.map(Value::from));
    put("O", resolved.optimization_level.map(Value::from));
    put("dlbc", resolved.dlbc.map(|on| Value::from(u32::from(on))));
    let mut device = Map::new();
    if let Some((_, profile)) = &resolved.perf_profile {
        device.insert("cores".to_owned(), json!([{"core_id": 0, "perf_profile": profile, "rpc_control_latency": 100}]));
    }
    // 0 requests all of VTCM, and then the extension needs to know the SoC.
    let soc_model = resolved.soc_model.or(facts.soc.soc_model.filter(|_| resolved.vtcm_mb == Some(0)));
    if let Some(soc_model) = soc_model {
        device.insert("soc_model".to_owned(), soc_model.into());
    }
    if let Some(arch) = resolved.arch {
        device.insert("dsp_arch".to_owned(), format!("v{arch}").into());
    }
    if options.is_empty() && device.is_empty() {
        return None;
    }
    let mut whole = Map::new();
    if !options.is_empty() {
        options.insert("graph_names".to_owned(), json!([graph.unwrap_or_default()]));
        whole.insert("graphs".to_owned(), json!([options]));
    }
    if !device.is_empty() {
        device.insert("device_id".to_owned(), 0.into());
        whole.insert("devices".to_owned(), json!([device]));
    }
    Some(Value::Object(whole))
}

/// The outcome of each setting: those in the configuration reach the backend through it.
pub fn outcomes(resolved: &Resolved, graph: Option<&str>) -> Vec<Setting> {
    let mut settings: Vec<Setting> = resolved.settled.clone();
    settings.extend(resolved.with_device.iter().cloned());
    for setting in &resolved.with_graph {
        let outcome = match graph {
            Some(_) => setting.outcome.clone(),
            // The extension finds graphs only by name.
            None => SettingOutcome::NoEffect(
                "the graph's name is unknown, and qnn-net-run takes graph options by name: give --graph".to_owned(),
            ),
        };
        settings.push(Setting { outcome, ..setting.clone() });
    }
    if let Some((origin, profile)) = &resolved.perf_profile {
        settings.push(Setting { key: origin.clone(), value: profile.clone(), outcome: SettingOutcome::Applied });
    }
    settings
}
