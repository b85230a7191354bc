//! Locations of a session's files in a dataset, and whether all of them exist and are complete.

use super::table::Table;
use super::{DatasetError, TABLES_KEY};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::io;
use std::path::{Path, PathBuf};

/// Files of a session in a dataset.
#[derive(Debug)]
pub struct Parts<'a> {
    folder: &'a Path,
    date: String,
    key: &'a str,
}

impl<'a> Parts<'a> {
    /// The files of the session with this key.
    pub fn of(folder: &'a Path, key: &'a str) -> Self {
        let date = key.get(..8).map_or_else(String::new, |day| format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..8]));
        Self { folder, date, key }
    }

    /// The file in a table.
    pub fn file(&self, table: Table) -> PathBuf {
        self.below(table).join(format!("{}.parquet", self.key))
    }

    fn below(&self, table: Table) -> PathBuf {
        self.folder.join(table.name()).join(format!("date={}", self.date))
    }

    /// The same, creating its folder. A symbolic link in the path could lead outside the dataset, to other
    /// files.
    pub fn make(&self, table: Table) -> Result<PathBuf, DatasetError> {
        let file = self.file(table);
        let below = self.below(table);
        std::fs::create_dir_all(&below).map_err(|source| DatasetError::Io { path: below.clone(), source })?;
        let table = self.folder.join(table.name());
        match [table, below, file.clone()].into_iter().find(|path| path.is_symlink()) {
            Some(path) => Err(DatasetError::Link { path }),
            None => Ok(file),
        }
    }

    /// True if the session is complete: the file of its runs, written last, records what the other tables have.
    pub fn is_whole(&self) -> bool {
        let Ok(runs) = read(&self.file(Table::Runs)) else { return false };
        let Some(counts) = runs.tables else { return false };
        Table::ALL.iter().filter(|table| **table != Table::Runs).all(|table| {
            let wanted = counts.iter().find(|(name, _)| name == table.name()).map(|(_, rows)| *rows);
            match wanted {
                Some(wanted) => read(&self.file(*table)).is_ok_and(|part| part.rows == wanted),
                None => true,
            }
        })
    }

    /// True if a file with this content was added on another day: a file without a date of its own gets the
    /// date it was written.
    pub fn is_known_by_content(&self) -> bool {
        let Some(hash) = self.key.rsplit('-').next() else { return false };
        let days = std::fs::read_dir(self.folder.join(Table::Runs.name())).into_iter().flatten().flatten();
        let files = days.flat_map(|day| std::fs::read_dir(day.path()).into_iter().flatten().flatten());
        let mut keys = files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".parquet").map(str::to_owned));
        keys.any(|key| key.rsplit('-').next() == Some(hash) && Parts::of(self.folder, &key).is_whole())
    }

    /// True if any part of the session exists.
    pub fn is_begun(&self) -> bool {
        Table::ALL.iter().any(|table| self.file(*table).symlink_metadata().is_ok())
    }
}

/// What a file records about itself.
struct Part {
    rows: u64,
    /// In the file of the runs: the tables that the session has rows in, and their numbers.
    tables: Option<Vec<(String, u64)>>,
}

fn read(path: &Path) -> io::Result<Part> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let reader = SerializedFileReader::new(std::fs::File::open(path)?).map_err(io::Error::other)?;
    let metadata = reader.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let tables = pairs.filter(|pair| pair.key == TABLES_KEY).find_map(|pair| counts(pair.value.as_deref()?));
    Ok(Part { rows: u64::try_from(metadata.num_rows()).unwrap_or(0), tables })
}

/// `inferences:120 ops:6000`, as [`of_counts`] writes it.
fn counts(text: &str) -> Option<Vec<(String, u64)>> {
    let one = |word: &str| word.split_once(':').and_then(|(name, rows)| Some((name.to_owned(), rows.parse().ok()?)));
    text.split_whitespace().map(one).collect()
}

/// What the file of the runs records about the other tables.
pub fn of_counts(counts: &[(&'static str, u64)]) -> String {
    counts.iter().map(|(name, rows)| format!("{name}:{rows}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back() {
        let written = of_counts(&[("inferences", 120), ("ops", 6000)]);
        assert_eq!(counts(&written), Some(vec![("inferences".to_owned(), 120), ("ops".to_owned(), 6000)]));
        assert_eq!(counts(""), Some(vec![]));
        for text in ["ops", "ops:", "ops:-1", "ops:1x"] {
            assert_eq!(counts(text), None, "{text}");
        }
    }
}
