//! What the end-to-end tests share: the real runtimes, scratch folders, models made on the spot.

#![allow(dead_code, reason = "each test target uses its own part")]

use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Folder of an installed runtime, by wheel version. Fails, with the command that installs it, when it is missing.
pub fn runtime(version: &str) -> PathBuf {
    let root = std::env::var_os("QNNSCOPE_TEST_RUNTIMES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/test-runtimes"),
        PathBuf::from,
    );
    let found = std::fs::read_dir(root.join("runtimes")).into_iter().flatten().flatten().map(|entry| entry.path()).find(
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

/// Makes a context binary from a DLC with contextGetBinary on the given backend library.
pub fn make_context_binary(runtime: &Path, library: &str, dlc: &Path, soc_model: Option<u32>) -> Vec<u8> {
    use qnnscope::backends::qnn::api::{
        Backend, Context, Device, DeviceTarget, Dlc, GraphOptions, Library, Logger, SystemLibrary, VersionPolicy,
    };
    let library = Library::open(&runtime.join(library), VersionPolicy::KnownOnly).unwrap();
    let system = SystemLibrary::open(&runtime.join("libQnnSystem.so")).unwrap();
    let logger = Logger::create(&library, qnnscope::event::LogLevel::Error).unwrap();
    let backend = Backend::create(&logger).unwrap();
    let (device, _) = Device::create(&backend, DeviceTarget { soc_model, arch: None }).unwrap();
    let context: Rc<Context> = Context::create(&device).unwrap();
    let (graphs, _) = Dlc::open(&system, dlc).unwrap().compose(&context, GraphOptions::default());
    for graph in graphs.unwrap() {
        context.graph(&graph.name).unwrap().finalize(None).unwrap();
    }
    context.binary().unwrap()
}
