//! Converts TFLite models with the compiler from Google's `ai-edge-litert`, a Python package installed by the
//! user; it is started the way the user would start it.

use super::course::{Course, cause};
use super::error::ConvertError;
use super::names::{MappedNode, NameMap};
use super::steps::Made;
use crate::backends::runtime::Env;
use crate::event::clean_text;
use crate::files::write_whole;
use crate::models::read_source;
use crate::models::source::SourceFormat;
use crate::models::{Op, map_beside};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// The package, in the version that was tested.
const PACKAGE: &str = "ai-edge-litert==2.3.0";
/// A library that the plug-in links to and that no public runtime contains; none of its functions is called.
const UNUSED: &str = "libQnnLpai.so";
/// Lines of the tool's output that are kept after a failure.
const KEPT: usize = 200;

/// The tool, as found in the user's Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TfliteTools {
    /// The Python that contains it.
    pub python: PathBuf,
    /// The program.
    pub program: PathBuf,
    /// The folder with its QNN plug-in.
    pub plugins: PathBuf,
}

impl TfliteTools {
    /// Looks for the package in the user's Python.
    ///
    /// # Errors
    /// There is no Python, or it does not contain the package.
    pub async fn find(env: &Env) -> Result<Self, ConvertError> {
        let python = env.python.clone();
        let missing = |reason: String| ConvertError::MissingTool {
            tool: "LiteRT's compiler (apply_plugin_main)",
            reason,
            advice: format!(
                "{} -m pip install {PACKAGE}; $QNNSCOPE_PYTHON names another Python",
                clean_text(&python.to_string_lossy())
            ),
        };
        let script = "import importlib.util as u; s = u.find_spec('ai_edge_litert'); \
                      print(s.submodule_search_locations[0] if s else '')";
        let output = tokio::process::Command::new(&python)
            .args(["-c", script])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| missing(format!("cannot start {}: {error}", python.display())))?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if text.is_empty() {
            return Err(missing(format!("{} has no package ai_edge_litert", python.display())));
        }
        let folder = PathBuf::from(text);
        let tools = Self {
            python: python.clone(),
            program: folder.join("tools/apply_plugin_main"),
            plugins: folder.join("vendors/qualcomm/compiler"),
        };
        if !tools.program.is_file() || !tools.plugins.is_dir() {
            return Err(missing(format!("the ai_edge_litert in {} has no compiler for Qualcomm", folder.display())));
        }
        Ok(tools)
    }
}

/// Writes a DLC for each partition that the compiler finds. `soc` is its name for the SoC, such as SM8650.
pub async fn convert_tflite(
    tools: &TfliteTools,
    runtime_dir: &Path,
    model: &Path,
    soc: &str,
    out: &Path,
    force: bool,
    course: &Course<'_>,
) -> Result<Made, ConvertError> {
    let begun = Instant::now();
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ConvertError::Io { action, path, source }
    };
    if out.exists() && !force {
        return Err(ConvertError::Exists { path: out.to_owned() });
    }
    let dir = crate::files::private_folder().map_err(io("make a folder in", &std::env::temp_dir()))?;
    let (stub, dlcs) = (dir.path().join("stub"), dir.path().join("dlc"));
    for folder in [&stub, &dlcs] {
        std::fs::create_dir(folder).map_err(io("make", folder))?;
    }
    stand_in(&runtime_dir.join("libQnnSystem.so"), &stub.join(UNUSED)).map_err(io("make", &stub))?;
    let mut search = stub.clone().into_os_string();
    search.push(":");
    search.push(runtime_dir);
    if let Some(old) = std::env::var_os("LD_LIBRARY_PATH").filter(|old| !old.is_empty()) {
        search.push(":");
        search.push(old);
    }
    let compiling = tokio::process::Command::new(&tools.program)
        .args(["--cmd", "apply", "--soc_manufacturer", "Qualcomm", "--soc_model", soc])
        .arg("--model")
        .arg(model)
        .arg("--o")
        .arg(dir.path().join("out.tflite"))
        .arg("--libs")
        .arg(&tools.plugins)
        .arg("--qualcomm_dlc_dir")
        .arg(&dlcs)
        .env("LD_LIBRARY_PATH", search)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = course.take("LiteRT's compiler", compiling).await.map_err(io("start", &tools.program))?;
    course.log(&output.stdout);
    course.log(&output.stderr);
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .chain(String::from_utf8_lossy(&output.stderr).lines())
        .map(clean_text)
        .collect();
    if !output.status.success() {
        let lines = lines.split_off(lines.len().saturating_sub(KEPT));
        // The first error is the cause; the last lines are cleanup.
        let last = lines.iter().find(|line| line.contains("ERROR:"));
        let last =
            last.or_else(|| lines.iter().rev().find(|line| !line.trim().is_empty())).cloned().unwrap_or_default();
        return Err(ConvertError::Tool {
            tool: "apply_plugin_main".to_owned(),
            status: output.status.to_string(),
            last,
            advice: Some(advice(course, &output, out, force)),
        });
    }
    let mut made: Vec<PathBuf> = std::fs::read_dir(&dlcs)
        .map_err(io("read", &dlcs))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "dlc"))
        .collect();
    made.sort();
    if made.is_empty() {
        let reason = "the compiler created no partition for it".to_owned();
        return Err(ConvertError::Nothing { model: model.to_owned(), reason });
    }
    let mut files = Vec::new();
    for (index, from) in made.iter().enumerate() {
        let to = super::steps::in_place(out, index, made.len());
        if to.exists() && !force {
            return Err(ConvertError::Exists { path: to });
        }
        let bytes = std::fs::read(from).map_err(io("read", from))?;
        write_whole(&to, &bytes).map_err(io("write", &to))?;
        files.push(to);
    }
    Ok(Made { files, names: None, converted: None, seconds: begun.elapsed().as_secs_f64() })
}

/// What the log reveals about a failure, and where the log is.
fn advice(course: &Course<'_>, output: &std::process::Output, out: &Path, force: bool) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let known = if String::from_utf8_lossy(&text).contains("Qnn System library version") {
        let advice = "the compiler needs newer QNN libraries than this runtime's: `qnnscope runtime install 2.7.0`, then name it \
                      with --runtime";
        Some(advice.to_owned())
    } else {
        cause(&text, output.status.code())
    };
    let log = out.with_extension("log");
    let place = ((force || !log.exists()) && course.keep(&log).is_ok())
        .then(|| format!("the log is {}", clean_text(&log.to_string_lossy())));
    let parts: Vec<String> = known.into_iter().chain(place).collect();
    if parts.is_empty() { "its log could not be kept".to_owned() } else { parts.join("; ") }
}

/// The map from operators to the ops of the DLCs: LiteRT's compiler appends the operator's number to the op's
/// name.
///
/// # Errors
/// The map cannot be written.
pub fn keep_names(model: &Path, files: &[PathBuf], ops: &[Op], out: &Path) -> Result<Option<PathBuf>, ConvertError> {
    let Ok(source) = read_source(model, SourceFormat::Tflite, &[]) else { return Ok(None) };
    let Some(graph) = source.graphs.first() else { return Ok(None) };
    let mut nodes: Vec<MappedNode> =
        graph.nodes.iter().map(|node| (node.label(), node.op_type.clone(), Vec::new())).collect();
    for op in ops {
        if let Some(node) = operator(&op.name).and_then(|at| nodes.get_mut(at)) {
            node.2.push((op.name.clone(), op.op_type.clone()));
        }
    }
    let map = map_beside(out);
    NameMap::of_ops(model, files, nodes).write(&map)?;
    Ok(Some(map))
}

/// `conv0/Conv2d_8_LiteRt_OpId_0` comes from operator 0.
fn operator(op: &str) -> Option<usize> {
    op.rsplit_once("_LiteRt_OpId_")?.1.parse().ok()
}

/// A library under the name that the loader looks for: a link to one that is loaded anyway.
#[cfg(unix)]
fn stand_in(library: &Path, name: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(library, name)
}

#[cfg(not(unix))]
fn stand_in(library: &Path, name: &Path) -> std::io::Result<()> {
    std::fs::copy(library, name).map(drop)
}
