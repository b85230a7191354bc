//! Names of tensor files.

/// Maximum length of a tensor's name within a file name.
const MOST_NAME: usize = 100;

/// Suffix of the files of kept inputs, after the input's name.
pub const INPUT: &str = "input";

/// The file name for one side of a pair, as used by earlier comparisons. The number distinguishes names whose
/// differences a file name cannot hold.
pub fn file_name(number: usize, tensor: &str, what: &str) -> String {
    let name: String =
        tensor.chars().take(MOST_NAME).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{number:04}_{name}.{what}.npy")
}

/// A name in the form that tools use in file names.
pub fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' }).collect()
}
