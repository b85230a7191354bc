//! Names of files with tensors.

/// Longest part of a tensor's name in a file's.
const MOST_NAME: usize = 100;

/// What the files of kept inputs are called, behind the input's name.
pub const INPUT: &str = "input";

/// The file of one side of a pair, as an earlier comparison names it. The number keeps names apart that differ in what a file's
/// name cannot hold.
pub fn file_name(number: usize, tensor: &str, what: &str) -> String {
    let name: String =
        tensor.chars().take(MOST_NAME).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{number:04}_{name}.{what}.npy")
}

/// A name as tools write it into a file's.
pub fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' }).collect()
}
