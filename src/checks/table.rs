//! Which check confirms which cause.

use super::scene::Scene;
use super::verdict::CheckVerdict;
use super::{context, libraries, other, transport};
use crate::diagnosis::Diagnosis;

/// A check of a cause. Both ids are from the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Confirming {
    /// Id of the cause.
    pub cause: &'static str,
    /// Id of the check.
    pub check: &'static str,
    /// The check.
    pub test: fn(&Scene) -> CheckVerdict,
}

const fn row(cause: &'static str, check: &'static str, test: fn(&Scene) -> CheckVerdict) -> Confirming {
    Confirming { cause, check, test }
}

/// All checks; specific causes precede those they explain, so that the most specific confirmed one is listed
/// first.
const TABLE: [Confirming; 46] = [
    row("dsp-arch-not-htp", "soc", transport::htp_arch),
    row("soc-unknown-to-sdk", "soc", other::known_part),
    row("adsp-path-colon", "adsp-path", transport::adsp_path),
    row("stub-not-found", "stub-files", transport::stub_files),
    row("skel-wrong-arch", "skel-files", transport::skel_arch),
    row("stub-skel-build-id-mismatch", "build-ids", transport::build_ids),
    row("vendor-lib-shadowing", "vendor-files", transport::vendor_files),
    row("skel-not-found", "skel-files", transport::skel_files),
    row("skel-not-found", "adsp-path", transport::adsp_path_set),
    row("dsp-libcxx-missing", "dsp-libcxx", transport::dsp_libcxx),
    row("libcdsprpc-missing", "find", transport::find_cdsprpc),
    row("fastrpc-permission-denied", "nodes", transport::nodes),
    row("fastrpc-permission-denied", "denials", transport::denials),
    row("fastrpc-session-open-failed", "remoteproc", transport::remoteproc),
    row("unsigned-pd-unavailable", "nodes", transport::nodes),
    row("unsigned-pd-unavailable", "denials", transport::denials),
    row("htp-loading-binaries-1009", "adsp-path", transport::adsp_path_set),
    row("extension-version-mix", "build-ids", transport::extension_builds),
    row("interface-version-mismatch", "build-ids", transport::build_ids),
    row("device-config-arch-unsupported", "soc", other::asked_arch),
    row("windows-skel-load", "win-files", libraries::windows_files),
    row("skel-missing-user-driver-fallback", "win-files", libraries::windows_files),
    row("wrong-elf-class", "elf-header", libraries::elf_header),
    row("backend-library-not-found", "backend-file", libraries::backend_file),
    row("libcxx-missing", "needed", libraries::needed_libcxx),
    row("dependency-missing", "ldd", libraries::needed_any),
    row("prepare-lib-missing", "prepare-file", libraries::prepare_file),
    row("gpu-on-x86", "machine", libraries::pc_machine),
    row("context-binary-wrong-container", "container", context::container),
    row("context-binary-wrong-container", "binary-hash", context::whole),
    row("context-binary-arch-newer", "binary-arch", context::arch),
    row("context-binary-vtcm-too-large", "binary-vtcm", context::vtcm),
    row("context-binary-sdk-newer", "binary-writer", context::writer),
    row("dlc-sdk-newer", "dlc-maker", context::dlc_maker),
    row("context-binary-incompatible", "binary-arch", context::soc),
    row("cdsp-address-space-exhausted", "binary-sizes", other::binary_size),
    row("dsp-heap-growth-failed", "memory", other::memory),
    row("rpcmem-alloc-failed", "heaps", other::heaps),
    row("rpcmem-alloc-failed", "denials", transport::denials),
    row("rpcmem-alloc-failed", "memory", other::memory),
    row("float-unsupported-on-arch", "soc", other::float_on_part),
    row("input-size-mismatch", "input-bytes", other::input_bytes),
    row("model-missing", "model-file", other::model_file),
    row("disk-full", "space", other::space),
    row("cdsp-ssr", "ssr-lines", transport::crashes),
    row("graph-execute-invalid-handle", "ssr-lines", transport::crashes),
];

/// Families of causes behind the same log: an error code at the end of a chain only shows that one of them
/// applies. If one of them is likely, all are checked, in causal order.
const TRANSPORT: [&str; 11] = [
    "dsp-arch-not-htp",
    "adsp-path-colon",
    "stub-not-found",
    "skel-wrong-arch",
    "stub-skel-build-id-mismatch",
    "vendor-lib-shadowing",
    "skel-not-found",
    "dsp-libcxx-missing",
    "libcdsprpc-missing",
    "fastrpc-permission-denied",
    "fastrpc-session-open-failed",
];
/// Causes that merely show a transport failure; if likely, they lead to the same checks.
const TRANSPORT_TOO: [&str; 4] = [
    "htp-transport-4000-unspecified",
    "htp-loading-binaries-1009",
    "unsigned-pd-unavailable",
    "skel-signature-rejected",
];
const CONTEXT: [&str; 4] = [
    "context-binary-wrong-container",
    "context-binary-arch-newer",
    "context-binary-vtcm-too-large",
    "context-binary-sdk-newer",
];
const CONTEXT_TOO: [&str; 1] = ["context-binary-incompatible"];
/// A SoC that the SDK does not know may be one that HTP has never run on.
const PART: [&str; 1] = ["dsp-arch-not-htp"];
const PART_TOO: [&str; 1] = ["soc-unknown-to-sdk"];
const LIBRARIES: [&str; 4] = ["backend-library-not-found", "libcxx-missing", "dependency-missing", "wrong-elf-class"];
const LIBRARIES_TOO: [&str; 1] = ["interface-version-mismatch"];

/// Confidence from which a cause is likely enough to check.
const LIKELY: f64 = 0.15;
/// Maximum number of causes of a log that are checked.
const MOST_CAUSES: usize = 6;

/// The checks worth running after this diagnosis, in the order of the table.
pub fn confirming(diagnosis: &Diagnosis) -> Vec<&'static Confirming> {
    let likely = diagnosis.causes.iter().filter(|finding| finding.confidence >= LIKELY).take(MOST_CAUSES);
    let named: Vec<&str> = likely.map(|finding| finding.id).collect();
    let mut wanted = named.clone();
    for (family, more) in [
        (&TRANSPORT[..], &TRANSPORT_TOO[..]),
        (&CONTEXT[..], &CONTEXT_TOO[..]),
        (&LIBRARIES[..], &LIBRARIES_TOO[..]),
        (&PART[..], &PART_TOO[..]),
    ] {
        if named.iter().any(|id| family.contains(id) || more.contains(id)) {
            wanted.extend(family);
        }
    }
    TABLE.iter().filter(|row| wanted.contains(&row.cause)).collect()
}

/// Every check.
#[cfg(test)]
pub fn all() -> &'static [Confirming] {
    &TABLE
}
