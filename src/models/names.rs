//! The map that `qnnscope convert` writes beside its result: which op comes from which node of the source.

use crate::event::{SourceNames, clean_text};
use crate::files::read_at_most;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Schema of the map.
pub const NAMES_SCHEMA: &str = "qnnscope.names/1";
/// Extension of its file name.
const ENDING: &str = ".names.json";
/// Largest map that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Most files examined in a folder to find the map of a file with a different name.
const MOST_FILES: usize = 1 << 14;
/// Most maps read in a folder for that.
const MOST_MAPS: usize = 32;

/// Path of a result's map: `model.dlc` has `model.names.json`.
pub fn map_beside(result: &Path) -> PathBuf {
    result.with_extension(&ENDING[1..])
}

#[derive(Deserialize)]
struct Map {
    schema: String,
    source: String,
    results: Vec<String>,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    node: Option<String>,
    #[serde(default)]
    qnn_ops: Vec<Op>,
}

#[derive(Deserialize)]
struct Op {
    name: String,
}

/// The map of a model; `None` if there is none, or if existing ones belong to other files.
pub fn source_names(model: &Path) -> Option<SourceNames> {
    names_file(model).map(|(_, names)| names)
}

/// The map file of a model, and its contents. One map serves all partitions of a model (`model-0.dlc`), and
/// the binaries beside an EPContext model.
pub fn names_file(model: &Path) -> Option<(PathBuf, SourceNames)> {
    let name = model.file_name()?.to_string_lossy().into_owned();
    let beside = map_beside(model);
    if let Some(names) = read_map(&beside, &name) {
        return Some((beside, names));
    }
    let folder = match model.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(folder).ok()?.flatten().take(MOST_FILES).map(|entry| entry.path());
    let mut maps: Vec<PathBuf> = entries
        .filter(|path| path.to_string_lossy().ends_with(ENDING) && path.file_name() != beside.file_name())
        .collect();
    // Files whose names start alike come first.
    let alike = |path: &PathBuf| {
        let other = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        std::cmp::Reverse(other.chars().zip(name.chars()).take_while(|(one, two)| one == two).count())
    };
    maps.sort_by_cached_key(|path| (alike(path), path.clone()));
    maps.into_iter().take(MOST_MAPS).find_map(|path| read_map(&path, &name).map(|names| (path, names)))
}

/// The map in this file, if it is for a model of this name.
fn read_map(path: &Path, model: &str) -> Option<SourceNames> {
    let map: Map = serde_json::from_slice(&read_at_most(path, MOST_BYTES).ok()?).ok()?;
    if map.schema != NAMES_SCHEMA || !map.results.iter().any(|result| result == model) {
        return None;
    }
    let ops = |Node { node, qnn_ops }: Node| {
        qnn_ops.into_iter().filter_map(move |op| Some((clean_text(&op.name), clean_text(node.as_deref()?))))
    };
    let nodes: BTreeMap<String, String> = map.nodes.into_iter().flat_map(ops).collect();
    Some(SourceNames { source: clean_text(&map.source), nodes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(results: &str) -> String {
        format!(
            r#"{{"schema":"qnnscope.names/1","source":"m.onnx","results":["{results}"],"nodes":[
            {{"node":"Conv@0","qnn_ops":[{{"name":"Conv@0_token_1","type":"Conv2d"}}]}},{{"node":null,"qnn_ops":[{{"name":"t"}}]}}]}}"#
        )
    }

    #[test]
    fn maps_of_other_files_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.dlc");
        assert_eq!(source_names(&model), None);
        std::fs::write(dir.path().join("m.names.json"), map("m.dlc")).unwrap();
        let found = source_names(&model).unwrap();
        assert_eq!((found.source.as_str(), found.nodes.len()), ("m.onnx", 1));
        assert_eq!(found.nodes["Conv@0_token_1"], "Conv@0");
        std::fs::write(dir.path().join("m.names.json"), map("n.dlc")).unwrap();
        assert_eq!(source_names(&model), None);
        std::fs::write(dir.path().join("m.names.json"), "{").unwrap();
        assert_eq!(source_names(&model), None);
    }

    #[test]
    fn partitions_and_binaries_share_the_map_of_their_model() {
        let dir = tempfile::tempdir().unwrap();
        for (file, model) in [("a.names.json", "a.dlc"), ("m.names.json", "m-1.dlc"), ("z.names.json", "z.dlc")] {
            std::fs::write(dir.path().join(file), map(model)).unwrap();
        }
        assert!(source_names(&dir.path().join("m-1.dlc")).is_some());
        assert_eq!(source_names(&dir.path().join("m-2.dlc")), None);
    }
}
