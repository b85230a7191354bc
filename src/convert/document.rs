//! The result of a conversion, as a document and as text.

use super::course::Step;
use super::steps::Made;
use super::verify::Check;
use crate::analysis::compare::Accuracy;
use crate::backends::Backend;
use crate::event::{NodeProvider, clean_text};
use crate::text::{bytes_text, paragraph};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// Schema of the document.
pub const CONVERT_SCHEMA: &str = "qnnscope.convert/1";

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConvertDocument {
    schema: &'static str,
    source: String,
    files: Vec<FileRow>,
    names: Option<String>,
    seconds: f64,
    partitions: Option<usize>,
    /// Nodes that none of the files contain, because QNN does not take them.
    left_out: Vec<LeftOut>,
    /// True if the files together contain the whole model.
    whole: bool,
    /// Accuracy of the whole model, if one file contains all of it.
    accuracy: Option<Accuracy>,
    not_verified: Option<String>,
    /// Comparison of each file with the source, if requested.
    verified: Option<Vec<CheckRow>>,
    /// Steps with their times.
    steps: Vec<Step>,
}

/// Comparison of a file with the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct CheckRow {
    file: String,
    backend: Backend,
    simulated: bool,
    inputs: usize,
    accuracy: Option<Accuracy>,
    not_verified: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct FileRow {
    path: String,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct LeftOut {
    node: String,
    op_type: String,
    code: Option<u64>,
    reason: Option<String>,
    remedy: Option<String>,
}

impl ConvertDocument {
    /// The document for a conversion; `keeps_all` is true if the result also contains the nodes that run on
    /// the CPU.
    pub fn new(source: &Path, made: &Made, keeps_all: bool, checks: Option<&[Check]>, steps: Vec<Step>) -> Self {
        let shown = |path: &Path| clean_text(&path.to_string_lossy());
        let placed = made.converted.as_ref().map(|converted| &converted.placed);
        let left_out: Vec<LeftOut> = placed
            .into_iter()
            .flat_map(|placed| &placed.nodes)
            .filter(|node| node.provider == NodeProvider::Cpu)
            .map(|node| LeftOut {
                node: node.node.clone(),
                op_type: node.op_type.clone(),
                code: node.code,
                reason: node.reason.clone(),
                remedy: node.remedy.clone(),
            })
            .collect();
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        Self {
            schema: CONVERT_SCHEMA,
            source: shown(source),
            files: made.files.iter().map(|path| FileRow { path: shown(path), bytes: size(path) }).collect(),
            names: made.names.as_deref().map(shown),
            seconds: made.seconds,
            partitions: placed.map(|placed| placed.partitions.len()),
            whole: keeps_all || left_out.is_empty(),
            left_out,
            accuracy: match checks {
                Some([only]) => only.verified.as_ref().ok().cloned(),
                _ => None,
            },
            not_verified: checks
                .and_then(|checks| checks.iter().find_map(|check| check.verified.as_ref().err().cloned())),
            verified: checks.map(|checks| {
                let row = |check: &Check| CheckRow {
                    file: shown(&check.file),
                    backend: check.backend,
                    simulated: check.backend.is_simulated_here(),
                    inputs: check.inputs,
                    accuracy: check.verified.as_ref().ok().cloned(),
                    not_verified: check.verified.as_ref().err().cloned(),
                };
                checks.iter().map(row).collect()
            }),
            steps,
        }
    }

    /// False if a comparison was requested but could not be made.
    pub fn is_verified(&self) -> bool {
        self.not_verified.is_none()
    }
}

/// The same, as text for users.
pub fn convert_text(document: &ConvertDocument) -> String {
    let mut out = String::new();
    for file in &document.files {
        let _ = writeln!(out, "wrote {} ({})", file.path, bytes_text(file.bytes as f64));
    }
    if let Some(names) = &document.names {
        let _ = writeln!(out, "wrote {names}: which node of the model became which QNN op");
    }
    let steps: Vec<String> = document.steps.iter().map(|step| format!("{} {:.1} s", step.step, step.seconds)).collect();
    let steps = if steps.is_empty() { String::new() } else { format!(": {}", steps.join(", ")) };
    paragraph(&mut out, &format!("took {:.1} s{steps}", document.seconds), 2, 0);
    if !document.left_out.is_empty() {
        let count = document.left_out.len();
        let nodes = if count == 1 { "1 node stays".to_owned() } else { format!("{count} nodes stay") };
        let text = if document.whole {
            format!("{nodes} on the CPU, as part of the new model:")
        } else {
            format!("these files are not the whole model: {nodes} on the CPU and are in none of them:")
        };
        out.push('\n');
        paragraph(&mut out, &text, 0, 0);
        for node in document.left_out.iter().take(20) {
            let reason = node.reason.as_deref().unwrap_or("the reason is unknown");
            paragraph(&mut out, &format!("`{}` ({}): {reason}", node.node, node.op_type), 4, 2);
            if let Some(remedy) = &node.remedy {
                paragraph(&mut out, &format!("> {remedy}"), 6, 4);
            }
        }
        if count > 20 {
            let _ = writeln!(out, "  and {} more, see --json", count - 20);
        }
    }
    for check in document.verified.iter().flatten() {
        let name = check.file.rsplit('/').next().unwrap_or_default();
        match (&check.accuracy, &check.not_verified) {
            (Some(accuracy), _) => {
                let simulated = if check.simulated { " (simulated)" } else { "" };
                let inputs = if check.inputs == 1 { "1 input".to_owned() } else { format!("{} inputs", check.inputs) };
                let _ =
                    writeln!(out, "\nverified on {inputs}, {name} on {}{simulated} against the source:", check.backend);
                for output in &accuracy.outputs {
                    let sqnr = output.sqnr_db.map_or_else(|| "–".to_owned(), |db| format!("{db:.1} dB"));
                    let like = if output.identical { "identical".to_owned() } else { format!("SQNR {sqnr}") };
                    let _ = writeln!(out, "  {}: {like}, largest error {:.3e}", output.name, output.max_abs_error);
                }
            }
            (None, reason) => {
                out.push('\n');
                let reason = reason.as_deref().unwrap_or("the reason is unknown");
                paragraph(&mut out, &format!("{name} is not verified: {reason}"), 2, 0);
            }
        }
    }
    out
}
