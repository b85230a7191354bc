//! Translates a run's options to those of ONNX Runtime and its QNN plug-in.

use crate::backends::Backend;
use crate::backends::settings::Resolved;
use crate::event::{Setting, SettingOutcome, clean_text};
use std::path::Path;

/// Options of a session, with the outcome of the user's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Options of the QNN provider.
    pub provider: Vec<(String, String)>,
    /// Configuration entries of the session.
    pub entries: Vec<(String, String)>,
    /// Outcomes of settings.
    pub settled: Vec<Setting>,
}

/// Name prefixes of session entries; everything else belongs to the provider.
const ENTRIES: [&str; 5] = ["session.", "ep.", "optimization.", "memory.", "mlas."];

impl SessionOptions {
    /// Options for a backend of a runtime. `known` says whether the plug-in knows a provider option: it
    /// silently accepts unknown ones.
    pub fn new(
        runtime_dir: &Path,
        backend: Backend,
        resolved: &Resolved,
        asked: &[(String, String)],
        known: impl Fn(&str) -> bool,
    ) -> Self {
        let library = runtime_dir.join(backend.library());
        let mut options = Self::default();
        options.provider("backend_path", library.to_string_lossy());
        // Records the nodes and their providers for the placement.
        options.entry("session.record_ep_graph_assignment_info", "1");
        options.settings(backend, resolved);
        for (key, value) in asked {
            let outcome = if ENTRIES.iter().any(|start| key.starts_with(start)) {
                options.entry(key, value);
                SettingOutcome::Applied
            } else if known(key) {
                options.provider(key, value);
                SettingOutcome::Applied
            } else {
                let reason = "the plug-in has no option of this name, and silently ignores unknown ones".to_owned();
                SettingOutcome::NoEffect(reason)
            };
            let (key, value) = (format!("--ep-option {}", clean_text(key)), clean_text(value));
            options.settled.push(Setting { key, value, outcome });
        }
        options
    }

    /// Sets a provider option; a later one of the same name replaces an earlier one.
    pub fn provider(&mut self, key: &str, value: impl AsRef<str>) {
        put(&mut self.provider, key, value.as_ref());
    }

    /// Sets a configuration entry.
    pub fn entry(&mut self, key: &str, value: impl AsRef<str>) {
        put(&mut self.entries, key, value.as_ref());
    }

    fn settings(&mut self, backend: Backend, resolved: &Resolved) {
        self.settled.extend(resolved.settled.iter().cloned());
        let told = |settings: &[Setting], name: &str| {
            settings.iter().find(|setting| crate::backends::settings::setting_name(&setting.key) == name).cloned()
        };
        let mut applied: Vec<&str> = Vec::new();
        if backend == Backend::Htp {
            if let Some(soc) = resolved.soc_model {
                self.provider("soc_model", soc.to_string());
                applied.push("soc_model");
            }
            if let Some(arch) = resolved.arch {
                self.provider("htp_arch", arch.to_string());
                applied.push("htp_arch");
            }
            if let Some(vtcm) = resolved.vtcm_mb {
                self.provider("vtcm_mb", vtcm.to_string());
                applied.push("vtcm_mb");
            }
            if let Some(level) = resolved.optimization_level {
                self.provider("htp_graph_finalization_optimization_mode", level.to_string());
                applied.push("optimization_level");
            }
            if let Some(precision) = resolved.precision {
                self.provider("enable_htp_fp16_precision", if precision == 1 { "1" } else { "0" });
                applied.push("precision");
            }
            if let Some((origin, name)) = &resolved.perf_profile {
                self.provider("htp_performance_mode", name);
                let outcome = if backend.is_simulated_here() {
                    SettingOutcome::NoEffect("passed to the plug-in, but the simulator has no clocks".to_owned())
                } else {
                    SettingOutcome::Applied
                };
                self.settled.push(Setting { key: origin.clone(), value: name.clone(), outcome });
            }
        }
        if let Some(priority) = resolved.priority {
            let name = match priority {
                0 => "low",
                150 => "normal_high",
                200 => "high",
                _ => "normal",
            };
            self.provider("qnn_context_priority", name);
            applied.push("priority");
        }
        for setting in resolved.with_device.iter().chain(&resolved.with_graph) {
            let name = crate::backends::settings::setting_name(&setting.key);
            let outcome = match &setting.outcome {
                SettingOutcome::Applied if !applied.contains(&name.as_str()) => {
                    SettingOutcome::NoEffect("ONNX Runtime's QNN plug-in has no such option".to_owned())
                }
                outcome => outcome.clone(),
            };
            self.settled.push(Setting { outcome, ..setting.clone() });
        }
        debug_assert!(
            applied.iter().all(|name| {
                told(&resolved.with_device, name).or_else(|| told(&resolved.with_graph, name)).is_some()
            })
        );
    }
}

fn put(options: &mut Vec<(String, String)>, key: &str, value: &str) {
    options.retain(|(known, _)| known != key);
    options.push((key.to_owned(), value.to_owned()));
}

/// Whether the plug-in knows an option: its text contains the name as a whole word.
pub fn knows(plugin: &[u8], option: &str) -> bool {
    let name = option.as_bytes();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    !name.is_empty()
        && memchr::memmem::find_iter(plugin, name).any(|at| {
            let before = at.checked_sub(1).and_then(|at| plugin.get(at));
            !is_part(before) && !is_part(plugin.get(at + name.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::settings::{SettingRequest, resolve};

    fn flag(name: &str, value: serde_json::Value) -> SettingRequest {
        SettingRequest { origin: format!("--{}", name.replace('_', "-")), name: name.to_owned(), value, backend: None }
    }

    #[test]
    fn every_setting_ends_as_an_option_or_a_reason() {
        let requests =
            [flag("soc_model", 57.into()), flag("hvx_threads", 4.into()), flag("perf_profile", "burst".into())];
        let resolved = resolve(&requests, Backend::Htp).unwrap();
        let asked = [
            ("session.disable_cpu_ep_fallback".to_owned(), "0".to_owned()),
            ("soc_model".to_owned(), "43".to_owned()),
            ("sock_model".to_owned(), "43".to_owned()),
        ];
        let options = SessionOptions::new(Path::new("/r"), Backend::Htp, &resolved, &asked, |key| key == "soc_model");
        let value =
            |key: &str| options.provider.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        assert_eq!((value("backend_path"), value("soc_model")), (Some("/r/libQnnHtp.so"), Some("43")));
        assert_eq!((value("htp_performance_mode"), value("sock_model")), (Some("burst"), None));
        assert!(options.entries.iter().any(|(key, _)| key == "session.disable_cpu_ep_fallback"));
        let outcome = |key: &str| &options.settled.iter().find(|setting| setting.key == key).unwrap().outcome;
        assert_eq!(outcome("--soc-model"), &SettingOutcome::Applied);
        assert!(
            matches!(outcome("--hvx-threads"), SettingOutcome::NoEffect(reason) if reason.contains("no such option"))
        );
        assert!(
            matches!(outcome("--ep-option sock_model"), SettingOutcome::NoEffect(reason) if reason.contains("silently"))
        );
    }

    #[test]
    fn options_are_known_by_their_whole_name() {
        let plugin = b"\0soc_model\0htp_arch=\0x";
        assert!(knows(plugin, "soc_model") && knows(plugin, "htp_arch"));
        assert!(!knows(plugin, "soc") && !knows(plugin, "model") && !knows(plugin, ""));
    }
}
