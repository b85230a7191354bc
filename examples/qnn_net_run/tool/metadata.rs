//! `execution_metadata.yaml`: what was run, and the tensors of its graph.

use qnnscope::models::{Graph, Tensor};
use std::fmt::Write;
use std::path::Path;

/// Writes the file into the output folder.
pub fn write(dir: &Path, arguments: &[String], inferences: u64, graph: &Graph) -> std::io::Result<()> {
    let mut text = String::new();
    let command = arguments.join(" ");
    let _ = writeln!(text, "command: {}", quoted(&format!("qnn-net-run {command}")));
    let _ = writeln!(text, "execution_mode: synchronous");
    let _ = writeln!(text, "inferences_completed: {inferences}");
    let _ = writeln!(text, "graphs:");
    let _ = writeln!(text, "  - graph_name: {}", quoted(&graph.name));
    for (title, tensors) in [("input_tensors", &graph.inputs), ("output_tensors", &graph.outputs)] {
        let _ = writeln!(text, "    {title}:");
        for tensor in tensors {
            describe(tensor, &mut text);
        }
    }
    std::fs::write(dir.join("execution_metadata.yaml"), text)
}

fn describe(tensor: &Tensor, text: &mut String) {
    let dimensions: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "      - tensor_name: {}", quoted(&tensor.name));
    let _ = writeln!(text, "        datatype: {}", tensor.dtype);
    let _ = writeln!(text, "        dimensions: [{}]", dimensions.join(", "));
}

/// A JSON string is a YAML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
