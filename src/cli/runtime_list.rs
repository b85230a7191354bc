//! `qnnscope runtime list`: every runtime, and which of its backends load.

use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, Global, MISSING, OK, say};
use crate::backends::local::probe_library;
use crate::backends::runtime::{Env, RuntimeDir, RuntimeError, RuntimeSource, onnx_kit, onnx_library, survey};
use crate::event::clean_text;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    runtimes: Vec<Row>,
    /// The libraries for ONNX models; `null` if missing.
    onnx_runtime: Option<OnnxRow>,
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Row {
    /// True for the one used by default.
    chosen: bool,
    path: PathBuf,
    source: RuntimeSource,
    version: Option<String>,
    build_id: Option<String>,
    core_api: Option<String>,
    backends: Vec<BackendRow>,
}

#[derive(Debug, Clone, Serialize)]
struct OnnxRow {
    library: PathBuf,
    /// Version, if qnnscope installed it.
    version: Option<String>,
    /// Its QNN plug-in for the runtime in use; `null` if there is none.
    plugin: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct BackendRow {
    name: &'static str,
    library: PathBuf,
    loads: bool,
    api: Option<String>,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Problem {
    message: String,
    hint: Option<String>,
}

/// Tries every library of every runtime in a child process of its own and prints the results.
pub fn list(json: bool, patience: Patience, global: &Global) -> Result<u8, CliError> {
    let env = Env::from_process();
    let found = survey(global.runtime.as_deref(), &env);
    let onnx = onnx_row(found.runtimes.first(), &env);
    let rows = patience.wait(|| "the libraries to load".to_owned(), probe_all(&found.runtimes))?;
    let document = Document {
        schema: "qnnscope.runtimes/1",
        runtimes: rows,
        onnx_runtime: onnx.as_ref().ok().cloned().flatten(),
        problems: found
            .problems
            .iter()
            .chain(onnx.as_ref().err())
            .map(|problem: &RuntimeError| Problem { message: problem.to_string(), hint: problem.hint() })
            .collect(),
    };
    if json {
        print_json(&document)?;
    } else {
        for problem in &document.problems {
            say(&format!("warning: {}", clean_text(&problem.message)));
        }
        print(&render(&document))?;
    }
    if document.runtimes.is_empty() {
        say("no QNN runtime found\n  next: `qnnscope runtime install` installs one");
        return Ok(MISSING);
    }
    Ok(OK)
}

/// What runs ONNX models on this runtime.
fn onnx_row(runtime: Option<&RuntimeDir>, env: &Env) -> Result<Option<OnnxRow>, RuntimeError> {
    let library = onnx_library(runtime, env)?;
    let plugin = runtime.and_then(|runtime| onnx_kit(runtime, env).ok()).map(|kit| kit.plugin);
    Ok(library.map(|library| OnnxRow {
        version: library.installed.map(|(_, manifest)| manifest.version),
        library: library.path,
        plugin,
    }))
}

async fn probe_all(runtimes: &[RuntimeDir]) -> Result<Vec<Row>, CliError> {
    let scratch = crate::files::private_folder()
        .map_err(|source| CliError::Io { action: "make a temporary folder".to_owned(), source })?;
    let mut rows = Vec::new();
    for (index, runtime) in runtimes.iter().enumerate() {
        let mut row = Row {
            chosen: index == 0,
            path: runtime.path.clone(),
            source: runtime.source,
            version: runtime.version.clone(),
            build_id: None,
            core_api: None,
            backends: Vec::new(),
        };
        for library in &runtime.libraries {
            let Some(name) = library.backend else { continue };
            let memory = super::options::free_memory_share();
            let answer = probe_library(&library.path, scratch.path(), memory).await?;
            row.build_id = row.build_id.or(answer.build_id);
            row.core_api = row.core_api.or(answer.core_api);
            row.backends.push(BackendRow {
                name,
                library: library.path.clone(),
                loads: answer.error.is_none(),
                api: answer.backend_api,
                error: answer.error,
            });
        }
        rows.push(row);
    }
    Ok(rows)
}

fn render(document: &Document) -> String {
    let mut out = String::new();
    for row in &document.runtimes {
        let mark = if row.chosen { "*" } else { " " };
        let version = row.version.as_ref().map_or_else(String::new, |version| format!(", wheel {version}"));
        let _ = writeln!(out, "{mark} {}  ({}{version})", row.path.display(), row.source);
        let _ = writeln!(
            out,
            "    build {}, core API {}",
            row.build_id.as_deref().unwrap_or("unknown"),
            row.core_api.as_deref().unwrap_or("unknown")
        );
        for backend in &row.backends {
            let api = backend.api.as_ref().map_or_else(String::new, |api| format!("  API {api}"));
            match &backend.error {
                None => {
                    let _ = writeln!(out, "    {:<7} loads{api}", backend.name);
                }
                Some(error) => {
                    let _ = writeln!(out, "    {:<7} does not load: {error}", backend.name);
                }
            }
        }
    }
    match &document.onnx_runtime {
        Some(onnx) => {
            let version = onnx.version.as_ref().map_or_else(String::new, |version| format!(", version {version}"));
            let _ = writeln!(out, "ONNX Runtime{version}: {}", clean_text(&onnx.library.to_string_lossy()));
            let plugin = onnx.plugin.as_ref().map_or_else(
                || "missing: `qnnscope runtime install --onnx` installs it".to_owned(),
                |plugin| clean_text(&plugin.to_string_lossy()),
            );
            let _ = writeln!(out, "    QNN plug-in: {plugin}");
        }
        None => {
            out.push_str("no ONNX Runtime, which ONNX models need: `qnnscope runtime install --onnx` installs it\n");
        }
    }
    if !document.runtimes.is_empty() {
        let _ = writeln!(out, "* is used; --runtime DIR overrides it");
    }
    out
}
