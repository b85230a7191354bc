//! Compares what a context binary says about itself with the hardware and the libraries that are to load it.

use super::target::Target;
use crate::backends::Backend;
use crate::models::ContextBinaryInfo;
use serde::Serialize;

/// QNN's ids of the backends that run models here.
const BACKENDS: [(u32, &str); 3] = [(3, "CPU"), (4, "GPU"), (HTP, "HTP")];
const HTP: u32 = 6;
/// Id of the problem that a binary was made for a backend other than the one that is to load it.
pub const OTHER_BACKEND: &str = "context-binary-other-backend";

/// Something that prevents a context binary from loading, or may do so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Id; the failure catalogue's if it has one.
    pub id: &'static str,
    /// True if it is known to prevent loading.
    pub blocking: bool,
    /// One sentence.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

impl Problem {
    fn new(id: &'static str, blocking: bool, message: String, remedy: impl Into<String>) -> Self {
        Self { id, blocking, message, remedy: remedy.into() }
    }
}

/// Compares a binary with hardware.
pub fn against_target(info: &ContextBinaryInfo, target: &Target) -> Vec<Problem> {
    if info.backend_id != HTP {
        let made = backend_name(info.backend_id);
        let message = format!("it was made for {made}; HTP refuses it with 5005");
        let remedy = format!("run it on {made}, or make it again with the HTP backend");
        return vec![Problem::new(OTHER_BACKEND, true, message, remedy)];
    }
    let mut problems = Vec::new();
    let again = || match target.soc_model {
        Some(number) => format!("make it again for {} (soc_model {number})", target.full_name()),
        None => format!("make it again for {}", target.full_name()),
    };
    match (info.hexagon_arch, target.arch) {
        (Some(made), Some(has)) if made > has => {
            let message = format!(
                "it was made for Hexagon v{made}, {} has v{has}: loading it fails with 5005, \"Request feature arch \
                 with value {made} unsupported\"",
                target.label
            );
            problems.push(Problem::new("context-binary-arch-newer", true, message, again()));
        }
        (Some(made), Some(has)) if made < has => {
            let message = format!("it was made for Hexagon v{made}; v{has} runs it, maybe slower than it could");
            problems.push(Problem::new("context-binary-arch-older", false, message, again()));
        }
        (Some(_), Some(_)) => {
            if let (Some(made @ 1..), Some(has)) = (info.soc_model, target.soc_model)
                && made != has
            {
                let message = format!("it was made for another SoC (soc_model {made}) of the same architecture");
                problems.push(Problem::new("context-binary-other-soc", false, message, again()));
            }
        }
        _ => {
            let message = "the architecture of the binary or of the SoC is not known here".to_owned();
            problems.push(Problem::new("context-binary-arch-unknown", false, message, again()));
        }
    }
    problems.extend(vtcm(info, target));
    problems
}

/// The graph that needs the most VTCM, if that is more than the target has.
fn vtcm(info: &ContextBinaryInfo, target: &Target) -> Option<Problem> {
    let there = u64::from(target.vtcm_mb?) << 20;
    let most = info.graphs.iter().max_by_key(|graph| graph.vtcm_bytes)?;
    let wants = most.vtcm_bytes.filter(|wants| *wants > there)?;
    let message = format!(
        "graph `{}` wants {} MiB of VTCM, {} has {}: loading it fails with 5005, \"Request feature vtcm size with value \
         {} unsupported\"",
        most.name,
        wants >> 20,
        target.label,
        there >> 20,
        wants >> 20
    );
    let remedy = format!("make it again with at most {} MB of VTCM", there >> 20);
    Some(Problem::new("context-binary-vtcm-too-large", true, message, remedy))
}

/// Why a backend other than HTP does not load a binary, if known.
pub fn against_backend(info: &ContextBinaryInfo, backend: Backend) -> Option<String> {
    let name = backend.name().to_uppercase();
    let right = BACKENDS.iter().any(|row| row.0 == info.backend_id && row.1 == name);
    let made = backend_name(info.backend_id);
    (!right && backend != Backend::Htp).then(|| format!("it was made for {made}: {name} refuses it with 5005"))
}

/// Compares a binary with a runtime by the SDK versions in their build ids.
pub fn against_runtime(info: &ContextBinaryInfo, runtime_build: Option<&str>) -> Option<Problem> {
    let runtime_build = runtime_build?;
    let (made, runs) = (release(&info.build_id)?, release(runtime_build)?);
    (made > runs).then(|| {
        let message = format!(
            "SDK {}.{} wrote it, these libraries are {}.{}: older libraries refuse newer binaries with 5000 or 5004",
            made.0, made.1, runs.0, runs.1
        );
        let remedy = format!("use libraries of {}.{} or newer, or make it again with this SDK", made.0, made.1);
        Problem::new("context-binary-sdk-newer", true, message, remedy)
    })
}

/// `v2.47.0.260601114230` as (2, 47).
fn release(build: &str) -> Option<(u32, u32)> {
    let mut numbers = build.trim_start_matches(['v', 'V']).split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Name of a backend by QNN's id.
pub fn backend_name(id: u32) -> String {
    BACKENDS.iter().find(|row| row.0 == id).map_or_else(|| format!("backend {id}"), |row| row.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ContextGraphInfo;

    fn info(arch: u32, soc: u32, vtcm_mb: u64) -> ContextBinaryInfo {
        ContextBinaryInfo {
            info_version: 3,
            backend_id: 6,
            build_id: "v2.47.0.260601114230".to_owned(),
            core_api: "2.36.0".to_owned(),
            backend_api: "5.47.0".to_owned(),
            soc_version: None,
            soc_model: Some(soc),
            hexagon_arch: Some(arch),
            blob_version: "3.3.4".to_owned(),
            blob_bytes: 1,
            graphs: vec![ContextGraphInfo {
                name: "g".to_owned(),
                inputs: Vec::new(),
                outputs: Vec::new(),
                spill_fill_bytes: None,
                vtcm_bytes: Some(vtcm_mb << 20),
                optimization_level: None,
                hvx_threads: None,
            }],
        }
    }

    fn ids(info: &ContextBinaryInfo, soc: &str) -> Vec<(&'static str, bool)> {
        let target = Target::from_soc(soc).unwrap();
        against_target(info, &target).iter().map(|problem| (problem.id, problem.blocking)).collect()
    }

    #[test]
    fn only_newer_architectures_and_more_vtcm_stand_in_the_way() {
        assert_eq!(ids(&info(75, 57, 8), "SM8650"), []);
        assert_eq!(ids(&info(75, 57, 4), "SM8550"), [("context-binary-arch-newer", true)]);
        assert_eq!(ids(&info(68, 30, 4), "SM8650"), [("context-binary-arch-older", false)]);
        assert_eq!(ids(&info(73, 66, 4), "SM8550"), [("context-binary-other-soc", false)]);
        assert_eq!(ids(&info(73, 0, 4), "SM8550"), [], "no SoC was named when it was made");
        assert_eq!(ids(&info(68, 30, 8), "SM8350"), [("context-binary-vtcm-too-large", true)]);
        assert_eq!(ids(&info(75, 57, 8), "9999"), [("context-binary-arch-unknown", false)]);
        let cpu = ContextBinaryInfo { backend_id: 3, ..info(75, 57, 8) };
        assert_eq!(ids(&cpu, "SM8650"), [(OTHER_BACKEND, true)]);
    }

    #[test]
    fn a_newer_sdk_is_seen_by_its_release() {
        let made = info(75, 57, 8);
        assert_eq!(against_runtime(&made, Some("v2.51.0.1")), None);
        assert_eq!(against_runtime(&made, Some("v2.47.9")), None, "the release counts, not the build");
        assert_eq!(against_runtime(&made, Some("v2.25.0")).map(|problem| problem.id), Some("context-binary-sdk-newer"));
        for unknown in [None, Some(""), Some("nightly"), Some("v2")] {
            assert_eq!(against_runtime(&made, unknown), None);
        }
    }
}
