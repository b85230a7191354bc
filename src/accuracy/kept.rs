//! Tensors of a model computed earlier: the files written by qnn-net-run's `--debug`, or those of an earlier
//! comparison.

use super::file_names::plain;
use super::layout::Layout;
use super::outputs::{insert_array, read_values};
use super::values::real_values;
use crate::event::RuntimeInfo;
use crate::files::read_at_most;
use crate::models::Tensor;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Maximum size of a tensor's file, bytes.
const MOST_BYTES: u64 = 1 << 30;
/// Suffix of files in a tensor's own type.
const NATIVE: &str = "_native";
/// The tensors of a side, kept in a folder.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The folder.
    pub folder: PathBuf,
    /// Libraries that computed them, if known.
    pub runtime: Option<RuntimeInfo>,
    /// True if they come from a simulator.
    pub simulated: bool,
    /// Device that computed them, if not this machine.
    pub device: Option<String>,
    files: Files,
}

#[derive(Debug, Clone)]
enum Files {
    /// `Result_<i>/NAME.npy`, `NAME.raw` or `NAME_native.raw`.
    Results,
    /// `input_<i>/…` of an earlier comparison: for each tensor its file and layout.
    Comparison(HashMap<String, (String, Layout, Vec<u32>)>),
}

impl Kept {
    /// A tool's `Result_<i>` folders.
    pub fn results(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), runtime: None, simulated: false, device: None, files: Files::Results }
    }

    /// The tensors that an earlier comparison kept of one of its sides: each with its file and its layout
    /// there.
    pub(super) fn comparison(folder: &Path, tensors: HashMap<String, (String, Layout, Vec<u32>)>) -> Self {
        Self { files: Files::Comparison(tensors), ..Self::results(folder) }
    }

    /// Examines the files of an inference.
    ///
    /// # Errors
    /// There are no files.
    pub fn inference(&self, index: u64) -> Result<Inference, String> {
        match &self.files {
            Files::Results => {
                let folder = self.folder.join(format!("Result_{index}"));
                let entries = std::fs::read_dir(&folder).map_err(|error| missing(index, &folder, &error))?;
                let mut files = BTreeMap::new();
                for path in entries.flatten().map(|entry| entry.path()) {
                    insert_array(&mut files, path);
                }
                let named = |(stem, path)| (stem, (path, Layout::Same, Vec::new()));
                Ok(Inference { files: files.into_iter().map(named).collect() })
            }
            Files::Comparison(tensors) => {
                let folder = self.folder.join(format!("input_{index}"));
                std::fs::metadata(&folder).map_err(|error| missing(index, &folder, &error))?;
                let located = |(name, (file, layout, shape)): (&String, &(String, Layout, Vec<u32>))| {
                    (name.clone(), (folder.join(file), layout.clone(), shape.clone()))
                };
                Ok(Inference { files: tensors.iter().map(located).collect() })
            }
        }
    }
}

fn missing(index: u64, folder: &Path, error: &std::io::Error) -> String {
    format!("cannot read the tensors of inference {index} in {}: {error}", folder.display())
}

/// The tensors of one inference.
#[derive(Debug, Default)]
pub struct Inference {
    /// By name: the file, and the layout of the tensor's values in it.
    files: HashMap<String, (PathBuf, Layout, Vec<u32>)>,
}

impl Inference {
    /// The values of a tensor; `None` if it has no file.
    ///
    /// # Errors
    /// Its file cannot be read, or has the wrong size.
    pub fn values(&self, tensor: &Tensor) -> Result<Option<Vec<f64>>, String> {
        let plain = plain(&tensor.name);
        let named = [&tensor.name, &plain].into_iter().find_map(|name| self.files.get(name));
        let native = [&tensor.name, &plain].into_iter().find_map(|name| self.files.get(&format!("{name}{NATIVE}")));
        let wrong = |path: &Path, reason: &str| format!("{}: {reason}", path.display());
        let values = match (named, native) {
            (Some((path, layout, shape)), _) => {
                let values = read_values(path, MOST_BYTES).map_err(|reason| wrong(path, &reason))?.1;
                layout.arranged(values, shape)
            }
            (None, Some((path, ..))) => {
                let bytes = read_at_most(path, MOST_BYTES).map_err(|error| wrong(path, &error.to_string()))?;
                real_values(&bytes, tensor).ok_or_else(|| wrong(path, "its size or type differs from the tensor's"))?
            }
            (None, None) => return Ok(None),
        };
        let path = named.or(native).map(|(path, ..)| path.clone()).unwrap_or_default();
        let elements = tensor.elements();
        if Some(values.len() as u64) != elements {
            let expected = elements.unwrap_or(u64::MAX);
            let text = format!("it has {} values, tensor `{}` has {expected}", values.len(), tensor.name);
            return Err(wrong(&path, &text));
        }
        Ok(Some(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{DataType, Quantization, TensorKind};

    #[test]
    fn files_are_found_by_name_in_both_types() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("Result_0");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a_b.raw"), [1.0f32, 2.0].map(f32::to_le_bytes).concat()).unwrap();
        std::fs::write(folder.join("q_native.raw"), [2u8, 4]).unwrap();
        let tensor = |name: &str, quantization| Tensor {
            name: name.to_owned(),
            dtype: DataType(0x0408),
            shape: vec![1, 2],
            quantization,
            kind: TensorKind::Native,
        };
        let kept = Kept::results(dir.path());
        let found = kept.inference(0).unwrap();
        assert_eq!(found.values(&tensor("a/b", None)).unwrap(), Some(vec![1.0, 2.0]));
        let scale = Quantization::ScaleOffset { scale: 0.5, offset: -2, bitwidth: None };
        assert_eq!(found.values(&tensor("q", Some(scale))).unwrap(), Some(vec![0.0, 1.0]));
        assert_eq!(found.values(&tensor("none", None)).unwrap(), None);
        let wide = Tensor { shape: vec![1, 3], ..tensor("a/b", None) };
        assert!(found.values(&wide).unwrap_err().contains("2 values, tensor `a/b` has 3"));
        assert!(kept.inference(1).unwrap_err().contains("inference 1"));
    }
}
