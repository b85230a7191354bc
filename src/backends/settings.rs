//! Settings of a run: the user's request, and what a backend's API can do with it.
//!
//! A setting that cannot be applied is never dropped silently: each gets an outcome with its reason.

use super::Backend;
use crate::event::{Setting, SettingOutcome};
use crate::files::read_text_at_most;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// One setting as given, by flag or configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingRequest {
    /// As the user wrote it: `--vtcm-mb` or `htp_config.vtcm_mb`.
    pub origin: String,
    /// Canonical name, as in the configuration file.
    pub name: String,
    /// Value.
    pub value: Value,
    /// Backend it applies to; `None` for every backend of the command.
    pub backend: Option<Backend>,
}

/// A setting that is not valid.
#[derive(Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SettingError {
    #[error("{origin}: {value} is not {expected}")]
    Value { origin: String, value: String, expected: String },
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
}

/// Known names, with their aliases in configuration files.
const KNOWN: &[(&str, &[&str])] = &[
    ("perf_profile", &["performance_mode", "perf_mode", "htp_performance_mode"]),
    ("precision", &["precision_mode", "fp16_relaxed_precision"]),
    ("vtcm_mb", &["vtcm_size_mb", "vtcm_size_in_mb"]),
    ("htp_arch", &["dsp_arch", "arch"]),
    ("soc_model", &["soc_id", "soc"]),
    ("hvx_threads", &["num_hvx_threads"]),
    ("optimization_level", &["O", "finalize_optimization_level", "graph_finalization_optimization_mode"]),
    ("dlbc", &["enable_dlbc"]),
    ("priority", &["graph_priority"]),
    ("device_id", &[]),
    ("enable_dma", &["dma"]),
    ("num_threads", &["threads", "num_cpu_threads"]),
];

/// QNN's names of performance profiles.
pub const PERF_PROFILES: [&str; 11] = [
    "default",
    "burst",
    "sustained_high_performance",
    "high_performance",
    "balanced",
    "low_balanced",
    "high_power_saver",
    "power_saver",
    "low_power_saver",
    "extreme_power_saver",
    "system_settings",
];

/// The resolved settings for one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resolved {
    /// Performance profile with votes.
    pub perf_profile: Option<(String, String)>,
    /// QNN's SoC number.
    pub soc_model: Option<u32>,
    /// Hexagon architecture number.
    pub arch: Option<u32>,
    /// 0 for float32, 1 for float16.
    pub precision: Option<u32>,
    /// VTCM, MB.
    pub vtcm_mb: Option<u32>,
    /// HVX threads.
    pub hvx_threads: Option<u64>,
    /// Finalize optimisation level.
    pub optimization_level: Option<u32>,
    /// Compression of activations in DDR.
    pub dlbc: Option<bool>,
    /// QNN priority.
    pub priority: Option<u32>,
    /// Settings passed to deviceCreate: they are applied if that succeeds.
    pub with_device: Vec<Setting>,
    /// Settings passed to graphCreate.
    pub with_graph: Vec<Setting>,
    /// Settings with an outcome known before asking the backend.
    pub settled: Vec<Setting>,
}

/// Largest configuration file.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Reads a configuration file: a JSON object with `htp_config`, `gpu_config`, `cpu_config` objects.
pub fn read_config(path: &std::path::Path) -> Result<Vec<SettingRequest>, SettingError> {
    let file = |reason: String| SettingError::File { path: path.display().to_string(), reason };
    let text = read_text_at_most(path, MAX_CONFIG_BYTES).map_err(|e| file(format!("cannot be read: {e}")))?;
    parse_config(&text).map_err(file)
}

/// Checks that a configuration file with this text is readable, and that all its keys are known and their
/// values valid.
#[cfg(test)]
pub(crate) fn check_config(text: &str) -> Result<(), String> {
    for request in parse_config(text)? {
        let backend = request.backend.unwrap_or(Backend::Htp);
        let resolved = resolve(std::slice::from_ref(&request), backend).map_err(|error| error.to_string())?;
        if let Some(setting) = resolved.settled.iter().find(|setting| setting.outcome != SettingOutcome::Applied) {
            return Err(format!("{}: {:?}", setting.key, setting.outcome));
        }
    }
    Ok(())
}

fn parse_config(text: &str) -> Result<Vec<SettingRequest>, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("is not JSON: {e}"))?;
    let Value::Object(sections) = value else {
        return Err("must be a JSON object with htp_config, gpu_config or cpu_config".to_owned());
    };
    let mut requests = Vec::new();
    for (section, body) in sections {
        let backend = match section.as_str() {
            "htp_config" => Backend::Htp,
            "gpu_config" => Backend::Gpu,
            "cpu_config" => Backend::Cpu,
            other => return Err(format!("unknown section `{other}`; known are htp_config, gpu_config, cpu_config")),
        };
        let Value::Object(keys) = body else {
            return Err(format!("`{section}` must be an object"));
        };
        for (key, value) in keys {
            requests.push(SettingRequest {
                origin: format!("{section}.{key}"),
                name: canonical(&key).unwrap_or(&key).to_owned(),
                value,
                backend: Some(backend),
            });
        }
    }
    Ok(requests)
}

fn canonical(key: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, aliases)| *name == key || aliases.contains(&key)).map(|(name, _)| *name)
}

/// The name of a setting from a report's key: `perf_profile` for `--perf-profile` and `htp_config.performance_mode`.
pub fn setting_name(key: &str) -> String {
    let name = key
        .strip_prefix("--")
        .map_or_else(|| key.rsplit_once('.').map_or(key, |(_, name)| name).to_owned(), |flag| flag.replace('-', "_"));
    canonical(&name).map_or(name, ToOwned::to_owned)
}

/// Resolves the settings for `backend`. Later requests override earlier ones of the same name (flags come
/// after the file).
pub fn resolve(requests: &[SettingRequest], backend: Backend) -> Result<Resolved, SettingError> {
    let mut resolved = Resolved::default();
    let relevant: Vec<&SettingRequest> =
        requests.iter().filter(|r| r.backend.is_none() || r.backend == Some(backend)).collect();
    for (i, request) in relevant.iter().enumerate() {
        if let Some(later) = relevant[i + 1..].iter().find(|later| later.name == request.name) {
            resolved.settle(request, SettingOutcome::NoEffect(format!("{} takes precedence", later.origin)));
            continue;
        }
        resolved.take(request, backend)?;
    }
    if resolved.soc_model.is_some() && resolved.arch.take().is_some() {
        // Both runtimes warn that ARCH will be removed, and the SoC implies it anyway.
        let reason = "the SoC determines the architecture".to_owned();
        for setting in resolved.with_device.iter_mut().filter(|setting| setting.key.contains("arch")) {
            setting.outcome = SettingOutcome::NoEffect(reason.clone());
        }
    }
    Ok(resolved)
}

impl Resolved {
    fn settle(&mut self, request: &SettingRequest, outcome: SettingOutcome) {
        self.settled.push(setting(request, outcome));
    }

    fn no_effect(&mut self, request: &SettingRequest, reason: impl Into<String>) {
        self.settle(request, SettingOutcome::NoEffect(reason.into()));
    }

    fn take(&mut self, request: &SettingRequest, backend: Backend) -> Result<(), SettingError> {
        let htp_only = |what: &str| format!("{what} is an option of the HTP backend");
        match (request.name.as_str(), backend) {
            ("perf_profile", _) => {
                let name = profile_name(request)?;
                match (name.as_str(), backend) {
                    ("default" | "system_settings", _) => {
                        self.no_effect(request, format!("`{name}` sets no votes; the system decides"));
                    }
                    (_, Backend::Htp) => self.perf_profile = Some((request.origin.clone(), name)),
                    _ => self.no_effect(request, htp_only("a performance profile")),
                }
            }
            ("precision", Backend::Htp) => {
                self.precision = Some(precision(request)?);
                self.with_graph.push(setting(request, SettingOutcome::Applied));
            }
            ("precision", Backend::Cpu) => {
                precision(request)?;
                self.no_effect(request, "the CPU backend computes in the model's own types");
            }
            ("vtcm_mb", Backend::Htp) => {
                self.vtcm_mb = Some(whole(request)?);
                self.with_graph.push(setting(request, SettingOutcome::Applied));
            }
            ("soc_model", Backend::Htp) => {
                self.soc_model = Some(whole(request)?);
                self.with_device.push(setting(request, SettingOutcome::Applied));
            }
            ("htp_arch", Backend::Htp) => {
                self.arch = Some(arch(request)?);
                self.with_device.push(setting(request, SettingOutcome::Applied));
            }
            ("hvx_threads" | "num_threads", Backend::Htp) => {
                self.hvx_threads = Some(u64::from(whole(request)?));
                self.with_graph.push(setting(request, SettingOutcome::Applied));
            }
            ("optimization_level", Backend::Htp) => {
                let level = whole(request)?;
                if !(1..=3).contains(&level) {
                    return Err(wrong(request, "an optimisation level of 1, 2 or 3"));
                }
                self.optimization_level = Some(level);
                self.with_graph.push(setting(request, SettingOutcome::Applied));
            }
            ("dlbc", Backend::Htp) => {
                self.dlbc = Some(boolean(request)?);
                self.with_graph.push(setting(request, SettingOutcome::Applied));
            }
            ("priority", _) => {
                self.priority = Some(priority(request)?);
                self.with_graph.push(setting(request, SettingOutcome::Applied));
            }
            ("vtcm_mb" | "hvx_threads" | "optimization_level" | "soc_model", _) => {
                whole(request)?;
                self.no_effect(request, htp_only(&request.name));
            }
            ("htp_arch", _) => {
                arch(request)?;
                self.no_effect(request, htp_only("an architecture"));
            }
            ("dlbc", _) => {
                boolean(request)?;
                self.no_effect(request, htp_only("dlbc"));
            }
            ("device_id", _) => match whole(request)? {
                0 => self.settle(request, SettingOutcome::Applied),
                _ => self.no_effect(request, "only device 0 can be opened through this backend's API"),
            },
            ("enable_dma", _) => {
                boolean(request)?;
                self.no_effect(request, "QNN's API has no switch for DMA; the HTP compiler decides");
            }
            ("num_threads", Backend::Cpu) => {
                whole(request)?;
                self.no_effect(request, "the CPU backend's API has no thread count; it uses its own pool");
            }
            ("num_threads" | "precision", Backend::Gpu) => {
                self.no_effect(request, "not set through the GPU backend's API by this version of qnnscope");
            }
            (other, _) => {
                let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
                let other = crate::event::clean_text(other);
                let reason = format!("`{other}` is not a setting qnnscope knows; known are {}", known.join(", "));
                self.no_effect(request, reason);
            }
        }
        Ok(())
    }
}

/// A setting with its outcome, for the stream.
pub fn setting(request: &SettingRequest, outcome: SettingOutcome) -> Setting {
    Setting { key: crate::event::clean_text(&request.origin), value: value_text(&request.value), outcome }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => crate::event::clean_text(text),
        other => other.to_string(),
    }
}

fn wrong(request: &SettingRequest, expected: &str) -> SettingError {
    SettingError::Value {
        origin: request.origin.clone(),
        value: value_text(&request.value),
        expected: expected.to_owned(),
    }
}

fn whole(request: &SettingRequest) -> Result<u32, SettingError> {
    let number = match &request.value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.and_then(|n| u32::try_from(n).ok()).ok_or_else(|| wrong(request, "a whole number"))
}

fn boolean(request: &SettingRequest) -> Result<bool, SettingError> {
    match &request.value {
        Value::Bool(value) => Ok(*value),
        Value::Number(number) if number.as_u64() == Some(0) => Ok(false),
        Value::Number(number) if number.as_u64() == Some(1) => Ok(true),
        _ => Err(wrong(request, "true or false")),
    }
}

fn profile_name(request: &SettingRequest) -> Result<String, SettingError> {
    let name = request.value.as_str().map(|text| text.trim().to_ascii_lowercase());
    name.filter(|name| PERF_PROFILES.contains(&name.as_str()))
        .ok_or_else(|| wrong(request, &format!("a performance profile ({})", PERF_PROFILES.join(", "))))
}

fn precision(request: &SettingRequest) -> Result<u32, SettingError> {
    let text = match &request.value {
        Value::String(text) => text.trim().to_ascii_lowercase(),
        Value::Bool(relaxed) => if *relaxed { "float16" } else { "float32" }.to_owned(),
        Value::Number(number) => if number.as_u64() == Some(1) { "float16" } else { "float32" }.to_owned(),
        _ => String::new(),
    };
    match text.as_str() {
        "float32" | "fp32" | "32" => Ok(0),
        "float16" | "fp16" | "16" | "half" => Ok(1),
        _ => Err(wrong(request, "a precision (float32 or float16)")),
    }
}

fn arch(request: &SettingRequest) -> Result<u32, SettingError> {
    let number = match &request.value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().trim_start_matches(['v', 'V']).parse().ok(),
        _ => None,
    };
    number
        .filter(|n| [68, 69, 73, 75, 79, 81, 85, 89].contains(n))
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| wrong(request, "a Hexagon architecture (v68, v69, v73, v75, v79, v81, v85, v89)"))
}

fn priority(request: &SettingRequest) -> Result<u32, SettingError> {
    let text = request.value.as_str().map(str::to_ascii_lowercase);
    match text.as_deref() {
        Some("low") => Ok(0),
        Some("normal" | "default") => Ok(100),
        Some("normal_high") => Ok(150),
        Some("high") => Ok(200),
        _ => whole(request).map_err(|_| wrong(request, "a priority (low, normal, normal_high, high)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(name: &str, value: impl Into<Value>) -> SettingRequest {
        SettingRequest { origin: format!("--{name}"), name: name.into(), value: value.into(), backend: None }
    }

    #[test]
    fn every_key_of_a_file_ends_as_an_outcome() {
        let text = r#"{"htp_config": {"device_id": 0, "performance_mode": "burst", "precision_mode": "fp16",
            "vtcm_mb": 4, "enable_dma": true, "num_threads": 2, "no_such_key": 1}, "cpu_config": {"num_threads": 4}}"#;
        let requests = parse_config(text).unwrap();
        let htp = resolve(&requests, Backend::Htp).unwrap();
        assert_eq!((htp.vtcm_mb, htp.precision, htp.hvx_threads), (Some(4), Some(1), Some(2)));
        assert_eq!(htp.perf_profile.as_ref().unwrap().1, "burst");
        assert_eq!(htp.settled.len() + htp.with_graph.len() + 1, 7);
        let unknown = htp.settled.iter().find(|s| s.key.ends_with("no_such_key")).unwrap();
        assert!(matches!(&unknown.outcome, SettingOutcome::NoEffect(reason) if reason.contains("vtcm_mb")));
        let cpu = resolve(&requests, Backend::Cpu).unwrap();
        assert_eq!(cpu.settled.len(), 1);
    }

    #[test]
    fn flags_win_over_the_file_and_say_so() {
        let mut requests = parse_config(r#"{"htp_config": {"vtcm_mb": 2}}"#).unwrap();
        requests.push(flag("vtcm_mb", 8));
        let resolved = resolve(&requests, Backend::Htp).unwrap();
        assert_eq!(resolved.vtcm_mb, Some(8));
        assert_eq!(resolved.settled[0].outcome, SettingOutcome::NoEffect("--vtcm_mb takes precedence".into()));
    }

    #[test]
    fn wrong_values_are_errors_that_name_what_is_expected() {
        for (name, value) in [
            ("vtcm_mb", Value::from("lots")),
            ("perf_profile", Value::from("turbo")),
            ("htp_arch", Value::from("v70")),
            ("precision", Value::from("int8")),
            ("optimization_level", Value::from(9)),
        ] {
            let error = resolve(&[flag(name, value)], Backend::Htp).unwrap_err();
            assert!(error.to_string().contains("is not a"), "{error}");
        }
        assert!(
            parse_config("[]").is_err() && parse_config("{\"dsp_config\":{}}").is_err() && parse_config("{").is_err()
        );
    }

    #[test]
    fn outcomes_are_found_by_canonical_names() {
        for origin in ["--vtcm-mb", "htp_config.vtcm_size_mb", "vtcm_mb"] {
            assert_eq!(setting_name(origin), "vtcm_mb");
        }
        assert_eq!(
            (setting_name("htp_config.O").as_str(), setting_name("x.no_such").as_str()),
            ("optimization_level", "no_such")
        );
    }

    #[test]
    fn the_soc_implies_the_architecture() {
        let resolved = resolve(&[flag("soc_model", 57), flag("htp_arch", "v75")], Backend::Htp).unwrap();
        assert_eq!((resolved.soc_model, resolved.arch), (Some(57), None));
        assert!(resolved.with_device.iter().any(|s| matches!(s.outcome, SettingOutcome::NoEffect(_))));
    }
}
