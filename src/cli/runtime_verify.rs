//! `qnnscope runtime verify`: compares files with their installation manifest.

use super::headless::{print, print_json};
use super::{CliError, FAILED, Global, MISSING, OK, say};
use crate::backends::runtime::{
    ChangedFile, Depth, Env, RuntimeManifest, changed_files, damaged, installed_onnx, survey,
};
use crate::event::clean_text;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    runtimes: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    path: PathBuf,
    version: Option<String>,
    /// SHA-256 of the wheel it came from.
    wheel_sha256: Option<String>,
    /// Whether qnnscope knew that checksum; `null` if there is no manifest.
    pinned: Option<bool>,
    /// Number of files whose SHA-256 was compared.
    verified: usize,
    /// Files that have changed since their installation.
    changed: Vec<ChangedFile>,
}

/// Checks every file of every runtime. Fails if one differs from its installation.
pub fn verify(json: bool, global: &Global) -> Result<u8, CliError> {
    let found = survey(global.runtime.as_deref(), &Env::from_process());
    let mut rows = Vec::new();
    for runtime in found.runtimes {
        let manifest = RuntimeManifest::read(&runtime.path);
        rows.push(Row {
            changed: manifest.as_ref().map_or_else(
                || damaged(&runtime.path).into_iter().collect(),
                |manifest| changed_files(&runtime.path, manifest, Depth::Full),
            ),
            verified: manifest
                .as_ref()
                .map_or(0, |manifest| manifest.files.iter().filter(|file| !file.sha256.is_empty()).count()),
            version: manifest.as_ref().map(|manifest| manifest.version.clone()).or(runtime.version),
            wheel_sha256: manifest.as_ref().map(|manifest| manifest.sha256.clone()),
            pinned: manifest.as_ref().map(|manifest| manifest.pinned),
            path: runtime.path,
        });
    }
    let env = Env::from_process();
    for (path, manifest) in installed_onnx(&env) {
        rows.push(Row {
            changed: changed_files(&path, &manifest, Depth::Full),
            verified: manifest.files.iter().filter(|file| !file.sha256.is_empty()).count(),
            version: Some(manifest.version),
            wheel_sha256: Some(manifest.sha256),
            pinned: Some(manifest.pinned),
            path,
        });
    }
    let document = Document { schema: "qnnscope.runtime-verify/1", runtimes: rows };
    if json {
        print_json(&document)?;
    } else {
        print(&render(&document))?;
    }
    if document.runtimes.is_empty() {
        say("no QNN runtime found\n  next: `qnnscope runtime install` installs one");
        return Ok(MISSING);
    }
    Ok(if document.runtimes.iter().all(|row| row.changed.is_empty()) { OK } else { FAILED })
}

fn render(document: &Document) -> String {
    let mut out = String::new();
    for row in &document.runtimes {
        let _ = writeln!(out, "{}", clean_text(&row.path.to_string_lossy()));
        let Some(pinned) = row.pinned else {
            if let Some(file) = row.changed.first() {
                let _ = writeln!(out, "    DAMAGED {}", clean_text(&file.to_string()));
                out.push_str("    next: install it again: qnnscope runtime install --force\n");
                continue;
            }
            out.push_str("    not installed by qnnscope: nothing to verify it against\n");
            continue;
        };
        let origin = if pinned { "its checksum is known to qnnscope" } else { "its checksum is not known to qnnscope" };
        let sum = row.wheel_sha256.as_deref().unwrap_or_default();
        let _ = writeln!(out, "    wheel SHA-256 {}: {origin}", clean_text(sum));
        if row.changed.is_empty() {
            let _ = writeln!(out, "    {} files unchanged since installation", row.verified);
            continue;
        }
        for file in &row.changed {
            let _ = writeln!(out, "    CHANGED {}", clean_text(&file.to_string()));
        }
        let version = row.version.as_deref().unwrap_or_default();
        let _ = writeln!(out, "    next: qnnscope runtime install --force --version {}", clean_text(version));
    }
    out
}
