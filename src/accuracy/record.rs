//! Recorded sides: a run of a session or result, or a side of an earlier comparison.

use super::document::AccuracyDocument;
use super::file_names::file_name;
use super::inputs::Inputs;
use super::kept::Kept;
use super::layout::Layout;
use super::outputs::located;
use super::role::Role;
use crate::analysis::compare;
use crate::backends::Backend;
use crate::backends::settings::SettingRequest;
use crate::event::{Driver, LOCAL_DEVICE, TensorData, clean_text};
use crate::files::sha256_hex;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// File name of a comparison's document, in the folder with its tensors.
pub const DOCUMENT: &str = "accuracy.json";
/// Settings that affect what a graph computes.
const SETTINGS: [&str; 3] = ["soc_model", "htp_arch", "precision"];

/// What is needed to reproduce a side.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its model.
    pub model: PathBuf,
    /// Its SHA-256, lower-case hex.
    pub sha256: Option<String>,
    /// Its backend.
    pub backend: Backend,
    /// Its graph, if one was named.
    pub graph: Option<String>,
    /// Settings that affect the result.
    pub settings: Vec<SettingRequest>,
    /// Free dimensions of an ONNX model.
    pub dimensions: Vec<(String, u64)>,
    /// Device that computed it, if not this machine.
    pub device: Option<String>,
    /// Its data, if reproducible.
    pub inputs: Option<Inputs>,
    /// Its tensors, if kept.
    pub kept: Option<Kept>,
}

/// The comparison in a file, or in a folder of kept tensors; `None` for other files.
///
/// # Errors
/// The problem, worded to follow the name.
pub fn document_of(path: &Path) -> Result<Option<(PathBuf, AccuracyDocument)>, String> {
    let file = if path.is_dir() { path.join(DOCUMENT) } else { path.to_owned() };
    Ok(AccuracyDocument::read(&file)?.map(|document| (file, document)))
}

impl Record {
    /// A side of an earlier comparison, stored in `file`.
    ///
    /// # Errors
    /// What is missing, worded to follow the file's name.
    pub fn of_comparison(file: &Path, document: &AccuracyDocument, role: Role) -> Result<Self, String> {
        let side = document.side(role);
        let backend = side.backend.parse().map_err(|_| format!("names the backend `{}`", clean_text(&side.backend)))?;
        let kept = kept_in(file, document);
        let inputs = document.data.as_ref().and_then(|data| {
            let path = data.path.as_ref().map(|path| located(Path::new(path), file));
            let (names, count) = (data.names.clone(), document.inferences);
            match (kept.as_ref(), data.kind.as_str(), path) {
                (Some(folder), ..) => Some(Inputs::Kept { folder: folder.clone(), names, count }),
                (None, "random", _) => Some(Inputs::Random { count, seed: data.seed? }),
                (None, "folder", Some(path)) => Some(Inputs::Folder(path)),
                (None, "list", Some(path)) => Some(Inputs::List(path)),
                _ => None,
            }
        });
        let settings = side.settings.iter().filter(|(name, _)| SETTINGS.contains(&name.as_str()));
        Ok(Self {
            model: located(Path::new(&side.model), file),
            sha256: Some(side.sha256.clone()),
            backend,
            graph: side.graph.clone(),
            settings: settings.map(|(name, value)| setting(name, value.clone())).collect(),
            dimensions: side.dimensions.iter().map(|(name, size)| (name.clone(), *size)).collect(),
            device: side.device.clone(),
            inputs,
            kept: kept.map(|folder| kept_side(document, role, &folder)),
        })
    }

    /// A run of the session or result in `file`. It kept no more than its outputs, so it is computed again.
    ///
    /// # Errors
    /// What is missing, worded to follow the file's name.
    pub fn of_run(file: &Path, run: &compare::Side) -> Result<Self, String> {
        if matches!(run.driver, Driver::Imported | Driver::Tap) {
            return Err("is from a program that qnnscope did not run: there is no model to run again".to_owned());
        }
        let model = run.model.as_ref().ok_or("does not name its model")?;
        let applied = run.settings.iter().filter(|setting| setting.applied);
        let settings = applied.filter_map(|row| {
            let key = row.key.trim_start_matches('-').replace('-', "_");
            let name = SETTINGS.into_iter().find(|name| key.rsplit('.').next() == Some(name))?;
            let value = row.value.parse::<u32>().map_or_else(|_| row.value.clone().into(), serde_json::Value::from);
            Some(setting(name, value))
        });
        Ok(Self {
            model: located(Path::new(model), file),
            sha256: run.model_sha256.clone(),
            backend: run.backend,
            graph: None,
            settings: settings.collect(),
            dimensions: Vec::new(),
            device: Some(run.device.clone()).filter(|device| device != LOCAL_DEVICE),
            inputs: files(file, &run.inputs)?,
            kept: None,
        })
    }
}

fn setting(name: &str, value: serde_json::Value) -> SettingRequest {
    SettingRequest { origin: format!("--{}", name.replace('_', "-")), name: name.to_owned(), value, backend: None }
}

/// The folder with the tensors of a comparison, if they still belong to this one.
fn kept_in(file: &Path, document: &AccuracyDocument) -> Option<PathBuf> {
    let saved = document.saved_tensors.as_ref()?;
    let beside = file.parent().filter(|_| file.file_name().is_some_and(|name| name == DOCUMENT)).map(Path::to_owned);
    [beside, Some(PathBuf::from(saved))].into_iter().flatten().find(|folder| {
        let own = AccuracyDocument::read(&folder.join(DOCUMENT)).ok().flatten();
        own.is_some_and(|own| own == *document) && folder.join("input_0").is_dir()
    })
}

/// One side of a comparison whose tensors were kept in `folder`.
fn kept_side(document: &AccuracyDocument, role: Role, folder: &Path) -> Kept {
    let side = document.side(role);
    let mut tensors = HashMap::new();
    for (number, pair) in document.pairs.iter().enumerate().filter(|(_, pair)| pair.read) {
        let file = file_name(number, &pair.test, role.name());
        // The files of both sides are in the test's order.
        let (name, layout) = match role {
            Role::Test => (&pair.test, Layout::Same),
            Role::Reference => (&pair.reference, Layout::back(pair.permutation.as_deref())),
        };
        tensors.entry(name.clone()).or_insert((file, layout, pair.shape.clone()));
    }
    let mut kept = Kept::comparison(folder, tensors);
    (kept.runtime, kept.simulated, kept.device) = (Some(side.runtime.clone()), side.simulated, side.device.clone());
    kept
}

/// The input files of a run with real inputs; `None` for random ones.
fn files(file: &Path, inputs: &[TensorData]) -> Result<Option<Inputs>, String> {
    let mut files = Vec::new();
    for input in inputs.iter().filter(|input| input.source != "random") {
        let path = located(Path::new(&input.source), file);
        let found = File::open(&path).and_then(sha256_hex).map(|(sha256, _)| sha256);
        let found =
            found.map_err(|error| format!("names the input {}, which cannot be read: {error}", path.display()))?;
        if input.sha256.as_ref().is_some_and(|recorded| *recorded != found) {
            return Err(format!(
                "does not name all its inputs, or {} has changed since: give the data with --inputs or --input-list",
                path.display()
            ));
        }
        files.push((input.name.clone(), path));
    }
    // Random data mixed with files is not reproducible.
    Ok((!files.is_empty() && files.len() == inputs.len()).then_some(Inputs::Files(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_those_of_the_run_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let (data, record) = (dir.path().join("x.raw"), dir.path().join("run.json"));
        std::fs::write(&data, [0; 8]).unwrap();
        let sha256 = sha256_hex([0u8; 8].as_slice()).unwrap().0;
        let row = |source: &str, sha256: Option<&str>| TensorData {
            name: "x".to_owned(),
            source: source.to_owned(),
            bytes: 8,
            quantization: None,
            sha256: sha256.map(ToOwned::to_owned),
        };
        assert!(files(&record, &[row("random", None)]).unwrap().is_none());
        // Beside the record, if not in the working directory.
        let found = files(&record, &[row("x.raw", Some(&sha256))]).unwrap();
        assert!(matches!(found, Some(Inputs::Files(files)) if files == [("x".to_owned(), data)]));
        assert!(files(&record, &[row("x.raw", Some("00"))]).unwrap_err().contains("--input-list"));
        assert!(files(&record, &[row("gone.raw", None)]).unwrap_err().contains("gone.raw"));
        assert!(files(&record, &[row("x.raw", None), row("random", None)]).unwrap().is_none());
    }
}
