//! The environment of a confined runner: variables for backends and loaders, and nothing of the user's.

use std::ffi::OsString;

/// Variables passed on.
const KEPT: [&str; 11] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "ADSP_LIBRARY_PATH",
    "LANG",
    "TZ",
    "RUST_BACKTRACE",
    "GLIBC_TUNABLES",
    "GCOV_PREFIX",
    "LLVM_PROFILE_FILE",
    "ANDROID_ROOT",
    "ANDROID_DATA",
];

/// Name prefixes of variables passed on: QNN and the DSP, numeric libraries, OpenCL, allocators, sanitizers, the
/// language.
const KEPT_FAMILIES: [&str; 22] = [
    "QNNSCOPE_",
    "QNN_",
    "QAIRT_",
    "SNPE_",
    "ADSP_",
    "CDSP_",
    "DSP_",
    "FASTRPC_",
    "HEXAGON_",
    "HTP_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "OPENBLAS_",
    "MKL_",
    "OCL_",
    "OPENCL_",
    "MALLOC_",
    "ASAN_",
    "UBSAN_",
    "TSAN_",
    "LC_",
];

/// This process's variables that a confined runner may see.
pub fn kept() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept))
}

fn is_kept(name: &str) -> bool {
    KEPT.contains(&name) || KEPT_FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_preloads_stay_with_the_parent() {
        for name in ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "HOME", "LD_PRELOAD", "LD_AUDIT"] {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["LD_LIBRARY_PATH", "ADSP_LIBRARY_PATH", "OMP_NUM_THREADS", "LC_ALL", "QNN_SDK_ROOT"] {
            assert!(is_kept(name), "{name}");
        }
    }
}
