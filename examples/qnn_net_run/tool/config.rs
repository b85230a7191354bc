//! The JSON files of `--config_file`: the outer one names the backend's inner one.

use qnnscope::backends::settings::SettingRequest;
use serde_json::Value;
use std::path::Path;

/// The resulting settings, in the form that the runner takes.
pub fn read(path: &Path) -> Result<Vec<SettingRequest>, String> {
    let outer = object(path)?;
    let Some(extensions) = outer.get("backend_extensions") else { return Ok(Vec::new()) };
    let inner = match extensions.get("config_file_path") {
        Some(Value::String(inner)) => object(Path::new(inner))?,
        Some(_) => return Err(format!("{}: config_file_path is not a string", path.display())),
        None => return Ok(Vec::new()),
    };
    let mut requests = Vec::new();
    let mut take = |holder: Option<&Value>, keys: &[(&str, &str)]| {
        for (key, name) in keys {
            if let Some(value) = holder.and_then(|holder| holder.get(key)) {
                let (origin, name, value) = ((*key).to_owned(), (*name).to_owned(), value.clone());
                requests.push(SettingRequest { origin, name, value, backend: None });
            }
        }
    };
    let first = |list: Option<&Value>| list.and_then(|list| list.get(0)).cloned();
    let graph = first(inner.get("graphs"));
    let device = first(inner.get("devices"));
    let core = first(device.as_ref().and_then(|device| device.get("cores")));
    take(
        graph.as_ref(),
        &[
            ("vtcm_mb", "vtcm_mb"),
            ("fp16_relaxed_precision", "precision"),
            ("hvx_threads", "hvx_threads"),
            ("O", "optimization_level"),
            ("dlbc", "dlbc"),
        ],
    );
    take(device.as_ref(), &[("soc_id", "soc_model"), ("soc_model", "soc_model"), ("dsp_arch", "htp_arch")]);
    take(core.as_ref(), &[("perf_profile", "perf_profile")]);
    Ok(requests)
}

fn object(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    if value.is_object() { Ok(value) } else { Err(format!("{}: not a JSON object", path.display())) }
}
