//! The steps of a conversion with QNN's own libraries and ONNX Runtime.

use super::course::Course;
use super::error::ConvertError;
use super::names::NameMap;
use crate::backends::ProfilingLevel;
use crate::backends::local::{Ended, Limits};
use crate::backends::qnn::runner::{ConvertTask, ConvertWork, Converted, Frame, RunTask, Task};
use crate::event::{Budget, NodeProvider};
use crate::files::write_whole;
use crate::models::{map_beside, names_file};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What to convert a model to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvertTarget {
    /// A DLC, or one per partition.
    Dlc,
    /// A context binary.
    Binary,
    /// An ONNX model with context binaries.
    ContextModel {
        /// Embed the binaries instead of writing them beside the model.
        embed: bool,
    },
}

impl ConvertTarget {
    /// The target for a file name; `None` if its extension does not determine one.
    pub fn of(path: &Path, embed: bool) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "dlc" => Some(Self::Dlc),
            "bin" => Some(Self::Binary),
            "onnx" => Some(Self::ContextModel { embed }),
            _ => None,
        }
    }

    /// Name for users.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dlc => "a DLC",
            Self::Binary => "a context binary",
            Self::ContextModel { .. } => "an EPContext model",
        }
    }
}

/// A requested conversion.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The model, its backend and its options, as for a run.
    pub run: RunTask,
    /// The target.
    pub target: ConvertTarget,
    /// The output file.
    pub out: PathBuf,
    /// Overwrite existing files.
    pub force: bool,
    /// Whether a node that QNN does not take is an error.
    pub no_cpu_fallback: bool,
    /// Limits for each process.
    pub limits: Limits,
}

/// The result.
#[derive(Debug, Clone)]
pub struct Made {
    /// The files, the requested one first.
    pub files: Vec<PathBuf>,
    /// The map of names, if one was written.
    pub names: Option<PathBuf>,
    /// What the plug-in reported, for ONNX models.
    pub converted: Option<Converted>,
    /// Time, in seconds.
    pub seconds: f64,
}

/// Runs the conversion.
pub async fn carry_out(conversion: &Conversion, course: &Course<'_>) -> Result<Made, ConvertError> {
    let begun = Instant::now();
    let made = match (&conversion.run.onnx, conversion.target) {
        (Some(_), target) => of_onnx(conversion, target, course).await?,
        (None, ConvertTarget::Binary) => compiled(conversion, course).await?,
        (None, target) => {
            return Err(ConvertError::NoWay {
                model: conversion.run.model.clone(),
                to: target.label().to_owned(),
                reason: "QNN's own formats convert to context binaries only".to_owned(),
            });
        }
    };
    Ok(Made { seconds: begun.elapsed().as_secs_f64(), ..made })
}

/// Refuses to overwrite an existing file unless `force` is set.
fn free(path: &Path, force: bool) -> Result<(), ConvertError> {
    if path.exists() && !force {
        return Err(ConvertError::Exists { path: path.to_owned() });
    }
    Ok(())
}

/// Name of a result file, in place of the name that the plug-in gave it.
pub(super) fn in_place(out: &Path, index: usize, of: usize) -> PathBuf {
    if of == 1 {
        return out.to_owned();
    }
    let mut name = out.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{index}"));
    if let Some(extension) = out.extension() {
        name.push(".");
        name.push(extension);
    }
    out.with_file_name(name)
}

/// Number of a partition from its file name: `..._2_0.dlc` is 0.
fn partition_number(name: &str) -> u64 {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.rsplit_once('_').and_then(|(_, number)| number.parse().ok()).unwrap_or(u64::MAX)
}

async fn of_onnx(conversion: &Conversion, target: ConvertTarget, course: &Course<'_>) -> Result<Made, ConvertError> {
    let Conversion { run, out, force, .. } = conversion;
    free(out, *force)?;
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ConvertError::Io { action, path, source }
    };
    let dir = crate::files::private_folder().map_err(io("make a folder in", &std::env::temp_dir()))?;
    let name = match target {
        ConvertTarget::ContextModel { .. } => out.file_name().map(|name| name.to_string_lossy().into_owned()),
        ConvertTarget::Dlc | ConvertTarget::Binary => None,
    };
    let work = match target {
        ConvertTarget::Dlc => ConvertWork::Dlc,
        ConvertTarget::Binary => ConvertWork::Context { name: "model.onnx".to_owned(), embed: false },
        ConvertTarget::ContextModel { embed } => ConvertWork::Context { name: name.unwrap_or_default(), embed },
    };
    let task = ConvertTask { run: run.clone(), out_dir: dir.path().to_owned(), work };
    let converted = match course.ask(&Task::Convert(Box::new(task)), conversion.limits).await? {
        Ended::Done(Some(Frame::Converted(converted))) => *converted,
        Ended::Done(_) => {
            let failure =
                crate::event::Failure::new(crate::event::Stage::Finalize, "convert", "the runner did not answer");
            return Err(ConvertError::Failure(Box::new(failure)));
        }
        Ended::Failed(failure) => return Err(ConvertError::Failure(failure)),
    };
    check_placement(conversion, &converted)?;
    let ending = match target {
        ConvertTarget::Dlc => ".dlc",
        ConvertTarget::Binary => ".bin",
        ConvertTarget::ContextModel { .. } => "",
    };
    let mut names: Vec<&String> = converted.files.iter().filter(|name| name.ends_with(ending)).collect();
    names.sort_by_key(|name| (partition_number(name), (*name).clone()));
    if names.is_empty() {
        let reason = converted.placed.problem.clone().unwrap_or_else(|| "no file was written".to_owned());
        return Err(ConvertError::Nothing { model: run.model.clone(), reason });
    }
    if target == ConvertTarget::Binary && (names.len() > 1 || converted.placed.partitions.len() > 1) {
        let reason = "nodes on the CPU separate them".to_owned();
        return Err(ConvertError::Several { count: converted.placed.partitions.len(), reason });
    }
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let to = match target {
            ConvertTarget::ContextModel { .. } => out.with_file_name(name),
            ConvertTarget::Dlc | ConvertTarget::Binary => in_place(out, index, names.len()),
        };
        free(&to, *force)?;
        files.push(to);
    }
    for (name, to) in names.iter().zip(&files) {
        let bytes = std::fs::read(dir.path().join(name)).map_err(io("read", &dir.path().join(name)))?;
        write_whole(to, &bytes).map_err(io("write", to))?;
    }
    // The requested file comes first.
    files.sort_by_key(|path| path != out);
    let map = map_beside(out);
    NameMap::new(&run.model, &files, &converted).write(&map)?;
    Ok(Made { files, names: Some(map), converted: Some(converted), seconds: 0.0 })
}

fn check_placement(conversion: &Conversion, converted: &Converted) -> Result<(), ConvertError> {
    let placed = &converted.placed;
    if placed.is_all_cpu() {
        let first = placed.nodes.iter().find_map(|node| node.reason.clone());
        let reason = placed.problem.clone().or(first).unwrap_or_else(|| "the reason is unknown".to_owned());
        return Err(ConvertError::Nothing { model: conversion.run.model.clone(), reason });
    }
    let on_cpu: Vec<String> = placed
        .nodes
        .iter()
        .filter(|node| node.provider == NodeProvider::Cpu)
        .map(|node| {
            let reason = node.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            format!("`{}` ({}){reason}", node.node, node.op_type)
        })
        .collect();
    if conversion.no_cpu_fallback && !on_cpu.is_empty() {
        let nodes = on_cpu.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
        return Err(ConvertError::Fallback { count: on_cpu.len(), all: placed.nodes.len(), nodes });
    }
    Ok(())
}

/// Compiles a model in one of QNN's own formats: runs one inference and saves the compiled context.
async fn compiled(conversion: &Conversion, course: &Course<'_>) -> Result<Made, ConvertError> {
    free(&conversion.out, conversion.force)?;
    let task = RunTask {
        save_context: Some(conversion.out.clone()),
        overwrite: conversion.force,
        warmup: 0,
        budget: Budget::Iterations(1),
        profiling: ProfilingLevel::Off,
        ..conversion.run.clone()
    };
    match course.ask(&Task::Run(Box::new(task)), conversion.limits).await? {
        Ended::Done(_) => {
            let names = hand_on(&conversion.run.model, &conversion.out)?;
            Ok(Made { files: vec![conversion.out.clone()], names, converted: None, seconds: 0.0 })
        }
        Ended::Failed(failure) => Err(ConvertError::Failure(failure)),
    }
}

/// Copies the model's map, if it has one, to the result.
fn hand_on(model: &Path, out: &Path) -> Result<Option<PathBuf>, ConvertError> {
    let map = names_file(model).and_then(|(path, _)| NameMap::read(&path));
    let Some(map) = map else { return Ok(None) };
    let beside = map_beside(out);
    map.handed_on(out).write(&beside)?;
    Ok(Some(beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_partitions_keep_their_order_and_get_numbers() {
        assert!(
            partition_number("QNNExecutionProvider_1_2_0.dlc") < partition_number("QNNExecutionProvider_1_3_1.dlc")
        );
        assert_eq!(partition_number("model.onnx"), u64::MAX);
        assert_eq!(in_place(Path::new("a/m.dlc"), 0, 1), Path::new("a/m.dlc"));
        assert_eq!(in_place(Path::new("a/m.dlc"), 1, 2), Path::new("a/m-1.dlc"));
    }

    #[test]
    fn the_ending_tells_what_is_wanted() {
        assert_eq!(ConvertTarget::of(Path::new("m.DLC"), false), Some(ConvertTarget::Dlc));
        assert_eq!(ConvertTarget::of(Path::new("m.onnx"), true), Some(ConvertTarget::ContextModel { embed: true }));
        assert_eq!(ConvertTarget::of(Path::new("m"), false), None);
    }
}
