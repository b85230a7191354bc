//! What the end-to-end tests share: the real runtimes, scratch folders, models made on the spot.

#![allow(dead_code, reason = "each test target uses its own part")]

mod command;
pub mod device;
pub mod dsp_board;
pub mod dsp_lab;
pub mod inspected;
pub mod schema;
pub mod source_models;
pub mod virtual_device;

#[allow(unused_imports, reason = "each test target uses its own part")]
pub use command::{Done, Qnnscope, Running, children_of, none_left, processes_in, result_file, send};

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of an installed runtime, by wheel version. If it is missing, fails with the command that installs
/// it.
pub fn runtime(version: &str) -> PathBuf {
    let root = std::env::var_os("QNNSCOPE_TEST_RUNTIMES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/test-runtimes"), PathBuf::from);
    let found =
        std::fs::read_dir(root.join("runtimes")).into_iter().flatten().flatten().map(|entry| entry.path()).find(
            |path| {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                name.starts_with(&format!("{version}-")) && path.join("libQnnSystem.so").exists()
            },
        );
    found.unwrap_or_else(|| {
        panic!(
            "the runtime {version} is not installed under {}; run ./test.sh, or:\n  QNNSCOPE_DATA_DIR={} cargo run -- \
             runtime install --version {version}",
            root.display(),
            root.display()
        )
    })
}

/// The runtime with every backend (QAIRT 2.47).
pub fn runtime_247() -> PathBuf {
    runtime("2.3.0")
}

/// The newer runtime, without a CPU backend on `x86_64` (QAIRT 2.51).
pub fn runtime_251() -> PathBuf {
    runtime("2.7.0")
}

/// A file of the repository.
pub fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The bundled quantised model.
pub fn demo_int8() -> PathBuf {
    repo("demo/qnnscope-demo-int8.dlc")
}

/// The bundled float model.
pub fn demo_float() -> PathBuf {
    repo("demo/qnnscope-demo-float.dlc")
}

/// Compiles a model library from `tests/models` into `dir` with the system's C compiler; `defines` have the
/// form `NAME=VALUE`.
pub fn model_library(dir: &Path, source: &str, defines: &[&str]) -> PathBuf {
    let path = dir.join(format!("lib{}.so", defines.join("_").replace(['=', '(', ')', '/'], "_")));
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-o"])
        .arg(&path)
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg(repo("tests/models").join(source))
        .output()
        .expect("the tests need a C compiler called cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// A model of `tests/data/onnx`.
pub fn onnx_model(name: &str) -> PathBuf {
    repo("tests/data/onnx").join(name)
}

/// A folder of Python packages that pip installed for the tests; `has` is one of them.
#[track_caller]
pub fn python_packages(folder: &str, has: &str) -> PathBuf {
    let root = std::env::var_os("QNNSCOPE_TEST_PYTHON").map_or_else(|| repo("target/test-python"), PathBuf::from);
    let folder = root.join(folder);
    assert!(folder.join(has).exists(), "{has} is missing in {}: run ./test.sh, which installs it", folder.display());
    folder
}

/// Packages of ONNX Runtime and a version of its QNN plug-in.
#[track_caller]
pub fn onnx_packages(version: &str) -> PathBuf {
    python_packages(&format!("onnxruntime-qnn-{version}"), "onnxruntime_qnn")
}

/// Little-endian float32.
pub fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Reads little-endian float32.
pub fn read_f32(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(bytes.len() % 4, 0);
    bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// Largest difference between two vectors of the same length.
#[track_caller]
pub fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().chain(b).all(|value| value.is_finite()));
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

/// A .npy file (format 1.0) as NumPy writes it.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A number of the document.
#[track_caller]
pub fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// A context binary created from a DLC with contextGetBinary, by the runtime `version` on `backend`.
pub fn context_binary(version: &str, backend: &str, dlc: &Path, soc_model: Option<u32>) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("made");
    let mut command = Qnnscope::on(&runtime(version))
        .arg("run")
        .arg(dlc)
        .flags("--json -n 1 --warmup 0 --profiling off --backend")
        .arg(backend)
        .arg("--save-context")
        .arg(&out);
    if let Some(soc) = soc_model {
        command = command.arg("--soc-model").arg(soc.to_string());
    }
    let done = command.finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    std::fs::read(&out).unwrap()
}
