//! A shareable report: log, diagnosis, doctor and versions in one zip archive, without data about its owner.

use crate::text::{Redactor, counted};
use std::fmt::Write as _;
use std::io::{self, Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Folder in the archive, by which qnnscope recognises its own reports.
pub const BUNDLE_FOLDER: &str = "qnnscope-report/";
/// Bytes included from the start and from the end of a log.
const HEAD_BYTES: usize = 2 << 20;
const TAIL_BYTES: usize = 6 << 20;

/// Files of a report, redacted as they are added.
#[derive(Debug, Default)]
pub struct Bundle {
    redactor: Redactor,
    files: Vec<(&'static str, String)>,
}

impl Bundle {
    /// An empty bundle. `words` are names to remove, each with a description.
    pub fn new(words: &[(String, &'static str)]) -> Self {
        let mut bundle = Self::default();
        for (word, what) in words {
            bundle.redactor.word(word, what);
        }
        bundle
    }

    /// Adds a file.
    pub fn add(&mut self, name: &'static str, text: &str) {
        let text = self.redactor.redact(text);
        self.files.push((name, text));
    }

    /// Adds a log; of a long one only the start and the end.
    pub fn add_log(&mut self, log: &[u8]) {
        let text = if log.len() <= HEAD_BYTES + TAIL_BYTES {
            String::from_utf8_lossy(log).into_owned()
        } else {
            let left_out = log.len() - HEAD_BYTES - TAIL_BYTES;
            let [head, tail] = [&log[..HEAD_BYTES], &log[log.len() - TAIL_BYTES..]].map(String::from_utf8_lossy);
            format!("{head}\n... {left_out} bytes left out ...\n{tail}")
        };
        self.add("log.txt", &text);
    }

    /// The contents, and what was removed, for review before writing.
    pub fn preview(&self) -> String {
        let mut out = String::new();
        for (name, text) in &self.files {
            let _ = writeln!(
                out,
                "{BUNDLE_FOLDER}{name}: {}, {}",
                counted(text.lines().count() as u64, "line"),
                counted(text.len() as u64, "byte")
            );
            for line in text.lines().take(3) {
                let line: String = line.chars().filter(|c| !c.is_control()).take(110).collect();
                let _ = writeln!(out, "    {line}");
            }
        }
        let taken: Vec<String> = self.redactor.counts().map(|(what, count)| format!("{what} {count}")).collect();
        let taken = if taken.is_empty() { "nothing".to_owned() } else { taken.join(", ") };
        let _ = writeln!(out, "removed: {taken}");
        out
    }

    /// The archive.
    ///
    /// # Errors
    /// The archive cannot be built, for which a lack of memory is the only reason.
    pub fn archive(&self) -> io::Result<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        for (name, text) in &self.files {
            zip.start_file(format!("{BUNDLE_FOLDER}{name}"), options).map_err(io::Error::other)?;
            zip.write_all(text.as_bytes())?;
        }
        Ok(zip.finish().map_err(io::Error::other)?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_archive_has_the_redacted_files_and_the_preview_names_them() {
        let mut bundle = Bundle::new(&[("annabell".to_owned(), "user")]);
        bundle.add("versions.txt", "qnnscope 1, of annabell");
        let log = format!("/home/anna/x failed\n{}\nlast line", "x".repeat(HEAD_BYTES + TAIL_BYTES));
        bundle.add_log(log.as_bytes());
        let preview = bundle.preview();
        assert!(
            preview.contains("qnnscope-report/log.txt: ") && preview.contains("home folders 1, user 1"),
            "{preview}"
        );
        let mut archive = zip::ZipArchive::new(Cursor::new(bundle.archive().unwrap())).unwrap();
        let mut text = String::new();
        archive.by_name("qnnscope-report/log.txt").unwrap().read_to_string(&mut text).unwrap();
        assert!(text.starts_with("/home/<user>/x failed") && text.ends_with("last line") && text.contains("left out"));
        assert!(archive.by_name("qnnscope-report/versions.txt").is_ok());
    }
}
