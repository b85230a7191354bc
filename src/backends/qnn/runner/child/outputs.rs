//! Writes outputs: dequantised float32 as `.raw` and `.npy`.

use super::inputs::dequantize;
use crate::files::{Guard, OutputError, make_output_folder, write_whole};
use crate::models::Tensor;
use npyz::WriterBuilder;
use std::io;
use std::path::{Path, PathBuf};

/// The option that requests outputs.
pub const OPTION: &str = "--save-outputs";

/// Creates the folder, and checks that the outputs of this many inferences overwrite nothing they must not.
pub fn check(guard: &Guard, dir: &Path, inferences: usize, tensors: &[Tensor]) -> Result<(), OutputError> {
    guard.check_folder(OPTION, dir)?;
    make_output_folder(dir).map_err(|source| OutputError::Io { option: OPTION, path: dir.to_owned(), source })?;
    for folder in (0..inferences).map(|index| dir.join(format!("Result_{index}"))).filter(|folder| folder.exists()) {
        for stem in (0..tensors.len()).map(|position| stem(tensors, position)) {
            guard.clear(OPTION, &folder.join(format!("{stem}.raw")))?;
            guard.clear(OPTION, &folder.join(format!("{stem}.npy")))?;
        }
    }
    Ok(())
}

/// Writes the outputs of one inference into `dir/Result_<index>/`; returns the files.
pub fn save(dir: &Path, index: usize, outputs: &[(Tensor, Vec<u8>)]) -> io::Result<Vec<PathBuf>> {
    let folder = dir.join(format!("Result_{index}"));
    std::fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    let tensors: Vec<Tensor> = outputs.iter().map(|(tensor, _)| tensor.clone()).collect();
    for (position, (tensor, bytes)) in outputs.iter().enumerate() {
        let stem = stem(&tensors, position);
        let raw = save_raw(&folder, &stem, tensor, bytes, false)?;
        let values = real_values(tensor, bytes)?;
        let npy = folder.join(format!("{stem}.npy"));
        let shape: Vec<u64> = tensor.shape.iter().map(|&d| u64::from(d)).collect();
        let mut array = Vec::new();
        let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut array).begin_nd()?;
        writer.extend(values)?;
        writer.finish()?;
        write_whole(&npy, &array)?;
        files.extend([raw, npy]);
    }
    Ok(files)
}

/// Writes one output as `STEM.raw` into `folder`, as float32 or in the tensor's own type; returns the file.
pub fn save_raw(folder: &Path, stem: &str, tensor: &Tensor, bytes: &[u8], native: bool) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{stem}.raw"));
    if native {
        write_whole(&path, bytes)?;
    } else {
        let values = real_values(tensor, bytes)?;
        write_whole(&path, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
    }
    Ok(path)
}

fn real_values(tensor: &Tensor, bytes: &[u8]) -> io::Result<Vec<f32>> {
    dequantize(bytes, tensor).ok_or_else(|| {
        io::Error::other(format!("output `{}` has type {}, which has no float32 form", tensor.name, tensor.dtype))
    })
}

/// The file name, without extension, of the output at `position`; unique per output.
pub fn stem(tensors: &[Tensor], position: usize) -> String {
    let stem = file_stem(&tensors[position].name);
    let taken = tensors[..position].iter().any(|earlier| file_stem(&earlier.name) == stem);
    if taken { format!("{stem}_{position}") } else { stem }
}

/// A tensor name as a file name: only letters, digits, `.`, `-` and `_`, never hidden, at most 120 characters.
fn file_stem(name: &str) -> String {
    let stem: String = name
        .chars()
        .take(120)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    let stem = stem.trim_start_matches('.').to_owned();
    if stem.is_empty() { "output".to_owned() } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{DataType, TensorKind};

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(file_stem("../../etc/passwd"), "_.._etc_passwd");
        assert_eq!(file_stem("$(reboot)\n"), "__reboot__");
        assert_eq!(file_stem(""), "output");
    }

    #[test]
    fn npy_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let tensor = Tensor {
            name: "p/q".into(),
            dtype: DataType::FLOAT_32,
            shape: vec![1, 3],
            quantization: None,
            kind: TensorKind::Output,
        };
        let bytes: Vec<u8> = [1.0f32, 2.5, -3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let files = save(dir.path(), 0, &[(tensor.clone(), bytes.clone()), (tensor, bytes.clone())]).unwrap();
        assert_eq!(files.len(), 4);
        assert_eq!(std::fs::read(&files[0]).unwrap(), bytes);
        let npy = std::fs::read(&files[1]).unwrap();
        let file = npyz::NpyFile::new(&npy[..]).unwrap();
        assert_eq!(file.shape(), [1, 3]);
        assert_eq!(file.into_vec::<f32>().unwrap(), [1.0, 2.5, -3.0]);
    }
}
