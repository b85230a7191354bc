//! Names of files and marks on a device.

use crate::models::ModelFormat;

/// The input list.
pub const INPUT_LIST: &str = "inputs.txt";

/// Marker before the process id, on the first line of a round's output.
pub const PID_MARK: &str = "__qnnscope_pid:";

/// Name of the model in the folder of a run.
pub fn model_name(format: ModelFormat) -> &'static str {
    match format {
        ModelFormat::Dlc => "model.dlc",
        ModelFormat::ModelLibrary => "libmodel.so",
        ModelFormat::ContextBinary => "model.bin",
        ModelFormat::Onnx => "model.onnx",
    }
}

/// Rust's name for the device's instruction set.
pub fn machine(abi: &str) -> &str {
    match abi {
        "arm64-v8a" | "arm64" => "aarch64",
        "armeabi-v7a" | "armv7l" => "arm",
        other => other,
    }
}
